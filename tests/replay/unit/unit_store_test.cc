#include "replay/unit/unit_store.h"

#include <filesystem>

#include "replay/base/sha256.h"
#include "replay/unit/digest.h"
#include "replay/unit/frame.h"
#include "replay/unit/manifest.h"
#include "tests/replay/unit/test_support.h"

namespace reprise {
namespace {

using ::reprise::testing::Age;
using ::reprise::testing::FilesUnder;
using ::reprise::testing::FlipByte;
using ::reprise::testing::Noise;
using ::reprise::testing::OverwriteFile;
using ::reprise::testing::SmallUnit;
using ::reprise::testing::Text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class UnitStoreTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    store_ = OpenStore();
  }
  std::string MustAdd(uint64_t seed) {
    absl::StatusOr<std::string> id =
        store_->Add(SmallUnit(store_->chunks(), seed));
    EXPECT_OK(id.status());
    return *id;
  }
  std::string Manifest(const std::string& id) const {
    return root() + "/units/" + id + "/manifest";
  }
  std::vector<std::string> Ids() {
    std::vector<std::string> ids;
    const std::vector<UnitListing> listings = *store_->List();
    for (const UnitListing& listing : listings) ids.push_back(listing.id);
    return ids;
  }
  std::unique_ptr<UnitStore> store_;
};

TEST_F(UnitStoreTest, GivesBackWhatWasAdded) {
  v1::Unit unit = SmallUnit(store_->chunks());
  ASSERT_OK_AND_ASSIGN(const std::string id, store_->Add(unit));
  unit.set_format_version(kUnitFormatVersion);
  unit.set_instance_sha256(InstanceDigest(unit));
  EXPECT_EQ(id, "sigmoid-" + HexEncode(unit.instance_sha256()).substr(0, 8));
  ASSERT_OK_AND_ASSIGN(const UnitReader reader, OpenStore()->Open(id));
  EXPECT_EQ(reader.id(), id);
  EXPECT_EQ(reader.manifest().SerializeAsString(), unit.SerializeAsString());
  ASSERT_OK_AND_ASSIGN(
      const std::string ir,
      reader.chunks().GetString(reader.manifest().translation_units(0).ir()));
  EXPECT_EQ(ir, "BC\xC0\xDE, as it were");
  EXPECT_OK(store_->Verify(reader));
}

TEST_F(UnitStoreTest, AReaderOutlivesItsStore) {
  const std::string id = MustAdd(1);
  ASSERT_OK_AND_ASSIGN(const UnitReader reader, store_->Open(id));
  store_.reset();
  EXPECT_OK(reader.chunks()
                .GetString(reader.manifest().memory(0).prologue())
                .status());
}

TEST_F(UnitStoreTest, AnEqualInstanceKeepsItsId) {
  v1::Unit unit = SmallUnit(store_->chunks());
  ASSERT_OK_AND_ASSIGN(const std::string first, store_->Add(unit));
  unit.mutable_provenance()->set_duration_ms(9);
  ASSERT_OK_AND_ASSIGN(const std::string second, store_->Add(unit));
  EXPECT_EQ(first, second);
  EXPECT_THAT(Ids(), SizeIs(1));
  EXPECT_EQ(store_->Open(first)->manifest().provenance().duration_ms(), 1.25);
}

TEST_F(UnitStoreTest, UnitsShareChunks) {
  v1::Unit unit = SmallUnit(store_->chunks());
  ASSERT_OK(store_->Add(unit).status());
  const size_t before = FilesUnder(root() + "/chunks").size();
  unit.set_arguments(unit.arguments() + "more");
  ASSERT_OK(store_->Add(unit).status());
  EXPECT_THAT(Ids(), SizeIs(2));
  EXPECT_EQ(FilesUnder(root() + "/chunks").size(), before);
}

