// A model that answers as a function says, and keeps what it was asked: for
// tests of all that talks to models.
#ifndef REPRISE_EVOLUTION_LLM_SCRIPTED_MODEL_H_
#define REPRISE_EVOLUTION_LLM_SCRIPTED_MODEL_H_

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "evolution/llm/chat_model.h"

namespace reprise::evolution {

// Thread-safe; the script is called by one thread at a time.
class ScriptedModel : public ChatModel {
 public:
  using Script = std::function<absl::StatusOr<ChatReply>(const ChatRequest&)>;
  explicit ScriptedModel(Script script, std::string name = "scripted")
      : script_(std::move(script)), name_(std::move(name)) {}

  std::string name() const override { return name_; }

  // Answers at once; `limits` do not matter.
  absl::StatusOr<ChatReply> Complete(const ChatRequest& request,
                                     const ChatLimits& limits) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    requests_.push_back(request);
    return script_(request);
  }

  std::vector<ChatRequest> requests() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return requests_;
  }

 private:
  const Script script_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::vector<ChatRequest> requests_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_SCRIPTED_MODEL_H_
