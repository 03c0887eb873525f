// A model behind HTTP: OpenAI's chat completions, as OpenAI and many servers
// (vLLM, llama.cpp, OpenRouter, DeepSeek, ...) speak it, or Anthropic's
// messages.
//
// - What passes by itself is tried again: lost connections, streams that break
//   off or stall, answers that are no answers, 408, 409, 425, 429 and 5xx.
//   Between attempts it waits as Retry-After says, else by exponential backoff
//   with full jitter; where the provider limits the rate, all calls wait.
// - A quota that is used up is told apart from a rate and not tried again.
// - Every attempt is reserved in the budget and settled by what the provider
//   counts. Attempts that were refused cost nothing; those that broke off are
//   counted with the most that they can have cost.
// - The key is in no log and no error.
//
// Thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_HTTP_CHAT_H_
#define REPRISE_EVOLUTION_LLM_HTTP_CHAT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "evolution/llm/api_key.h"
#include "evolution/llm/budget.h"
#include "evolution/llm/call_clock.h"
#include "evolution/llm/chat_model.h"
#include "evolution/llm/chat_wire.h"
#include "evolution/llm/http_transport.h"
#include "evolution/llm/rate_limit.h"
#include "evolution/random.h"

namespace reprise::evolution {

struct HttpChatOptions {
  std::string name;  // "": form.model
  // Up to and without /chat/completions or /messages:
  // "https://api.openai.com/v1". http is for loopback, and where no key is.
  std::string url;
  RequestForm form;
  ApiKey key;
  RateLimits rate;
  ModelPrice price;
  int max_attempts = 6;
  absl::Duration connect_timeout = absl::Seconds(20);
  absl::Duration idle_timeout = absl::Minutes(2);     // without a byte
  absl::Duration attempt_timeout = absl::Minutes(5);  // of one attempt
  absl::Duration total_timeout = absl::Minutes(15);   // of one Complete()
  absl::Duration first_backoff = absl::Seconds(1);
  absl::Duration longest_backoff = absl::Minutes(1);
  size_t max_answer_bytes = 1 << 20;  // text and reasoning
  uint64_t seed = 0;                  // of the jitter
};

// Counts of the object's life.
struct HttpChatStatistics {
  uint64_t calls = 0;
  uint64_t attempts = 0;
  uint64_t rate_limited = 0;  // attempts answered by 429
  uint64_t broken = 0;        // attempts that failed otherwise and passed by
  uint64_t reasoning_bytes = 0;
};

class HttpChat : public ChatModel {
 public:
  // What is referred to outlives the object. `budget` may be null.
  // INVALID_ARGUMENT: url, price or a limit is wrong.
  static absl::StatusOr<std::unique_ptr<HttpChat>> Create(
      HttpChatOptions options, Budget* budget, HttpTransport& transport,
      CallClock& clock = CallClock::System());

  std::string name() const override;
  absl::StatusOr<ChatReply> Complete(const ChatRequest& request,
                                     const ChatLimits& limits) override;
  HttpChatStatistics statistics() const;

 private:
  struct Attempt;
  HttpChat(HttpChatOptions options, Budget* budget, HttpTransport& transport,
           CallClock& clock);
  absl::StatusOr<Attempt> Try(const ChatRequest& request, const HttpPost& post,
                              const ChatLimits& limits);
  void Send(const HttpPost& post, const ChatLimits& limits, Attempt* attempt);
  absl::Status Pause(const Attempt& attempt, int failures,
                     const ChatLimits& limits);
  void Count(const Attempt& attempt);
  HttpPost PostOf(const ChatRequest& request) const;
  std::string What() const { return "asking " + name(); }

  const HttpChatOptions options_;
  Budget* const budget_;
  HttpTransport& transport_;
  CallClock& clock_;
  RateLimiter limiter_;
  mutable std::mutex mutex_;  // guards all below
  Random random_;
  HttpChatStatistics statistics_;
};

// The most tokens that a request can take: no token is less than a byte of
// text, and formats add some tokens a message.
ChatUsage MostUsage(const ChatRequest& request);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_HTTP_CHAT_H_
