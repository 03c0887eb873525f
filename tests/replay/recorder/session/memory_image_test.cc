#include "replay/recorder/session/memory_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBase = 0x200000000000;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kMiB = 1 << 20;

using Live = std::map<uint64_t, LiveRange>;
using Types = google::protobuf::RepeatedPtrField<v1::TypedInterval>;

void AddLive(Live* live, uint64_t address, uint64_t bytes,
             const std::string& symbol = "") {
  (*live)[address] = {
      address, bytes,
      symbol.empty() ? v1::MEMORY_ORIGIN_DEVICE : v1::MEMORY_ORIGIN_GLOBAL,
      symbol};
}

void AddType(Types* types, uint64_t address, uint64_t bytes,
             v1::ElementType type) {
  v1::TypedInterval* interval = types->Add();
  interval->set_address(address);
  interval->set_bytes(bytes);
  interval->set_element_type(type);
}

std::vector<ImageRange> Cut(const Live& live, const AccessSets& accesses,
                            const Types& types = {},
                            const std::set<uint64_t>& whole = {}) {
  auto image = CutImage(live, accesses, types, whole);
  EXPECT_TRUE(image.ok()) << image.status();
  return image.ok() ? *image : std::vector<ImageRange>();
}

TEST(MemoryImageTest, LeavesOutWhatIsNotTouched) {
  Live live;
  AddLive(&live, kBase, 100);
  AddLive(&live, kBase + 2 * kPage, 5000);
  AccessSets accesses;
  accesses.writes.Add(kBase + 2 * kPage + 8, kBase + 2 * kPage + 16);
  const auto image = Cut(live, accesses);
  ASSERT_EQ(image.size(), 1u);
  // The page, not only the bytes; not the second page.
  EXPECT_EQ(image[0].address, kBase + 2 * kPage);
  EXPECT_EQ(image[0].bytes, kPage);
  EXPECT_EQ(image[0].writes.intervals(), (std::vector<Interval>{{8, 16}}));
  EXPECT_TRUE(image[0].reads.empty());
}

TEST(MemoryImageTest, TheLastPageEndsWithTheAllocation) {
  Live live;
  AddLive(&live, kBase, kPage + 100);
  AccessSets accesses;
  accesses.reads.Add(kBase + kPage + 4, kBase + kPage + 8);
  const auto image = Cut(live, accesses);
  ASSERT_EQ(image.size(), 1u);
  EXPECT_EQ(image[0].address, kBase + kPage);
  EXPECT_EQ(image[0].bytes, 100u);
}

TEST(MemoryImageTest, SmallGapsStayLargeOnesGo) {
  Live live;
  AddLive(&live, kBase, 8 * kMiB);
  AccessSets accesses;
  accesses.reads.Add(kBase, kBase + 4);
  accesses.reads.Add(kBase + kMiB / 2, kBase + kMiB / 2 + 4);
  accesses.reads.Add(kBase + 4 * kMiB, kBase + 4 * kMiB + 4);
  const auto image = Cut(live, accesses);
  ASSERT_EQ(image.size(), 2u);
  EXPECT_EQ(image[0].bytes, kMiB / 2 + kPage);
  EXPECT_EQ(image[1].address, kBase + 4 * kMiB);
  EXPECT_EQ(image[1].bytes, kPage);
}

TEST(MemoryImageTest, ReadBeforeWriteIsKeptPerRange) {
  Live live;
  AddLive(&live, kBase, kPage);
  AddLive(&live, kBase + 2 * kPage, kPage);
  AccessSets accesses;
  for (const uint64_t at : {kBase, kBase + 2 * kPage}) {
    accesses.reads.Add(at, at + 8);
    accesses.writes.Add(at, at + 16);
    accesses.reads_before_write.Add(at, at + 4);
  }
  const auto image = Cut(live, accesses);
  ASSERT_EQ(image.size(), 2u);
  for (const ImageRange& range : image) {
    EXPECT_EQ(range.reads.bytes(), 8u);
    EXPECT_EQ(range.writes.bytes(), 16u);
    EXPECT_EQ(range.reads_before_write.intervals(),
              (std::vector<Interval>{{0, 4}}));
  }
}

