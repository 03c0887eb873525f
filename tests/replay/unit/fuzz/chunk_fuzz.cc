// The chunk reader takes any bytes. The first byte of an input says what the
// rest is: a whole file; a header with its check made good and a payload; a
// payload for a sound header whose content size is in the next three bytes; or
// content to be compressed and read back.
#include <cstdint>
#include <string>
#include <string_view>

#include "replay/base/check.h"
#include "replay/base/sha256.h"
#include "replay/unit/frame.h"
#include "replay/unit/unit_store.h"

namespace {

using namespace reprise;

constexpr size_t kCheckAt = kFrameHeaderBytes - 8;

// Reads a file as the store does, with a guard behind the destination.
void Read(std::string_view file) {
  const absl::StatusOr<FrameHeader> header =
      DecodeFrameHeader(FrameKind::kChunk, file.substr(0, kFrameHeaderBytes),
                        file.size(), "input");
  if (!header.ok() || header->raw_bytes > kChunkBytes) return;
  FrameCodec codec;
  const auto out = std::make_unique<char[]>(header->raw_bytes);
  const absl::Status status = codec.Decompress(
      *header, file.substr(kFrameHeaderBytes), "input", out.get());
  if (status.ok()) {
    CHECK(Sha256(std::string_view(out.get(), header->raw_bytes)) ==
          header->sha256);
  }
}

void ReadBack(std::string_view content) {
  FrameCodec codec;
  const FrameCodec::Payload payload = codec.Compress(content, 1);
  FrameHeader header;
  header.version = kUnitFormatVersion;
  header.flags = payload.flags;
  header.raw_bytes = content.size();
  header.stored_bytes = payload.bytes.size();
  header.sha256 = Sha256(content);
  const std::string stored(payload.bytes);
  std::string out(content.size(), '\0');
  CHECK(codec.Decompress(header, stored, "input", out.data()).ok());
  CHECK(out == content);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  switch (data[0] % 4) {
    case 0:
      Read(rest);
      break;
    case 1: {
      std::string file(rest);
      if (file.size() >= kFrameHeaderBytes) {
        file.replace(kCheckAt, 8,
                     Sha256(rest.substr(0, kCheckAt)).substr(0, 8));
      }
      Read(file);
      break;
    }
    case 2: {
      const std::string_view payload = rest.substr(3);
      FrameHeader header;
      header.version = kUnitFormatVersion;
      header.flags = kFrameZstd;
      header.raw_bytes = (data[1] | data[2] << 8 | data[3] << 16) % kChunkBytes;
      header.stored_bytes = payload.size();
      header.sha256 = std::string(32, 'x');
      Read(EncodeFrameHeader(FrameKind::kChunk, header) + std::string(payload));
      break;
    }
    default:
      ReadBack(rest);
  }
  return 0;
}
