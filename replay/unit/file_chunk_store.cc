#include "replay/unit/file_chunk_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "replay/base/bytes.h"
#include "replay/base/file_util.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/unit/blob.h"
#include "replay/unit/ordered_workers.h"

namespace reprise {
namespace {

constexpr int kMaxThreads = 16;

// Fills both buffers in turn from the start of the file; fewer bytes than they
// hold only at its end.
absl::StatusOr<size_t> ReadTwo(int fd, const std::string& path, char* first,
                               size_t first_bytes, char* second,
                               size_t second_bytes) {
  size_t have = 0;
  while (have < first_bytes + second_bytes) {
    iovec parts[2];
    int count = 0;
    if (have < first_bytes) parts[count++] = {first + have, first_bytes - have};
    const size_t in_second = have > first_bytes ? have - first_bytes : 0;
    if (in_second < second_bytes)
      parts[count++] = {second + in_second, second_bytes - in_second};
    const ssize_t got = preadv(fd, parts, count, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  return have;
}

absl::Status NoSuchChunk(const std::string& path) {
  return absl::NotFoundError(
      absl::StrCat("no chunk at ", path,
                   ": the store is incomplete; record again, or copy it from "
                   "another store"));
}

}  // namespace

class FileChunkStore::BorrowedCodec {
 public:
  explicit BorrowedCodec(const FileChunkStore& store) : store_(store) {
    std::lock_guard<std::mutex> lock(store_.mutex_);
    if (!store_.idle_codecs_.empty()) {
      codec_ = std::move(store_.idle_codecs_.back());
      store_.idle_codecs_.pop_back();
    }
    if (codec_ == nullptr) codec_ = std::make_unique<FrameCodec>();
  }
  ~BorrowedCodec() {
    std::lock_guard<std::mutex> lock(store_.mutex_);
    store_.idle_codecs_.push_back(std::move(codec_));
  }
  BorrowedCodec(const BorrowedCodec&) = delete;
  BorrowedCodec& operator=(const BorrowedCodec&) = delete;
  FrameCodec* operator->() { return codec_.get(); }

 private:
  const FileChunkStore& store_;
  std::unique_ptr<FrameCodec> codec_;
};

FileChunkStore::FileChunkStore(StoreDirectory directory, int compression_level,
                               int threads)
    : directory_(std::move(directory)),
      compression_level_(compression_level),
      threads_(threads > 0
                   ? threads
                   : std::clamp(
                         static_cast<int>(std::thread::hardware_concurrency()),
                         1, kMaxThreads)) {}

absl::StatusOr<v1::Blob> FileChunkStore::Put(std::string_view bytes) {
  v1::Blob blob;
  std::vector<Stored> slots(Window());
  OrderedWork work;
  work.produce = [&](size_t index, size_t) {
    return index * kChunkBytes < bytes.size();
  };
  work.work = [&](size_t index, size_t slot) {
    absl::StatusOr<Stored> stored =
        PutChunk(bytes.substr(index * kChunkBytes, kChunkBytes));
    if (!stored.ok()) return stored.status();
    slots[slot] = *std::move(stored);
    return absl::OkStatus();
  };
  work.consume = [&](size_t, size_t slot) {
    AppendChunk(std::move(slots[slot].sha256), slots[slot].bytes, &blob);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(RunOrdered(threads_, slots.size(), work));
  return blob;
}

absl::StatusOr<v1::Blob> FileChunkStore::PutStream(const Source& next) {
  struct Slot {
    std::unique_ptr<char[]> buffer;
    size_t bytes = 0;
    Stored stored;
  };
  v1::Blob blob;
  std::vector<Slot> slots(Window());
  bool ended = false;
  OrderedWork work;
  work.produce = [&](size_t, size_t index) -> absl::StatusOr<bool> {
    Slot& slot = slots[index];
    if (slot.buffer == nullptr)
      slot.buffer = std::make_unique_for_overwrite<char[]>(kChunkBytes);
    slot.bytes = 0;
    while (!ended && slot.bytes < kChunkBytes) {
      const size_t room = kChunkBytes - slot.bytes;
      ASSIGN_OR_RETURN(const size_t got,
                       next(slot.buffer.get() + slot.bytes, room));
      if (got > room) {
        return absl::InternalError(absl::StrCat("a source says it wrote ", got,
                                                " bytes into room for ", room));
      }
      ended = got == 0;
      slot.bytes += got;
    }
    return slot.bytes > 0;
  };
  work.work = [&](size_t, size_t index) {
    Slot& slot = slots[index];
    absl::StatusOr<Stored> stored =
        PutChunk(std::string_view(slot.buffer.get(), slot.bytes));
    if (!stored.ok()) return stored.status();
    slot.stored = *std::move(stored);
    return absl::OkStatus();
  };
  work.consume = [&](size_t, size_t index) {
    Stored& stored = slots[index].stored;
    AppendChunk(std::move(stored.sha256), stored.bytes, &blob);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(RunOrdered(threads_, slots.size(), work));
  return blob;
}

absl::StatusOr<FileChunkStore::Stored> FileChunkStore::PutChunk(
    std::string_view bytes) {
  if (IsZero(bytes)) return Stored{"", bytes.size()};
  FrameHeader header;
  header.version = kUnitFormatVersion;
  header.raw_bytes = bytes.size();
  header.sha256 = Sha256(bytes);
  const Stored stored{header.sha256, bytes.size()};
  const std::string path = directory_.ChunkPath(header.sha256);
  if (RenewIfPresent(path, header)) return stored;
  BorrowedCodec codec(*this);
  const FrameCodec::Payload payload =
      codec->Compress(bytes, compression_level_);
  header.flags = payload.flags;
  header.stored_bytes = payload.bytes.size();
  const std::string head = EncodeFrameHeader(FrameKind::kChunk, header);
  const std::string_view parts[] = {head, payload.bytes};
  RETURN_IF_ERROR(directory_.WriteFile(path, parts));
  return stored;
}

bool FileChunkStore::RenewIfPresent(const std::string& path,
                                    const FrameHeader& expected) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  absl::Cleanup closer = [fd] { close(fd); };
  struct stat info;
  char prefix[kFrameHeaderBytes];
  if (fstat(fd, &info) != 0) return false;
  const absl::StatusOr<size_t> got =
      ReadTwo(fd, path, prefix, sizeof(prefix), nullptr, 0);
  if (!got.ok()) return false;
  const absl::StatusOr<FrameHeader> header =
      DecodeFrameHeader(FrameKind::kChunk, std::string_view(prefix, *got),
                        static_cast<uint64_t>(info.st_size), path);
  if (!header.ok() || header->sha256 != expected.sha256 ||
      header->raw_bytes != expected.raw_bytes) {
    return false;
  }
  // Under the lock the collector cannot remove it between the two calls.
  const absl::StatusOr<StoreLock> lock = directory_.Lock(/*exclusive=*/false);
  return lock.ok() && futimens(fd, nullptr) == 0 &&
         access(path.c_str(), F_OK) == 0;
}

absl::Status FileChunkStore::ReadChunk(const v1::Chunk& chunk,
                                       char* destination) const {
  const std::string path = directory_.ChunkPath(chunk.sha256());
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return NoSuchChunk(path);
  if (fd < 0) return ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  absl::Cleanup closer = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0)
    return ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  const auto file_bytes = static_cast<uint64_t>(info.st_size);

  // A raw payload goes straight to its place; a compressed one is smaller.
  BorrowedCodec codec(*this);
  const bool raw = file_bytes == kFrameHeaderBytes + chunk.bytes();
  const size_t room =
      raw ? chunk.bytes() : std::min<uint64_t>(file_bytes, chunk.bytes());
  char* payload = raw ? destination : codec->Scratch(room);
  char prefix[kFrameHeaderBytes];
  ASSIGN_OR_RETURN(const size_t got,
                   ReadTwo(fd, path, prefix, sizeof(prefix), payload, room));
  const size_t prefix_bytes = std::min(got, sizeof(prefix));
  ASSIGN_OR_RETURN(const FrameHeader header,
                   DecodeFrameHeader(FrameKind::kChunk,
                                     std::string_view(prefix, prefix_bytes),
                                     file_bytes, path));
  RETURN_IF_ERROR(CheckIsChunk(header, chunk, path));
  return codec->Decompress(
      header, std::string_view(payload, got - prefix_bytes), path, destination);
}

absl::Status FileChunkStore::Get(const v1::Blob& blob, const Sink& sink) const {
  RETURN_IF_ERROR(CheckBlob(blob));
  std::vector<std::unique_ptr<char[]>> buffers(Window());
  std::unique_ptr<char[]> zeros;  // one for all chunks that are not stored
  OrderedWork work;
  work.produce = [&](size_t index, size_t slot) {
    if (index >= static_cast<size_t>(blob.chunks_size())) return false;
    const bool stored = !blob.chunks(static_cast<int>(index)).sha256().empty();
    if (stored && buffers[slot] == nullptr)
      buffers[slot] = std::make_unique_for_overwrite<char[]>(kChunkBytes);
    if (!stored && zeros == nullptr)
      zeros = std::make_unique<char[]>(kChunkBytes);
    return true;
  };
  work.work = [&](size_t index, size_t slot) {
    const v1::Chunk& chunk = blob.chunks(static_cast<int>(index));
    return chunk.sha256().empty() ? absl::OkStatus()
                                  : ReadChunk(chunk, buffers[slot].get());
  };
  work.consume = [&](size_t index, size_t slot) {
    const v1::Chunk& chunk = blob.chunks(static_cast<int>(index));
    const char* data =
        chunk.sha256().empty() ? zeros.get() : buffers[slot].get();
    return sink(std::string_view(data, chunk.bytes()));
  };
  return RunOrdered(threads_, buffers.size(), work);
}

absl::Status FileChunkStore::GetInto(
    const v1::Blob& blob, char* destination,
    const std::function<bool(size_t chunk)>& only_if) const {
  RETURN_IF_ERROR(CheckBlob(blob));
  OrderedWork work;
  work.produce = [&](size_t index, size_t) {
    return index < static_cast<size_t>(blob.chunks_size());
  };
  work.work = [&](size_t index, size_t) {
    if (only_if != nullptr && !only_if(index)) return absl::OkStatus();
    const v1::Chunk& chunk = blob.chunks(static_cast<int>(index));
    return GetChunk(chunk, destination + index * kChunkBytes);
  };
  return RunOrdered(threads_, 4 * Window(), work);
}

absl::Status FileChunkStore::GetChunk(const v1::Chunk& chunk,
                                      char* destination) const {
  if (!chunk.sha256().empty()) return ReadChunk(chunk, destination);
  std::memset(destination, 0, chunk.bytes());
  return absl::OkStatus();
}

bool FileChunkStore::Has(const v1::Chunk& chunk) {
  if (chunk.sha256().empty()) return true;
  FrameHeader header;
  header.sha256 = chunk.sha256();
  header.raw_bytes = chunk.bytes();
  return RenewIfPresent(directory_.ChunkPath(chunk.sha256()), header);
}

absl::Status FileChunkStore::CheckPresent(const v1::Chunk& chunk) const {
  const std::string path = directory_.ChunkPath(chunk.sha256());
  if (access(path.c_str(), F_OK) == 0) return absl::OkStatus();
  if (errno == ENOENT) return NoSuchChunk(path);
  return ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
}

absl::Status FileChunkStore::VerifyChunk(const v1::Chunk& chunk) const {
  const auto buffer = std::make_unique_for_overwrite<char[]>(chunk.bytes());
  return ReadChunk(chunk, buffer.get());
}

}  // namespace reprise
