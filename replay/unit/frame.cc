#include "replay/unit/frame.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "replay/base/check.h"
#include "replay/base/sha256.h"
#include "replay/unit/unit_store.h"

namespace reprise {
namespace {

constexpr size_t kMagicBytes = 8;
constexpr size_t kCheckBytes = 8;
constexpr char kDamageAdvice[] =
    "; remove the file and record again, or copy it from another store";

std::string_view Magic(FrameKind kind) {
  return kind == FrameKind::kChunk ? "RPRCHUNK" : "RPRUNIT1";
}

const char* Noun(FrameKind kind) {
  return kind == FrameKind::kChunk ? "chunk" : "unit manifest";
}

void AppendLittleEndian(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i)
    out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i]))
             << (8 * i);
  return value;
}

// First bytes of the SHA-256 of the header before them.
std::string HeaderCheck(std::string_view header) {
  return Sha256(header).substr(0, kCheckBytes);
}

absl::Status NotOurs(FrameKind kind, std::string_view prefix,
                     const std::string& path) {
  const std::string got(prefix.substr(0, kMagicBytes));
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is not a Reprise ", Noun(kind),
                   ": it begins with \"", absl::CHexEscape(got),
                   "\", expected \"", std::string(Magic(kind)), "\""));
}

absl::Status Damaged(const std::string& path, const std::string& how) {
  return absl::DataLossError(
      absl::StrCat(path, " is damaged: ", how, kDamageAdvice));
}

absl::Status Truncated(const std::string& path, uint64_t got,
                       uint64_t expected) {
  return absl::DataLossError(absl::StrCat(path, " is truncated: got ", got,
                                          " bytes, expected ", expected,
                                          kDamageAdvice));
}

