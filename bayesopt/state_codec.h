// Saved state as bytes: little-endian numbers and length-prefixed texts, read
// back in the order they were written. Not thread-safe; plain values.
#ifndef REPRISE_BAYESOPT_STATE_CODEC_H_
#define REPRISE_BAYESOPT_STATE_CODEC_H_

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::bayesopt {

class StateWriter {
 public:
  void U64(uint64_t value) {
    for (int i = 0; i < 8; ++i) {
      bytes_.push_back(static_cast<char>(value >> (8 * i)));
    }
  }
  void F64(double value) { U64(std::bit_cast<uint64_t>(value)); }
  void Text(std::string_view text) {
    U64(text.size());
    bytes_.append(text);
  }
  void Doubles(const std::vector<double>& values) {
    U64(values.size());
    for (const double value : values) F64(value);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After a read past the end, or of an impossible length, everything reads as
// zero and ok() is false.
class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t U64() {
    if (bytes_.size() < 8) {
      ok_ = false;
      return 0;
    }
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      value |= uint64_t{static_cast<uint8_t>(bytes_[static_cast<size_t>(i)])}
               << (8 * i);
    }
    bytes_.remove_prefix(8);
    return value;
  }
  double F64() { return std::bit_cast<double>(U64()); }
  std::string Text() {
    const uint64_t size = Count(1);
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  std::vector<double> Doubles() {
    std::vector<double> values(Count(8));
    for (double& value : values) value = F64();
    return values;
  }
  // A number of things of at least `least_bytes` each that must still follow.
  uint64_t Count(uint64_t least_bytes) {
    const uint64_t count = U64();
    if (count <= bytes_.size() / least_bytes) return count;
    ok_ = false;
    return 0;
  }

  bool ok() const { return ok_; }
  bool AtEnd() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_STATE_CODEC_H_