// Another instance already has the id that this one would get.
TEST_F(UnitStoreTest, IdsThatCollideGetMoreDigits) {
  const std::string id = MustAdd(1);
  ASSERT_OK_AND_ASSIGN(const UnitReader reader, store_->Open(id));
  v1::Unit other = reader.manifest();
  std::string digest = other.instance_sha256();
  digest[31] = static_cast<char>(digest[31] ^ 1);
  other.set_instance_sha256(digest);
  OverwriteFile(Manifest(id), *EncodeManifest(other));
  const std::string longer = MustAdd(1);
  EXPECT_EQ(longer,
            "sigmoid-" +
                HexEncode(reader.manifest().instance_sha256()).substr(0, 12));
  EXPECT_EQ(MustAdd(1), longer);
  EXPECT_OK(store_->Open(longer).status());
  EXPECT_OK(store_->Open(id).status());  // the exact name wins over the prefix
}

TEST_F(UnitStoreTest, OpensByUniquePrefix) {
  v1::Unit other = SmallUnit(store_->chunks());
  other.mutable_kernel()->set_display_name("sigma(int)");
  const std::string one = MustAdd(1);
  ASSERT_OK_AND_ASSIGN(const std::string two, store_->Add([&] {
    other.set_arguments(other.arguments() + "x");
    return other;
  }()));
  EXPECT_EQ(store_->Open("sigmoid")->id(), one);
  EXPECT_EQ(store_->Open("sigma")->id(), two);
  const absl::Status both = store_->Open("sigm").status();
  EXPECT_EQ(both.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(both), HasSubstr(two + ", " + one));
  for (const char* none : {"blur", "", "../units", "."}) {
    const absl::Status status = store_->Open(none).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << none;
    EXPECT_THAT(Text(status), HasSubstr("which has 2 units"));
  }
}

TEST_F(UnitStoreTest, RefusesAUnitWhoseChunksAreMissing) {
  v1::Unit unit = SmallUnit(store_->chunks());
  *unit.mutable_memory(0)
       ->mutable_epilogue()
       ->mutable_chunks(0)
       ->mutable_sha256() = std::string(32, 'x');
  const absl::Status status = store_->Add(unit).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(status), HasSubstr("memory[0].epilogue: no chunk at "));
  EXPECT_THAT(Ids(), IsEmpty());
}

