// What goes over the wire to language models and comes back: requests as JSON,
// answers from streams or whole, errors told apart. Two dialects: OpenAI's
// /v1/chat/completions, as many servers speak it, and Anthropic's /v1/messages.
// Pure: no input or output, no time. Answers are any bytes.
#ifndef REPRISE_EVOLUTION_LLM_CHAT_WIRE_H_
#define REPRISE_EVOLUTION_LLM_CHAT_WIRE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "evolution/llm/chat_model.h"

namespace reprise::evolution {

enum class ChatDialect { kOpenAi, kAnthropic };

struct RequestForm {
  ChatDialect dialect = ChatDialect::kOpenAi;
  std::string model;  // as the provider names it
  bool stream = true;
  // Models that think first: OpenAI's take max_completion_tokens in place of
  // max_tokens, and none of them a temperature.
  bool reasoning = false;
  bool send_seed = true;  // OpenAI's dialect only
};

// The body of a POST. Text that is not UTF-8 gets U+FFFD in place of what is
// not. Anthropic's prompt cache is told of stable parts (ChatMessage).
std::string RequestBody(const RequestForm& form, const ChatRequest& request);

struct WireReply {
  ChatReply reply;
  bool has_usage = false;
  // Of texts that the model thought, which are no part of the reply. Where the
  // provider does not count them, usage.reasoning_tokens is estimated from it,
  // at four bytes a token.
  size_t reasoning_bytes = 0;
};

// Why there is no answer, and what that means for the next attempt.
enum class WireFault {
  kNone,
  kAgain,    // passes by itself: overload, rate, a broken stream
  kRate,     // as kAgain, and other requests should wait too
  kQuota,    // money or quota is used up
  kKey,      // the key is refused
  kRequest,  // this request is refused
  kTooLong,  // the answer is beyond the limit
};

struct WireError {
  WireFault fault = WireFault::kNone;
  std::string message;  // of the provider's words, at most 300 bytes
};

// Reads the body of an answer with status 200 as it arrives.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;

  // An error ends the reading; it stays.
  virtual WireError Add(std::string_view bytes) = 0;
  // The model said all; what else comes is of no interest.
  virtual bool complete() const = 0;
  // The stream ended. An error where it ended early.
  virtual WireError End(WireReply* reply) = 0;
};

// By content type: a stream of events, or one JSON document. `max_bytes` bounds
// text and reasoning together. Null: another content type.
std::unique_ptr<AnswerReader> MakeAnswerReader(ChatDialect dialect,
                                               std::string_view content_type,
                                               size_t max_bytes);

// Of an answer with another status than 200. `body` is any bytes.
WireError ErrorOfStatus(int status, std::string_view body);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_CHAT_WIRE_H_
