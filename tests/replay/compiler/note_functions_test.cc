// The functions that instrumented device code calls, on this host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "replay/compiler/note_functions.cc"

namespace reprise::cuda {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr uint32_t kUntyped = 0, kF32 = 3, kI32 = 7;  // v1::ElementType

// Ranges with their planes. The memory itself is never touched.
class NoteFunctionsTest : public ::testing::Test {
 protected:
  struct Planes {
    std::vector<uint32_t> read, written;
    std::vector<uint8_t> types;
  };

  NoteFunctionsTest() { __reprise_access_notes = {}; }

  Planes& AddRange(uint64_t begin, uint64_t bytes) {
    Planes& planes = *planes_.emplace_back(std::make_unique<Planes>());
    NotedRange range{begin, begin + bytes};
    planes.read.resize(PlaneWords(range));
    planes.written.resize(PlaneWords(range));
    planes.types.resize(bytes / kTypePageBytes + 8);
    range.read = reinterpret_cast<uint64_t>(planes.read.data());
    range.written = reinterpret_cast<uint64_t>(planes.written.data());
    range.types = reinterpret_cast<uint64_t>(planes.types.data());
    ranges_.push_back(range);
    __reprise_access_notes.ranges = reinterpret_cast<uint64_t>(ranges_.data());
    __reprise_access_notes.range_count = ranges_.size();
    return planes;
  }

  // Offsets that are marked in a plane of the range; fails on marks outside of
  // it.
  std::vector<uint64_t> Marked(const NotedRange& range,
                               const std::vector<uint32_t>& plane) {
    std::vector<uint64_t> marked;
    const uint64_t skipped = range.begin % kPlaneWordBits;
    for (uint64_t bit = 0; bit < kPlaneWordBits * plane.size(); ++bit) {
      if ((plane[bit / kPlaneWordBits] >> bit % kPlaneWordBits & 1) == 0)
        continue;
      EXPECT_GE(bit, skipped);
      EXPECT_LT(bit, skipped + (range.end - range.begin));
      marked.push_back(bit - skipped);
    }
    return marked;
  }
  std::vector<uint64_t> Reads(size_t range) {
    return Marked(ranges_[range], planes_[range]->read);
  }
  std::vector<uint64_t> Writes(size_t range) {
    return Marked(ranges_[range], planes_[range]->written);
  }
  static std::vector<uint64_t> Span(uint64_t first, uint64_t count) {
    std::vector<uint64_t> span;
    for (uint64_t i = 0; i < count; ++i) span.push_back(first + i);
    return span;
  }

