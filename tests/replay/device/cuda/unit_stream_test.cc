// What goes through the transfer window, without an executor.
#include "replay/device/cuda/unit_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "replay/base/file_util.h"
#include "replay/unit/blob.h"

namespace reprise::cuda {
namespace {

constexpr uint64_t kBase = 0x200000000000;

// Copies what requests name only when their replies are asked for, as late as a
// slow device would.
class SlowDevice {
 public:
  explicit SlowDevice(const TransferWindow& window) : window_(window) {}

  UnitStreamChannel channel() {
    return {[this](v1::CudaExecutorRequest request) {
              ++posts;
              requests_.push_back(std::move(request));
              most_under_way = std::max(most_under_way, requests_.size());
              return absl::OkStatus();
            },
            [this] { return ServeOldest(); }};
  }
  bool idle() const { return requests_.empty(); }

  std::vector<std::string> prologue, reference;
  int posts = 0;
  int fail_at = -1;
  size_t most_under_way = 0;
  bool complete = false;

 private:
  absl::Status ServeOldest() {
    const v1::CudaExecutorRequest request = requests_.front();
    requests_.pop_front();
    if (++served_ == fail_at) return absl::InternalError("the device fails");
    for (const v1::CudaUnitRange& range : request.load_unit().ranges())
      prologue.emplace_back(range.bytes(), '\0');
    bool in_reference = !reference.empty();
    for (const v1::CudaPiece& piece : request.fill_unit().pieces()) {
      EXPECT_TRUE(piece.reference() || !in_reference);
      if (piece.reference() && !in_reference) reference = prologue;
      in_reference = piece.reference();
      Copy(piece);
    }
    complete = request.fill_unit().last();
    if (complete && reference.empty()) reference = prologue;
    return absl::OkStatus();
  }

  void Copy(const v1::CudaPiece& piece) {
    std::string& to = (piece.reference() ? reference : prologue)[piece.range()];
    ASSERT_LE(piece.offset() + piece.bytes(), to.size());
    if (piece.zero()) {
      std::memset(&to[piece.offset()], 0, piece.bytes());
      return;
    }
    EXPECT_EQ(piece.window_offset() / kSlotBytes,
              (piece.window_offset() + piece.bytes() - 1) / kSlotBytes);
    std::memcpy(&to[piece.offset()], window_.bytes() + piece.window_offset(),
                piece.bytes());
  }

  const TransferWindow& window_;
  std::deque<v1::CudaExecutorRequest> requests_;
  int served_ = 0;
};

class UnitStreamTest : public testing::Test {
 protected:
  // Random chunks, some of them zeros.
  std::string Contents(uint64_t bytes) {
    std::string contents(bytes, '\0');
    for (uint64_t begin = 0; begin < bytes; begin += kChunkBytes) {
      if (random_() % 4 == 0) continue;
      const uint64_t end = std::min(begin + kChunkBytes, bytes);
      for (uint64_t at = begin; at + 8 <= end; at += 8) {
        const uint64_t word = random_();
        std::memcpy(&contents[at], &word, sizeof(word));
      }
      contents[end - 1] = 'e';
    }
    return contents;
  }

  v1::MemoryRange* Add(uint64_t address, const std::string& before,
                       const std::string& after = "") {
    v1::MemoryRange* range = unit_.add_memory();
    range->set_address(address);
    range->set_bytes(before.size());
    *range->mutable_prologue() = *store_->Put(before);
    if (!after.empty()) *range->mutable_epilogue() = *store_->Put(after);
    prologue_.push_back(before);
    reference_.push_back(after.empty() ? before : after);
    return range;
  }

  std::unique_ptr<UnitImage> Image() {
    auto image = UnitImage::Create(UnitReader("u", unit_, store_), {});
    EXPECT_TRUE(image.ok()) << image.status();
    return *std::move(image);
  }

  absl::Status Stream(const UnitImage& image) {
    return StreamUnit(image, *window_, device_.channel(), &words_);
  }

  void ExpectAllThere() {
    EXPECT_TRUE(device_.complete);
    EXPECT_TRUE(device_.idle());
    EXPECT_TRUE(device_.prologue == prologue_);
    EXPECT_TRUE(device_.reference == reference_);
  }

