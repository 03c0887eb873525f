#include "bayesopt/space.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

using std::string_literals::operator""s;
using ::testing::HasSubstr;

std::shared_ptr<const Space> Must(
    absl::StatusOr<std::shared_ptr<const Space>> space) {
  EXPECT_TRUE(space.ok()) << space.status();
  return *space;
}

// x, y with x * y <= 64; "deep" is there only under mode = "b".
std::shared_ptr<const Space> Small() {
  return Must(Space::Create(
      {Parameter::Ordinal("x", {1, 2, 4, 8, 16, 32}, 4, true),
       Parameter::Ordinal("y", {1, 2, 4, 8, 16, 32}, 4, true),
       Parameter::Categorical("mode", {"a"s, "b"s, "c"s}, "a"s),
       Parameter::Integer("deep", 0, 9, 3).When("mode", {"b"s}),
       Parameter::Boolean("deeper", false).When("deep", {int64_t{9}})},
      {{"x * y <= 64", {"x", "y"}, [](const std::vector<Value>& v) {
          return std::get<int64_t>(v[0]) * std::get<int64_t>(v[1]) <= 64;
        }}}));
}

TEST(SpaceTest, EnumeratesEveryValidConfigurationOnce) {
  const auto space = Small();
  int pairs = 0;
  for (int x = 1; x <= 32; x *= 2) {
    for (int y = 1; y <= 32; y *= 2) pairs += x * y <= 64 ? 1 : 0;
  }
  for (const uint64_t seed : {0, 1, 2}) {
    std::set<ConfigurationHash> seen;
    EXPECT_TRUE(space->Enumerate(seed, [&](const Configuration& c) {
      EXPECT_TRUE(space->Check(c).ok());
      EXPECT_TRUE(seen.insert(space->Hash(c)).second);
      return true;
    }));
    // mode a, c; mode b with deep 0..8; deep 9 with deeper on and off.
    EXPECT_EQ(seen.size(), static_cast<size_t>(pairs * (2 + 9 + 2)));
  }
}

TEST(SpaceTest, SeedsEnumerateInDifferentOrders) {
  const auto space = Small();
  std::set<ConfigurationHash> first;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    space->Enumerate(seed, [&](const Configuration& c) {
      first.insert(space->Hash(c));
      return false;
    });
  }
  EXPECT_GT(first.size(), 4u);
}

TEST(SpaceTest, TenToTheTwelveConfigurationsCostNothing) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 12; ++i) {
    parameters.push_back(Parameter::Integer("p" + std::to_string(i), 0, 9, 0));
  }
  const auto space = Must(Space::Create(std::move(parameters)));
  EXPECT_EQ(space->SizeBound(), 1'000'000'000'000u);
  int visited = 0;
  EXPECT_FALSE(space->Enumerate(
      1, [&](const Configuration&) { return ++visited < 1000; }));
  EXPECT_EQ(visited, 1000);
}

TEST(SpaceTest, ConditionsChainAndDefaultsFillIn) {
  const auto space = Small();
  const Assignment plain = space->ToAssignment(space->Default());
  EXPECT_EQ(plain.count("deep"), 0u);
  auto deep = space->FromAssignment({{"mode", "b"s}, {"deep", int64_t{9}}});
  ASSERT_TRUE(deep.ok()) << deep.status();
  EXPECT_EQ(space->ToAssignment(*deep).at("deeper"), Value(false));
  EXPECT_FALSE(space->FromAssignment({{"deep", int64_t{2}}}).ok());
}

TEST(SpaceTest, MessagesSayWhatIsWrong) {
  const auto space = Small();
  const auto message = [&](const Assignment& assignment) {
    return std::string(space->FromAssignment(assignment).status().message());
  };
  EXPECT_THAT(message({{"z", int64_t{1}}}), HasSubstr("unknown parameter z"));
  EXPECT_THAT(message({{"x", int64_t{3}}}), HasSubstr("got \"3\""));
  EXPECT_THAT(message({{"x", "4"s}}), HasSubstr("expected one of its values"));
  EXPECT_THAT(message({{"deep", int64_t{3}}}), HasSubstr("inactive"));
  EXPECT_THAT(message({{"x", int64_t{32}}, {"y", int64_t{8}}}),
              HasSubstr("x * y <= 64"));
}