TEST(MemoryImageTest, TypesCutAnAllocation) {
  Live live;
  AddLive(&live, kBase, 4 * kPage);
  AccessSets accesses;
  accesses.reads.Add(kBase, kBase + 2 * kPage);
  accesses.writes.Add(kBase + 3 * kPage, kBase + 4 * kPage);
  Types types;
  AddType(&types, kBase, 2 * kPage, v1::ELEMENT_TYPE_F32);
  AddType(&types, kBase + 3 * kPage, kPage, v1::ELEMENT_TYPE_I32);
  const auto image = Cut(live, accesses, types);
  ASSERT_EQ(image.size(), 2u);
  EXPECT_EQ(image[0].element_type, v1::ELEMENT_TYPE_F32);
  EXPECT_EQ(image[0].bytes, 3 * kPage);  // the page nobody touched goes along
  EXPECT_EQ(image[1].element_type, v1::ELEMENT_TYPE_I32);
}

TEST(MemoryImageTest, PagesOfNoSingleTypeAreUntyped) {
  Live live;
  AddLive(&live, kBase, 2 * kPage);
  AccessSets accesses;
  accesses.reads.Add(kBase, kBase + 2 * kPage);
  Types types;
  AddType(&types, kBase + kPage, kPage, v1::ELEMENT_TYPE_F64);
  const auto image = Cut(live, accesses, types);
  ASSERT_EQ(image.size(), 2u);
  EXPECT_EQ(image[0].element_type, v1::ELEMENT_TYPE_UNTYPED);
  EXPECT_EQ(image[1].element_type, v1::ELEMENT_TYPE_F64);
}

TEST(MemoryImageTest, TooManyTypesAreNone) {
  constexpr int kPages = 100;
  Live live;
  AddLive(&live, kBase, kPages * kPage);
  AccessSets accesses;
  accesses.reads.Add(kBase, kBase + kPages * kPage);
  Types types;
  for (int i = 0; i < kPages; ++i) {
    AddType(&types, kBase + i * kPage, kPage,
            i % 2 == 0 ? v1::ELEMENT_TYPE_F32 : v1::ELEMENT_TYPE_I32);
  }
  const auto image = Cut(live, accesses, types);
  ASSERT_EQ(image.size(), 1u);
  EXPECT_EQ(image[0].element_type, v1::ELEMENT_TYPE_UNTYPED);
}

TEST(MemoryImageTest, GlobalsComeWholeAndInOnePiece) {
  Live live;
  AddLive(&live, kBase, 16 * kMiB, "table");
  AddLive(&live, kBase + 32 * kMiB, 100, "named");
  AddLive(&live, kBase + 33 * kMiB, 100, "other");
  AccessSets accesses;
  accesses.reads.Add(kBase + 8 * kMiB, kBase + 8 * kMiB + 4);
  const auto image = Cut(live, accesses, {}, {kBase + 32 * kMiB});
  ASSERT_EQ(image.size(), 2u);
  EXPECT_EQ(image[0].symbol, "table");
  EXPECT_EQ(image[0].address, kBase);
  EXPECT_EQ(image[0].bytes, 16 * kMiB);
  EXPECT_EQ(image[1].symbol, "named");
}

TEST(MemoryImageTest, AccessesBehindAnEndAreRefusedByPlace) {
  Live live;
  AddLive(&live, kBase, 100);
  AccessSets accesses;
  accesses.writes.Add(kBase + 96, kBase + 104);
  const auto image = CutImage(live, accesses, {}, {});
  EXPECT_EQ(image.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(image.status().message()),
              HasSubstr("writes 4 bytes outside all memory"));
  EXPECT_THAT(std::string(image.status().message()),
              HasSubstr("0 bytes behind the end of an allocation of 100 "
                        "bytes"));
}

}  // namespace
}  // namespace reprise
