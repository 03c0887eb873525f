// The space reader, and the expressions in it, take any bytes: an error begins
// with the source and a line; a space that is accepted gives configurations
// that it accepts itself.
#include <cstdint>
#include <string>

#include "bayesopt/space_reader.h"
#include "replay/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace reprise::bayesopt;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto space = ReadSpace(text, "input");
  if (!space.ok()) {
    const std::string message(space.status().message());
    CHECK(message.starts_with("input:"));
    CHECK(message.size() > 6 && message[6] >= '1' && message[6] <= '9');
    return 0;
  }
  CHECK((*space)->Check((*space)->Default()).ok());
  Random random(1);
  if (const auto sample = (*space)->Sample(random)) {
    CHECK((*space)->Check(*sample).ok());
  }
  return 0;
}
