#include "replay/recorder/session/borrowed_chunks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "replay/base/parallel_for.h"
#include "replay/base/status_macros.h"
#include "replay/unit/blob.h"

namespace reprise {
namespace {

constexpr size_t kDigestBytes = 32;

}  // namespace

std::string BorrowedChunks::Number(std::string_view chunk) {
  chunks_.push_back(chunk);
  const uint64_t number = chunks_.size();
  std::string digest(kDigestBytes, '\0');
  std::memcpy(digest.data(), &number, sizeof(number));
  return digest;
}

absl::StatusOr<std::string_view> BorrowedChunks::Find(
    const v1::Chunk& chunk) const {
  uint64_t number = 0;
  if (chunk.sha256().size() == kDigestBytes)
    std::memcpy(&number, chunk.sha256().data(), sizeof(number));
  if (number == 0 || number > chunks_.size() ||
      chunks_[number - 1].size() != chunk.bytes())
    return absl::NotFoundError("a chunk is not among the borrowed ones");
  return chunks_[number - 1];
}

v1::Blob BorrowedChunks::Borrow(std::string_view bytes) {
  v1::Blob blob;
  for (size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    const std::string_view chunk = bytes.substr(at, kChunkBytes);
    AppendChunk(Number(chunk), chunk.size(), &blob);
  }
  return blob;
}

v1::Blob BorrowedChunks::BorrowChanged(
    const v1::Blob& base,
    const std::function<const char*(size_t chunk)>& other) {
  v1::Blob blob;
  for (size_t i = 0; i < static_cast<size_t>(base.chunks_size()); ++i) {
    const v1::Chunk& same = base.chunks(static_cast<int>(i));
    const char* bytes = other(i);
    AppendChunk(
        bytes != nullptr ? Number({bytes, same.bytes()}) : same.sha256(),
        same.bytes(), &blob);
  }
  return blob;
}

absl::StatusOr<v1::Blob> BorrowedChunks::Put(std::string_view bytes) {
  return Borrow(copies_.emplace_back(bytes));
}

absl::StatusOr<v1::Blob> BorrowedChunks::PutStream(const Source& next) {
  std::string& copy = copies_.emplace_back();
  for (;;) {
    const size_t have = copy.size();
    copy.resize(have + kChunkBytes);
    ASSIGN_OR_RETURN(const size_t got, next(copy.data() + have, kChunkBytes));
    copy.resize(have + got);
    if (got == 0) return Borrow(copy);
  }
}

absl::Status BorrowedChunks::Get(const v1::Blob& blob, const Sink& sink) const {
  for (const v1::Chunk& chunk : blob.chunks()) {
    ASSIGN_OR_RETURN(const std::string_view bytes, Find(chunk));
    RETURN_IF_ERROR(sink(bytes));
  }
  return absl::OkStatus();
}

absl::Status BorrowedChunks::GetInto(
    const v1::Blob& blob, char* destination,
    const std::function<bool(size_t chunk)>& only_if) const {
  for (size_t i = 0; i < static_cast<size_t>(blob.chunks_size()); ++i) {
    if (only_if != nullptr && !only_if(i)) continue;
    RETURN_IF_ERROR(Find(blob.chunks(static_cast<int>(i))).status());
  }
  ParallelFor(blob.bytes(), [&](uint64_t begin, uint64_t end) {
    while (begin < end) {
      const size_t i = begin / kChunkBytes;
      const uint64_t in_chunk = begin % kChunkBytes;
      const uint64_t bytes = std::min(end - begin, kChunkBytes - in_chunk);
      if (only_if == nullptr || only_if(i)) {
        const std::string_view chunk = *Find(blob.chunks(static_cast<int>(i)));
        std::memcpy(destination + begin, chunk.data() + in_chunk, bytes);
      }
      begin += bytes;
    }
  });
  return absl::OkStatus();
}

absl::Status BorrowedChunks::GetChunk(const v1::Chunk& chunk,
                                      char* destination) const {
  ASSIGN_OR_RETURN(const std::string_view bytes, Find(chunk));
  std::memcpy(destination, bytes.data(), bytes.size());
  return absl::OkStatus();
}

}  // namespace reprise
