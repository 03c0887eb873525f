// What models' servers answer is any bytes: reading them never fails but by an
// error with words, within the limit, and the same however they are cut. The
// input's first byte chooses dialect, form and pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "evolution/llm/chat_wire.h"
#include "replay/base/check.h"

namespace reprise::evolution {
namespace {

constexpr size_t kMost = 4096;

struct Outcome {
  WireError error;
  WireReply reply;
};

Outcome Read(ChatDialect dialect, std::string_view type, std::string_view bytes,
             size_t piece) {
  Outcome outcome;
  const auto reader = MakeAnswerReader(dialect, type, kMost);
  for (size_t at = 0; at < bytes.size(); at += piece) {
    outcome.error = reader->Add(bytes.substr(at, piece));
    if (outcome.error.fault != WireFault::kNone) return outcome;
  }
  outcome.error = reader->End(&outcome.reply);
  return outcome;
}

void ReadAnyBytes(const uint8_t* data, size_t size) {
  if (size == 0) return;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  const auto dialect =
      (data[0] & 1) != 0 ? ChatDialect::kAnthropic : ChatDialect::kOpenAi;
  const char* type =
      (data[0] & 2) != 0 ? "application/json" : "text/event-stream";
  const Outcome whole =
      Read(dialect, type, bytes, std::max<size_t>(bytes.size(), 1));
  const Outcome pieces = Read(dialect, type, bytes, 1 + (data[0] >> 2));
  CHECK(whole.error.fault == pieces.error.fault);
  CHECK(whole.error.message == pieces.error.message);
  CHECK(whole.error.message.size() < 600);
  if (whole.error.fault == WireFault::kNone) {
    const ChatReply& reply = whole.reply.reply;
    CHECK(reply.text == pieces.reply.reply.text);
    CHECK(reply.text.size() + whole.reply.reasoning_bytes <= kMost);
    CHECK(reply.usage.cached_tokens <= reply.usage.prompt_tokens);
    CHECK(reply.usage.output_tokens == pieces.reply.reply.usage.output_tokens);
  } else {
    CHECK(!whole.error.message.empty());
  }
  CHECK(ErrorOfStatus(400 + data[0], bytes).fault != WireFault::kNone);
}

}  // namespace
}  // namespace reprise::evolution

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  reprise::evolution::ReadAnyBytes(data, size);
  return 0;
}
