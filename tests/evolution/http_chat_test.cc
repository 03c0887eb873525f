// The client of models, against a transport that plays and a clock that does
// not wait.
#include "evolution/llm/http_chat.h"

#include <sys/stat.h>

#include <cstdlib>
#include <deque>
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

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSecret[] = "sk-verysecretkey-0123456789";

class FakeClock : public CallClock {
 public:
  absl::Time Now() override { return now_; }
  void Sleep(absl::Duration duration) override { now_ += duration; }
  absl::Duration passed() const { return now_ - start_; }

 private:
  const absl::Time start_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Time now_ = start_;
};

struct Play {
  absl::Status status;
  HttpHead head;
  std::string body;
};

class FakeTransport : public HttpTransport {
 public:
  explicit FakeTransport(std::vector<Play> plays) : plays_(std::move(plays)) {}
  absl::Status Post(const HttpPost& post, const ChatLimits& limits,
                    HttpSink* sink) override {
    posts.push_back(post);
    const Play& play = plays_[std::min(posts.size(), plays_.size()) - 1];
    if (play.head.status != 0) {
      sink->Head(play.head);
      if (!sink->Body(play.body)) return absl::OkStatus();
    }
    return play.status;
  }
  std::vector<HttpPost> posts;

 private:
  const std::vector<Play> plays_;
};

Play Good() {
  return {
      {},
      {200, "application/json", ""},
      R"({"choices":[{"index":0,"message":{"content":"fine"},"finish_reason":"stop"}],
              "usage":{"prompt_tokens":12,"completion_tokens":5}})"};
}

Play Status(int status, const std::string& retry_after = "",
            const std::string& body = "") {
  return {{}, {status, "application/json", retry_after}, body};
}

Play Truncated() {
  return {{},
          {200, "text/event-stream", ""},
          "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}"
          "\n\n"};
}

HttpChatOptions Options() {
  HttpChatOptions options;
  options.url = "https://models.example/v1/";
  options.form.model = "m";
  options.price = {2, 10, {}, {}};
  return options;
}

ChatRequest Request() {
  ChatRequest request;
  request.messages = {{ChatRole::kUser, "hello"}};
  request.max_output_tokens = 100;
  return request;
}

struct Asking {
  explicit Asking(std::vector<Play> plays, HttpChatOptions options = Options())
      : transport(std::move(plays)),
        budget(Budget::Create({}).value()),
        chat(
            HttpChat::Create(std::move(options), budget.get(), transport, clock)
                .value()) {}
  absl::StatusOr<ChatReply> Ask(ChatLimits limits = {}) {
    return chat->Complete(Request(), limits);
  }
  FakeClock clock;
  FakeTransport transport;
  std::unique_ptr<Budget> budget;
  std::unique_ptr<HttpChat> chat;
};

TEST(HttpChatTest, AnswersAndCounts) {
  Asking asking({Good()});
  const auto reply = asking.Ask();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->text, "fine");
  EXPECT_EQ(asking.transport.posts[0].url,
            "https://models.example/v1/chat/completions");
  EXPECT_EQ(asking.budget->Spent().tokens(), 17u);
  EXPECT_EQ(asking.budget->Spent().money, 12 * 2'000'000 + 5 * 10'000'000);
  EXPECT_EQ(asking.clock.passed(), absl::ZeroDuration());
}

TEST(HttpChatTest, WaitsAsRetryAfterSaysAndTriesAgain) {
  Asking asking({Status(429, "7"), Status(503), Good()});
  ASSERT_TRUE(asking.Ask().ok());
  EXPECT_GE(asking.clock.passed(), absl::Seconds(7));
  EXPECT_LE(asking.clock.passed(), absl::Seconds(7 + 1 + 2));
  EXPECT_EQ(asking.chat->statistics().attempts, 3u);
  EXPECT_EQ(asking.chat->statistics().rate_limited, 1u);
  EXPECT_EQ(asking.chat->statistics().broken, 1u);
  EXPECT_EQ(asking.budget->Spent().requests, 3u);
  EXPECT_EQ(asking.budget->Spent().tokens(), 17u);
}

