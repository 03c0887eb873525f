#include "replay/unit/frame.h"

#include <zstd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replay/base/sha256.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/unit/test_support.h"

namespace reprise {
namespace {

using ::reprise::testing::Noise;
using ::reprise::testing::Ramp;
using ::testing::HasSubstr;

FrameHeader HeaderFor(std::string_view content, uint32_t flags,
                      uint64_t stored_bytes) {
  FrameHeader header;
  header.version = kUnitFormatVersion;
  header.flags = flags;
  header.raw_bytes = content.size();
  header.stored_bytes = stored_bytes;
  header.sha256 = Sha256(content);
  return header;
}

absl::StatusOr<std::string> RoundTrip(std::string_view content) {
  FrameCodec codec;
  const FrameCodec::Payload payload = codec.Compress(content, 1);
  const FrameHeader header =
      HeaderFor(content, payload.flags, payload.bytes.size());
  const std::string file =
      EncodeFrameHeader(FrameKind::kChunk, header) + std::string(payload.bytes);
  const absl::StatusOr<FrameHeader> read =
      DecodeFrameHeader(FrameKind::kChunk, file, file.size(), "a chunk");
  if (!read.ok()) return read.status();
  std::string out(read->raw_bytes, '\0');
  FrameCodec other;
  const absl::Status status =
      other.Decompress(*read, std::string_view(file).substr(kFrameHeaderBytes),
                       "a chunk", out.data());
  if (!status.ok()) return status;
  return out;
}

TEST(FrameTest, GivesBackWhatItTook) {
  for (const std::string& content :
       {std::string(), std::string("x"), std::string("abcdefgh"),
        Noise(1000, 1), Ramp(kChunkBytes, 2), Noise(kChunkBytes, 3),
        std::string(5000, 'a')}) {
    const absl::StatusOr<std::string> out = RoundTrip(content);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(*out, content);
  }
}

TEST(FrameTest, CompressesOnlyWhatGetsSmaller) {
  FrameCodec codec;
  EXPECT_EQ(codec.Compress(Noise(kChunkBytes, 1), 1).flags, kFrameRaw);
  EXPECT_EQ(codec.Compress(Noise(3000, 1), 1).flags, kFrameRaw);
  EXPECT_EQ(codec.Compress("abc", 1).flags, kFrameRaw);
  const FrameCodec::Payload ramp = codec.Compress(Ramp(kChunkBytes, 1), 1);
  EXPECT_EQ(ramp.flags, kFrameZstd);
  EXPECT_LT(ramp.bytes.size(), kChunkBytes / 10);
  // Noise at the start must not hide what follows.
  const std::string mixed =
      Noise(kChunkBytes / 2, 1) + Ramp(kChunkBytes / 2, 1);
  EXPECT_EQ(codec.Compress(mixed, 1).flags, kFrameZstd);
}

class FrameErrorTest : public ::testing::Test {
 protected:
  FrameErrorTest() {
    const FrameCodec::Payload payload = codec_.Compress(content_, 1);
    header_ = HeaderFor(content_, payload.flags, payload.bytes.size());
    payload_ = std::string(payload.bytes);
  }
  std::string File() const {
    return EncodeFrameHeader(FrameKind::kChunk, header_) + payload_;
  }
  // The error of reading `file` as a chunk.
  absl::Status Read(std::string_view file) {
    const absl::StatusOr<FrameHeader> header =
        DecodeFrameHeader(FrameKind::kChunk, file, file.size(), "/store/file");
    if (!header.ok()) return header.status();
    EXPECT_LE(header->raw_bytes, out_.size());
    return codec_.Decompress(*header, file.substr(kFrameHeaderBytes),
                             "/store/file", out_.data());
  }

  FrameCodec codec_;
  std::string content_ = Ramp(10000, 1);
  FrameHeader header_;
  std::string payload_;
  std::string out_ = std::string(20000, '\0');
};

TEST_F(FrameErrorTest, AWholeFileIsRead) {
  ASSERT_EQ(header_.flags, kFrameZstd);
  EXPECT_OK(Read(File()));
}

TEST_F(FrameErrorTest, TruncatedAtAnyByte) {
  const std::string file = File();
  for (size_t size = 0; size < file.size(); ++size) {
    const absl::Status status = Read(file.substr(0, size));
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    ASSERT_THAT(status.message(), HasSubstr("truncated")) << size;
  }
}

TEST_F(FrameErrorTest, AnyFlippedBitIsFound) {
  int harmless = 0;
  const std::string file = File();
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const absl::Status status = Read(flipped);
    // A few bits of the header of zstd do not matter to what comes out.
    if (bit / 8 >= kFrameHeaderBytes && status.ok()) {
      ASSERT_EQ(out_.substr(0, content_.size()), content_);
      ++harmless;
      continue;
    }
    // Only the magic decides whose file it is. A flipped version is damage, not
    // a newer version.
    ASSERT_EQ(status.code(), bit / 8 < 8 ? absl::StatusCode::kInvalidArgument
                                         : absl::StatusCode::kDataLoss)
        << "bit " << bit << ": " << status;
    ASSERT_THAT(status.message(), HasSubstr("/store/file"));
  }
  EXPECT_LE(harmless, 8);
}

TEST_F(FrameErrorTest, TrailingBytes) {
  const absl::Status status = Read(File() + "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("expected"));
}

TEST_F(FrameErrorTest, Foreign) {
  for (const char* text : {"#!/bin/sh\n", "R",
                           "\x7f"
                           "ELF"}) {
    const absl::Status status = Read(text);
    if (text[0] == 'R') {
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);  // a beginning
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr("not a Reprise chunk"));
    }
  }
  const std::string manifest =
      EncodeFrameHeader(FrameKind::kManifest, header_) + payload_;
  EXPECT_THAT(Read(manifest).message(),
              HasSubstr("it begins with \"RPRUNIT1\""));
}

TEST_F(FrameErrorTest, NewerVersion) {
  header_.version = kUnitFormatVersion + 1;
  const absl::Status status = Read(File());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              HasSubstr("format version 2, expected at most 1"));
  header_.version = 0;
  EXPECT_EQ(Read(File()).code(), absl::StatusCode::kDataLoss);
}

TEST_F(FrameErrorTest, UnknownFlags) {
  header_.flags = 2;
  EXPECT_THAT(Read(File()).message(), HasSubstr("unknown flags 2"));
}

TEST_F(FrameErrorTest, SizesThatDisagree) {
  header_.raw_bytes = header_.stored_bytes;
  EXPECT_THAT(Read(File()).message(), HasSubstr("stored bytes"));
}

// The payload decompresses to more than the header says: nothing may be written
// past it.
TEST_F(FrameErrorTest, DecompressionBomb) {
  std::string bomb(ZSTD_compressBound(64 << 20), '\0');
  const std::string zeros(64 << 20, '\0');
  bomb.resize(
      ZSTD_compress(bomb.data(), bomb.size(), zeros.data(), zeros.size(), 1));
  payload_ = bomb;
  header_.stored_bytes = bomb.size();
  out_.assign(20000, 'x');
  const absl::Status status = Read(File());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("zstd says"));
  EXPECT_EQ(out_.substr(header_.raw_bytes), std::string(10000, 'x'));
}

TEST_F(FrameErrorTest, DecompressesToLess) {
  header_.raw_bytes += 1;
  EXPECT_THAT(Read(File()).message(), HasSubstr("decompresses to 10000"));
}

}  // namespace
}  // namespace reprise
