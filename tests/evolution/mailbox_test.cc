// Prompts that leave as files, and answers that come as files.
#include "evolution/llm/mailbox.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replay/base/file_util.h"

namespace reprise::evolution {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Time passes when somebody sleeps; then something may happen too.
class ActingClock : public CallClock {
 public:
  absl::Time Now() override { return now_; }
  void Sleep(absl::Duration duration) override {
    now_ += duration;
    if (act) act();
  }
  std::function<void()> act;

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

class MailboxTest : public ::testing::Test {
 protected:
  std::unique_ptr<Mailbox> Make() {
    MailboxOptions options;
    options.directory = directory_;
    return Mailbox::Create(options, clock_).value();
  }

  std::vector<std::string> Files(const std::string& ending) const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (absl::EndsWith(entry.path().string(), ending)) {
        files.push_back(entry.path().string());
      }
    }
    return files;
  }

  // As docs/evolution.md says: another name first.
  void Answer(const std::string& text) const {
    for (const std::string& prompt : Files(".prompt.md")) {
      const std::string base =
          prompt.substr(0, prompt.size() - std::string(".prompt.md").size());
      ASSERT_TRUE(WriteFileAtomically(base + ".draft", text).ok());
      ASSERT_EQ(
          rename((base + ".draft").c_str(), (base + ".answer.md").c_str()), 0);
    }
  }

  const TemporaryDirectory parent_ =
      TemporaryDirectory::Create("mailbox").value();
  const std::string directory_ = parent_.path() + "/box";
  ActingClock clock_;
};

ChatRequest Request(uint64_t seed = 1) {
  ChatRequest request;
  request.messages = {{ChatRole::kSystem, "The rules."},
                      {ChatRole::kUser, "Make it faster."},
                      {ChatRole::kAssistant, "No."},
                      {ChatRole::kUser, "Please."}};
  request.seed = seed;
  return request;
}

TEST_F(MailboxTest, APromptGoesOutAndItsAnswerComesIn) {
  const auto mailbox = Make();
  std::string prompt;
  clock_.act = [&] {
    ASSERT_EQ(Files(".prompt.md").size(), 1u);
    prompt = ReadFile(Files(".prompt.md")[0]).value();
    Answer("Here it is.\r\n");
  };
  const auto reply = mailbox->Complete(Request(), {});
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->text, "Here it is.\n");
  EXPECT_EQ(reply->finish, FinishReason::kStop);
  EXPECT_EQ(prompt,
            "# System\n\nThe rules.\n\n# Request\n\nMake it faster.\n\n# "
            "Answer of before\n\nNo.\n\n# Request\n\nPlease.\n");
  EXPECT_THAT(Files(".prompt.md"), IsEmpty());
}

TEST_F(MailboxTest, TheSameRequestFindsItsAnswerAgain) {
  clock_.act = [&] { Answer("yes"); };
  ASSERT_TRUE(Make()->Complete(Request(), {}).ok());
  clock_.act = [] { FAIL() << "no wait was expected"; };
  EXPECT_EQ(Make()->Complete(Request(), {})->text, "yes");
  clock_.act = [&] { Answer("another"); };
  EXPECT_EQ(Make()->Complete(Request(2), {})->text, "another");
}

TEST_F(MailboxTest, WaitsNoLongerThanItMay) {
  MailboxOptions options;
  options.directory = directory_;
  options.time_limit = absl::Minutes(10);
  const auto mailbox = Mailbox::Create(options, clock_).value();
  const absl::Time begin = clock_.Now();
  const absl::Status late = mailbox->Complete(Request(), {}).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()), HasSubstr(".answer.md"));
  EXPECT_EQ(clock_.Now() - begin, absl::Minutes(10));
  EXPECT_THAT(Files(""), IsEmpty());
  EXPECT_EQ(
      mailbox->Complete(Request(), {clock_.Now() + absl::Seconds(1), nullptr})
          .status()
          .code(),
      absl::StatusCode::kDeadlineExceeded);
}

TEST_F(MailboxTest, CancellingTakesThePromptBack) {
  std::atomic<bool> cancelled = false;
  clock_.act = [&] { cancelled = true; };
  EXPECT_EQ(Make()
                ->Complete(Request(), {absl::InfiniteFuture(), &cancelled})
                .status()
                .code(),
            absl::StatusCode::kCancelled);
  EXPECT_THAT(Files(""), IsEmpty());
}

TEST_F(MailboxTest, AnswersThatAreNoneAreRefused) {
  const std::pair<std::string, std::string> wrong[] = {
      {" \n", "is empty"},
      {std::string((1 << 20) + 1, 'x'), "at most 1048576"}};
  uint64_t seed = 10;
  for (const auto& [text, words] : wrong) {
    clock_.act = [&, text = text] { Answer(text); };
    const absl::Status status = Make()->Complete(Request(++seed), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
}

}  // namespace
}  // namespace reprise::evolution
