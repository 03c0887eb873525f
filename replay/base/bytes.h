// Small questions about bytes and sizes. Thread-safe.
#ifndef REPRISE_REPLAY_BASE_BYTES_H_
#define REPRISE_REPLAY_BASE_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string_view>

namespace reprise {

// True of no bytes, too.
inline bool IsZero(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 &&
          std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// The next multiple.
constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace reprise

#endif  // REPRISE_REPLAY_BASE_BYTES_H_
