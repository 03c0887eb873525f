#include "evolution/llm/budget.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "evolution/llm/call_clock.h"
#include "replay/base/log.h"

namespace reprise::evolution {
namespace {

constexpr double kPico = 1e12;
constexpr double kMostMoney = 1e6;
constexpr double kMostPrice = 1e4;
constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

// Of a price per million tokens: 10^-12 per token.
int64_t PerToken(double price) { return std::llround(price * 1e6); }

std::string MoneyText(int64_t pico) {
  return absl::StrFormat("%.6f", static_cast<double>(pico) / kPico);
}

void AddUsage(const ChatUsage& usage, ChatUsage* sum) {
  sum->prompt_tokens += usage.prompt_tokens;
  sum->cached_tokens += usage.cached_tokens;
  sum->output_tokens += usage.output_tokens;
  sum->reasoning_tokens += usage.reasoning_tokens;
  sum->cache_write_tokens += usage.cache_write_tokens;
}

// The most that so many tokens can cost, however the cache takes part.
int64_t MostCost(const ModelPrice& price, ChatUsage most) {
  int64_t cost = 0;
  for (const auto part :
       {&ChatUsage::cached_tokens, &ChatUsage::cache_write_tokens}) {
    most.cached_tokens = 0;
    most.cache_write_tokens = 0;
    cost = std::max(cost, CostOf(price, most));
    most.*part = most.prompt_tokens;
    cost = std::max(cost, CostOf(price, most));
  }
  return cost;
}

}  // namespace

absl::Status CheckPrice(const ModelPrice& price) {
  for (const double value :
       {price.prompt, price.output, price.cached_prompt.value_or(0),
        price.cache_write.value_or(0)}) {
    if (!(value >= 0 && value <= kMostPrice)) {
      return absl::InvalidArgumentError(
          absl::StrCat("got a price of ", value,
                       " per million tokens, expected 0 to ", kMostPrice));
    }
    const double micro = value * 1e6;
    if (std::abs(micro - std::round(micro)) > 1e-6 * std::max(1.0, micro)) {
      return absl::InvalidArgumentError(
          absl::StrCat("got a price of ", value,
                       " per million tokens, expected at most six decimals"));
    }
  }
  return absl::OkStatus();
}

int64_t CostOf(const ModelPrice& price, const ChatUsage& usage) {
  const uint64_t written =
      std::min(usage.cache_write_tokens, usage.prompt_tokens);
  const uint64_t cached =
      std::min(usage.cached_tokens, usage.prompt_tokens - written);
  const auto cost = [](uint64_t tokens, double price_of_one) {
    return static_cast<__int128>(tokens) * PerToken(price_of_one);
  };
  const __int128 sum =
      cost(usage.prompt_tokens - written - cached, price.prompt) +
      cost(cached, price.cached_prompt.value_or(price.prompt)) +
      cost(written, price.cache_write.value_or(price.prompt)) +
      cost(usage.output_tokens, price.output);
  // A sum of several of these still fits.
  return static_cast<int64_t>(std::min<__int128>(sum, kEndless / 4));
}

void Spending::Add(const Spending& other) {
  requests += other.requests;
  uncertain += other.uncertain;
  AddUsage(other.usage, &usage);
  money = money > kEndless - other.money ? kEndless : money + other.money;
}

absl::StatusOr<std::unique_ptr<Budget>> Budget::Create(
    BudgetLimits limits, std::map<std::string, Spending> spent) {
  if (limits.money.has_value() &&
      !(*limits.money >= 0 && *limits.money <= kMostMoney)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got a budget of ", *limits.money, ", expected 0 to ", kMostMoney));
  }
  return std::unique_ptr<Budget>(new Budget(limits, std::move(spent)));
}

Budget::Budget(BudgetLimits limits, std::map<std::string, Spending> spent)
    : limits_(limits),
      most_money_(limits.money ? std::llround(*limits.money * kPico)
                               : kEndless),
      spent_(std::move(spent)) {
  for (const auto& [model, spending] : spent_) total_.Add(spending);
}

absl::Status Budget::Fits(const Need& need, const Need& held) const {
  const uint64_t tokens = total_.tokens() + held.tokens;
  if (limits_.tokens && tokens + need.tokens > *limits_.tokens) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the budget of ", *limits_.tokens, " tokens has room for ",
                     *limits_.tokens - std::min(tokens, *limits_.tokens),
                     " more, and the next request may take ", need.tokens));
  }
  const int64_t left =
      most_money_ - std::min(most_money_, total_.money) - held.money;
  if (need.money > left) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the budget of ", MoneyText(most_money_), " has ",
        MoneyText(std::max<int64_t>(left, 0)),
        " left, and the next request may cost ", MoneyText(need.money)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Budget::Reservation> Budget::Reserve(const std::string& model,
                                                    const ModelPrice& price,
                                                    const ChatUsage& most,
                                                    const ChatLimits& limits) {
  const Need need = {most.prompt_tokens + most.output_tokens,
                     MostCost(price, most)};
  std::unique_lock lock(mutex_);
  while (!Fits(need, held_).ok()) {
    absl::Status never = Fits(need, {});
    if (!never.ok()) return never;
    const absl::Status within =
        CheckLimits(limits, CallClock::System(), "waiting for the budget");
    if (!within.ok()) return within;
    settled_.wait_for(lock, std::chrono::milliseconds(50));
  }
  held_.tokens += need.tokens;
  held_.money += need.money;
  return Reservation(this, model, price, most);
}

Spending Budget::Spent() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

std::map<std::string, Spending> Budget::SpentByModel() const {
  const std::lock_guard lock(mutex_);
  return spent_;
}

Budget::Reservation::Reservation(Budget* budget, std::string model,
                                 const ModelPrice& price, const ChatUsage& most)
    : budget_(budget),
      model_(std::move(model)),
      price_(price),
      most_(most),
      money_(MostCost(price, most)) {}

Budget::Reservation::Reservation(Reservation&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)),
      model_(std::move(other.model_)),
      price_(other.price_),
      most_(other.most_),
      money_(other.money_) {}

Budget::Reservation::~Reservation() {
  if (budget_ == nullptr) return;
  Spending spending;
  spending.requests = 1;
  spending.uncertain = 1;
  spending.usage = most_;
  spending.money = money_;
  End(spending);
}

void Budget::Reservation::Settle(const ChatUsage& usage) {
  Spending spending;
  spending.requests = 1;
  spending.usage = usage;
  spending.money = CostOf(price_, usage);
  if (usage.prompt_tokens + usage.output_tokens >
          most_.prompt_tokens + most_.output_tokens ||
      spending.money > money_) {
    LOG_WARNING(
        "{} counts {} prompt and {} output tokens for a request that "
        "was to take at most {} and {}",
        model_, usage.prompt_tokens, usage.output_tokens, most_.prompt_tokens,
        most_.output_tokens);
  }
  End(spending);
}

void Budget::Reservation::Release() {
  Spending spending;
  spending.requests = 1;
  End(spending);
}

void Budget::Reservation::End(const Spending& spending) {
  Budget* budget = std::exchange(budget_, nullptr);
  if (budget == nullptr) return;
  {
    const std::lock_guard lock(budget->mutex_);
    budget->held_.tokens -= most_.prompt_tokens + most_.output_tokens;
    budget->held_.money -= money_;
    budget->total_.Add(spending);
    budget->spent_[model_].Add(spending);
  }
  budget->settled_.notify_all();
}

}  // namespace reprise::evolution
