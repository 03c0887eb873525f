// Any answer, and any way that regions lie in a file: what is applied stays
// within the regions and is what the answer says changed; what is refused says
// why. The input is a file with regions between \x01 and \x02, \x03, and the
// answer.
#include <cstdint>
#include <string>
#include <vector>

#include "evolution/llm/edits.h"
#include "evolution/regions.h"
#include "evolution/tokens.h"
#include "replay/base/check.h"

namespace reprise::evolution {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text;
  std::vector<Region> regions;
  size_t at = 0;
  bool open = false;
  for (; at < size && data[at] != 3; ++at) {
    if (data[at] == 1 && !open) {
      regions.push_back({"/p/k.cu", text.size(), 0, RegionKind::kKernel, "k"});
      open = true;
    } else if (data[at] == 2 && open) {
      regions.back().end = text.size();
      open = false;
    } else {
      text += static_cast<char>(data[at]);
    }
  }
  if (open) regions.back().end = text.size();
  if (regions.empty()) return 0;
  const EvolvableSource source({{"/p/k.cu", text, false}}, regions);
  const std::string answer(reinterpret_cast<const char*>(data) + at, size - at);
  const auto applied = ApplyAnswer(source, answer);
  if (!applied.ok()) {
    CHECK(applied.status().message().size() > 10);
    return 0;
  }
  CHECK(applied->files.size() == 1);
  CHECK(applied->files.begin()->second != text);
  CHECK(!applied->diff.empty());
  const auto after = source.At(applied->files);
  CHECK(after.ok());
  CHECK(CheckSelfContained(source, *after).ok());
  // Fixed text is where it was.
  std::string fixed[2];
  size_t from[2] = {0, 0};
  for (size_t i = 0; i < source.regions().size(); ++i) {
    const Region* region[2] = {&source.regions()[i], &after->regions()[i]};
    const std::string* file[2] = {&text, &applied->files.begin()->second};
    for (int side = 0; side < 2; ++side) {
      fixed[side] +=
          file[side]->substr(from[side], region[side]->begin - from[side]);
      from[side] = region[side]->end;
    }
  }
  fixed[0] += text.substr(from[0]);
  fixed[1] += applied->files.begin()->second.substr(from[1]);
  CHECK(fixed[0] == fixed[1]);
  return 0;
}

}  // namespace reprise::evolution
