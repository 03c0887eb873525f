// The readers of answers: streams and whole documents, of both dialects.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "evolution/llm/chat_wire.h"
#include "evolution/llm/json_util.h"
#include "evolution/llm/quote.h"
#include "evolution/llm/sse.h"

namespace reprise::evolution {

std::string ErrorWords(const Json& json) {
  const Json& error = Member(json, "error");
  if (error.is_string()) return error.get<std::string>();
  std::string words;
  for (const char* key : {"type", "code", "message"}) {
    const std::string word = Text(error, key);
    if (word.empty()) continue;
    absl::StrAppend(&words, words.empty() ? "" : ": ", word);
  }
  if (words.empty()) words = Text(json, "message");
  if (words.empty()) words = Text(json, "detail");
  return words;
}

namespace {

WireError Broken(std::string_view what) {
  return {WireFault::kAgain, std::string(what)};
}

// What a reader has gathered.
struct Gathered {
  explicit Gathered(size_t max_bytes) : max_bytes(max_bytes) {}

  const size_t max_bytes;
  WireReply answer;
  bool has_choice = false;
  bool ended = false;     // a reason to finish was given
  bool complete = false;  // the stream said that it is over

  void Finish(const std::string& reason) {
    if (reason.empty()) return;
    ended = true;
    FinishReason& finish = answer.reply.finish;
    if (reason == "length" || reason == "max_tokens" ||
        reason == "model_length" || reason == "model_context_window_exceeded") {
      finish = FinishReason::kLength;
    } else if (reason == "content_filter" || reason == "refusal") {
      finish = FinishReason::kContentFilter;
    }
  }

  void AddText(const std::string& text) { answer.reply.text += text; }
  void AddReasoning(const std::string& text) {
    answer.reasoning_bytes += text.size();
  }

  WireError CheckSize() const {
    if (answer.reply.text.size() + answer.reasoning_bytes <= max_bytes) {
      return {};
    }
    return {WireFault::kTooLong,
            absl::StrCat("got an answer of more than ", max_bytes, " bytes")};
  }

  WireError Take(WireReply* reply) {
    ChatUsage& usage = answer.reply.usage;
    if (usage.reasoning_tokens == 0) {
      usage.reasoning_tokens = (answer.reasoning_bytes + 3) / 4;
      if (answer.has_usage) {
        usage.reasoning_tokens =
            std::min(usage.reasoning_tokens, usage.output_tokens);
      }
    }
    usage.cached_tokens = std::min(usage.cached_tokens, usage.prompt_tokens);
    *reply = std::move(answer);
    return {};
  }
};

// --- OpenAI

// Content is a string, null, or a list of parts.
void AddContent(const Json& content, Gathered* gathered) {
  if (content.is_string()) return gathered->AddText(content.get<std::string>());
  if (!content.is_array()) return;
  for (const Json& part : content) {
    const std::string type = Text(part, "type");
    if (type == "text" || type == "output_text") {
      gathered->AddText(Text(part, "text"));
    } else {
      gathered->AddReasoning(DumpJson(part));
    }
  }
}

void AddOpenAiUsage(const Json& json, Gathered* gathered) {
  if (!json.is_object()) return;
  gathered->answer.has_usage = true;
  ChatUsage& usage = gathered->answer.reply.usage;
  usage.prompt_tokens = Count(json, "prompt_tokens");
  usage.output_tokens = Count(json, "completion_tokens");
  // Some do not count reasoning as completion, but in the total.
  const uint64_t total = Count(json, "total_tokens");
  if (total > usage.prompt_tokens + usage.output_tokens) {
    usage.output_tokens = total - usage.prompt_tokens;
  }
  usage.cached_tokens =
      std::max(Count(Member(json, "prompt_tokens_details"), "cached_tokens"),
               Count(json, "prompt_cache_hit_tokens"));
  usage.reasoning_tokens =
      Count(Member(json, "completion_tokens_details"), "reasoning_tokens");
}

WireError AddOpenAi(const Json& json, Gathered* gathered) {
  if (Member(json, "error").is_object() || Member(json, "error").is_string()) {
    WireError error = ErrorOfStatus(429, DumpJson(json));
    if (error.fault != WireFault::kQuota) error.fault = WireFault::kAgain;
    error.message = absl::StrCat("the provider ended the answer: ",
                                 QuotedLine(ErrorWords(json)));
    return error;
  }
  AddOpenAiUsage(Member(json, "usage"), gathered);
  const Json& choices = Member(json, "choices");
  if (!choices.is_array()) return {};
  for (const Json& choice : choices) {
    if (Count(choice, "index") != 0) continue;
    gathered->has_choice = true;
    // "delta" in a stream, "message" in a document.
    for (const char* key : {"delta", "message"}) {
      const Json& delta = Member(choice, key);
      AddContent(Member(delta, "content"), gathered);
      // One text under the names of several servers.
      const std::string reasoning = Text(delta, "reasoning_content");
      gathered->AddReasoning(reasoning.empty() ? Text(delta, "reasoning")
                                               : reasoning);
      if (!Text(delta, "refusal").empty()) gathered->Finish("refusal");
    }
    gathered->Finish(Text(choice, "finish_reason"));
  }
  return gathered->CheckSize();
}

// --- Anthropic

// Counts of a message are told in its beginning and again, grown, at its end.
void AddAnthropicUsage(const Json& json, Gathered* gathered) {
  if (!json.is_object()) return;
  ChatUsage& usage = gathered->answer.reply.usage;
  const uint64_t read = Count(json, "cache_read_input_tokens");
  const uint64_t written = Count(json, "cache_creation_input_tokens");
  const uint64_t prompt = Count(json, "input_tokens") + read + written;
  usage.prompt_tokens = std::max(usage.prompt_tokens, prompt);
  usage.cached_tokens = std::max(usage.cached_tokens, read);
  usage.cache_write_tokens = std::max(usage.cache_write_tokens, written);
  usage.output_tokens =
      std::max(usage.output_tokens, Count(json, "output_tokens"));
}

WireError AddAnthropic(const Json& json, Gathered* gathered) {
  const std::string type = Text(json, "type");
  if (type == "error") {
    WireError error = ErrorOfStatus(429, DumpJson(json));
    if (error.fault != WireFault::kQuota) error.fault = WireFault::kAgain;
    error.message = absl::StrCat("the provider ended the answer: ",
                                 QuotedLine(ErrorWords(json)));
    return error;
  }
  if (type == "message" || type == "message_start") {
    const Json& message = type == "message" ? json : Member(json, "message");
    gathered->has_choice = true;
    AddAnthropicUsage(Member(message, "usage"), gathered);
    const Json& content = Member(message, "content");
    if (content.is_array()) AddContent(content, gathered);
    gathered->Finish(Text(message, "stop_reason"));
  } else if (type == "content_block_delta") {
    const Json& delta = Member(json, "delta");
    gathered->AddText(Text(delta, "text"));
    gathered->AddReasoning(Text(delta, "thinking"));
  } else if (type == "message_delta") {
    AddAnthropicUsage(Member(json, "usage"), gathered);
    gathered->Finish(Text(Member(json, "delta"), "stop_reason"));
    // Only here the count of output is whole.
    gathered->answer.has_usage = Member(json, "usage").is_object();
  } else if (type == "message_stop") {
    gathered->complete = true;
  }
  return gathered->CheckSize();
}

WireError AddDocument(ChatDialect dialect, const Json& json,
                      Gathered* gathered) {
  return dialect == ChatDialect::kOpenAi ? AddOpenAi(json, gathered)
                                         : AddAnthropic(json, gathered);
}

class StreamReader : public AnswerReader {
 public:
  StreamReader(ChatDialect dialect, size_t max_bytes)
      : dialect_(dialect), gathered_(max_bytes) {}

