#include "evolution/llm/chat_wire.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "evolution/llm/json_util.h"
#include "evolution/llm/quote.h"

namespace reprise::evolution {
namespace {

const char* RoleName(ChatRole role) {
  switch (role) {
    case ChatRole::kSystem:
      return "system";
    case ChatRole::kUser:
      return "user";
    case ChatRole::kAssistant:
      break;
  }
  return "assistant";
}

Json OpenAiBody(const RequestForm& form, const ChatRequest& request) {
  Json body;
  body["model"] = form.model;
  body["messages"] = Json::array();
  for (const ChatMessage& message : request.messages) {
    Json entry;
    entry["role"] = RoleName(message.role);
    entry["content"] = message.text;
    body["messages"].push_back(std::move(entry));
  }
  body[form.reasoning ? "max_completion_tokens" : "max_tokens"] =
      request.max_output_tokens;
  if (!form.reasoning) body["temperature"] = request.temperature;
  // Within what every provider takes for a seed.
  if (form.send_seed) body["seed"] = request.seed & 0x7fffffff;
  body["stream"] = form.stream;
  if (form.stream) body["stream_options"]["include_usage"] = true;
  return body;
}

Json TextBlock(std::string text, bool mark) {
  Json block;
  block["type"] = "text";
  block["text"] = std::move(text);
  if (mark) block["cache_control"]["type"] = "ephemeral";
  return block;
}

// Blocks of a message's text; a mark of the cache stands where the stable part
// of the last stable message ends.
Json TextBlocks(const ChatMessage& message, bool mark) {
  const size_t stable = std::min(message.stable_bytes, message.text.size());
  Json blocks = Json::array();
  if (mark && stable > 0) {
    blocks.push_back(TextBlock(message.text.substr(0, stable), true));
  }
  const size_t rest = mark ? stable : 0;
  if (rest < message.text.size()) {  // empty blocks are refused
    blocks.push_back(TextBlock(message.text.substr(rest), false));
  }
  return blocks;
}

Json AnthropicBody(const RequestForm& form, const ChatRequest& request) {
  size_t marked = request.messages.size();
  for (size_t i = 0; i < request.messages.size(); ++i) {
    if (request.messages[i].stable_bytes > 0) marked = i;
  }
  Json body;
  body["model"] = form.model;
  body["max_tokens"] = request.max_output_tokens;
  if (!form.reasoning) body["temperature"] = request.temperature;
  body["messages"] = Json::array();
  for (size_t i = 0; i < request.messages.size(); ++i) {
    const ChatMessage& message = request.messages[i];
    if (message.role == ChatRole::kSystem) {
      body["system"] = TextBlocks(message, i == marked);
      continue;
    }
    Json entry;
    entry["role"] = RoleName(message.role);
    entry["content"] = TextBlocks(message, i == marked);
    body["messages"].push_back(std::move(entry));
  }
  body["stream"] = form.stream;
  return body;
}

// What providers call it when no money is left; they use 400, 402, 403 and 429.
bool SaysQuota(std::string_view text) {
  constexpr std::array<std::string_view, 7> kWords = {
      "insufficient_quota",
      "billing_hard_limit",
      "exceeded your current quota",
      "credit balance",
      "insufficient balance",
      "insufficient credits",
      "billing_error"};
  const std::string lower =
      absl::AsciiStrToLower(absl::string_view(text.data(), text.size()));
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return lower.find(word) != std::string::npos;
  });
}

WireFault FaultOfStatus(int status) {
  switch (status) {
    case 401:
    case 403:
      return WireFault::kKey;
    case 402:
      return WireFault::kQuota;
    case 429:
      return WireFault::kRate;
    case 408:
    case 409:
    case 425:
      return WireFault::kAgain;
    default:
      return status >= 500 && status != 501 && status != 505
                 ? WireFault::kAgain
                 : WireFault::kRequest;
  }
}

}  // namespace

std::string RequestBody(const RequestForm& form, const ChatRequest& request) {
  return DumpJson(form.dialect == ChatDialect::kOpenAi
                      ? OpenAiBody(form, request)
                      : AnthropicBody(form, request));
}

WireError ErrorOfStatus(int status, std::string_view body) {
  body = body.substr(0, 64 << 10);
  WireError error;
  const std::string words = ErrorWords(ParseJson(body));
  const bool quota = SaysQuota(words.empty() ? body : words);
  error.fault =
      quota && status < 500 ? WireFault::kQuota : FaultOfStatus(status);
  error.message = absl::StrCat("HTTP ", status);
  if (error.fault == WireFault::kKey) {  // the provider's words may hold it
    error.message += ": the key is refused, or what it may not do was asked";
    return error;
  }
  if (status >= 300 && status < 400) {
    error.message += ": redirects are not followed";
    return error;
  }
  const std::string line = QuotedLine(words.empty() ? body : words);
  if (!line.empty()) absl::StrAppend(&error.message, ": ", line);
  return error;
}

}  // namespace reprise::evolution
