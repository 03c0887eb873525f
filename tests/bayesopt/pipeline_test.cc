#include "bayesopt/pipeline.h"

#include <algorithm>
#include <string>
#include <vector>

#include "bayesopt/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PipelineTest, PrintsWhatItParsed) {
  const std::string text =
      "nvvm-reflect,cgscc(devirt<4>(inline,function<eager-inv;no-rerun>(sroa<"
      "modify-cfg>,loop-mssa(licm<allowspeculation>)))),globaldce";
  auto pipeline = ParsePipeline(text);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_EQ(PrintPipeline(*pipeline), text);
}

TEST(PipelineTest, CanonicalTextHasNoSpaceAndNoEmptyParameters) {
  auto pipeline = ParsePipeline(" function( gvn<> , loop-vectorize<a;b;> )");
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  EXPECT_EQ(PrintPipeline(*pipeline), "function(gvn,loop-vectorize<a;b>)");
}

TEST(PipelineTest, ErrorsNameThePlace) {
  for (const std::string text :
       {"", "a,", "a,,b", "function(a", "a)", "function()", "sroa<x", "a b"}) {
    const auto pipeline = ParsePipeline(text);
    EXPECT_FALSE(pipeline.ok()) << text;
    EXPECT_THAT(std::string(pipeline.status().message()), HasSubstr("offset"));
  }
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "repeat(";
  EXPECT_THAT(std::string(ParsePipeline(deep + "a").status().message()),
              HasSubstr("deeper"));
}

TEST(PipelineTest, FlattensToLeavesWithTheirAdaptors) {
  const Pipeline pipeline =
      ParsePipeline("a,cgscc(b<1>,function(c)),d").value();
  EXPECT_THAT(FlattenPipeline(pipeline),
              ElementsAre("a", "cgscc/b<1>", "cgscc/function/c", "d"));
}

// Insertions and removals by dynamic programming over the longest common
// subsequence.
int SlowDistance(const std::vector<std::string>& a,
                 const std::vector<std::string>& b) {
  std::vector<std::vector<int>> lcs(a.size() + 1,
                                    std::vector<int>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      lcs[i][j] = a[i - 1] == b[j - 1] ? lcs[i - 1][j - 1] + 1
                                       : std::max(lcs[i - 1][j], lcs[i][j - 1]);
    }
  }
  return static_cast<int>(a.size() + b.size()) - 2 * lcs[a.size()][b.size()];
}

TEST(PipelineTest, DistanceIsTheLeastNumberOfInsertionsAndRemovals) {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> lists[2];
    for (auto& list : lists) {
      const size_t size = random.Below(9);
      while (list.size() < size) {
        list.emplace_back(1, static_cast<char>('a' + random.Below(3)));
      }
    }
    const int expected = SlowDistance(lists[0], lists[1]);
    const int limit = static_cast<int>(random.Below(12));
    EXPECT_EQ(PipelineDistance(lists[0], lists[1], limit),
              std::min(expected, limit + 1));
  }
}

TEST(PipelineTest, EditsMakeOneOfTheOther) {
  const PipelineEdits edits =
      EditsBetween({"a", "b", "c", "d"}, {"b", "x", "c", "c"});
  EXPECT_EQ(edits.added.size() + edits.removed.size(), 4u);
  EXPECT_THAT(edits.removed, testing::ElementsAre("a", "d"));
  EXPECT_THAT(edits.added, testing::ElementsAre("x", "c"));
  EXPECT_THAT(EditsBetween({}, {"a"}).added, testing::ElementsAre("a"));
  EXPECT_TRUE(EditsBetween({"a"}, {"a"}).added.empty());
}

}  // namespace
}  // namespace reprise::bayesopt