  WireError Add(std::string_view bytes) override {
    if (error_.fault != WireFault::kNone) return error_;
    std::vector<SseEvent> events;
    const absl::Status read = parser_.Feed(bytes, &events);
    error_ = Use(events);
    if (error_.fault == WireFault::kNone && !read.ok()) {
      error_ = {WireFault::kTooLong, std::string(read.message())};
    }
    return error_;
  }

  bool complete() const override { return gathered_.complete; }

  WireError End(WireReply* reply) override {
    if (error_.fault != WireFault::kNone) return error_;
    std::vector<SseEvent> events;
    parser_.End(&events);
    // The last event may be cut off; what it lacks is said below.
    const WireError rest = Use(events);
    if (rest.fault == WireFault::kQuota) return rest;
    const bool done = gathered_.complete && gathered_.has_choice;
    if (!gathered_.ended && !done) {
      return Broken(absl::StrCat("the stream ended early, after ",
                                 gathered_.answer.reply.text.size(),
                                 " bytes of the answer"));
    }
    return gathered_.Take(reply);
  }

 private:
  WireError Use(const std::vector<SseEvent>& events) {
    for (const SseEvent& event : events) {
      if (gathered_.complete) break;
      if (event.data.empty()) continue;
      if (event.data == "[DONE]") {
        gathered_.complete = true;
        break;
      }
      const Json json = ParseJson(event.data);
      if (!json.is_object()) {
        return Broken(absl::StrCat("got an event that is no JSON object: ",
                                   QuotedLine(event.data)));
      }
      WireError error = AddDocument(dialect_, json, &gathered_);
      if (error.fault != WireFault::kNone) return error;
    }
    return {};
  }

  const ChatDialect dialect_;
  SseParser parser_;
  Gathered gathered_;
  WireError error_;
};

class DocumentReader : public AnswerReader {
 public:
  DocumentReader(ChatDialect dialect, size_t max_bytes)
      : dialect_(dialect), gathered_(max_bytes) {}

  WireError Add(std::string_view bytes) override {
    // Text in JSON is at most six times as long, besides what stands around it.
    if (body_.size() + bytes.size() > 6 * gathered_.max_bytes + (64 << 10)) {
      return {WireFault::kTooLong, absl::StrCat("got an answer of more than ",
                                                gathered_.max_bytes, " bytes")};
    }
    body_.append(bytes);
    return {};
  }

  bool complete() const override { return false; }

  WireError End(WireReply* reply) override {
    const Json json = ParseJson(body_);
    if (!json.is_object()) {
      return Broken("got an answer that is no JSON object, or only its begin");
    }
    WireError error = AddDocument(dialect_, json, &gathered_);
    if (error.fault != WireFault::kNone) return error;
    if (!gathered_.has_choice) {
      return Broken("got a JSON object without an answer in it");
    }
    gathered_.answer.has_usage = Member(json, "usage").is_object();
    return gathered_.Take(reply);
  }

 private:
  const ChatDialect dialect_;
  Gathered gathered_;
  std::string body_;
};

}  // namespace

std::unique_ptr<AnswerReader> MakeAnswerReader(ChatDialect dialect,
                                               std::string_view content_type,
                                               size_t max_bytes) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  const std::string name(absl::StripAsciiWhitespace(
      absl::AsciiStrToLower(absl::string_view(type.data(), type.size()))));
  if (name == "text/event-stream") {
    return std::make_unique<StreamReader>(dialect, max_bytes);
  }
  if (name == "application/json") {
    return std::make_unique<DocumentReader>(dialect, max_bytes);
  }
  return nullptr;
}

}  // namespace reprise::evolution