  std::mt19937_64 random_{11};  // NOLINT(bugprone-random-generator-seed)
  TemporaryDirectory directory_ = *TemporaryDirectory::Create("stream-test");
  std::shared_ptr<ChunkStore> store_ =
      *ChunkStore::Open({.directory = directory_.path()});
  std::unique_ptr<TransferWindow> window_ = *TransferWindow::Create();
  SlowDevice device_{*window_};
  v1::Unit unit_;
  std::vector<std::string> prologue_, reference_;
  std::vector<v1::CudaAddressWord> words_;
};

TEST_F(UnitStreamTest, NoByteIsWrittenOverBeforeItIsCopied) {
  const uint64_t large = kWindowBytes + 3 * kChunkBytes + 17;
  Add(kBase, Contents(large), Contents(large));
  Add(kBase + 4 * kWindowBytes, "small");
  Add(kBase + 5 * kWindowBytes, Contents(2 * kSlotBytes),
      Contents(2 * kSlotBytes));
  const auto image = Image();
  ASSERT_TRUE(Stream(*image).ok());
  ExpectAllThere();
  EXPECT_GT(device_.most_under_way, 1u);
}

TEST_F(UnitStreamTest, SmallUnitTakesTwoRequests) {
  for (uint64_t i = 0; i < 1000; ++i)
    Add(kBase + 4096 * i, std::string(i + 1, 'a'), std::string(i + 1, 'b'));
  ASSERT_TRUE(Stream(*Image()).ok());
  ExpectAllThere();
  EXPECT_EQ(device_.posts, 2);
}

TEST_F(UnitStreamTest, UnitOfASlotTakesTwoRequests) {
  Add(kBase, std::string(kSlotBytes, 'a'));
  ASSERT_TRUE(Stream(*Image()).ok());
  ExpectAllThere();
  EXPECT_EQ(device_.posts, 2);
}

TEST_F(UnitStreamTest, EmptyUnitTakesTwoRequests) {
  ASSERT_TRUE(Stream(*Image()).ok());
  ExpectAllThere();
  EXPECT_EQ(device_.posts, 2);
}

TEST_F(UnitStreamTest, EqualChunksOfTheEpilogueAreNotSent) {
  std::string before(4 * kChunkBytes, 'a'), after = before;
  after[2 * kChunkBytes] = 'b';
  Add(kBase, before, after);
  EXPECT_EQ(Image()->cell_count(), 5u);
}

TEST_F(UnitStreamTest, NothingOfTheReferenceStaysInTheWindow) {
  Add(kBase, std::string(3 * kChunkBytes, 'a'),
      std::string(3 * kChunkBytes, 'b'));
  ASSERT_TRUE(Stream(*Image()).ok());
  const std::string window(window_->bytes(), kWindowBytes);
  EXPECT_EQ(window.find('b'), std::string::npos);
}

TEST_F(UnitStreamTest, FirstErrorOfTheDeviceIsReturned) {
  Add(kBase, Contents(2 * kWindowBytes));
  const auto image = Image();
  for (int fail_at = 1; fail_at < 12; fail_at += 5) {
    SlowDevice device(*window_);
    device.fail_at = fail_at;
    const absl::Status status =
        StreamUnit(*image, *window_, device.channel(), &words_);
    EXPECT_EQ(status.message(), "the device fails");
    EXPECT_TRUE(device.idle());
  }
}

TEST_F(UnitStreamTest, AdoptedReferenceTakesTheRecordedOnesPlace) {
  Add(kBase, std::string(2 * kChunkBytes, 'a'),
      std::string(2 * kChunkBytes, 'b'));
  const auto image = Image();
  const std::string adopted(kChunkBytes + 4, 'c');
  ASSERT_TRUE(image->Adopt({{0, 100, adopted}}).ok());
  reference_ = prologue_;
  reference_[0].replace(100, adopted.size(), adopted);
  ASSERT_TRUE(Stream(*image).ok());
  ExpectAllThere();
}

TEST_F(UnitStreamTest, ContentsLargerThanTheirRangeAreRefused) {
  Add(kBase, "abcd")->set_bytes(3);
  EXPECT_TRUE(absl::IsInvalidArgument(
      UnitImage::Create(UnitReader("u", unit_, store_), {}).status()));
}

TEST_F(UnitStreamTest, AddressesOfVariablesAreFoundOnce) {
  const uint64_t variable = 0x7f0000001000;
  std::string before(3 * kChunkBytes, '\0'), after = before;
  const auto store = [](std::string* to, uint64_t at, uint64_t value) {
    std::memcpy(&(*to)[at], &value, sizeof(value));
  };
  store(&before, 16, variable + 4);
  store(&after, 16, variable + 4);
  store(&before, 3 * kChunkBytes - 8, variable + 7);
  store(&after, 2 * kChunkBytes, variable);
  store(&before, kChunkBytes + 8, variable + 8);  // behind it
  Add(kBase, before, after);
  Add(variable, "12345678")->set_symbol("v");
  const auto image = Image();
  ASSERT_TRUE(Stream(*image).ok());
  ASSERT_EQ(words_.size(), 3u);
  EXPECT_EQ(words_[0].offset(), 16u);
  EXPECT_EQ(words_[0].target_range(), 1u);
  EXPECT_EQ(words_[0].target_offset(), 4u);
  EXPECT_TRUE(words_[0].in_prologue());
  EXPECT_TRUE(words_[0].in_reference());
  EXPECT_EQ(words_[1].offset(), 3 * kChunkBytes - 8);
  EXPECT_TRUE(words_[1].in_prologue());
  EXPECT_FALSE(words_[1].in_reference());
  EXPECT_EQ(words_[2].offset(), 2 * kChunkBytes);
  EXPECT_FALSE(words_[2].in_prologue());
  EXPECT_TRUE(words_[2].in_reference());
  EXPECT_TRUE(image->AddAddressWords(std::move(words_)));
  EXPECT_EQ(image->request().address_words_size(), 3);
  words_.clear();
  device_.prologue.clear();
  device_.reference.clear();
  ASSERT_TRUE(Stream(*image).ok());
  EXPECT_TRUE(words_.empty());
}

}  // namespace
}  // namespace reprise::cuda