TEST(SpaceTest, CreateRefusesNonsense) {
  const auto fails = [](std::vector<Parameter> parameters,
                        std::vector<Constraint> constraints = {}) {
    return !Space::Create(std::move(parameters), std::move(constraints)).ok();
  };
  EXPECT_TRUE(fails({Parameter::Boolean("", true)}));
  EXPECT_TRUE(
      fails({Parameter::Boolean("a", true), Parameter::Boolean("a", true)}));
  EXPECT_TRUE(fails({Parameter::Categorical("a", {}, "x"s)}));
  EXPECT_TRUE(fails({Parameter::Categorical("a", {"x"s, "x"s}, "x"s)}));
  EXPECT_TRUE(fails({Parameter::Ordinal("a", {1, 2}, 3, false)}));
  EXPECT_TRUE(fails({Parameter::Ordinal("a", {2, 1}, 1, false)}));
  EXPECT_TRUE(fails({Parameter::Integer("a", 5, 1, 5)}));
  EXPECT_TRUE(fails({Parameter::Integer("a", INT64_MIN, INT64_MAX, 0)}));
  EXPECT_TRUE(fails({Parameter::Boolean("a", true).When("b", {true}),
                     Parameter::Boolean("b", true)}));
  EXPECT_TRUE(fails({Parameter::Boolean("a", true)},
                    {{"c", {"b"}, [](const auto&) { return true; }}}));
  // The default configuration breaks the constraint.
  EXPECT_TRUE(fails({Parameter::Boolean("a", true)},
                    {{"c", {"a"}, [](const std::vector<Value>& v) {
                        return !std::get<bool>(v[0]);
                      }}}));
}

TEST(SpaceTest, HashIsOfNamesAndValuesNotOfOrder) {
  const auto ab = Must(Space::Create(
      {Parameter::Boolean("a", true), Parameter::Integer("b", 0, 9, 4)}));
  const auto ba = Must(Space::Create(
      {Parameter::Integer("b", 0, 9, 4), Parameter::Boolean("a", true)}));
  EXPECT_EQ(ab->Hash(ab->Default()), ba->Hash(ba->Default()));
  // Written down once: keys in stored campaigns depend on it.
  const ConfigurationHash hash = ab->Hash(ab->Default());
  EXPECT_EQ(hash.high, 7232425689123265880ull);
  EXPECT_EQ(hash.low, 12590324503811618143ull);
}

TEST(SpaceTest, TypesOfValuesCount) {
  const auto space = Must(Space::Create({Parameter::Categorical(
      "a", {int64_t{1}, 1.0, true, "1"s}, int64_t{1})}));
  std::set<ConfigurationHash> hashes;
  space->Enumerate(0, [&](const Configuration& c) {
    return hashes.insert(space->Hash(c)).second;
  });
  EXPECT_EQ(hashes.size(), 4u);
}

TEST(SpaceTest, SamplesAndNeighborsAreValidAndNeighborsAreNear) {
  const auto space = Small();
  Random random(5);
  std::set<ConfigurationHash> sampled;
  for (int i = 0; i < 2000; ++i) {
    const auto sample = space->Sample(random);
    ASSERT_TRUE(sample.has_value());
    ASSERT_TRUE(space->Check(*sample).ok());
    sampled.insert(space->Hash(*sample));
    const auto neighbor = space->Neighbor(*sample, random);
    ASSERT_TRUE(neighbor.has_value());
    ASSERT_TRUE(space->Check(*neighbor).ok()) << space->Check(*neighbor);
    int changed = 0;
    for (size_t p = 0; p < 3; ++p) {  // the unconditional ones
      changed += sample->values[p] != neighbor->values[p] ? 1 : 0;
    }
    EXPECT_LE(changed, 1);
    EXPECT_FALSE(*neighbor == *sample);
  }
  EXPECT_GT(sampled.size(), 300u);  // of 351
}

TEST(SpaceTest, AnUnsatisfiableSpaceIsFoundOut) {
  const auto space = Must(Space::Create(
      {Parameter::Integer("a", 0, 1000, 7),
       Parameter::Integer("b", 0, 1000, 0)},
      {{"a is 7 and b is 0", {"a", "b"}, [](const std::vector<Value>& v) {
          return std::get<int64_t>(v[0]) == 7 && std::get<int64_t>(v[1]) == 0;
        }}}));
  Random random(1);
  EXPECT_FALSE(space->Neighbor(space->Default(), random).has_value());
  int count = 0;
  space->Enumerate(9, [&](const Configuration&) { return ++count > 0; });
  EXPECT_EQ(count, 1);
}

TEST(SpaceTest, WithSwitchesParametersOnAndOffAndAsksTheConstraints) {
  const auto space = Small();
  const Configuration from = space->Default();
  const auto on = space->With(from, 2, "b"s);
  ASSERT_TRUE(on.has_value());
  EXPECT_TRUE(space->Check(*on).ok());
  EXPECT_EQ(on->values[3], Value(int64_t{3}));
  EXPECT_EQ(space->With(*on, 2, "a"s), from);
  EXPECT_FALSE(space->With(from, 0, int64_t{32}).has_value());  // 32 * 4 > 64
}

}  // namespace
}  // namespace reprise::bayesopt
