// Prompts from any bytes: a kernel, its comments and what a compiler says of it
// never end the block that they are quoted in, and templates are read or
// refused with a line. The input is a template, \x03, and the text of others.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "evolution/llm/prompt.h"
#include "evolution/llm/prompt_template.h"
#include "evolution/llm/quote.h"
#include "evolution/llm/text.h"
#include "replay/base/check.h"

namespace reprise::evolution {
namespace {

// What stands outside of blocks between equal lines of four or more backticks.
std::string Outside(const std::string& text) {
  std::string outside, fence;
  for (const std::string_view line : SplitLines(text)) {
    const size_t marks = std::min(line.find_first_not_of('`'), line.size());
    if (fence.empty() && marks >= 4) {
      fence.assign(marks, '`');
    } else if (!fence.empty()) {
      if (line == fence) fence.clear();
    } else {
      outside += line;
      outside += '\n';
    }
  }
  CHECK(fence.empty());
  return outside;
}

std::string OutsideFor(const std::string& others) {
  const std::string head = "void k() { /*", tail = "*/ a; }";
  const std::string kernel = head + others + tail;
  const EvolvableSource source(
      {{"/k.cu", kernel + others, false}},
      {{"/k.cu", 0, kernel.size(), RegionKind::kKernel, "k"}});
  PromptTask task;
  task.notes = "note " + others;
  task.max_host_bytes = 1 << 20;
  const PromptBuilder builder(*PromptTemplates::Load(""), source, task);
  PromptRequest request;
  request.failures = {{"change",
                       "- a\n" + others,
                       v1::OUTCOME_KIND_COMPILE_ERROR,
                       {},
                       "error: " + others}};
  const auto prompt = builder.Build(request);
  CHECK(prompt.ok());
  for (const ChatMessage& message : prompt->messages)
    CHECK(CleanText(message.text) == message.text);
  return Outside(prompt->messages[1].text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string text = input.substr(0, input.find('\x03'));
  const auto parsed = PromptTemplate::Parse("t.md", text, {}, {"a", "b_c"});
  if (parsed.ok()) {
    CHECK(parsed->Fill({{"a", "{{b_c}}"}}).size() <= 8 * text.size());
  } else {
    const std::string message(parsed.status().message());
    CHECK(message.starts_with("t.md:"));
    CHECK(message[5] >= '1' && message[5] <= '9');
  }
  const std::string others =
      text.size() < input.size() ? input.substr(text.size() + 1) : "";
  static const auto* const plain = new std::string(OutsideFor("x"));
  if (others.size() < 3000) CHECK(OutsideFor(others) == *plain);
  return 0;
}

}  // namespace reprise::evolution
