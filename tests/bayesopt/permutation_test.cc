#include "bayesopt/permutation.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "bayesopt/space.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

using std::string_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Value> Letters(int count) {
  std::vector<Value> items;
  for (int i = 0; i < count; ++i) items.push_back(std::string(1, 'a' + i));
  return items;
}

TEST(PermutationTest, RanksAreTheLexicographicSequence) {
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  uint64_t rank = 0;
  do {
    EXPECT_EQ(PermutationRank(order), rank);
    EXPECT_EQ(PermutationAt(5, rank), order);
    ++rank;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(rank, Factorial(5));
}

TEST(PermutationTest, TwentyItemsFit) {
  const uint64_t last = Factorial(20) - 1;
  const std::vector<size_t> order = PermutationAt(20, last);
  EXPECT_TRUE(std::is_sorted(order.rbegin(), order.rend()));
  EXPECT_EQ(PermutationRank(order), last);
}

TEST(PermutationTest, NeighborsAreOneSwapOrOneMoveAwayAndReachAllSuch) {
  const std::vector<size_t> from = {0, 1, 2, 3};
  std::set<std::vector<size_t>> expected;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      if (i == j) continue;
      std::vector<size_t> swapped = from;
      std::swap(swapped[i], swapped[j]);
      expected.insert(swapped);
      std::vector<size_t> moved = from;
      moved.erase(moved.begin() + static_cast<ptrdiff_t>(i));
      moved.insert(moved.begin() + static_cast<ptrdiff_t>(j), i);
      expected.insert(moved);
    }
  }
  Random random(1);
  std::set<std::vector<size_t>> seen;
  for (int i = 0; i < 500; ++i) seen.insert(PermutationNeighbor(from, random));
  EXPECT_EQ(seen, expected);
}

TEST(PermutationParameterTest, ValuesAreTheItemsInOrder) {
  const Parameter order =
      Parameter::Permutation("loops", {"i"s, "j"s, int64_t{3}});
  EXPECT_TRUE(order.Check().ok());
  EXPECT_EQ(order.initial, Value("i,j,3"s));
  EXPECT_EQ(order.Cardinality(), 6u);
  EXPECT_THAT(order.OrderOf("3,i,j"s).value(), ElementsAre(2, 0, 1));
  for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(order.IndexOf(order.At(i)), i);
  for (const std::string wrong : {"", "i,j", "i,j,j", "i,j,3,3", "i,j,k"}) {
    EXPECT_FALSE(order.Contains(wrong)) << wrong;
  }
  EXPECT_FALSE(order.Contains(int64_t{3}));
}

TEST(PermutationParameterTest, RefusesItemsThatDoNotMakeOneText) {
  EXPECT_THAT(Parameter::Permutation("p", {"a"s}).Check().message(),
              HasSubstr("got 1 items, expected 2 to 20"));
  EXPECT_THAT(Parameter::Permutation("p", Letters(21)).Check().message(),
              HasSubstr("got 21 items"));
  EXPECT_THAT(Parameter::Permutation("p", {"a,b"s, "c"s}).Check().message(),
              HasSubstr("got the item \"a,b\""));
  EXPECT_THAT(Parameter::Permutation("p", {"1"s, int64_t{1}}).Check().message(),
              HasSubstr("got the item \"1\""));
}

TEST(PermutationParameterTest, SpacesSampleStepAndEnumerateThem) {
  const auto space =
      Space::Create({Parameter::Permutation("order", Letters(5)),
                     Parameter::Boolean("flag", false)},
                    {{"a is first or last",
                      {"order"},
                      [](const std::vector<Value>& v) {
                        const auto& text = std::get<std::string>(v[0]);
                        return text.front() == 'a' || text.back() == 'a';
                      }}})
          .value();
  EXPECT_EQ(space->SizeBound(), 240u);
  int visited = 0;
  EXPECT_TRUE(
      space->Enumerate(3, [&](const Configuration&) { return ++visited > 0; }));
  EXPECT_EQ(visited, 96);
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    const auto sample = space->Sample(random);
    ASSERT_TRUE(sample.has_value());
    EXPECT_TRUE(space->Check(*sample).ok());
    const auto neighbor = space->Neighbor(*sample, random);
    ASSERT_TRUE(neighbor.has_value());
    EXPECT_TRUE(space->Check(*neighbor).ok());
    EXPECT_NE(*neighbor, *sample);
  }
}

TEST(PermutationParameterTest, TwentyItemsAreVisitedLazily) {
  const auto space =
      Space::Create({Parameter::Permutation("order", Letters(20))}).value();
  std::set<ConfigurationHash> seen;
  space->Enumerate(1, [&](const Configuration& configuration) {
    EXPECT_TRUE(space->Check(configuration).ok());
    EXPECT_TRUE(seen.insert(space->Hash(configuration)).second);
    return seen.size() < 1000;
  });
  EXPECT_EQ(seen.size(), 1000u);
}

}  // namespace
}  // namespace reprise::bayesopt
