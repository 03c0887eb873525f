#include "replay/recorder/cc/lz4_block.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

// A block is a row of sequences: a token of two lengths, literals, and a copy
// of earlier output by its distance. The last sequence ends with its literals.
class Decoder {
 public:
  Decoder(std::string_view block, uint64_t plain_bytes)
      : block_(block), plain_bytes_(plain_bytes) {}

  // False where the block is malformed.
  bool Run() {
    while (at_ < block_.size()) {
      const uint8_t token = Byte();
      uint64_t literals = token >> 4;
      if (!Extend(&literals) || !Copy(literals)) return false;
      if (at_ == block_.size()) break;
      uint64_t match = token & 15;
      if (!Repeat(&match)) return false;
    }
    return out_.size() == plain_bytes_;
  }
  std::string TakeOutput() { return std::move(out_); }

 private:
  static constexpr uint64_t kLongLength = 15;  // goes on in further bytes
  static constexpr uint64_t kShortestMatch = 4;

  uint8_t Byte() { return static_cast<uint8_t>(block_[at_++]); }
  uint64_t Room() const { return plain_bytes_ - out_.size(); }

  // Bytes of 255 go on, the first other one ends the length.
  bool Extend(uint64_t* length) {
    if (*length != kLongLength) return true;
    while (at_ < block_.size()) {
      const uint8_t more = Byte();
      *length += more;
      if (more != 255) return true;
    }
    return false;
  }
  bool Copy(uint64_t literals) {
    if (literals > block_.size() - at_ || literals > Room()) return false;
    out_.append(block_.substr(at_, literals));
    at_ += literals;
    return true;
  }
  bool Repeat(uint64_t* length) {
    if (block_.size() - at_ < 2) return false;
    uint64_t distance = Byte();
    distance |= uint64_t{Byte()} << 8;
    if (!Extend(length)) return false;
    *length += kShortestMatch;
    if (distance == 0 || distance > out_.size() || *length > Room())
      return false;
    // What is copied may be what the copy just wrote.
    while (*length > 0) {
      const uint64_t step = std::min(*length, distance);
      out_.append(out_, out_.size() - distance, step);
      *length -= step;
    }
    return true;
  }

  const std::string_view block_;
  const uint64_t plain_bytes_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> DecompressLz4Block(std::string_view block,
                                               uint64_t plain_bytes) {
  Decoder decoder(block, plain_bytes);
  if (!decoder.Run()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an LZ4 block of ", block.size(), " bytes is malformed or holds not ",
        plain_bytes, " bytes"));
  }
  return decoder.TakeOutput();
}

}  // namespace reprise
