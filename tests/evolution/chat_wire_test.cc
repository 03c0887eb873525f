// What goes over the wire to models, and what comes back in pieces.
#include "evolution/llm/chat_wire.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "evolution/llm/json_util.h"
#include "evolution/llm/retry.h"
#include "evolution/llm/sse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::HasSubstr;

constexpr char kStream[] = "text/event-stream; charset=utf-8";
constexpr size_t kMost = 1 << 20;

std::string Flat(const std::vector<SseEvent>& events) {
  std::string flat;
  for (const SseEvent& event : events) {
    absl::StrAppend(&flat, event.type, "=", event.data, ";");
  }
  return flat;
}

TEST(SseParserTest, ReadsEventsHoweverTheyAreCut) {
  const std::string stream =
      "\xEF\xBB\xBF: hello\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\n"
      "data:  x\rid: 7\r\rretry: 3\n\ndata\n\nevent: end\ndata: last";
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    SseParser parser;
    std::vector<SseEvent> events;
    for (size_t at = 0; at < stream.size(); at += piece) {
      ASSERT_TRUE(parser.Feed(stream.substr(at, piece), &events).ok());
    }
    parser.End(&events);
    EXPECT_EQ(Flat(events), "a=1\n2;= x;=;end=last;") << piece;
  }
}

TEST(SseParserTest, RefusesAnEventWithoutEnd) {
  SseParser parser(100);
  std::vector<SseEvent> events;
  absl::Status status;
  int fed = 0;
  for (; status.ok() && fed < 100; ++fed) {
    status = parser.Feed("data: 0123456789\n", &events);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LT(fed, 12);
}

ChatRequest Request() {
  ChatRequest request;
  request.messages = {{ChatRole::kSystem, "rules", 5},
                      {ChatRole::kUser, "stable|changing", 7}};
  request.max_output_tokens = 77;
  request.temperature = 0.5;
  request.seed = 0xffffffffffffffffull;
  return request;
}

TEST(RequestBodyTest, IsOpenAisForm) {
  const Json body =
      ParseJson(RequestBody({ChatDialect::kOpenAi, "m"}, Request()));
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["messages"][0]["role"], "system");
  EXPECT_EQ(body["messages"][1]["content"], "stable|changing");
  EXPECT_EQ(body["max_tokens"], 77);
  EXPECT_EQ(body["temperature"], 0.5);
  EXPECT_EQ(body["seed"], 0x7fffffff);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
}

TEST(RequestBodyTest, ReasoningModelsTakeNoTemperature) {
  RequestForm form{ChatDialect::kOpenAi, "o", false, true, false};
  const Json body = ParseJson(RequestBody(form, Request()));
  EXPECT_EQ(body["max_completion_tokens"], 77);
  for (const char* key : {"max_tokens", "temperature", "seed"}) {
    EXPECT_FALSE(body.contains(key)) << key;
  }
  EXPECT_FALSE(body.contains("stream_options"));
}

TEST(RequestBodyTest, TellsAnthropicsCacheWhereThePromptIsStable) {
  const Json body =
      ParseJson(RequestBody({ChatDialect::kAnthropic, "c"}, Request()));
  EXPECT_EQ(body["system"][0]["text"], "rules");
  EXPECT_FALSE(body["system"][0].contains("cache_control"));
  const Json& content = body["messages"][0]["content"];
  EXPECT_EQ(content[0]["text"], "stable|");
  EXPECT_EQ(content[0]["cache_control"]["type"], "ephemeral");
  EXPECT_EQ(content[1]["text"], "changing");
  EXPECT_FALSE(content[1].contains("cache_control"));
}

TEST(RequestBodyTest, TextThatIsNotUtf8IsSentAllTheSame) {
  ChatRequest request = Request();
  request.messages[1].text =
      "a\xff"
      "b";
  const Json body =
      ParseJson(RequestBody({ChatDialect::kOpenAi, "m"}, request));
  EXPECT_EQ(body["messages"][1]["content"],
            "a\xEF\xBF\xBD"
            "b");
}

struct Read {
  WireError error;
  WireReply reply;
};

Read ReadAll(ChatDialect dialect, const std::string& type,
             const std::string& body, size_t piece = 7, size_t most = kMost) {
  Read read;
  const auto reader = MakeAnswerReader(dialect, type, most);
  for (size_t at = 0; at < body.size(); at += piece) {
    read.error = reader->Add(body.substr(at, piece));
    if (read.error.fault != WireFault::kNone) return read;
  }
  read.error = reader->End(&read.reply);
  return read;
}

std::string OpenAiStream(const std::string& end) {
  return absl::StrCat(
      R"(data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"hmm"}}]})",
      "\n\n",
      R"(data: {"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}],"usage":null})",
      "\n\n",
      R"(data: {"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"lo","reasoning":"more"}}]})",
      "\n\n", end);
}

