#include "replay/recorder/session/borrowed_chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "replay/unit/blob.h"

namespace reprise {
namespace {

std::string Bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 / 5);
  return bytes;
}

std::string Read(const ChunkStore& chunks, const v1::Blob& blob) {
  std::string bytes(blob.bytes(), '?');
  EXPECT_TRUE(chunks.GetInto(blob, bytes.data()).ok());
  std::string pieces;
  EXPECT_TRUE(chunks
                  .Get(blob,
                       [&](std::string_view piece) {
                         pieces += piece;
                         return absl::OkStatus();
                       })
                  .ok());
  EXPECT_TRUE(pieces == bytes);
  std::string chunks_in_turn;
  for (const v1::Chunk& chunk : blob.chunks()) {
    std::string one(chunk.bytes(), '?');
    EXPECT_TRUE(chunks.GetChunk(chunk, one.data()).ok());
    chunks_in_turn += one;
  }
  EXPECT_TRUE(chunks_in_turn == bytes);
  return bytes;
}

TEST(BorrowedChunksTest, GiveBackWhatTheyBorrowed) {
  BorrowedChunks chunks;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{kChunkBytes},
                            size_t{20 * kChunkBytes + 12345}}) {
    const std::string bytes = Bytes(size);
    const v1::Blob blob = chunks.Borrow(bytes);
    EXPECT_TRUE(CheckBlob(blob).ok());
    EXPECT_TRUE(Read(chunks, blob) == bytes);
  }
}

TEST(BorrowedChunksTest, SeeLaterChangesOfWhatTheyBorrowButNotOfWhatTheyKept) {
  BorrowedChunks chunks;
  std::string bytes = "before";
  const v1::Blob borrowed = chunks.Borrow(bytes);
  const v1::Blob kept = *chunks.Put(bytes);
  bytes = "later!";
  EXPECT_EQ(Read(chunks, borrowed), "later!");
  EXPECT_EQ(Read(chunks, kept), "before");
}

TEST(BorrowedChunksTest, OnlyChangedChunksHaveOtherDigests) {
  BorrowedChunks chunks;
  const std::string before = Bytes(3 * kChunkBytes + 10);
  std::string after = before;
  after[kChunkBytes + 1] ^= 1;
  const v1::Blob base = chunks.Borrow(before);
  const v1::Blob changed = chunks.BorrowChanged(base, [&](size_t chunk) {
    return chunk == 1 ? after.data() + kChunkBytes : nullptr;
  });
  EXPECT_TRUE(CheckBlob(changed).ok());
  EXPECT_EQ(changed.chunks(0).sha256(), base.chunks(0).sha256());
  EXPECT_NE(changed.chunks(1).sha256(), base.chunks(1).sha256());
  EXPECT_EQ(changed.chunks(3).sha256(), base.chunks(3).sha256());
  EXPECT_TRUE(Read(chunks, changed) == after);
}

TEST(BorrowedChunksTest, ReadOnlyTheChunksThatAreAskedFor) {
  BorrowedChunks chunks;
  const std::string bytes = Bytes(2 * kChunkBytes);
  const v1::Blob blob = chunks.Borrow(bytes);
  std::string got(blob.bytes(), '?');
  ASSERT_TRUE(
      chunks.GetInto(blob, got.data(), [](size_t chunk) { return chunk == 1; })
          .ok());
  EXPECT_EQ(got.substr(0, kChunkBytes), std::string(kChunkBytes, '?'));
  EXPECT_EQ(got.substr(kChunkBytes), bytes.substr(kChunkBytes));
}

TEST(BorrowedChunksTest, ForeignChunksAreNotFound) {
  BorrowedChunks chunks;
  BorrowedChunks others;
  const std::string bytes = "bytes";
  const v1::Blob blob = others.Borrow(bytes);
  char got[5];
  EXPECT_EQ(chunks.GetInto(blob, got).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(chunks.GetChunk(blob.chunks(0), got).code(),
            absl::StatusCode::kNotFound);
}

TEST(BorrowedChunksTest, KeepStreams) {
  BorrowedChunks chunks;
  int pieces = 0;
  const v1::Blob blob =
      *chunks.PutStream([&](char* buffer, size_t) -> absl::StatusOr<size_t> {
        if (++pieces > 3) return 0;
        buffer[0] = static_cast<char>('a' + pieces);
        return 1;
      });
  EXPECT_EQ(Read(chunks, blob), "bcd");
}

}  // namespace
}  // namespace reprise
