// A language model, as the evolution sees it: messages in; text, usage and why
// it ended out. Clients for real ones, a recorder and replayer of exchanges,
// and scripts for tests stand behind this.
//
// Thread-safety: Complete() may be called from several threads at once; one
// request does not wait for another but where a limit of rate or money makes
// it.
//
// A client retries what passes by itself (a full queue, a lost connection)
// until the deadline; what it returns is final for this request.
#ifndef REPRISE_EVOLUTION_LLM_CHAT_MODEL_H_
#define REPRISE_EVOLUTION_LLM_CHAT_MODEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace reprise::evolution {

enum class ChatRole { kSystem, kUser, kAssistant };

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string text;  // UTF-8
  // So many bytes at the start of `text` are the same in other requests of the
  // campaign, as are all messages before: a place for a mark of a prompt cache.
  size_t stable_bytes = 0;
};

struct ChatRequest {
  // The system's first, if there is one; then the user's and the assistant's in
  // turns, the user's last.
  std::vector<ChatMessage> messages;
  int max_output_tokens = 8192;  // reasoning included
  double temperature = 0.7;      // left out where a model takes none
  // The same request with another seed is another one: it tells samples of one
  // prompt apart, for models that take a seed and for recorded exchanges.
  uint64_t seed = 0;
};

enum class FinishReason {
  kStop,           // the model ended
  kLength,         // cut off by max_output_tokens or the context's size
  kContentFilter,  // the provider withheld the rest
};

// In tokens; 0 where the provider does not say.
struct ChatUsage {
  uint64_t prompt_tokens = 0;  // cached ones included
  uint64_t cached_tokens = 0;  // of the prompt's
  uint64_t output_tokens = 0;  // reasoning included
  uint64_t reasoning_tokens = 0;
  // Of the prompt's, that were put into the provider's cache, where that has a
  // price of its own.
  uint64_t cache_write_tokens = 0;
};

struct ChatReply {
  std::string text;  // without reasoning that came apart from it
  FinishReason finish = FinishReason::kStop;
  ChatUsage usage;
};

// When a call has to be over. `cancelled` outlives the call; null: none.
struct ChatLimits {
  absl::Time deadline = absl::InfiniteFuture();
  const std::atomic<bool>* cancelled = nullptr;
};

class ChatModel {
 public:
  virtual ~ChatModel() = default;

  // The same for the life of the object; what is learned of a model is kept
  // under it.
  virtual std::string name() const = 0;

  // Blocks. A client looks at `limits` at least every 100 ms and gives up what
  // is under way.
  // CANCELLED            as `limits` says
  // DEADLINE_EXCEEDED    no answer by then
  // UNAVAILABLE          no answer after all retries: later is worth a try
  // RESOURCE_EXHAUSTED   a budget or quota is used up: no call will succeed
  // INVALID_ARGUMENT     the provider refuses this request (too long, say)
  // PERMISSION_DENIED    the key is refused
  // NOT_FOUND            no recorded answer
  virtual absl::StatusOr<ChatReply> Complete(const ChatRequest& request,
                                             const ChatLimits& limits) = 0;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_CHAT_MODEL_H_