TEST_F(UnitStoreTest, RefusesAMalformedUnit) {
  EXPECT_EQ(store_->Add(v1::Unit()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(UnitStoreTest, UpdateKeepsTheInstance) {
  const std::string id = MustAdd(1);
  v1::Unit unit = store_->Open(id)->manifest();
  unit.set_deterministic(true);
  ASSERT_OK(store_->Update(id, unit));
  EXPECT_TRUE(store_->Open(id)->manifest().deterministic());
  unit.set_arguments(unit.arguments() + "x");
  EXPECT_THAT(Text(store_->Update(id, unit)), HasSubstr("must stay"));
  EXPECT_EQ(store_->Update("nobody", unit).code(), absl::StatusCode::kNotFound);
}

TEST_F(UnitStoreTest, RemoveTakesTheUnitOnly) {
  const std::string one = MustAdd(1);
  const std::string two = MustAdd(2);
  const size_t chunks = FilesUnder(root() + "/chunks").size();
  ASSERT_OK(store_->Remove(one));
  EXPECT_THAT(Ids(), ElementsAre(two));
  EXPECT_EQ(FilesUnder(root() + "/chunks").size(), chunks);
  EXPECT_EQ(store_->Remove(one).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Remove("../units").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Remove("").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(FilesUnder(root() + "/tmp"), IsEmpty());
}

TEST_F(UnitStoreTest, ReadsAStoreThatMayNotBeCreated) {
  const std::string id = MustAdd(1);
  ASSERT_OK_AND_ASSIGN(auto store,
                       UnitStore::Open({.directory = root(), .create = false}));
  EXPECT_OK(store->Open(id).status());
  EXPECT_EQ(UnitStore::Open({.directory = root() + "x", .create = false})
                .status()
                .code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(UnitStore::Open({.directory = root(), .compression_level = 77})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(UnitStoreTest, AnEmptyStoreListsNothing) {
  EXPECT_THAT(Ids(), IsEmpty());
}

// Each way for a unit to be broken has its own error, in Open and in List, and
// harms no other unit.
class BrokenUnitTest : public UnitStoreTest {
 protected:
  void SetUp() override {
    UnitStoreTest::SetUp();
    good_ = MustAdd(1);
    bad_ = MustAdd(2);
  }
  absl::Status Error() {
    const absl::Status status = store_->Open(bad_).status();
    const std::vector<UnitListing> listings = *store_->List();
    EXPECT_THAT(listings, SizeIs(2));
    for (const UnitListing& listing : listings)
      EXPECT_EQ(listing.status, listing.id == bad_ ? status : absl::OkStatus());
    EXPECT_OK(store_->Verify(*store_->Open(good_)));
    return status;
  }
  void ExpectMended() {
    EXPECT_EQ(MustAdd(2), bad_);
    EXPECT_OK(store_->Verify(*store_->Open(bad_)));
    EXPECT_THAT(Ids(), SizeIs(2));
  }
  std::string good_;
  std::string bad_;
};

TEST_F(BrokenUnitTest, Truncated) {
  std::filesystem::resize_file(Manifest(bad_), 200);
  EXPECT_EQ(Error().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(Error()), HasSubstr("truncated: got 200 bytes"));
  ExpectMended();
}

TEST_F(BrokenUnitTest, BitFlipped) {
  FlipByte(Manifest(bad_), 300);
  EXPECT_EQ(Error().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(Error()), HasSubstr("SHA-256 of its body"));
  ExpectMended();
}

TEST_F(BrokenUnitTest, Foreign) {
  OverwriteFile(Manifest(bad_), "{\"schema\": 1}");
  EXPECT_EQ(Error().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(Error()), HasSubstr("not a Reprise unit manifest"));
  ExpectMended();
}

TEST_F(BrokenUnitTest, HugeForeignFileIsNotRead) {
  std::filesystem::resize_file(Manifest(bad_), uint64_t{1} << 40);
  EXPECT_EQ(Error().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(Error()), HasSubstr("expected at most"));
}

TEST_F(BrokenUnitTest, Newer) {
  FrameHeader header;
  header.version = kUnitFormatVersion + 1;
  header.raw_bytes = header.stored_bytes = 6;
  header.sha256 = Sha256("future");
  const std::string file =
      EncodeFrameHeader(FrameKind::kManifest, header) + "future";
  OverwriteFile(Manifest(bad_), file);
  EXPECT_EQ(Error().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(Error()), HasSubstr("newer Reprise"));
  // Not for us to overwrite.
  EXPECT_EQ(store_->Add(SmallUnit(store_->chunks(), 2)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(*ReadFile(Manifest(bad_)), file);
}

TEST_F(BrokenUnitTest, HalfWritten) {
  std::filesystem::remove(Manifest(bad_));
  EXPECT_EQ(Error().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(Error()), HasSubstr("is half written"));
  ExpectMended();
}

TEST_F(BrokenUnitTest, ABrokenUnitCanBeRemoved) {
  std::filesystem::remove(Manifest(bad_));
  ASSERT_OK(store_->Remove(bad_));
  EXPECT_THAT(Ids(), ElementsAre(good_));
}

TEST_F(BrokenUnitTest, VerifyNamesThePartThatIsDamaged) {
  const v1::Unit unit = store_->Open(bad_)->manifest();
  const std::string hex =
      HexEncode(unit.memory(0).prologue().chunks(0).sha256());
  const std::string path =
      root() + "/chunks/" + hex.substr(0, 2) + "/" + hex.substr(2);
  FlipByte(path, 1000);
  const absl::Status status = store_->Verify(*store_->Open(bad_));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(status),
              HasSubstr("unit " + bad_ + ", memory[0].prologue: " + path +
                        " is damaged"));
  EXPECT_OK(store_->Verify(*store_->Open(good_)));
}

TEST_F(BrokenUnitTest, VerifyComparesTheInstance) {
  v1::Unit unit = store_->Open(bad_)->manifest();
  unit.set_arguments(unit.arguments() + "x");
  OverwriteFile(Manifest(bad_), *EncodeManifest(unit));
  EXPECT_THAT(Text(store_->Verify(*store_->Open(bad_))),
              HasSubstr("its fields give"));
}

class GarbageTest : public UnitStoreTest {
 protected:
  void AgeEverything() {
    for (const std::string& file : FilesUnder(root())) Age(file, 2);
  }
  size_t ChunkCount() { return FilesUnder(root() + "/chunks").size(); }
};

TEST_F(GarbageTest, KeepsWhatUnitsNameAndFreesTheRest) {
  const std::string one = MustAdd(1);
  const std::string two = MustAdd(2);
  const size_t before = ChunkCount();
  ASSERT_OK(store_->Remove(two));
  AgeEverything();
  ASSERT_OK_AND_ASSIGN(const uint64_t freed, store_->CollectGarbage());
  EXPECT_GT(freed, kChunkBytes);
  EXPECT_LT(ChunkCount(), before);
  EXPECT_OK(store_->Verify(*store_->Open(one)));
  ASSERT_OK_AND_ASSIGN(const uint64_t nothing, store_->CollectGarbage());
  EXPECT_EQ(nothing, 0u);
}

TEST_F(GarbageTest, SparesYoungChunks) {
  ASSERT_OK(store_->chunks().Put("of a recording that still runs").status());
  ASSERT_OK_AND_ASSIGN(const uint64_t freed, store_->CollectGarbage());
  EXPECT_EQ(freed, 0u);
  EXPECT_EQ(ChunkCount(), 1u);
}

// A recording finds chunks of its own already there: they count as young again.
TEST_F(GarbageTest, PuttingAChunkAgainMakesItYoung) {
  ASSERT_OK(store_->chunks().Put("shared").status());
  AgeEverything();
  ASSERT_OK(store_->chunks().Put("shared").status());
  ASSERT_OK(store_->CollectGarbage().status());
  EXPECT_EQ(ChunkCount(), 1u);
}

TEST_F(GarbageTest, RemovesOldLeftoversOfKilledWriters) {
  MustAdd(1);
  const std::string file = root() + "/tmp/0123456789abcdef01234567";
  const std::string folder = root() + "/tmp/fedcba";
  OverwriteFile(file, "half a chunk");
  std::filesystem::create_directory(folder);
  OverwriteFile(folder + "/manifest", "half a manifest");
  Age(file, 2);
  ASSERT_OK_AND_ASSIGN(const uint64_t freed, store_->CollectGarbage());
  EXPECT_EQ(freed, 12u);
  EXPECT_TRUE(std::filesystem::exists(folder));
  Age(folder, 2);
  ASSERT_OK(store_->CollectGarbage().status());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(GarbageTest, DeletesNothingWhileAManifestCannotBeRead) {
  const std::string id = MustAdd(1);
  FlipByte(Manifest(id), 300);
  AgeEverything();
  const size_t before = ChunkCount();
  const absl::Status status = store_->CollectGarbage().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr(id));
  EXPECT_EQ(ChunkCount(), before);
  ASSERT_OK(store_->Remove(id));
  ASSERT_OK(store_->CollectGarbage().status());
  EXPECT_EQ(ChunkCount(), 0u);
}

TEST_F(GarbageTest, AHalfWrittenUnitDoesNotStopIt) {
  const std::string id = MustAdd(1);
  std::filesystem::remove(Manifest(id));
  AgeEverything();
  EXPECT_OK(store_->CollectGarbage().status());
  EXPECT_EQ(ChunkCount(), 0u);
}

}  // namespace
}  // namespace reprise
