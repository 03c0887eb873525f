// The frame around every file of a unit store: a header of fixed layout, then
// the payload. docs/unit-format.md draws it.
//
// The functions are thread-safe; a FrameCodec serves one thread at a time.
// Nothing here touches files or trusts its input: sizes are checked before
// anything is allocated or written, and a payload is accepted only if its
// SHA-256 is the header's.
#ifndef REPRISE_REPLAY_UNIT_FRAME_H_
#define REPRISE_REPLAY_UNIT_FRAME_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace reprise {

inline constexpr size_t kFrameHeaderBytes = 72;

enum class FrameKind { kChunk, kManifest };

// How the payload is stored.
inline constexpr uint32_t kFrameRaw = 0;
inline constexpr uint32_t kFrameZstd = 1;

struct FrameHeader {
  uint32_t version = 0;
  uint32_t flags = kFrameRaw;
  uint64_t raw_bytes = 0;     // of the content
  uint64_t stored_bytes = 0;  // of the payload in the file
  std::string sha256;         // of the content, 32 bytes
};

// kFrameHeaderBytes bytes.
std::string EncodeFrameHeader(FrameKind kind, const FrameHeader& header);

// Checks the first bytes of a file (`prefix`, all of a shorter file) that is
// `file_bytes` long; `path` is for messages. Errors: INVALID_ARGUMENT (not such
// a file), DATA_LOSS (truncated, damaged header, sizes that disagree),
// FAILED_PRECONDITION (newer version).
absl::StatusOr<FrameHeader> DecodeFrameHeader(FrameKind kind,
                                              std::string_view prefix,
                                              uint64_t file_bytes,
                                              const std::string& path);

// Compression contexts and their buffer, kept for reuse.
class FrameCodec {
 public:
  FrameCodec();
  ~FrameCodec();
  FrameCodec(const FrameCodec&) = delete;
  FrameCodec& operator=(const FrameCodec&) = delete;

  // The payload for `content` with the flags to store it under: compressed if
  // that saves at least an eighth, else `content` itself. Valid until the next
  // call.
  struct Payload {
    std::string_view bytes;
    uint32_t flags;
  };
  Payload Compress(std::string_view content, int level);

  // Writes header.raw_bytes bytes to `destination` and compares their SHA-256
  // with the header's. `payload` may already lie at `destination` if it is raw.
  // DATA_LOSS on any disagreement; then destination's contents are undefined.
  absl::Status Decompress(const FrameHeader& header, std::string_view payload,
                          const std::string& path, char* destination);

  // At least `bytes` bytes for a caller's payload; valid until the next call of
  // any method but Decompress.
  char* Scratch(size_t bytes);

 private:
  bool LooksCompressible(std::string_view content, int level);
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
  std::unique_ptr<char[]> scratch_;
  size_t scratch_bytes_ = 0;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_FRAME_H_
