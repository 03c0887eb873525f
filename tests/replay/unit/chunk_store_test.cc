#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "replay/base/sha256.h"
#include "replay/unit/blob.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/unit/test_support.h"

namespace reprise {
namespace {

using ::reprise::testing::FilesUnder;
using ::reprise::testing::FlipByte;
using ::reprise::testing::Noise;
using ::reprise::testing::OverwriteFile;
using ::reprise::testing::Ramp;
using ::reprise::testing::Text;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ChunkStoreTest : public testing::StoreTest {
 protected:
  std::unique_ptr<ChunkStore> Open(ChunkStore::Options options = {}) {
    options.directory = root();
    absl::StatusOr<std::unique_ptr<ChunkStore>> store =
        ChunkStore::Open(std::move(options));
    EXPECT_OK(store.status());
    return *std::move(store);
  }
  std::vector<std::string> ChunkFiles() {
    return FilesUnder(root() + "/chunks");
  }
};

// Hands out `bytes` in pieces of changing size.
ChunkStore::Source PiecesOf(std::string_view bytes) {
  auto left = std::make_shared<std::string_view>(bytes);
  auto piece = std::make_shared<size_t>(1);
  return
      [left, piece](char* buffer, size_t capacity) -> absl::StatusOr<size_t> {
        *piece = *piece * 7 % 300007 + 1;
        const size_t size = std::min({*piece, capacity, left->size()});
        std::copy_n(left->data(), size, buffer);
        left->remove_prefix(size);
        return size;
      };
}

std::string Mixed() {
  return Noise(3 * kChunkBytes, 1) + std::string(2 * kChunkBytes, '\0') +
         Ramp(2 * kChunkBytes + 12345, 2);
}

TEST_F(ChunkStoreTest, GivesBackWhatWasPut) {
  auto store = Open();
  for (const std::string& bytes :
       {std::string(), std::string("a"), Noise(kChunkBytes - 1, 1),
        Noise(kChunkBytes, 2), Ramp(kChunkBytes + 1, 3),
        std::string(kChunkBytes + 5, '\0'), Mixed()}) {
    ASSERT_OK_AND_ASSIGN(const v1::Blob blob, store->Put(bytes));
    EXPECT_EQ(blob.bytes(), bytes.size());
    ASSERT_OK_AND_ASSIGN(const std::string again, store->GetString(blob));
    EXPECT_EQ(again, bytes);
    std::string streamed;
    ASSERT_OK(store->Get(blob, [&](std::string_view piece) {
      streamed.append(piece);
      return absl::OkStatus();
    }));
    EXPECT_EQ(streamed, bytes);
  }
}

TEST_F(ChunkStoreTest, AStreamGivesTheSameBlobAsAString) {
  auto store = Open();
  const std::string bytes = Mixed();
  ASSERT_OK_AND_ASSIGN(const v1::Blob put, store->Put(bytes));
  ASSERT_OK_AND_ASSIGN(const v1::Blob streamed,
                       store->PutStream(PiecesOf(bytes)));
  EXPECT_EQ(streamed.SerializeAsString(), put.SerializeAsString());
  ASSERT_OK_AND_ASSIGN(const v1::Blob nothing, store->PutStream(PiecesOf("")));
  EXPECT_EQ(nothing.chunks_size(), 0);
}

TEST_F(ChunkStoreTest, ChunksAreNamedByTheirDigest) {
  auto store = Open();
  ASSERT_OK_AND_ASSIGN(const v1::Blob blob, store->Put("hello"));
  const std::string hex = HexEncode(Sha256("hello"));
  EXPECT_THAT(ChunkFiles(),
              ::testing::ElementsAre(root() + "/chunks/" + hex.substr(0, 2) +
                                     "/" + hex.substr(2)));
}

TEST_F(ChunkStoreTest, EqualChunksAreStoredOnceAndZerosNever) {
  auto store = Open();
  const std::string piece = Noise(kChunkBytes, 1);
  ASSERT_OK_AND_ASSIGN(const v1::Blob blob,
                       store->Put(piece + std::string(kChunkBytes, '\0') +
                                  piece + std::string(17, '\0')));
  EXPECT_THAT(ChunkFiles(), SizeIs(1));
  EXPECT_EQ(blob.chunks(0).sha256(), blob.chunks(2).sha256());
  EXPECT_THAT(blob.chunks(1).sha256(), IsEmpty());
  EXPECT_THAT(blob.chunks(3).sha256(), IsEmpty());
  ASSERT_OK(Open()->Put(piece).status());
  EXPECT_THAT(ChunkFiles(), SizeIs(1));
}

TEST_F(ChunkStoreTest, GetIntoReadsOnlyTheChunksAskedFor) {
  auto store = Open();
  const std::string bytes = Mixed();
  ASSERT_OK_AND_ASSIGN(const v1::Blob blob, store->Put(bytes));
  std::string out(bytes.size(), 'x');
  ASSERT_OK(store->GetInto(blob, out.data(),
                           [](size_t chunk) { return chunk % 2 == 1; }));
  for (size_t at = 0, chunk = 0; at < bytes.size();
       at += kChunkBytes, ++chunk) {
    const std::string expected =
        chunk % 2 == 1
            ? bytes.substr(at, kChunkBytes)
            : std::string(std::min(kChunkBytes, bytes.size() - at), 'x');
    EXPECT_EQ(out.substr(at, kChunkBytes), expected) << "chunk " << chunk;
  }
}

TEST_F(ChunkStoreTest, GetChunkReadsOneOrWritesZeros) {
  auto store = Open();
  const std::string bytes = Mixed();
  ASSERT_OK_AND_ASSIGN(const v1::Blob blob, store->Put(bytes));
  for (int i = 0; i < blob.chunks_size(); ++i) {
    std::string chunk(blob.chunks(i).bytes(), 'x');
    ASSERT_OK(store->GetChunk(blob.chunks(i), chunk.data()));
    EXPECT_EQ(chunk,
              bytes.substr(static_cast<size_t>(i) * kChunkBytes, kChunkBytes));
  }
}

TEST_F(ChunkStoreTest, NoTemporaryFilesStay) {
  auto store = Open();
  ASSERT_OK(store->Put(Mixed()).status());
  EXPECT_THAT(FilesUnder(root() + "/tmp"), IsEmpty());
}

// Each error of a broken chunk file, and that the other chunks stay readable.
class BrokenChunkTest : public ChunkStoreTest {
 protected:
  void SetUp() override {
    ChunkStoreTest::SetUp();
    store_ = Open();
    good_ = *store_->Put(Noise(2000, 5));
    blob_ = *store_->Put(Noise(kChunkBytes, 1) + Ramp(kChunkBytes, 2));
    for (int i : {0, 1}) {
      const std::string hex = HexEncode(blob_.chunks(i).sha256());
      paths_.push_back(root() + "/chunks/" + hex.substr(0, 2) + "/" +
                       hex.substr(2));
    }
  }
  absl::Status Read() {
    EXPECT_OK(store_->GetString(good_).status());
    const absl::Status status = store_->GetString(blob_).status();
    const absl::Status streamed =
        store_->Get(blob_, [](std::string_view) { return absl::OkStatus(); });
    EXPECT_EQ(streamed, status);
    return status;
  }
  std::unique_ptr<ChunkStore> store_;
  v1::Blob good_;
  v1::Blob blob_;
  std::vector<std::string> paths_;
};

TEST_F(BrokenChunkTest, Missing) {
  std::filesystem::remove(paths_[1]);
  EXPECT_EQ(Read().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(Read()), HasSubstr("no chunk at " + paths_[1]));
}

TEST_F(BrokenChunkTest, Truncated) {
  for (const std::string& path : paths_) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(Text(Read()), HasSubstr(path + " is truncated"));
    std::filesystem::resize_file(path, 0);
    EXPECT_THAT(Text(Read()), HasSubstr(path + " is truncated"));
    ASSERT_OK(store_->Put(Noise(kChunkBytes, 1)).status());
  }
}

TEST_F(BrokenChunkTest, BitFlippedRaw) {
  FlipByte(paths_[0], 5000);
  EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(Read()), HasSubstr(paths_[0] + " is damaged: SHA-256"));
}