TEST(HttpChatTest, GivesUpAfterSoManyAttempts) {
  Asking asking({Status(500, "", R"({"error":"on fire"})")});
  const absl::Status status = asking.Ask().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "asking m: HTTP 500: on fire (the last of 6 attempts)");
  EXPECT_EQ(asking.transport.posts.size(), 6u);
}

TEST(HttpChatTest, AWaitBeyondTheDeadlineIsNotBegun) {
  Asking asking({Status(429, "3600")});
  const absl::Status status = asking.Ask().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("would have to wait 1h"), HasSubstr("HTTP 429")));
  EXPECT_EQ(asking.clock.passed(), absl::ZeroDuration());
}

TEST(HttpChatTest, AQuotaThatIsUsedUpIsNotTriedAgain) {
  Asking asking(
      {Status(429, "1", R"({"error":{"code":"insufficient_quota"}})"), Good()});
  EXPECT_EQ(asking.Ask().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(asking.transport.posts.size(), 1u);
}

TEST(HttpChatTest, RefusedRequestsAreNotTriedAgain) {
  EXPECT_EQ(Asking({Status(400), Good()}).Ask().status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Asking({Status(403), Good()}).Ask().status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(HttpChatTest, AnswersThatBrokeOffCountWithTheMostTheyCanCost) {
  Asking asking({Truncated(), Good()});
  ASSERT_TRUE(asking.Ask().ok());
  const ChatUsage most = MostUsage(Request());
  EXPECT_EQ(asking.budget->Spent().uncertain, 1u);
  EXPECT_EQ(asking.budget->Spent().usage.prompt_tokens,
            most.prompt_tokens + 12);
  EXPECT_EQ(asking.budget->Spent().usage.output_tokens, 105u);
}

TEST(HttpChatTest, WhatWasNeverSentCostsNothing) {
  Asking asking({{absl::AbortedError("no connection"), {}, ""},
                 {absl::UnavailableError("it broke"), {}, ""},
                 Good()});
  ASSERT_TRUE(asking.Ask().ok());
  EXPECT_EQ(asking.budget->Spent().requests, 3u);
  EXPECT_EQ(asking.budget->Spent().uncertain, 1u);
}

TEST(HttpChatTest, OtherContentTypesAreClearErrors) {
  Asking asking({{{}, {200, "text/html", ""}, "<html>log in</html>"}});
  const absl::Status status = asking.Ask().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("got an answer of type \"text/html\", expected"));
}

TEST(HttpChatTest, OversizedAnswersAreNotTriedAgain) {
  HttpChatOptions options = Options();
  options.max_answer_bytes = 3;
  Asking asking({Good()}, std::move(options));
  EXPECT_THAT(std::string(asking.Ask().status().message()),
              HasSubstr("more than 3 bytes"));
  EXPECT_EQ(asking.transport.posts.size(), 1u);
}

TEST(HttpChatTest, TheKeyIsSentAndNeverTold) {
  ASSERT_EQ(setenv("REPRISE_TEST_KEY", kSecret, 1), 0);
  HttpChatOptions options = Options();
  options.key = ApiKey::FromEnvironment("REPRISE_TEST_KEY").value();
  Asking asking({Status(400, "",
                        absl::StrCat(R"({"error":"what is )", kSecret,
                                     R"( or verysecret?"})"))},
                std::move(options));
  const std::string message(asking.Ask().status().message());
  EXPECT_EQ(message, "asking m: HTTP 400: what is [key] or [key]?");
  EXPECT_THAT(
      asking.transport.posts[0].headers,
      testing::Contains(absl::StrCat("Authorization: Bearer ", kSecret)));
}

TEST(HttpChatTest, AnthropicsKeyHasItsOwnHeader) {
  ASSERT_EQ(setenv("REPRISE_TEST_KEY", kSecret, 1), 0);
  HttpChatOptions options = Options();
  options.form.dialect = ChatDialect::kAnthropic;
  options.key = ApiKey::FromEnvironment("REPRISE_TEST_KEY").value();
  Asking asking({Status(400)}, std::move(options));
  EXPECT_FALSE(asking.Ask().ok());
  EXPECT_EQ(asking.transport.posts[0].url,
            "https://models.example/v1/messages");
  EXPECT_THAT(asking.transport.posts[0].headers,
              AllOf(testing::Contains(absl::StrCat("x-api-key: ", kSecret)),
                    testing::Contains("anthropic-version: 2023-06-01")));
}

TEST(HttpChatTest, TheRateOfRequestsHolds) {
  HttpChatOptions options = Options();
  options.rate.requests_per_minute = 60;
  Asking asking({Good()}, std::move(options));
  for (int i = 0; i < 66; ++i) ASSERT_TRUE(asking.Ask().ok());
  EXPECT_NEAR(absl::ToDoubleSeconds(asking.clock.passed()), 60, 0.1);
}

TEST(HttpChatTest, TheRateOfTokensIsThatOfWhatWasUsed) {
  HttpChatOptions options = Options();
  options.rate.tokens_per_minute = 17 * 60;  // a request's use a second
  Asking asking({Good()}, std::move(options));
  for (int i = 0; i < 106; ++i) ASSERT_TRUE(asking.Ask().ok());
  EXPECT_NEAR(absl::ToDoubleSeconds(asking.clock.passed()), 106, 8);
}

TEST(HttpChatTest, ATurnBeyondTheDeadlineIsGivenBack) {
  HttpChatOptions options = Options();
  options.rate.requests_per_minute = 1;
  Asking asking({Good()}, std::move(options));
  ASSERT_TRUE(asking.Ask().ok());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(asking.Ask({asking.clock.Now() + absl::Seconds(1), nullptr})
                  .status()
                  .code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  ASSERT_TRUE(asking.Ask().ok());
  EXPECT_LE(asking.clock.passed(), absl::Seconds(61));
}

TEST(HttpChatTest, CancellingEndsTheWait) {
  Asking asking({Status(429, "60")});
  std::atomic<bool> cancelled = true;
  EXPECT_EQ(asking.Ask({absl::InfiniteFuture(), &cancelled}).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(asking.clock.passed(), absl::ZeroDuration());
}

TEST(HttpChatTest, ABudgetThatIsUsedUpSendsNothing) {
  Asking asking({Good()});
  auto budget = Budget::Create({10, std::nullopt}).value();
  auto chat =
      HttpChat::Create(Options(), budget.get(), asking.transport, asking.clock)
          .value();
  EXPECT_EQ(chat->Complete(Request(), {}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(asking.transport.posts.empty());
}

TEST(CheckUrlTest, KeysGoEncryptedOrToLoopback) {
  EXPECT_TRUE(CheckUrl("https://api.openai.com/v1", true).ok());
  EXPECT_TRUE(CheckUrl("http://127.0.0.1:8000/v1", true).ok());
  EXPECT_TRUE(CheckUrl("http://localhost:8000/v1", true).ok());
  EXPECT_TRUE(CheckUrl("http://[::1]:8000/v1", true).ok());
  EXPECT_TRUE(CheckUrl("http://gpu7:8000/v1", false).ok());
  for (const char* url :
       {"http://gpu7:8000/v1", "http://127.0.0.1.example.com/v1", "ftp://x/",
        "file:///etc/passwd", "", "api.openai.com/v1",
        "https://user:secret@host/v1"}) {
    const absl::Status status = CheckUrl(url, true);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  }
}

TEST(ApiKeyTest, FilesOfOthersAreRefused) {
  const auto directory = TemporaryDirectory::Create("key").value();
  const std::string path = directory.path() + "/key";
  ASSERT_TRUE(
      WriteFileAtomically(path, absl::StrCat(kSecret, " \nmore\n"), 0600).ok());
  const auto key = ApiKey::FromFile(path);
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(key->Header("x: "), absl::StrCat("x: ", kSecret));
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  const absl::Status refused = ApiKey::FromFile(path).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("mode 0640"), HasSubstr("chmod 600"),
                    Not(HasSubstr("secret"))));
  EXPECT_EQ(ApiKey::FromFile(path + "2").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ApiKeyTest, WhatIsNoKeyIsNotShown) {
  const auto directory = TemporaryDirectory::Create("key").value();
  const std::string path = directory.path() + "/key";
  for (const std::string& text :
       {std::string(""), std::string("\nsecret"), std::string("secret secret"),
        std::string("secret\x01"), std::string(5000, 's')}) {
    ASSERT_TRUE(WriteFileAtomically(path, text, 0600).ok());
    const absl::Status status = ApiKey::FromFile(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace reprise::evolution
