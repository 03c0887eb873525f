// Every application under tests/apps, built with clang++ through reprise cc,
// recorded with its small arguments: it passes its own check, prints what it
// prints without a recording, and leaves whole units.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "replay/base/file_util.h"
#include "replay/base/process.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/recorder/recorded_app.h"

namespace reprise {
namespace {

using testing::RecordedRun;

struct AppRow {
  std::string name;
  std::string arguments;
  std::string kernels;
};

std::vector<AppRow> ReadTable() {
  std::vector<AppRow> rows;
  std::istringstream table(
      testing::Slurp(testing::SourceDirectory() + "/tests/apps/apps.tsv"));
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> columns;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, '\t');)
      columns.push_back(field);
    if (columns.size() >= 5)
      rows.push_back({columns[0], columns[3], columns[4]});
  }
  return rows;
}

// Errors of floating-point sums depend on the order of atomic operations.
std::string WithoutErrors(const std::string& text) {
  return std::regex_replace(text, std::regex("max error [^,]*"), "max error");
}

class AppsTest : public ::testing::TestWithParam<AppRow> {
 protected:
  static void SetUpTestSuite() {
    auto directory = TemporaryDirectory::Create("apps");
    ASSERT_TRUE(directory.ok());
    directory_ = new TemporaryDirectory(*std::move(directory));
    setenv("REPRISE_HOME", (directory_->path() + "/home").c_str(), 1);
  }

  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }

  RecordedRun Run(const RecordOptions& options) {
    RecordedRun run =
        testing::RunUnder(options, directory_->path(),
                          "./" + GetParam().name + " " + GetParam().arguments);
    EXPECT_TRUE(run.status.ok()) << run.status;
    return run;
  }

  static TemporaryDirectory* directory_;
};

TemporaryDirectory* AppsTest::directory_ = nullptr;

TEST_P(AppsTest, RecordsUnchanged) {
  const auto built = testing::Shell(
      directory_->path(),
      "bash " + testing::SourceDirectory() +
          "/tests/apps/build.sh --compiler clang --out . --launcher '" +
          *SelfExecutable() + " cc' " + GetParam().name);
  ASSERT_EQ(built.exit_code(), 0) << built.err;
  EXPECT_THAT(built.err, ::testing::Not(::testing::HasSubstr("reprise cc")));

  RecordOptions options = testing::TestOptions();
  const RecordedRun plain = Run(options);
  options.store_directory = directory_->path() + "/units." + GetParam().name;
  options.kernel_regex = GetParam().kernels;
  const RecordedRun run = Run(options);
  EXPECT_EQ(run.result.ExitCode(), 0) << run.out << run.result.problem;
  EXPECT_EQ(plain.result.ExitCode(), 0) << plain.out;
  EXPECT_EQ(WithoutErrors(run.out), WithoutErrors(plain.out));
  EXPECT_EQ(run.err, plain.err);

  // Each kernel that was chosen gave a unit.
  size_t matched = 0;
  for (const KernelSeen& kernel : run.result.kernels) {
    if (!kernel.matched) continue;
    ++matched;
    EXPECT_EQ(kernel.units.size(), 1u)
        << kernel.display_name << ": " << kernel.problem;
  }
  EXPECT_GT(matched, 0u);
  const auto store = UnitStore::Open({.directory = options.store_directory});
  ASSERT_TRUE(store.ok());
  for (const std::string& id : run.result.units) {
    const auto unit = (*store)->Open(id);
    ASSERT_TRUE(unit.ok()) << unit.status();
    EXPECT_TRUE((*store)->Verify(*unit).ok());
    bool writes = false;
    for (const v1::MemoryRange& range : unit->manifest().memory())
      writes = writes || range.has_epilogue();
    EXPECT_TRUE(writes) << id;
  }
}

TEST(AppsTableTest, HasApplications) { EXPECT_GE(ReadTable().size(), 24u); }

INSTANTIATE_TEST_SUITE_P(All, AppsTest, ::testing::ValuesIn(ReadTable()),
                         [](const ::testing::TestParamInfo<AppRow>& row) {
                           return row.param.name;
                         });

}  // namespace
}  // namespace reprise
