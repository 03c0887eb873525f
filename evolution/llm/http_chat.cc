#include "evolution/llm/http_chat.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "evolution/llm/quote.h"
#include "evolution/llm/retry.h"
#include "replay/base/log.h"

namespace reprise::evolution {
namespace {

constexpr size_t kMaxErrorBytes = 64 << 10;
// Streams carry an event's JSON around every few bytes of text.
constexpr size_t kWireBytesPerByte = 256;

bool HasTries(WireFault fault) {
  return fault == WireFault::kAgain || fault == WireFault::kRate;
}

absl::StatusCode CodeOf(WireFault fault) {
  switch (fault) {
    case WireFault::kQuota:
      return absl::StatusCode::kResourceExhausted;
    case WireFault::kKey:
      return absl::StatusCode::kPermissionDenied;
    case WireFault::kRequest:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

// Reads what one attempt is answered.
class Answer : public HttpSink {
 public:
  Answer(ChatDialect dialect, size_t max_bytes)
      : dialect_(dialect), max_bytes_(max_bytes) {}

  void Head(const HttpHead& head) override {
    head_ = head;
    if (head.status != 200) return;
    reader_ = MakeAnswerReader(dialect_, head.content_type, max_bytes_);
    if (reader_ != nullptr) return;
    error_ = {
        WireFault::kAgain,
        absl::StrCat("got an answer of type \"", QuotedLine(head.content_type),
                     "\", expected text/event-stream or "
                     "application/json")};
  }

  bool Body(std::string_view bytes) override {
    if (error_.fault != WireFault::kNone) return false;
    if (head_.status != 200) {
      error_body_.append(bytes.substr(0, kMaxErrorBytes - error_body_.size()));
      return error_body_.size() < kMaxErrorBytes;
    }
    wire_bytes_ += bytes.size();
    if (wire_bytes_ > kWireBytesPerByte * max_bytes_) {
      error_ = {WireFault::kTooLong,
                absl::StrCat("got more than ", kWireBytesPerByte * max_bytes_,
                             " bytes around an answer")};
      return false;
    }
    error_ = reader_->Add(bytes);
    return error_.fault == WireFault::kNone;
  }

  bool complete() const override {
    return reader_ != nullptr && reader_->complete();
  }

  // After the transfer ended with `sent`.
  WireError End(const absl::Status& sent, WireReply* reply) {
    if (error_.fault != WireFault::kNone) return error_;
    if (!sent.ok()) {
      return {absl::IsInvalidArgument(sent) ? WireFault::kRequest
                                            : WireFault::kAgain,
              std::string(sent.message())};
    }
    if (head_.status != 200) return ErrorOfStatus(head_.status, error_body_);
    return reader_->End(reply);
  }

  const HttpHead& head() const { return head_; }

 private:
  const ChatDialect dialect_;
  const size_t max_bytes_;
  HttpHead head_;
  std::unique_ptr<AnswerReader> reader_;
  size_t wire_bytes_ = 0;
  std::string error_body_;
  WireError error_;
};

absl::Status CheckOptions(const HttpChatOptions& options) {
  if (options.form.model.empty()) {
    return absl::InvalidArgumentError("got no model's name");
  }
  if (options.max_attempts < 1 || options.max_answer_bytes == 0) {
    return absl::InvalidArgumentError(
        "expected at least one attempt and one byte of an answer");
  }
  if (!(options.rate.requests_per_minute >= 0) ||
      !(options.rate.tokens_per_minute >= 0)) {
    return absl::InvalidArgumentError("got a negative limit of rate");
  }
  absl::Status price = CheckPrice(options.price);
  if (!price.ok()) return price;
  return CheckUrl(options.url, !options.key.empty());
}

// For the provider's limit of tokens: it counts the most output, and for the
// prompt some four bytes a token.
uint64_t RateTokens(const ChatUsage& most) {
  return most.prompt_tokens / 4 + most.output_tokens;
}

}  // namespace

struct HttpChat::Attempt {
  WireError error;  // kNone: `answer` is one
  WireReply answer;
  HttpHead head;
  bool sent = true;  // false: there was no connection
};

ChatUsage MostUsage(const ChatRequest& request) {
  ChatUsage most;
  for (const ChatMessage& message : request.messages) {
    most.prompt_tokens += message.text.size() + 16;
  }
  most.prompt_tokens += 64;
  most.output_tokens =
      static_cast<uint64_t>(std::max(request.max_output_tokens, 0));
  return most;
}

absl::StatusOr<std::unique_ptr<HttpChat>> HttpChat::Create(
    HttpChatOptions options, Budget* budget, HttpTransport& transport,
    CallClock& clock) {
  while (absl::EndsWith(options.url, "/")) options.url.pop_back();
  if (options.name.empty()) options.name = options.form.model;
  absl::Status checked = CheckOptions(options);
  if (!checked.ok()) return checked;
  return std::unique_ptr<HttpChat>(
      new HttpChat(std::move(options), budget, transport, clock));
}

HttpChat::HttpChat(HttpChatOptions options, Budget* budget,
                   HttpTransport& transport, CallClock& clock)
    : options_(std::move(options)),
      budget_(budget),
      transport_(transport),
      clock_(clock),
      limiter_(options_.rate, clock),
      random_(options_.seed) {}

std::string HttpChat::name() const { return options_.name; }

HttpChatStatistics HttpChat::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

HttpPost HttpChat::PostOf(const ChatRequest& request) const {
  HttpPost post;
  const bool openai = options_.form.dialect == ChatDialect::kOpenAi;
  post.url = options_.url + (openai ? "/chat/completions" : "/messages");
  post.headers = {"Content-Type: application/json",
                  "Accept: text/event-stream, application/json"};
  if (!openai) post.headers.emplace_back("anthropic-version: 2023-06-01");
  if (!options_.key.empty()) {
    post.headers.push_back(
        options_.key.Header(openai ? "Authorization: Bearer " : "x-api-key: "));
  }
  post.body = RequestBody(options_.form, request);
  post.connect_timeout = options_.connect_timeout;
  post.idle_timeout = options_.idle_timeout;
  return post;
}

absl::StatusOr<ChatReply> HttpChat::Complete(const ChatRequest& request,
                                             const ChatLimits& limits) {
  ChatLimits within = limits;
  within.deadline =
      std::min(limits.deadline, clock_.Now() + options_.total_timeout);
  const HttpPost post = PostOf(request);
  {
    const std::lock_guard lock(mutex_);
    ++statistics_.calls;
  }
  for (int failures = 0;; ++failures) {
    auto attempt = Try(request, post, within);
    if (!attempt.ok()) return attempt.status();
    if (attempt->error.fault == WireFault::kNone) {
      return std::move(attempt->answer.reply);
    }
    const std::string words = options_.key.Redacted(attempt->error.message);
    absl::Status status(CodeOf(attempt->error.fault),
                        absl::StrCat(What(), ": ", words));
    if (!HasTries(attempt->error.fault)) return status;
    if (failures + 1 >= options_.max_attempts) {
      return absl::UnavailableError(absl::StrCat(
          status.message(), " (the last of ", failures + 1, " attempts)"));
    }
    LOG_DEBUG("{}; trying again", std::string(status.message()));
    const absl::Status waited = Pause(*attempt, failures, within);
    if (waited.ok()) continue;
    return absl::Status(waited.code(),
                        absl::StrCat(waited.message(), "; before: ", words));
  }
}

absl::StatusOr<HttpChat::Attempt> HttpChat::Try(const ChatRequest& request,
                                                const HttpPost& post,
                                                const ChatLimits& limits) {
  const ChatUsage most = MostUsage(request);
  const uint64_t tokens = RateTokens(most);
  absl::Status waited = limiter_.Take(tokens, limits, What());
  if (!waited.ok()) return waited;
  std::optional<Budget::Reservation> reservation;
  if (budget_ != nullptr) {
    auto reserved = budget_->Reserve(name(), options_.price, most, limits);
    if (!reserved.ok()) {
      limiter_.Correct(tokens, 0);
      return reserved.status();
    }
    reservation.emplace(*std::move(reserved));
  }
  Attempt attempt;
  Send(post, limits, &attempt);
  Count(attempt);
  const bool answered = attempt.error.fault == WireFault::kNone;
  // Of an answer that broke off nobody knows how many tokens were made.
  const bool costs_nothing = !answered && attempt.head.status != 200 &&
                             (attempt.head.status != 0 || !attempt.sent);
  const bool counted = answered && attempt.answer.has_usage;
  const ChatUsage& usage = attempt.answer.reply.usage;
  if (counted || costs_nothing) {
    limiter_.Correct(tokens, usage.prompt_tokens + usage.output_tokens);
  }
  if (reservation.has_value() && costs_nothing) reservation->Release();
  if (reservation.has_value() && counted) reservation->Settle(usage);
  const absl::Status within = CheckLimits(limits, clock_, What());
  if (!answered && !within.ok()) return within;
  return attempt;
}

void HttpChat::Send(const HttpPost& post, const ChatLimits& limits,
                    Attempt* attempt) {
  ChatLimits within = limits;
  within.deadline =
      std::min(limits.deadline, clock_.Now() + options_.attempt_timeout);
  Answer answer(options_.form.dialect, options_.max_answer_bytes);
  const absl::Status sent = transport_.Post(post, within, &answer);
  attempt->error = answer.End(sent, &attempt->answer);
  attempt->head = answer.head();
  attempt->sent = !absl::IsAborted(sent) && !absl::IsInvalidArgument(sent);
}

absl::Status HttpChat::Pause(const Attempt& attempt, int failures,
                             const ChatLimits& limits) {
  const absl::Time now = clock_.Now();
  double unit = 0;
  {
    const std::lock_guard lock(mutex_);
    unit = random_.Unit();
  }
  absl::Time next = now + FullJitter(failures, options_.first_backoff,
                                     options_.longest_backoff, unit);
  const auto asked = ParseRetryAfter(attempt.head.retry_after, now);
  if (asked.has_value()) {
    // The jitter comes on top: else all who were told the same come at once.
    next += *asked;
    if (attempt.error.fault == WireFault::kRate) {
      limiter_.PauseUntil(now + *asked);
    }
  }
  absl::Status waited = WaitUntil(next, limits, clock_, What());
  // Later is worth a try where only the provider's word stands against now.
  if (asked.has_value() && absl::IsDeadlineExceeded(waited) &&
      clock_.Now() < limits.deadline) {
    return absl::UnavailableError(waited.message());
  }
  return waited;
}

void HttpChat::Count(const Attempt& attempt) {
  const std::lock_guard lock(mutex_);
  ++statistics_.attempts;
  if (attempt.error.fault == WireFault::kRate) ++statistics_.rate_limited;
  if (attempt.error.fault == WireFault::kAgain) ++statistics_.broken;
  statistics_.reasoning_bytes += attempt.answer.reasoning_bytes;
}

}  // namespace reprise::evolution
