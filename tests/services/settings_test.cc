#include "services/common/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "replay/base/file_util.h"

namespace reprise {
namespace {

using testing::HasSubstr;

class SettingsTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("XDG_CONFIG_HOME", (directory_.path() + "/config").c_str(), 1);
    unsetenv("REPRISE_DEVICE");
    ASSERT_TRUE(MakeDirectories(directory_.path() + "/config/reprise").ok());
    ASSERT_TRUE(MakeDirectories(directory_.path() + "/project/below").ok());
  }
  void TearDown() override { unsetenv("REPRISE_DEVICE"); }

  void UserFile(const std::string& text) {
    Write("/config/reprise/reprise.yaml", text);
  }
  void ProjectFile(const std::string& text) {
    Write("/project/reprise.yaml", text);
  }
  absl::StatusOr<Settings> Load() {
    return Settings::Load(directory_.path() + "/project/below");
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("settings-test");

 private:
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(directory_.path() + path, text).ok());
  }
};

TEST_F(SettingsTest, FlagBeatsEnvironmentBeatsProjectBeatsUser) {
  EXPECT_EQ(Load()->Get("device"), "auto");
  UserFile("device: cpu\nthreads: 3\n");
  EXPECT_EQ(Load()->Get("device"), "cpu");
  ProjectFile("device: cuda:1\n");
  EXPECT_EQ(Load()->Get("device"), "cuda:1");
  EXPECT_EQ(Load()->Get("threads"), "3");
  setenv("REPRISE_DEVICE", "cuda:2", 1);
  absl::StatusOr<Settings> settings = Load();
  EXPECT_EQ(settings->Get("device"), "cuda:2");
  ASSERT_TRUE(settings->Set("device", "cuda:3", "flag --device").ok());
  EXPECT_EQ(settings->Get("device"), "cuda:3");
}

TEST_F(SettingsTest, UnknownKeyNamesFileAndLine) {
  ProjectFile("device: cpu\n\ndevise: cpu\n");
  const absl::Status status = Load().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(
          "project/reprise.yaml:3: got setting 'devise', expected one of"));
}

TEST_F(SettingsTest, WrongShapeAndBrokenYamlAreErrors) {
  ProjectFile("device: [cpu]\n");
  EXPECT_THAT(std::string(Load().status().message()),
              HasSubstr("reprise.yaml:1: got a list or map for 'device'"));
  ProjectFile("device: {cpu\n");
  EXPECT_FALSE(Load().ok());
  ProjectFile("just text\n");
  EXPECT_FALSE(Load().ok());
  ProjectFile("");
  EXPECT_TRUE(Load().ok());
}

TEST_F(SettingsTest, NumbersAreCheckedAndSayWhereTheyCameFrom) {
  ProjectFile("threads: many\n");
  absl::StatusOr<Settings> settings = Load();
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(
      std::string(settings->GetInteger("threads", 0, 64).status().message()),
      HasSubstr("reprise.yaml:1: got threads 'many', expected a whole number "
                "from 0 to 64"));
  ASSERT_TRUE(settings->Set("threads", "8", "flag --threads").ok());
  EXPECT_EQ(*settings->GetInteger("threads", 0, 64), 8);
}

}  // namespace
}  // namespace reprise
