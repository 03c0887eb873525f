// A model whose answers come as files: a person, or another program, reads
// prompts in a directory and writes answers there (docs/evolution.md).
//
//   NAME.prompt.md   written by us, whole or not at all
//   NAME.answer.md   written by whoever answers, under another name first and
//                    then renamed, so that it is whole as soon as it is there
//
// NAME is made of the request alone: who asks the same again, after a restart
// say, finds the answer that is there. Answers stay; a prompt is removed when
// it is answered or no longer waited for.
//
// Thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_MAILBOX_H_
#define REPRISE_EVOLUTION_LLM_MAILBOX_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "evolution/llm/call_clock.h"
#include "evolution/llm/chat_model.h"

namespace reprise::evolution {

struct MailboxOptions {
  std::string directory;  // made, for this user alone, where there is none
  std::string name = "mailbox";
  absl::Duration time_limit = absl::Hours(24);  // for one answer
  absl::Duration poll = absl::Milliseconds(50);
};

class Mailbox : public ChatModel {
 public:
  // `clock` outlives the object. Errors as MakeDirectories.
  static absl::StatusOr<std::unique_ptr<Mailbox>> Create(
      MailboxOptions options, CallClock& clock = CallClock::System());

  std::string name() const override { return options_.name; }

  // As ChatModel. INVALID_ARGUMENT: the answer is empty, or longer than
  // kMaxAnswerBytes (answer.h). Usage is not known: all 0.
  absl::StatusOr<ChatReply> Complete(const ChatRequest& request,
                                     const ChatLimits& limits) override;

 private:
  Mailbox(MailboxOptions options, CallClock& clock)
      : options_(std::move(options)), clock_(clock) {}
  absl::StatusOr<ChatReply> WaitFor(const std::string& answer,
                                    const ChatLimits& limits);
  absl::Status Put(const std::string& path, const std::string& text);
  void Take(const std::string& path);

  const MailboxOptions options_;
  CallClock& clock_;
  std::mutex mutex_;                    // guards waiting_ and prompt files
  std::map<std::string, int> waiting_;  // calls by prompt file
};

// The prompt file's text.
std::string MailboxPrompt(const ChatRequest& request);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_MAILBOX_H_
