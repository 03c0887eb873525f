// What models may cost in tokens and money, and what they did cost, exactly.
// A request goes out only when the most that it can cost fits within what is
// left; afterwards what it did cost is counted. So no limit is ever passed, as
// long as providers bill no more than they were asked for.
//
// Money is counted in whole 10^-12 of the user's currency: prices are given per
// million tokens and have at most six decimals, so that no sum is rounded.
//
// Thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_BUDGET_H_
#define REPRISE_EVOLUTION_LLM_BUDGET_H_

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "evolution/llm/chat_model.h"

namespace reprise::evolution {

// Per million tokens, in the user's currency.
struct ModelPrice {
  double prompt = 0;
  double output = 0;
  std::optional<double> cached_prompt;  // none: as `prompt`
  std::optional<double> cache_write;    // none: as `prompt`
};

// OK: not negative, at most 10,000, at most six decimals.
absl::Status CheckPrice(const ModelPrice& price);

// In 10^-12 of the currency.
int64_t CostOf(const ModelPrice& price, const ChatUsage& usage);

struct BudgetLimits {
  std::optional<uint64_t> tokens;  // prompt and output
  std::optional<double> money;     // at most 1,000,000
};

struct Spending {
  uint64_t requests = 0;  // settled, attempts that failed included
  // Of these, those of which the provider never told the usage: counted with
  // the most that they can have cost.
  uint64_t uncertain = 0;
  ChatUsage usage;
  int64_t money = 0;  // 10^-12

  uint64_t tokens() const { return usage.prompt_tokens + usage.output_tokens; }
  void Add(const Spending& other);
};

class Budget {
 public:
  // `spent`, by model, of an earlier part of the same campaign.
  // INVALID_ARGUMENT: a limit is negative, not a number or too large.
  static absl::StatusOr<std::unique_ptr<Budget>> Create(
      BudgetLimits limits, std::map<std::string, Spending> spent = {});

  // Room for one request. Not settled, it counts as uncertain when it goes.
  // The budget outlives it. Movable; not thread-safe.
  class Reservation {
   public:
    Reservation(Reservation&& other) noexcept;
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation();
    // What it did cost.
    void Settle(const ChatUsage& usage);
    // The provider did not begin to answer, and bills nothing.
    void Release();

   private:
    friend class Budget;
    Reservation(Budget* budget, std::string model, const ModelPrice& price,
                const ChatUsage& most);
    void End(const Spending& spending);
    Budget* budget_;  // null: ended
    std::string model_;
    ModelPrice price_;
    ChatUsage most_;
    int64_t money_;
  };

  // Blocks while other requests hold room that they may give back.
  // RESOURCE_EXHAUSTED: it does not fit, whatever they cost; the message says
  // which limit. CANCELLED, DEADLINE_EXCEEDED: as `limits` says.
  absl::StatusOr<Reservation> Reserve(const std::string& model,
                                      const ModelPrice& price,
                                      const ChatUsage& most,
                                      const ChatLimits& limits);

  Spending Spent() const;
  std::map<std::string, Spending> SpentByModel() const;

 private:
  struct Need {
    uint64_t tokens = 0;
    int64_t money = 0;
  };
  Budget(BudgetLimits limits, std::map<std::string, Spending> spent);
  // With mutex_ held.
  absl::Status Fits(const Need& need, const Need& held) const;

  const BudgetLimits limits_;
  const int64_t most_money_;  // 10^-12
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable settled_;
  std::map<std::string, Spending> spent_;
  Spending total_;
  Need held_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_BUDGET_H_