TEST(AnswerReaderTest, GathersOpenAisStream) {
  const Read read = ReadAll(
      ChatDialect::kOpenAi, kStream,
      OpenAiStream(
          R"(data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"
          "\n\n"
          R"(data: {"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":30},"completion_tokens_details":{"reasoning_tokens":15}}})"
          "\n\ndata: [DONE]\n\nthis is not read"));
  EXPECT_EQ(read.error.message, "");
  EXPECT_EQ(read.reply.reply.text, "Hello");
  EXPECT_EQ(read.reply.reply.finish, FinishReason::kStop);
  const ChatUsage& usage = read.reply.reply.usage;
  EXPECT_TRUE(read.reply.has_usage);
  EXPECT_EQ(usage.prompt_tokens, 50u);
  EXPECT_EQ(usage.cached_tokens, 30u);
  EXPECT_EQ(usage.output_tokens, 20u);
  EXPECT_EQ(usage.reasoning_tokens, 15u);
  EXPECT_EQ(read.reply.reasoning_bytes, 7u);
}

TEST(AnswerReaderTest, ReasoningThatOnlyTheTotalCountsIsOutput) {
  const Read read = ReadAll(
      ChatDialect::kOpenAi, "application/json",
      R"({"choices":[{"index":0,"message":{"content":"a","reasoning":"12345678"},"finish_reason":"length"}],
          "usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":14,"prompt_cache_hit_tokens":99}})");
  EXPECT_EQ(read.error.message, "");
  EXPECT_EQ(read.reply.reply.finish, FinishReason::kLength);
  EXPECT_EQ(read.reply.reply.usage.output_tokens, 4u);
  EXPECT_EQ(read.reply.reply.usage.reasoning_tokens, 2u);
  EXPECT_EQ(read.reply.reply.usage.cached_tokens, 10u);
}

TEST(AnswerReaderTest, AStreamThatBreaksOffIsNoAnswer) {
  const std::string whole = OpenAiStream("data: [DONE]\n\n");
  EXPECT_EQ(ReadAll(ChatDialect::kOpenAi, kStream, whole).error.message, "");
  const Read read = ReadAll(ChatDialect::kOpenAi, kStream, OpenAiStream(""));
  EXPECT_EQ(read.error.fault, WireFault::kAgain);
  EXPECT_EQ(read.error.message,
            "the stream ended early, after 5 bytes of the answer");
}

TEST(AnswerReaderTest, AnErrorWithinTheStreamEndsIt) {
  Read read = ReadAll(ChatDialect::kOpenAi, kStream,
                      OpenAiStream(R"(data: {"error":{"message":"overloaded"}})"
                                   "\n\n"));
  EXPECT_EQ(read.error.fault, WireFault::kAgain);
  EXPECT_THAT(read.error.message, HasSubstr("overloaded"));
  read = ReadAll(ChatDialect::kOpenAi, kStream,
                 R"(data: {"error":{"code":"insufficient_quota"}})"
                 "\n\n");
  EXPECT_EQ(read.error.fault, WireFault::kQuota);
}

TEST(AnswerReaderTest, WhatIsNoJsonIsAnError) {
  for (const char* body : {"data: {\"choices\": [\n\n", "data: 7\n\n"}) {
    const Read read = ReadAll(ChatDialect::kOpenAi, kStream, body);
    EXPECT_EQ(read.error.fault, WireFault::kAgain) << body;
    EXPECT_THAT(read.error.message, HasSubstr("no JSON object")) << body;
  }
  EXPECT_THAT(
      ReadAll(ChatDialect::kOpenAi, "application/json", "{}").error.message,
      HasSubstr("without an answer"));
}

TEST(AnswerReaderTest, OversizedAnswersEnd) {
  std::string body;
  for (int i = 0; i < 30; ++i) body += OpenAiStream("");
  const Read read = ReadAll(ChatDialect::kOpenAi, kStream, body, 50, 100);
  EXPECT_EQ(read.error.fault, WireFault::kTooLong);
  EXPECT_EQ(read.error.message, "got an answer of more than 100 bytes");
  EXPECT_EQ(ReadAll(ChatDialect::kOpenAi, "application/json",
                    std::string(100'000, ' '), 1000, 100)
                .error.fault,
            WireFault::kTooLong);
}

TEST(AnswerReaderTest, OtherContentTypesHaveNoReader) {
  for (const char* type : {"text/html", "", "application/jsonp"}) {
    EXPECT_EQ(MakeAnswerReader(ChatDialect::kOpenAi, type, kMost), nullptr);
  }
  EXPECT_NE(MakeAnswerReader(ChatDialect::kOpenAi,
                             "Application/JSON ; charset=utf-8", kMost),
            nullptr);
}

constexpr char kAnthropicStream[] =
    "event: message_start\n"
    R"(data: {"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":30,"cache_creation_input_tokens":60,"output_tokens":1}}})"
    "\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n"
    R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"let me"}})"
    "\n\n"
    R"(data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"answer"}})"
    "\n\n"
    R"(data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":25}})"
    "\n\n";

