// Exchanges that are recorded, and replayed without the model.
#include "evolution/llm/cassette.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "evolution/llm/scripted_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replay/base/file_util.h"

namespace reprise::evolution {
namespace {

using ::testing::HasSubstr;

ChatRequest Request(const std::string& text) {
  ChatRequest request;
  request.messages = {{ChatRole::kSystem, "rules\nof the game"},
                      {ChatRole::kUser, text}};
  request.seed = 0xfedcba9876543210;
  request.temperature = 0.1;
  return request;
}

// Says the request's text again.
ScriptedModel Echo() {
  return ScriptedModel([](const ChatRequest& request) {
    ChatReply reply;
    reply.text = "You say: " + request.messages[1].text;
    reply.finish = FinishReason::kLength;
    reply.usage = {10, 4, 3, 2, 1};
    return reply;
  });
}

class CassetteTest : public ::testing::Test {
 protected:
  std::unique_ptr<Cassette> Record() { return Cassette::Record(path_).value(); }
  std::unique_ptr<Cassette> Replay() { return Cassette::Replay(path_).value(); }
  std::string Bytes() { return ReadFile(path_).value(); }

  const TemporaryDirectory directory_ =
      TemporaryDirectory::Create("cassette").value();
  const std::string path_ = directory_.path() + "/campaign.jsonl";
  ScriptedModel echo_ = Echo();
};

absl::Status Ask(Cassette& cassette, uint64_t proposal, ChatModel* live,
                 const std::string& text) {
  return cassette.ModelFor(proposal, "m", live)
      ->Complete(Request(text), {})
      .status();
}

TEST_F(CassetteTest, ReplaysExactlyWhatWasRecorded) {
  {
    const auto cassette = Record();
    const auto model = cassette->ModelFor(7, "m", &echo_);
    ASSERT_TRUE(model->Complete(Request("one\n\xff\""), {}).ok());
    ASSERT_TRUE(model->Complete(Request("two"), {}).ok());
    ASSERT_TRUE(Ask(*cassette, 8, &echo_, "three").ok());
    ASSERT_TRUE(cassette->RecordOutcome(7, "OK 1.5\n").ok());
  }
  const auto cassette = Replay();
  EXPECT_EQ(cassette->exchanges(), 3u);
  EXPECT_TRUE(Ask(*cassette, 8, nullptr, "three").ok());
  const auto model = cassette->ModelFor(7, "m", nullptr);
  const auto first = model->Complete(Request("one\n\xff\""), {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->text, "You say: one\n\xEF\xBF\xBD\"");
  EXPECT_EQ(first->finish, FinishReason::kLength);
  EXPECT_EQ(first->usage.prompt_tokens, 10u);
  EXPECT_EQ(first->usage.cached_tokens, 4u);
  EXPECT_EQ(first->usage.output_tokens, 3u);
  EXPECT_EQ(first->usage.reasoning_tokens, 2u);
  EXPECT_EQ(first->usage.cache_write_tokens, 1u);
  EXPECT_EQ(model->Complete(Request("two"), {})->text, "You say: two");
  EXPECT_EQ(cassette->Outcome(7).value(), "OK 1.5\n");
  EXPECT_EQ(cassette->Outcome(8).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(echo_.requests().size(), 3u);
}

TEST_F(CassetteTest, TheRecordedReplyIsTheReplayedOne) {
  const ScriptedModel::Script broken = [](const ChatRequest&) {
    ChatReply reply;
    reply.text = "not UTF-8: \xc3(";
    return reply;
  };
  ScriptedModel model(broken);
  const auto live =
      Record()->ModelFor(1, "m", &model)->Complete(Request("a"), {});
  const auto replayed =
      Replay()->ModelFor(1, "m", nullptr)->Complete(Request("a"), {});
  EXPECT_EQ(live->text, replayed->text);
}

TEST_F(CassetteTest, AnotherRequestIsNamedWithItsFirstDifference) {
  ASSERT_TRUE(Ask(*Record(), 7, &echo_, "alpha\nbeta gamma\n").ok());
  const auto cassette = Replay();
  const auto message = [&](const ChatRequest& request, const char* name) {
    const auto reply =
        cassette->ModelFor(7, name, nullptr)->Complete(request, {});
    EXPECT_EQ(reply.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(reply.status().message());
  };
  EXPECT_EQ(message(Request("alpha\nbeta delta\n"), "m"),
            "the cassette holds another request for proposal 7, call 0: "
            "message 2, line 2, byte 11: recorded \"beta gamma\", now \"beta "
            "delta\"");
  EXPECT_THAT(message(Request("alpha\n"), "m"), HasSubstr("line 2, byte 6"));
  ChatRequest request = Request("alpha\nbeta gamma\n");
  EXPECT_THAT(message(request, "n"), HasSubstr("the model was m and is n"));
  request.seed = 5;
  EXPECT_THAT(message(request, "m"),
              HasSubstr("the seed was 18364758544493064720 and is 5"));
  request = Request("alpha\nbeta gamma\n");
  request.messages.push_back({ChatRole::kAssistant, "x"});
  EXPECT_THAT(message(request, "m"),
              HasSubstr("the number of messages was 2 and is 3"));
}

TEST_F(CassetteTest, WhatIsNotRecordedIsNotFound) {
  ASSERT_TRUE(Ask(*Record(), 7, &echo_, "x").ok());
  const auto cassette = Replay();
  const absl::Status status = Ask(*cassette, 9, &echo_, "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "the cassette holds no answer for proposal 9, call 0");
  EXPECT_EQ(cassette->RecordOutcome(9, "x").code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(CassetteTest, ErrorsOfARequestAreRecordedAndThoseOfTheCampaignAreNot) {
  for (const auto code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kResourceExhausted,
        absl::StatusCode::kCancelled}) {
    ScriptedModel model(
        [&](const ChatRequest&) { return absl::Status(code, "words"); });
    const auto proposal = static_cast<uint64_t>(code);
    EXPECT_EQ(Ask(*Record(), proposal, &model, "x").code(), code);
  }
  const auto cassette = Replay();
  EXPECT_EQ(cassette->exchanges(), 1u);
  EXPECT_EQ(Ask(*cassette, 14, nullptr, "x"), absl::UnavailableError("words"));
}

TEST_F(CassetteTest, AnInterruptedCampaignGoesOn) {
  ASSERT_TRUE(Ask(*Record(), 1, &echo_, "x").ok());
  const auto cassette = Record();
  EXPECT_TRUE(Ask(*cassette, 1, &echo_, "x").ok());
  EXPECT_EQ(echo_.requests().size(), 1u);
  EXPECT_TRUE(Ask(*cassette, 2, &echo_, "y").ok());
  EXPECT_EQ(echo_.requests().size(), 2u);
  EXPECT_TRUE(cassette->RecordOutcome(2, "a").ok());
  EXPECT_TRUE(cassette->RecordOutcome(2, "a").ok());
  EXPECT_EQ(cassette->RecordOutcome(2, "b").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Cassette::Record(path_).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(CassetteTest, ATornLastLineIsDroppedWhereverItIsTorn) {
  ASSERT_TRUE(Ask(*Record(), 1, &echo_, "x").ok());
  const size_t whole = Bytes().size();
  ASSERT_TRUE(Ask(*Record(), 2, &echo_, "y").ok());
  const std::string bytes = Bytes();
  for (size_t size = whole; size < bytes.size(); size += 11) {
    ASSERT_TRUE(WriteFileAtomically(path_, bytes.substr(0, size)).ok());
    EXPECT_EQ(Replay()->exchanges(), 1u) << size;
    EXPECT_EQ(Bytes().size(), size);
    ASSERT_TRUE(Ask(*Record(), 2, &echo_, "y").ok());
    EXPECT_EQ(Bytes(), bytes) << size;
  }
}

TEST_F(CassetteTest, LinesThatAreNoRecordsAreNamed) {
  ASSERT_TRUE(Ask(*Record(), 1, &echo_, "x").ok());
  const std::string bytes = Bytes();
  const std::string last = bytes.substr(bytes.find('\n') + 1);
  for (const std::string& wrong :
       {std::string("{}\n"), std::string("\n"), std::string("nothing\n"),
        std::string("{\"outcome\":{\"proposal\":1}}\n"), last}) {
    ASSERT_TRUE(WriteFileAtomically(path_, bytes + wrong).ok());
    const absl::Status status = Cassette::Replay(path_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr("campaign.jsonl:3: "));
  }
  ASSERT_TRUE(WriteFileAtomically(path_, "{\"cassette\":2}\n").ok());
  EXPECT_EQ(Cassette::Record(path_).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Cassette::Replay(path_ + "2").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(CassetteTest, OthersMayNotReadIt) {
  Record();
  struct stat info = {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(CassetteTest, CallsBesideEachOtherAreAllRecorded) {
  {
    const auto cassette = Record();
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < 25; ++i) {
          const uint64_t proposal = t * 25 + i;
          EXPECT_TRUE(
              Ask(*cassette, proposal, &echo_, absl::StrCat(proposal)).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const auto cassette = Replay();
  for (uint64_t proposal = 0; proposal < 100; ++proposal) {
    EXPECT_TRUE(Ask(*cassette, proposal, nullptr, absl::StrCat(proposal)).ok());
  }
}

// What a killed writer had acted on is recorded.
TEST_F(CassetteTest, KillingTheWriterLosesNothingThatWasGivenOn) {
  for (int round = 0; round < 5; ++round) {
    int pipe_fds[2] = {};
    ASSERT_EQ(pipe(pipe_fds), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto cassette = Record();
      for (uint64_t i = 0;; ++i) {
        // Longer than a page, so that a line takes more than one.
        if (!Ask(*cassette, i, &echo_, std::string(9000, 'x')).ok()) _exit(1);
        if (write(pipe_fds[1], ".", 1) != 1) _exit(2);
      }
    }
    close(pipe_fds[1]);
    char byte = 0;
    for (int i = 0; i < 5 * (round + 1); ++i) {
      ASSERT_EQ(read(pipe_fds[0], &byte, 1), 1);
    }
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    uint64_t given = 5 * (static_cast<uint64_t>(round) + 1);
    while (read(pipe_fds[0], &byte, 1) == 1) ++given;
    close(pipe_fds[0]);
    const auto cassette = Replay();
    EXPECT_GE(cassette->exchanges(), given);
    EXPECT_TRUE(
        Ask(*cassette, given - 1, nullptr, std::string(9000, 'x')).ok());
  }
}

}  // namespace
}  // namespace reprise::evolution
