#include "replay/recorder/cc/build_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "replay/base/file_util.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Digest(char fill) { return std::string(64, fill); }

v1::TranslationUnit Unit(const std::string& main_file) {
  v1::TranslationUnit unit;
  unit.set_main_file(main_file);
  unit.set_directory("/build");
  unit.add_argv("clang++");
  return unit;
}

class BuildRegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create("registry");
    ASSERT_TRUE(directory.ok());
    directory_ = std::make_unique<TemporaryDirectory>(*std::move(directory));
    auto registry = BuildRegistry::Open(path(), true);
    ASSERT_TRUE(registry.ok()) << registry.status();
    registry_ = *std::move(registry);
  }

  std::string path() const { return directory_->path() + "/build"; }

  // Adds a unit for an image; returns the unit's id.
  std::string Add(const std::string& image, const std::string& main_file) {
    const auto id = registry_->AddUnit(Unit(main_file));
    EXPECT_TRUE(id.ok()) << id.status();
    EXPECT_TRUE(registry_->AddImage(image, {*id, "sm_90", ""}).ok());
    return *id;
  }

  std::vector<std::string> MainFiles(const std::string& image) {
    const auto units = registry_->FindUnits(image);
    EXPECT_TRUE(units.ok()) << units.status();
    std::vector<std::string> files;
    for (const BuiltUnit& unit : *units) files.push_back(unit.unit.main_file());
    return files;
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<BuildRegistry> registry_;
};

TEST_F(BuildRegistryTest, FindsTheUnitOfAnImage) {
  v1::TranslationUnit unit = Unit("/src/a.cu");
  v1::SourceFile* file = unit.add_files();
  file->set_path("/src/a.cu");
  *file->mutable_content() = *registry_->chunks().Put("__global__ void k();");
  const auto id = registry_->AddUnit(unit);
  ASSERT_TRUE(id.ok()) << id.status();
  ASSERT_TRUE(registry_->AddImage(Digest('a'), {*id, "sm_90a", "tag"}).ok());

  const auto again = BuildRegistry::Open(path(), false);
  ASSERT_TRUE(again.ok()) << again.status();
  const auto found = (*again)->FindUnits(Digest('a'));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].use.unit, *id);
  EXPECT_EQ((*found)[0].use.tag, "tag");
  EXPECT_EQ((*found)[0].use.architecture, "sm_90a");
  EXPECT_EQ((*found)[0].unit.argv(0), "clang++");
  EXPECT_EQ(*(*again)->chunks().GetString((*found)[0].unit.files(0).content()),
            "__global__ void k();");
}

TEST_F(BuildRegistryTest, KnowsNothingOfAForeignImage) {
  EXPECT_THAT(MainFiles(Digest('f')), IsEmpty());
}

TEST_F(BuildRegistryTest, TheNewestUnitOfAnImageWins) {
  const std::string older = Add(Digest('a'), "/src/old.cu");
  const std::string newer = Add(Digest('a'), "/src/new.cu");
  namespace fs = std::filesystem;
  const fs::path images = path() + "/images/" + Digest('a');
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(images / older, now - std::chrono::hours(1));
  fs::last_write_time(images / newer, now);
  EXPECT_THAT(MainFiles(Digest('a')), ::testing::ElementsAre("/src/new.cu"));
  fs::last_write_time(images / older, now + std::chrono::hours(1));
  EXPECT_THAT(MainFiles(Digest('a')), ::testing::ElementsAre("/src/old.cu"));
}

TEST_F(BuildRegistryTest, ALinkLeadsToItsInputsInOrder) {
  Add(Digest('a'), "/src/a.cu");
  Add(Digest('b'), "/src/b.cu");
  const auto direct = registry_->AddUnit(Unit("/src/c.cu"));
  ASSERT_TRUE(direct.ok());
  ASSERT_TRUE(registry_
                  ->AddLink(Digest('c'), {{Digest('b'), {}},
                                          {Digest('e'), {}},
                                          {"", {*direct, "sm_80", ""}},
                                          {Digest('a'), {}}})
                  .ok());
  EXPECT_THAT(MainFiles(Digest('c')),
              ::testing::ElementsAre("/src/b.cu", "/src/c.cu", "/src/a.cu"));
  EXPECT_EQ(registry_->FindUnits(Digest('c'))->at(1).use.architecture, "sm_80");
}

TEST_F(BuildRegistryTest, ADamagedUnitIsAnErrorThatNamesItsFile) {
  const std::string id = Add(Digest('a'), "/src/a.cu");
  const std::string file = path() + "/units/" + id;
  ASSERT_TRUE(WriteFileAtomically(file, "not what was there").ok());
  const auto units = registry_->FindUnits(Digest('a'));
  EXPECT_EQ(units.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(units.status().message()), HasSubstr(file));
}

TEST_F(BuildRegistryTest, ADamagedLinkIsAnError) {
  ASSERT_TRUE(
      WriteFileAtomically(path() + "/links/" + Digest('c'), "image short\n")
          .ok());
  EXPECT_EQ(registry_->FindUnits(Digest('c')).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(BuildRegistryTest, AMissingRegistryIsNotMade) {
  const std::string elsewhere = directory_->path() + "/elsewhere";
  const auto registry = BuildRegistry::Open(elsewhere, false);
  EXPECT_EQ(registry.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(registry.status().message()),
              HasSubstr("reprise cc"));
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
}

TEST_F(BuildRegistryTest, SeveralProcessesWriteAtOnce) {
  constexpr int kProcesses = 4;
  constexpr int kUnits = 25;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t pid = fork();
    if (pid == 0) {
      auto registry = BuildRegistry::Open(path(), true);
      bool good = registry.ok();
      for (int i = 0; good && i < kUnits; ++i) {
        const auto id = (*registry)->AddUnit(Unit("/" + std::to_string(i)));
        good = id.ok() &&
               (*registry)->AddImage(Digest('a'), {*id, "sm_90", ""}).ok() &&
               (*registry)->chunks().Put(std::string(1000, 'x')).ok() &&
               (*registry)->FindUnits(Digest('a')).ok();
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(MainFiles(Digest('a')).size(), 1u);
}

TEST(BuildRegistryDirectoryTest, FollowsTheEnvironment) {
  setenv("HOME", "/home/u", 1);
  unsetenv("REPRISE_HOME");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(BuildRegistry::DefaultDirectory(), "/home/u/.cache/reprise/build");
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(BuildRegistry::DefaultDirectory(), "/cache/reprise/build");
  setenv("REPRISE_HOME", "/r", 1);
  EXPECT_EQ(BuildRegistry::DefaultDirectory(), "/r/build");
}

}  // namespace
}  // namespace reprise
