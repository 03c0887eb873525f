#include "tests/replay/unit/test_support.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "replay/base/check.h"
#include "replay/unit/blob.h"

namespace reprise::testing {

std::string Noise(size_t bytes, uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
  std::string out(bytes, '\0');
  for (size_t i = 0; i < bytes; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(&out[i], &state, std::min<size_t>(8, bytes - i));
  }
  return out;
}

std::string Ramp(size_t bytes, uint64_t seed) {
  std::string out(bytes, '\0');
  for (size_t i = 0; i + 4 <= bytes; i += 4) {
    const float value =
        static_cast<float>(seed) * 1e4f + static_cast<float>(i / 4096);
    std::memcpy(&out[i], &value, 4);
  }
  return out;
}

namespace {

v1::Blob MustPut(ChunkStore& chunks, std::string_view bytes) {
  absl::StatusOr<v1::Blob> blob = chunks.Put(bytes);
  CHECK(blob.ok());
  return *std::move(blob);
}

}  // namespace

v1::Unit SmallUnit(ChunkStore& chunks, uint64_t seed) {
  v1::Unit unit;
  unit.mutable_kernel()->set_symbol("_Z7sigmoidPfi");
  unit.mutable_kernel()->set_display_name("sigmoid(float*, int)");
  v1::KernelParameter* pointer = unit.mutable_kernel()->add_parameters();
  pointer->set_bytes(8);
  pointer->set_name("data");
  pointer->set_pointee(v1::ELEMENT_TYPE_F32);
  v1::KernelParameter* count = unit.mutable_kernel()->add_parameters();
  count->set_offset(8);
  count->set_bytes(4);
  count->set_name("n");
  for (v1::Dim3* dim : {unit.mutable_launch()->mutable_grid(),
                        unit.mutable_launch()->mutable_block()}) {
    dim->set_x(64);
    dim->set_y(1);
    dim->set_z(1);
  }
  const uint64_t address = 0x200000000000;
  unit.mutable_arguments()->append(reinterpret_cast<const char*>(&address), 8);
  unit.mutable_arguments()->append("\x00\x10\x00\x00", 4);
  unit.set_architecture("sm_90");

  v1::MemoryRange* range = unit.add_memory();
  range->set_address(address);
  std::string before = Noise(kChunkBytes, seed) +
                       std::string(kChunkBytes, '\0') +
                       Ramp(kChunkBytes / 2, seed);
  range->set_bytes(before.size());
  range->set_element_type(v1::ELEMENT_TYPE_F32);
  range->set_origin(v1::MEMORY_ORIGIN_DEVICE);
  *range->mutable_prologue() = MustPut(chunks, before);
  before.replace(kChunkBytes, 4, "done");
  *range->mutable_epilogue() = MustPut(chunks, before);
  IntervalSet written;
  written.Add(kChunkBytes, kChunkBytes + 4);
  *range->mutable_write_set() = *StoreIntervals(chunks, written);

  v1::TranslationUnit* source = unit.add_translation_units();
  *source->mutable_ir() = MustPut(chunks, "BC\xC0\xDE, as it were");
  v1::SourceFile* file = source->add_files();
  file->set_path("/src/sigmoid.cu");
  *file->mutable_content() = MustPut(chunks, "__global__ void sigmoid();\n");
  *unit.mutable_machine_code() = MustPut(chunks, Noise(300, 77));
  v1::Provenance* from = unit.mutable_provenance();
  from->set_device("cpu");
  from->set_recorded_unix_seconds(1764460800);
  from->add_command("./sigmoid");
  from->set_occurrence_count(3);
  from->set_duration_ms(1.25);
  return unit;
}

std::vector<std::string> EverythingUnder(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(directory, error), end;
       !error && it != end; it.increment(error)) {
    paths.push_back(it->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> FilesUnder(const std::string& directory) {
  std::vector<std::string> files = EverythingUnder(directory);
  std::erase_if(files, [](const std::string& path) {
    return !std::filesystem::is_regular_file(path);
  });
  return files;
}

void OverwriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  CHECK(file.good());
}

void FlipByte(const std::string& path, size_t offset) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  CHECK(bytes.ok() && offset < bytes->size());
  (*bytes)[offset] = static_cast<char>((*bytes)[offset] ^ 0x10);
  OverwriteFile(path, *bytes);
}

void Age(const std::string& path, int hours) {
  const timespec then = absl::ToTimespec(absl::Now() - absl::Hours(hours));
  const timespec times[] = {then, then};
  CHECK(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

FaultyFileSystem::Verdict FaultyFileSystem::Next() {
  const int step = steps_++;
  if (step == at_) return Verdict::kFailHalfway;
  return step > at_ && fault_ == Fault::kKilled ? Verdict::kDead
                                                : Verdict::kWork;
}

absl::Status FaultyFileSystem::Error(Verdict verdict,
                                     const std::string& what) const {
  return fault_ == Fault::kDiskFull ? ErrnoToStatus(ENOSPC, what)
                                    : absl::AbortedError("the process is dead");
}

absl::Status FaultyFileSystem::WriteNewFile(
    const std::string& path, std::span<const std::string_view> parts) {
  const Verdict verdict = Next();
  if (verdict == Verdict::kWork) return FileSystem::WriteNewFile(path, parts);
  if (verdict == Verdict::kFailHalfway) {
    const std::string_view last = parts.back();
    const std::string_view half[] = {parts.front().substr(0, 40),
                                     last.substr(0, last.size() / 2)};
    FileSystem::WriteNewFile(path, half).IgnoreError();
  }
  return Error(verdict, absl::StrCat("cannot write ", path));
}

absl::Status FaultyFileSystem::Rename(const std::string& from,
                                      const std::string& to) {
  const Verdict verdict = Next();
  if (verdict == Verdict::kWork) return FileSystem::Rename(from, to);
  return Error(verdict, absl::StrCat("cannot rename ", from));
}

absl::Status FaultyFileSystem::MakeDirectory(const std::string& path) {
  const Verdict verdict = Next();
  if (verdict == Verdict::kWork) return FileSystem::MakeDirectory(path);
  return Error(verdict, absl::StrCat("cannot create directory ", path));
}

absl::Status FaultyFileSystem::Remove(const std::string& path) {
  const Verdict verdict = Next();
  if (verdict == Verdict::kWork) return FileSystem::Remove(path);
  return Error(verdict, absl::StrCat("cannot remove ", path));
}

void StoreTest::SetUp() {
  absl::StatusOr<TemporaryDirectory> directory =
      TemporaryDirectory::Create("reprise-unit-test");
  ASSERT_OK(directory.status());
  directory_ = std::make_unique<TemporaryDirectory>(*std::move(directory));
  root_ = directory_->path() + "/store";
}

std::unique_ptr<UnitStore> StoreTest::OpenStore() {
  absl::StatusOr<std::unique_ptr<UnitStore>> store =
      UnitStore::Open({.directory = root_});
  CHECK(store.ok());
  return *std::move(store);
}

}  // namespace reprise::testing
