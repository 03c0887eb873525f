#include "evolution/llm/mailbox.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "evolution/llm/answer.h"
#include "evolution/llm/quote.h"
#include "evolution/llm/text.h"
#include "replay/base/file_util.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"

namespace reprise::evolution {
namespace {

constexpr size_t kNameDigits = 16;

std::string_view Heading(ChatRole role) {
  switch (role) {
    case ChatRole::kSystem:
      return "# System";
    case ChatRole::kUser:
      return "# Request";
    case ChatRole::kAssistant:
      break;
  }
  return "# Answer of before";
}

std::string NameOf(const ChatRequest& request) {
  const std::string text =
      absl::StrCat(MailboxPrompt(request), "\n", request.seed, " ",
                   request.max_output_tokens, " ", request.temperature);
  return HexEncode(Sha256(text)).substr(0, kNameDigits);
}

}  // namespace

std::string MailboxPrompt(const ChatRequest& request) {
  std::string text;
  for (const ChatMessage& message : request.messages) {
    absl::StrAppend(&text, text.empty() ? "" : "\n\n",
                    std::string(Heading(message.role)), "\n\n",
                    CleanText(message.text));
  }
  return text + "\n";
}

absl::StatusOr<std::unique_ptr<Mailbox>> Mailbox::Create(MailboxOptions options,
                                                         CallClock& clock) {
  RETURN_IF_ERROR(MakeDirectories(options.directory, 0700));
  return std::unique_ptr<Mailbox>(new Mailbox(std::move(options), clock));
}

absl::StatusOr<ChatReply> Mailbox::Complete(const ChatRequest& request,
                                            const ChatLimits& limits) {
  const std::string base =
      absl::StrCat(options_.directory, "/", NameOf(request));
  const std::string prompt = base + ".prompt.md";
  RETURN_IF_ERROR(Put(prompt, MailboxPrompt(request)));
  ChatLimits within = limits;
  within.deadline =
      std::min(limits.deadline, clock_.Now() + options_.time_limit);
  auto reply = WaitFor(base + ".answer.md", within);
  Take(prompt);
  return reply;
}

absl::Status Mailbox::Put(const std::string& path, const std::string& text) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(WriteFileAtomically(path, text));
  ++waiting_[path];
  return absl::OkStatus();
}

void Mailbox::Take(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (--waiting_[path] > 0) return;
  waiting_.erase(path);
  unlink(path.c_str());
}

absl::StatusOr<ChatReply> Mailbox::WaitFor(const std::string& answer,
                                           const ChatLimits& limits) {
  struct stat info = {};
  while (stat(answer.c_str(), &info) != 0) {
    const absl::Status within =
        CheckLimits(limits, clock_, "waiting for " + answer);
    if (!within.ok()) return within;
    clock_.Sleep(options_.poll);
  }
  if (!S_ISREG(info.st_mode) ||
      info.st_size > static_cast<off_t>(kMaxAnswerBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        answer, " is no file of at most ", kMaxAnswerBytes, " bytes"));
  }
  auto text = ReadFile(answer);
  if (!text.ok()) return text.status();
  if (Stripped(*text).empty()) {
    return absl::InvalidArgumentError(answer + " is empty");
  }
  ChatReply reply;
  reply.text = CleanText(*text);
  return reply;
}

}  // namespace reprise::evolution
