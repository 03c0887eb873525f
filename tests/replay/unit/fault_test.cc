// A disk that fills up and a process that dies, at every step of writing a
// unit; and writers in several processes at once.
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "replay/unit/digest.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/unit/test_support.h"

namespace reprise {
namespace {

using ::reprise::testing::FaultyFileSystem;
using ::reprise::testing::FilesUnder;
using ::reprise::testing::Noise;
using ::reprise::testing::SmallUnit;
using ::reprise::testing::Text;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::Unit MinimalUnit() {
  v1::Unit unit;
  unit.mutable_kernel()->set_symbol("recorded");
  for (v1::Dim3* dim : {unit.mutable_launch()->mutable_grid(),
                        unit.mutable_launch()->mutable_block()}) {
    dim->set_x(1);
    dim->set_y(1);
    dim->set_z(1);
  }
  return unit;
}

// Everything a recording does to a store, on one thread so that steps are
// numbered the same each time.
absl::Status Record(const std::string& root,
                    std::shared_ptr<FileSystem> file_system) {
  ASSIGN_OR_RETURN(auto store,
                   UnitStore::Open({.directory = root,
                                    .threads = 1,
                                    .file_system = std::move(file_system)}));
  std::string left = Noise(2 * kChunkBytes, 42);
  ASSIGN_OR_RETURN(
      const v1::Blob image,
      store->chunks().PutStream([&](char* buffer, size_t capacity) {
        const size_t size = std::min(capacity, left.size());
        left.copy(buffer, size);
        left.erase(0, size);
        return size;
      }));
  v1::Unit unit = MinimalUnit();
  v1::MemoryRange* range = unit.add_memory();
  range->set_address(4096);
  range->set_bytes(image.bytes());
  *range->mutable_prologue() = image;
  return store->Add(unit).status();
}

class FaultTest : public testing::StoreTest {
 protected:
  // One store for each step at which the fault may strike.
  void ForEachStep(
      FaultyFileSystem::Fault fault,
      const std::function<void(const std::string& store,
                               const absl::Status& status)>& check) {
    auto counting = std::make_shared<FaultyFileSystem>(fault, INT_MAX);
    ASSERT_OK(Record(root() + ".whole", counting));
    ASSERT_GE(counting->steps(), 8);
    for (int step = 0; step < counting->steps(); ++step) {
      SCOPED_TRACE(::testing::Message() << "step " << step);
      const std::string store = root() + std::to_string(step);
      auto files = std::make_shared<FaultyFileSystem>(fault, step);
      const absl::Status status = Record(store, files);
      ASSERT_FALSE(status.ok());
      check(store, status);
    }
  }
};

TEST_F(FaultTest, DiskFullAtAnyStep) {
  ForEachStep(
      FaultyFileSystem::Fault::kDiskFull,
      [](const std::string& root, const absl::Status& status) {
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
        EXPECT_THAT(Text(status), HasSubstr("disk full"));
        EXPECT_THAT(Text(status), HasSubstr(root));
        // Nothing is left in the way, and with room it works.
        EXPECT_THAT(FilesUnder(root + "/tmp"), IsEmpty());
        EXPECT_THAT(FilesUnder(root + "/units"), IsEmpty());
        EXPECT_OK(Record(root, nullptr));
        ASSERT_OK_AND_ASSIGN(auto store, UnitStore::Open({.directory = root}));
        ASSERT_OK_AND_ASSIGN(const UnitReader reader, store->Open("recorded"));
        EXPECT_OK(store->Verify(reader));
      });
}

TEST_F(FaultTest, KilledAtAnyStep) {
  ForEachStep(FaultyFileSystem::Fault::kKilled, [](const std::string& root,
                                                   const absl::Status&) {
    // What the next process finds: no unit, or the whole of it.
    ASSERT_OK_AND_ASSIGN(auto store, UnitStore::Open({.directory = root}));
    ASSERT_OK_AND_ASSIGN(const std::vector<UnitListing> found, store->List());
    EXPECT_THAT(found, IsEmpty());
    EXPECT_OK(Record(root, nullptr));
    ASSERT_OK_AND_ASSIGN(const UnitReader reader, store->Open("recorded"));
    EXPECT_OK(store->Verify(reader));
    // What it left behind goes with the garbage, and only that.
    for (const std::string& path : testing::EverythingUnder(root))
      testing::Age(path, 2);
    EXPECT_OK(store->CollectGarbage().status());
    EXPECT_THAT(FilesUnder(root + "/tmp"), IsEmpty());
    EXPECT_OK(store->Verify(reader));
  });
}

TEST_F(FaultTest, AFullDiskHarmsNoUnitThatIsThere) {
  auto before = OpenStore();
  ASSERT_OK_AND_ASSIGN(const std::string id,
                       before->Add(SmallUnit(before->chunks())));
  for (int step = 0; step < 6; ++step) {
    const absl::Status status =
        Record(root(), std::make_shared<FaultyFileSystem>(
                           FaultyFileSystem::Fault::kDiskFull, step));
    EXPECT_THAT(status.code(), AnyOf(absl::StatusCode::kResourceExhausted,
                                     absl::StatusCode::kOk));
    EXPECT_OK(before->Verify(*before->Open(id)));
  }
}

// The real thing where it may be had: a file system of 3 MiB.
TEST_F(FaultTest, ARealFullFileSystem) {
  std::filesystem::create_directory(root());
  if (mount("none", root().c_str(), "tmpfs", 0, "size=3m") != 0)
    GTEST_SKIP() << "may not mount a tmpfs here; DiskFullAtAnyStep stands in";
  const std::string directory = root() + "/store";
  {
    absl::StatusOr<std::unique_ptr<UnitStore>> store =
        UnitStore::Open({.directory = directory});
    EXPECT_OK(store.status());
    const absl::StatusOr<std::string> id =
        (*store)->Add(SmallUnit((*store)->chunks()));
    EXPECT_OK(id.status());
    const absl::Status status =
        (*store)->chunks().Put(Noise(8 * kChunkBytes, 3)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(Text(status), HasSubstr(directory + "/tmp/"));
    EXPECT_THAT(Text(status), HasSubstr("disk full"));
    EXPECT_THAT(FilesUnder(directory + "/tmp"), IsEmpty());
    EXPECT_OK((*store)->Verify(*(*store)->Open(*id)));
    // Freeing space is all it takes.
    for (const std::string& file : FilesUnder(directory + "/chunks"))
      testing::Age(file, 2);
    EXPECT_OK((*store)->CollectGarbage().status());
    EXPECT_OK((*store)->chunks().Put(Noise(kChunkBytes, 4)).status());
  }
  EXPECT_EQ(umount(root().c_str()), 0);
}

class ProcessesTest : public testing::StoreTest {
 protected:
  // Runs `child` in each of several processes; all must return true.
  void InProcesses(int count, const std::function<bool(int)>& child) {
    std::vector<pid_t> pids;
    for (int i = 0; i < count; ++i) {
      const pid_t pid = fork();
      ASSERT_GE(pid, 0);
      if (pid == 0) _exit(child(i) ? 0 : 1);
      pids.push_back(pid);
    }
    for (pid_t pid : pids) {
      int status = 0;
      ASSERT_EQ(waitpid(pid, &status, 0), pid);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
  }
};

TEST_F(ProcessesTest, WriteOneStoreTogether) {
  constexpr int kProcesses = 6;
  // Everybody makes the store, adds a unit of its own and one that all add.
  InProcesses(kProcesses, [this](int i) {
    absl::StatusOr<std::unique_ptr<UnitStore>> store =
        UnitStore::Open({.directory = root(), .threads = 2});
    if (!store.ok()) return false;
    for (uint64_t seed : {uint64_t{1000}, static_cast<uint64_t>(i)}) {
      const absl::StatusOr<std::string> id =
          (*store)->Add(SmallUnit((*store)->chunks(), seed));
      if (!id.ok()) return false;
      const absl::StatusOr<UnitReader> reader = (*store)->Open(*id);
      if (!reader.ok() || !(*store)->Verify(*reader).ok()) return false;
    }
    return true;
  });
  auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const std::vector<UnitListing> units, store->List());
  EXPECT_THAT(units, SizeIs(kProcesses + 1));
  for (const UnitListing& unit : units) {
    EXPECT_OK(unit.status);
    EXPECT_OK(store->Verify(*store->Open(unit.id)));
  }
  EXPECT_THAT(FilesUnder(root() + "/tmp"), IsEmpty());
}

// A recording is killed in the middle of its stream: the store is as it was,
// and the next recording uses the chunks that are there.
TEST_F(ProcessesTest, AKilledRecordingLeavesTheStoreSound) {
  auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const std::string id,
                       store->Add(SmallUnit(store->chunks())));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    int given = 0;
    const absl::Status status =
        OpenStore()
            ->chunks()
            .PutStream([&](char* buffer, size_t capacity) {
              if (++given == 64) {
                // Enough: chunks are being written while this one never comes.
                if (write(ends[1], "x", 1) != 1) _exit(1);
                pause();
              }
              Noise(capacity, 1000 + static_cast<uint64_t>(given))
                  .copy(buffer, capacity);
              return capacity;
            })
            .status();
    _exit(1);
  }
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  int exit_status = 0;
  ASSERT_EQ(waitpid(pid, &exit_status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(exit_status));
  close(ends[0]);
  close(ends[1]);

  EXPECT_OK(store->Verify(*store->Open(id)));
  ASSERT_OK_AND_ASSIGN(const std::vector<UnitListing> units, store->List());
  EXPECT_THAT(units, SizeIs(1));
  ASSERT_OK_AND_ASSIGN(const v1::Blob again,
                       store->chunks().Put(Noise(kChunkBytes, 1001)));
  EXPECT_OK(store->chunks().GetString(again).status());
}

// One process collects garbage without any grace while others add units: an
// added unit is whole when Add says so, or Add says that a chunk is gone.
TEST_F(ProcessesTest, CollectGarbageWhileOthersWrite) {
  ASSERT_OK(UnitStore::Open({.directory = root()}).status());
  const auto add_units = [](UnitStore* store, uint64_t writer) {
    for (uint64_t round = 0; round < 60; ++round) {
      v1::Unit unit = MinimalUnit();
      const absl::StatusOr<v1::Blob> code =
          store->chunks().Put(Noise(100, 1000 * writer + round));
      if (!code.ok()) return false;
      *unit.mutable_machine_code() = *code;
      const absl::StatusOr<std::string> id = store->Add(unit);
      if (absl::IsNotFound(id.status())) continue;
      if (!id.ok()) return false;
      const absl::StatusOr<UnitReader> reader = store->Open(*id);
      if (!reader.ok() || !store->Verify(*reader).ok()) return false;
      if (!store->Remove(*id).ok()) return false;
    }
    return true;
  };
  InProcesses(4, [&](int i) {
    UnitStore::Options options{.directory = root(), .threads = 1};
    options.garbage_grace = absl::ZeroDuration();
    absl::StatusOr<std::unique_ptr<UnitStore>> store = UnitStore::Open(options);
    if (!store.ok()) return false;
    if (i > 0) return add_units(store->get(), static_cast<uint64_t>(i));
    for (int round = 0; round < 120; ++round)
      if (!(*store)->CollectGarbage().ok()) return false;
    return true;
  });
}

}  // namespace
}  // namespace reprise