absl::Status CheckSizes(const FrameHeader& header, uint64_t file_bytes,
                        const std::string& path) {
  if (header.flags > kFrameZstd)
    return Damaged(path, absl::StrCat("unknown flags ", header.flags,
                                      ", expected 0 or 1"));
  const bool consistent = header.flags == kFrameRaw
                              ? header.stored_bytes == header.raw_bytes
                              : header.stored_bytes < header.raw_bytes;
  if (!consistent) {
    return Damaged(path, absl::StrCat("it claims ", header.stored_bytes,
                                      " stored bytes for ", header.raw_bytes,
                                      " bytes of content"));
  }
  const uint64_t payload_bytes = file_bytes - kFrameHeaderBytes;
  if (payload_bytes < header.stored_bytes)
    return Truncated(path, file_bytes, kFrameHeaderBytes + header.stored_bytes);
  if (payload_bytes > header.stored_bytes) {
    return Damaged(path, absl::StrCat("got ", file_bytes, " bytes, expected ",
                                      kFrameHeaderBytes + header.stored_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeFrameHeader(FrameKind kind, const FrameHeader& header) {
  CHECK(header.sha256.size() == 32);
  std::string out(Magic(kind));
  AppendLittleEndian(header.version, 4, &out);
  AppendLittleEndian(header.flags, 4, &out);
  AppendLittleEndian(header.raw_bytes, 8, &out);
  AppendLittleEndian(header.stored_bytes, 8, &out);
  out += header.sha256;
  out += HeaderCheck(out);
  return out;
}

absl::StatusOr<FrameHeader> DecodeFrameHeader(FrameKind kind,
                                              std::string_view prefix,
                                              uint64_t file_bytes,
                                              const std::string& path) {
  const size_t known = std::min(prefix.size(), kMagicBytes);
  if (prefix.substr(0, known) != Magic(kind).substr(0, known))
    return NotOurs(kind, prefix, path);
  if (prefix.size() < kFrameHeaderBytes)
    return Truncated(path, file_bytes, kFrameHeaderBytes);
  prefix = prefix.substr(0, kFrameHeaderBytes);
  const size_t check_at = kFrameHeaderBytes - kCheckBytes;
  if (HeaderCheck(prefix.substr(0, check_at)) != prefix.substr(check_at))
    return Damaged(path, "its header does not match its own check");
  FrameHeader header;
  header.version = static_cast<uint32_t>(LittleEndian(prefix.substr(8, 4)));
  header.flags = static_cast<uint32_t>(LittleEndian(prefix.substr(12, 4)));
  header.raw_bytes = LittleEndian(prefix.substr(16, 8));
  header.stored_bytes = LittleEndian(prefix.substr(24, 8));
  header.sha256 = std::string(prefix.substr(32, 32));
  if (header.version > kUnitFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " has format version ", header.version, ", expected at most ",
        kUnitFormatVersion, ": a newer Reprise wrote it; update this one"));
  }
  if (header.version == 0) return Damaged(path, "its format version is 0");
  absl::Status status = CheckSizes(header, file_bytes, path);
  if (!status.ok()) return status;
  return header;
}

struct FrameCodec::Contexts {
  ZSTD_CCtx* compress = ZSTD_createCCtx();
  ZSTD_DCtx* decompress = ZSTD_createDCtx();
  Contexts() { CHECK(compress != nullptr && decompress != nullptr); }
  ~Contexts() {
    ZSTD_freeCCtx(compress);
    ZSTD_freeDCtx(decompress);
  }
};

FrameCodec::FrameCodec() : contexts_(std::make_unique<Contexts>()) {}
FrameCodec::~FrameCodec() = default;

char* FrameCodec::Scratch(size_t bytes) {
  if (scratch_bytes_ < bytes) {
    scratch_ = std::make_unique_for_overwrite<char[]>(bytes);
    scratch_bytes_ = bytes;
  }
  return scratch_.get();
}

// Compresses a few windows of a large chunk. Costs a few percent of compressing
// it, and noise need not be compressed in full to learn that it is noise.
bool FrameCodec::LooksCompressible(std::string_view content, int level) {
  constexpr size_t kWindow = 8 << 10;
  constexpr size_t kWindows = 3;
  if (content.size() < 16 * kWindow) return true;
  const size_t capacity = ZSTD_compressBound(kWindow);
  char* buffer = Scratch(capacity);
  size_t stored = 0;
  for (size_t i = 0; i < kWindows; ++i) {
    const size_t at = i * (content.size() - kWindow) / (kWindows - 1);
    const size_t size = ZSTD_compressCCtx(contexts_->compress, buffer, capacity,
                                          content.data() + at, kWindow, level);
    if (ZSTD_isError(size)) return true;
    stored += size;
  }
  return stored < kWindows * kWindow * 15 / 16;
}

FrameCodec::Payload FrameCodec::Compress(std::string_view content, int level) {
  const Payload raw{content, kFrameRaw};
  if (!LooksCompressible(content, level)) return raw;
  // Room for what is worth storing and no more: zstd stops when it is full.
  const size_t capacity = content.size() - content.size() / 8;
  if (capacity == content.size()) return raw;
  char* buffer = Scratch(capacity);
  const size_t size = ZSTD_compressCCtx(contexts_->compress, buffer, capacity,
                                        content.data(), content.size(), level);
  if (ZSTD_isError(size) || size >= content.size()) return raw;
  return {std::string_view(buffer, size), kFrameZstd};
}

absl::Status FrameCodec::Decompress(const FrameHeader& header,
                                    std::string_view payload,
                                    const std::string& path,
                                    char* destination) {
  if (payload.size() != header.stored_bytes)
    return Truncated(path, kFrameHeaderBytes + payload.size(),
                     kFrameHeaderBytes + header.stored_bytes);
  if (header.flags == kFrameZstd) {
    const size_t got =
        ZSTD_decompressDCtx(contexts_->decompress, destination,
                            header.raw_bytes, payload.data(), payload.size());
    if (ZSTD_isError(got))
      return Damaged(path, absl::StrCat("zstd says: ", ZSTD_getErrorName(got)));
    if (got != header.raw_bytes)
      return Damaged(path, absl::StrCat("it decompresses to ", got,
                                        " bytes, expected ", header.raw_bytes));
  } else if (payload.data() != destination) {
    std::memcpy(destination, payload.data(), payload.size());
  }
  const std::string digest =
      Sha256(std::string_view(destination, header.raw_bytes));
  if (digest != header.sha256) {
    return Damaged(path,
                   absl::StrCat("SHA-256 of its content is ", HexEncode(digest),
                                ", expected ", HexEncode(header.sha256)));
  }
  return absl::OkStatus();
}

}  // namespace reprise