TEST_F(BrokenChunkTest, BitFlippedCompressed) {
  FlipByte(paths_[1], 200);
  EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(Read()), HasSubstr(paths_[1] + " is damaged"));
}

TEST_F(BrokenChunkTest, Foreign) {
  OverwriteFile(paths_[0], "To whom it may concern");
  EXPECT_EQ(Read().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(Read()), HasSubstr("not a Reprise chunk"));
}

TEST_F(BrokenChunkTest, AnotherChunkUnderItsName) {
  std::filesystem::copy_file(paths_[0], paths_[1],
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(Read().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(Read()), HasSubstr("it holds chunk"));
}

TEST_F(BrokenChunkTest, Newer) {
  FrameHeader header;
  header.version = kUnitFormatVersion + 1;
  header.raw_bytes = header.stored_bytes = 9;
  header.sha256 = blob_.chunks(0).sha256();
  OverwriteFile(paths_[0],
                EncodeFrameHeader(FrameKind::kChunk, header) + "whatever!");
  EXPECT_EQ(Read().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(Read()), HasSubstr("newer Reprise"));
}

TEST_F(BrokenChunkTest, ADirectoryInItsPlace) {
  std::filesystem::remove(paths_[0]);
  std::filesystem::create_directory(paths_[0]);
  EXPECT_THAT(Text(Read()), HasSubstr("cannot read " + paths_[0]));
}

TEST_F(BrokenChunkTest, PuttingTheBytesAgainMendsWhatIsVisiblyBroken) {
  std::filesystem::resize_file(paths_[0], 100);
  OverwriteFile(paths_[1], "junk");
  ASSERT_OK(store_->Put(Noise(kChunkBytes, 1) + Ramp(kChunkBytes, 2)).status());
  EXPECT_OK(Read());
}

TEST_F(ChunkStoreTest, RefusesBlobsThatBreakTheRules) {
  auto store = Open();
  ASSERT_OK_AND_ASSIGN(const v1::Blob good, store->Put(Mixed()));
  v1::Blob blob = good;
  blob.set_bytes(blob.bytes() + 1);
  EXPECT_THAT(Text(store->GetString(blob).status()), HasSubstr("chunk 7 has"));
  blob = good;
  blob.mutable_chunks()->RemoveLast();
  EXPECT_THAT(Text(store->GetString(blob).status()), HasSubstr("chunks hold"));
  blob = good;
  blob.mutable_chunks(1)->set_bytes(5);
  EXPECT_EQ(store->GetString(blob).status().code(),
            absl::StatusCode::kInvalidArgument);
  blob = good;
  blob.mutable_chunks(0)->set_sha256("short");
  EXPECT_THAT(Text(store->GetString(blob).status()), HasSubstr("5 bytes"));
}

TEST_F(ChunkStoreTest, GetStringHasABound) {
  auto store = Open();
  v1::Blob huge;
  for (int i = 0; i < 2000; ++i) AppendChunk("", kChunkBytes, &huge);
  const absl::Status status = store->GetString(huge).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ChunkStoreTest, ErrorsOfSourceAndSinkComeBack) {
  auto store = Open();
  int calls = 0;
  const absl::Status put =
      store
          ->PutStream([&](char*, size_t capacity) -> absl::StatusOr<size_t> {
            if (++calls == 5) return absl::UnavailableError("pipe broke");
            return capacity;
          })
          .status();
  EXPECT_EQ(put, absl::UnavailableError("pipe broke"));
  ASSERT_OK_AND_ASSIGN(const v1::Blob blob, store->Put(Mixed()));
  const absl::Status got = store->Get(blob, [](std::string_view) {
    return absl::UnavailableError("consumer left");
  });
  EXPECT_EQ(got, absl::UnavailableError("consumer left"));
  EXPECT_EQ(
      store->PutStream([](char*, size_t c) { return c + 1; }).status().code(),
      absl::StatusCode::kInternal);
}

// Counts, whenever a chunk is written, how many the source has already given.
class CountingFileSystem : public FileSystem {
 public:
  explicit CountingFileSystem(const std::atomic<int>* given) : given_(given) {}
  absl::Status WriteNewFile(const std::string& path,
                            std::span<const std::string_view> parts) override {
    const absl::Status status = FileSystem::WriteNewFile(path, parts);
    std::lock_guard<std::mutex> lock(mutex_);
    most_ahead_ = std::max(most_ahead_, *given_ - written_);
    ++written_;
    return status;
  }
  int most_ahead() const { return most_ahead_; }

 private:
  const std::atomic<int>* given_;
  std::mutex mutex_;
  int written_ = -1;  // the first file is the store's marker
  int most_ahead_ = 0;
};

TEST_F(ChunkStoreTest, AStreamNeverRunsFarAheadOfTheDisk) {
  std::atomic<int> given{0};
  auto files = std::make_shared<CountingFileSystem>(&given);
  ChunkStore::Options options;
  options.threads = 3;
  options.file_system = files;
  auto store = Open(options);
  const std::string noise = Noise(kChunkBytes, 9);
  ASSERT_OK(store
                ->PutStream([&](char* buffer,
                                size_t capacity) -> absl::StatusOr<size_t> {
                  if (given == 100) return 0;
                  ++given;
                  std::copy_n(noise.data(), capacity, buffer);
                  const int seed = given;
                  std::memcpy(buffer, &seed, sizeof(seed));
                  return capacity;
                })
                .status());
  EXPECT_GE(files->most_ahead(), 1);
  EXPECT_LE(files->most_ahead(), 2 * 3);
}

TEST_F(ChunkStoreTest, SeveralThreadsUseOneStore) {
  auto store = Open();
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      // Half of each thread's bytes are everybody's.
      const std::string bytes =
          Noise(2 * kChunkBytes, 100) + Noise(2 * kChunkBytes, t);
      const absl::StatusOr<v1::Blob> blob = store->PutStream(PiecesOf(bytes));
      if (!blob.ok()) return;
      const absl::StatusOr<std::string> again = store->GetString(*blob);
      if (again.ok() && *again == bytes) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 4);
  EXPECT_THAT(ChunkFiles(), SizeIs(2 + 4 * 2));
}

TEST_F(ChunkStoreTest, IntervalSetsAreKeptAsBlobs) {
  auto store = Open();
  IntervalSet set;
  for (uint64_t i = 0; i < 100000; ++i) set.Add(16 * i, 16 * i + 4);
  ASSERT_OK_AND_ASSIGN(const v1::Blob blob, StoreIntervals(*store, set));
  ASSERT_OK_AND_ASSIGN(const IntervalSet again,
                       LoadIntervals(*store, blob, 1600000));
  EXPECT_EQ(again, set);
  EXPECT_EQ(LoadIntervals(*store, blob, 1500000).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(LoadIntervals(*store, blob, 1000).status()),
              HasSubstr("for a range of 1000"));
  ASSERT_OK_AND_ASSIGN(const v1::Blob none, StoreIntervals(*store, {}));
  ASSERT_OK_AND_ASSIGN(const IntervalSet empty, LoadIntervals(*store, none, 0));
  EXPECT_TRUE(empty.empty());
}

}  // namespace
}  // namespace reprise