TEST(AnswerReaderTest, GathersAnthropicsStream) {
  const Read read = ReadAll(
      ChatDialect::kAnthropic, kStream,
      absl::StrCat(kAnthropicStream, "data: {\"type\":\"message_stop\"}\n\n"));
  EXPECT_EQ(read.error.message, "");
  EXPECT_EQ(read.reply.reply.text, "answer");
  EXPECT_EQ(read.reply.reply.finish, FinishReason::kLength);
  const ChatUsage& usage = read.reply.reply.usage;
  EXPECT_TRUE(read.reply.has_usage);
  EXPECT_EQ(usage.prompt_tokens, 100u);
  EXPECT_EQ(usage.cached_tokens, 30u);
  EXPECT_EQ(usage.cache_write_tokens, 60u);
  EXPECT_EQ(usage.output_tokens, 25u);
  EXPECT_EQ(usage.reasoning_tokens, 2u);
}

TEST(AnswerReaderTest, AnthropicsCountOfABrokenStreamIsNotWhole) {
  const std::string stream = kAnthropicStream;
  const Read read =
      ReadAll(ChatDialect::kAnthropic, kStream,
              stream.substr(0, stream.find("data: {\"type\":\"message_delta")));
  EXPECT_EQ(read.error.fault, WireFault::kAgain);
}

TEST(ErrorOfStatusTest, TellsWhatPassesByItself) {
  const auto fault = [](int status, std::string_view body = "") {
    return ErrorOfStatus(status, body).fault;
  };
  for (const int status : {408, 409, 425, 500, 502, 503, 504, 529}) {
    EXPECT_EQ(fault(status), WireFault::kAgain) << status;
  }
  for (const int status : {301, 400, 404, 413, 422, 501, 505}) {
    EXPECT_EQ(fault(status), WireFault::kRequest) << status;
  }
  EXPECT_EQ(fault(429), WireFault::kRate);
  EXPECT_EQ(fault(401), WireFault::kKey);
  EXPECT_EQ(fault(402), WireFault::kQuota);
  EXPECT_EQ(fault(429, R"({"error":{"code":"insufficient_quota"}})"),
            WireFault::kQuota);
  EXPECT_EQ(
      fault(400, R"({"type":"error","error":{"type":"invalid_request_error",
                           "message":"Your credit balance is too low"}})"),
      WireFault::kQuota);
  EXPECT_EQ(fault(503, "exceeded your current quota"), WireFault::kAgain);
}

TEST(ErrorOfStatusTest, QuotesTheProviderButNotWhatIsSaidOfAKey) {
  EXPECT_EQ(
      ErrorOfStatus(400, R"({"error":{"type":"bad","message":"too\nlong"}})")
          .message,
      "HTTP 400: bad: too long");
  EXPECT_EQ(ErrorOfStatus(401, R"({"error":"no such key sk-12345"})").message,
            "HTTP 401: the key is refused, or what it may not do was asked");
  EXPECT_EQ(ErrorOfStatus(302, "<a>").message,
            "HTTP 302: redirects are not followed");
  EXPECT_LT(ErrorOfStatus(500, std::string(100'000, 'x')).message.size(), 400u);
}

TEST(ParseRetryAfterTest, TakesSecondsAndDates) {
  const absl::Time now = absl::FromCivil(
      absl::CivilSecond(2026, 12, 1, 12, 0, 0), absl::UTCTimeZone());
  EXPECT_EQ(ParseRetryAfter("20", now), absl::Seconds(20));
  EXPECT_EQ(ParseRetryAfter(" 0.5 ", now), absl::Milliseconds(500));
  EXPECT_EQ(ParseRetryAfter("Tue, 01 Dec 2026 12:01:30 GMT", now),
            absl::Seconds(90));
  EXPECT_EQ(ParseRetryAfter("Tuesday, 01-Dec-26 12:00:10 GMT", now),
            absl::Seconds(10));
  EXPECT_EQ(ParseRetryAfter("Tue Dec  1 12:00:01 2026", now), absl::Seconds(1));
  EXPECT_EQ(ParseRetryAfter("Tue, 01 Dec 2026 11:00:00 GMT", now),
            absl::ZeroDuration());
  for (const char* value : {"", "soon", "-1", "nan", "1e999"}) {
    EXPECT_EQ(ParseRetryAfter(value, now), std::nullopt) << value;
  }
}

TEST(FullJitterTest, DoublesUpToItsMost) {
  const auto jitter = [](int failures, double unit) {
    return FullJitter(failures, absl::Seconds(1), absl::Seconds(10), unit);
  };
  EXPECT_EQ(jitter(0, 0.5), absl::Milliseconds(500));
  EXPECT_EQ(jitter(3, 0.5), absl::Seconds(4));
  EXPECT_EQ(jitter(1000, 0.5), absl::Seconds(5));
  EXPECT_EQ(jitter(5, 0), absl::ZeroDuration());
}

}  // namespace
}  // namespace reprise::evolution
