#include "tests/benchmarks/benchmark_report.h"

#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replay/base/file_util.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

class BenchmarkReportTest : public ::testing::Test {
 protected:
  BenchmarkReportTest() : directory_(*TemporaryDirectory::Create("report")) {}
  nlohmann::json Read() {
    return nlohmann::json::parse(*ReadFile(path_), nullptr, false);
  }
  TemporaryDirectory directory_;
  std::string path_ = directory_.path() + "/benchmarks/cpu.json";
};

TEST_F(BenchmarkReportTest, ReplacesItsMetricsAndKeepsOthers) {
  ASSERT_TRUE(UpdateBenchmarkReport(path_, {{"b", 1, "ms", "<= 2", "run b"},
                                            {"c", 2, "ms", "", "run c"}})
                  .ok());
  ASSERT_TRUE(
      UpdateBenchmarkReport(
          path_, {{"a", 3, "s", "", ""}, {"b", 4, "ms", "", ""}}, "ext4")
          .ok());
  const nlohmann::json report = Read();
  ASSERT_EQ(report.size(), 3u);
  EXPECT_EQ(report[0]["metric"], "a");
  EXPECT_EQ(report[1]["value"], 4);
  EXPECT_THAT(report[1]["environment"].get<std::string>(),
              ::testing::EndsWith(", ext4"));
  EXPECT_EQ(report[2]["metric"], "c");
  EXPECT_EQ(report[2]["command"], "run c");
  for (const nlohmann::json& entry : report)
    EXPECT_EQ(entry["date"].get<std::string>().size(), 10u);
}

TEST_F(BenchmarkReportTest, LeavesAForeignFileAlone) {
  for (const char* text : {"not json", "{}", "[1]", "[{\"metric\": 1}]"}) {
    ASSERT_TRUE(MakeDirectories(directory_.path() + "/benchmarks").ok());
    ASSERT_TRUE(WriteFileAtomically(path_, text).ok());
    const absl::Status status =
        UpdateBenchmarkReport(path_, {{"a", 1, "ms", "", ""}});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
    EXPECT_EQ(*ReadFile(path_), text);
  }
}

TEST(MedianTest, IsTheMiddleOne) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2);
  EXPECT_EQ(Median({7}), 7);
}

}  // namespace
}  // namespace reprise