  std::vector<std::unique_ptr<Planes>> planes_;
  std::vector<NotedRange> ranges_;
};

TEST_F(NoteFunctionsTest, MarksWordsOfEverySize) {
  AddRange(0x1000, 256);
  EXPECT_EQ(__reprise_note_read_1(0x1001, kUntyped), 1u);
  EXPECT_EQ(__reprise_note_read_2(0x1002, kUntyped), 2u);
  EXPECT_EQ(__reprise_note_read_4(0x1004, kF32), 4u);
  EXPECT_EQ(__reprise_note_read_8(0x1008, kF32), 8u);
  EXPECT_EQ(__reprise_note_read_16(0x1010, kF32), 16u);
  EXPECT_EQ(Reads(0), Span(1, 31));
  EXPECT_TRUE(Writes(0).empty());
  EXPECT_EQ(__reprise_note_write_1(0x1041, kUntyped), 1u);
  EXPECT_EQ(__reprise_note_write_2(0x1042, kUntyped), 2u);
  EXPECT_EQ(__reprise_note_write_4(0x1044, kF32), 4u);
  EXPECT_EQ(__reprise_note_write_8(0x1048, kF32), 8u);
  EXPECT_EQ(__reprise_note_write_16(0x1050, kF32), 16u);
  EXPECT_EQ(Writes(0), Span(0x41, 31));
  EXPECT_EQ(Reads(0), Span(1, 31));
  EXPECT_EQ(__reprise_access_notes.outside_count, 0u);
}

TEST_F(NoteFunctionsTest, MisalignedAddresses) {
  AddRange(0x1003, 100);
  AddRange(0x201d, 100);
  EXPECT_EQ(__reprise_note_read_8(0x1003 + 7, kF32), 8u);
  EXPECT_EQ(__reprise_note_write_16(0x1003 + 20, kF32), 16u);
  EXPECT_EQ(__reprise_note_read_16(0x201d, kF32), 16u);
  EXPECT_EQ(__reprise_note_write_4(0x207d, kF32), 4u);
  EXPECT_EQ(Reads(0), Span(7, 8));
  EXPECT_EQ(Writes(0), Span(20, 16));
  EXPECT_EQ(Reads(1), Span(0, 16));
  EXPECT_EQ(Writes(1), Span(96, 4));
}

TEST_F(NoteFunctionsTest, FindsTheRangeAmongMany) {
  for (uint64_t i = 0; i < 100; ++i) AddRange(0x10000 + 0x1000 * i, 16 + i);
  for (uint64_t i = 0; i < 100; ++i) {
    const uint64_t begin = 0x10000 + 0x1000 * i;
    EXPECT_EQ(__reprise_note_write_1(begin, kUntyped), 1u);
    EXPECT_EQ(__reprise_note_write_1(begin + 15 + i, kUntyped), 1u);
    EXPECT_EQ(__reprise_note_write_1(begin + 16 + i, kUntyped), 0u);
    EXPECT_THAT(Writes(i), ElementsAre(0, 15 + i));
  }
  EXPECT_EQ(__reprise_note_write_1(0xffff, kUntyped), 0u);
  EXPECT_EQ(__reprise_access_notes.outside_count, 101u);
}

TEST_F(NoteFunctionsTest, OutsideOfAllRanges) {
  EXPECT_EQ(__reprise_note_read_4(0x5000, kF32), 0u);
  EXPECT_EQ(__reprise_access_notes.outside_count, 1u);
  EXPECT_EQ(__reprise_access_notes.first_outside, 0x5000u);
  AddRange(0x1000, 16);
  EXPECT_EQ(__reprise_note_write_16(0x6000, kF32), 0u);
  EXPECT_EQ(__reprise_note_read_bytes(~uint64_t{7}, 8, kF32), 0u);
  EXPECT_EQ(__reprise_access_notes.outside_count, 3u);
  EXPECT_EQ(__reprise_access_notes.first_outside, 0x5000u);
}

TEST_F(NoteFunctionsTest, AccessesAcrossEndsOfRanges) {
  AddRange(0x1000, 16);
  AddRange(0x1010, 16);  // adjacent
  AddRange(0x1030, 16);
  // Over the border of two.
  EXPECT_EQ(__reprise_note_read_8(0x100c, kF32), 8u);
  EXPECT_EQ(Reads(0), Span(12, 4));
  EXPECT_EQ(Reads(1), Span(0, 4));
  EXPECT_EQ(__reprise_access_notes.outside_count, 0u);
  // Over an end, and into a beginning.
  EXPECT_EQ(__reprise_note_write_8(0x101c, kF32), 4u);
  EXPECT_EQ(__reprise_note_write_8(0x102c, kF32), 4u);
  EXPECT_EQ(Writes(1), Span(12, 4));
  EXPECT_EQ(Writes(2), Span(0, 4));
  EXPECT_EQ(__reprise_access_notes.outside_count, 2u);
  EXPECT_EQ(__reprise_access_notes.first_outside, 0x1020u);
  // Over everything.
  EXPECT_EQ(__reprise_note_write_bytes(0xf00, 0x1000, kUntyped), 48u);
  for (size_t range : {0, 1, 2}) EXPECT_EQ(Writes(range), Span(0, 16));
  EXPECT_EQ(__reprise_access_notes.outside_count, 3u);
}

TEST_F(NoteFunctionsTest, LongStretches) {
  AddRange(0x1001, 10000);
  EXPECT_EQ(__reprise_note_read_bytes(0x1002, 9000, kUntyped), 9000u);
  EXPECT_EQ(Reads(0), Span(1, 9000));
  EXPECT_EQ(__reprise_note_read_bytes(0x1001, 0, kUntyped), 0u);
  EXPECT_EQ(__reprise_note_write_bytes(0x1001, 3, kUntyped), 3u);
  EXPECT_EQ(Writes(0), Span(0, 3));
}

TEST_F(NoteFunctionsTest, TypesByPage) {
  const std::vector<uint8_t>& types = AddRange(0x10000, 20 * 4096).types;
  const auto page = [](uint64_t index) { return 0x10000 + 4096 * index; };
  __reprise_note_read_4(page(0), kF32);
  __reprise_note_write_4(page(1), kF32);
  __reprise_note_read_4(page(1) + 8, kI32);
  __reprise_note_read_4(page(2), kUntyped);
  __reprise_note_read_4(page(3), kUntyped);
  __reprise_note_read_4(page(3), kF32);
  __reprise_note_read_4(page(3), kUntyped);
  __reprise_note_read_8(page(5) - 4, kI32);  // over the border
  __reprise_note_write_bytes(page(7), 2 * 4096 + 1, kF32);
  EXPECT_THAT(std::vector<uint8_t>(types.begin(), types.begin() + 11),
              ElementsAre(kF32 + 1, kMixedTypes, 1, kF32 + 1, kI32 + 1,
                          kI32 + 1, 0, kF32 + 1, kF32 + 1, kF32 + 1, 0));
  __reprise_note_read_4(page(1), kF32);
  EXPECT_EQ(types[1], kMixedTypes);
}

TEST_F(NoteFunctionsTest, Totals) {
  __reprise_note_totals(1, 2, 3);
  __reprise_note_totals(uint64_t{1} << 60, 0, 1);
  EXPECT_EQ(__reprise_access_notes.flops, (uint64_t{1} << 60) + 1);
  EXPECT_EQ(__reprise_access_notes.bytes_read, 2u);
  EXPECT_EQ(__reprise_access_notes.bytes_written, 4u);
}

TEST_F(NoteFunctionsTest, ThreadsMarkAtTheSameTime) {
  AddRange(0x100000, 1 << 16);
  AddRange(0x200000, 1 << 16);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (uint64_t i = t; i < 1 << 14; i += 4) {
        __reprise_note_read_4(0x100000 + 4 * i, t % 2 == 0 ? kF32 : kI32);
        __reprise_note_write_4(0x200000 + 4 * i, kF32);
        __reprise_note_totals(1, 4, 4);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Reads(0), Span(0, 1 << 16));
  EXPECT_EQ(Writes(1), Span(0, 1 << 16));
  planes_[0]->types.resize(16);
  EXPECT_THAT(planes_[0]->types, Each(kMixedTypes));
  EXPECT_EQ(__reprise_access_notes.flops, uint64_t{1} << 14);
}

}  // namespace
}  // namespace reprise::cuda
