#include "bayesopt/baselines.h"

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bayesopt/optimizer.h"
#include "bayesopt/unseen.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

using std::string_literals::operator""s;

struct Baseline {
  const char* name;
  std::function<std::unique_ptr<Sampler>()> make;
};

std::vector<Baseline> Baselines() {
  return {{"annealing", [] { return NewAnnealingSampler(); }},
          {"genetic", [] { return NewGeneticSampler(); }},
          {"hill_climbing", [] { return NewHillClimbingSampler(); }}};
}

class BaselineTest : public ::testing::TestWithParam<Baseline> {
 protected:
  std::unique_ptr<Optimizer> Make(std::shared_ptr<const Space> space,
                                  uint64_t seed) {
    Optimizer::Options options;
    options.seed = seed;
    options.sampler = GetParam().make();
    return Optimizer::Create(std::move(space), std::move(options)).value();
  }
};

// Every kind of parameter, a condition and a constraint.
std::shared_ptr<const Space> Mixed() {
  return Space::Create(
             {Parameter::Ordinal("x", {1, 2, 4, 8, 16, 32}, 4, true),
              Parameter::Integer("y", 1, 200, 4),
              Parameter::Categorical("mode", {"a"s, "b"s, "c"s}, "a"s),
              Parameter::Boolean("deep", false).When("mode", {"b"s}),
              Parameter::Permutation("order", {"i"s, "j"s, "k"s}),
              Parameter::Pipeline("pipeline", std::make_shared<PipelineSpace>(
                                                  PipelineSpace::Options{}))},
             {{"x * y <= 256",
               {"x", "y"},
               [](const std::vector<Value>& v) {
                 return std::get<int64_t>(v[0]) * std::get<int64_t>(v[1]) <=
                        256;
               }}})
      .value();
}

double CostOf(const Space& space, const Configuration& configuration) {
  const Assignment at = space.ToAssignment(configuration);
  double cost =
      1 +
      std::abs(static_cast<double>(std::get<int64_t>(at.at("y")) - 20)) / 20;
  if (std::get<std::string>(at.at("mode")) == "b") cost *= 0.7;
  if (at.contains("deep") && std::get<bool>(at.at("deep"))) cost *= 0.8;
  if (std::get<std::string>(at.at("order")) == "k,i,j") cost *= 0.8;
  return cost;
}

TEST_P(BaselineTest, ProposesValidConfigurationsOnceEachInAnyOrderOfOutcomes) {
  const auto space = Mixed();
  auto optimizer = Make(space, 5);
  Random random(3);
  std::set<ConfigurationHash> asked;
  std::vector<Trial> pending;
  for (int round = 0; round < 60; ++round) {
    for (Trial& trial : optimizer->Ask(4)) {
      ASSERT_TRUE(space->Check(trial.configuration).ok());
      ASSERT_TRUE(asked.insert(space->Hash(trial.configuration)).second);
      EXPECT_NE(trial.origin, "search");  // what its sampler found by itself
      pending.push_back(std::move(trial));
    }
    while (pending.size() > 6) {
      const size_t next = random.Below(pending.size());
      const Trial trial = pending[next];
      pending.erase(pending.begin() + static_cast<ptrdiff_t>(next));
      const bool fails = random.Chance(0.4);
      ASSERT_TRUE(optimizer
                      ->Tell(trial.id,
                             fails ? v1::OUTCOME_KIND_WRONG_RESULT
                                   : v1::OUTCOME_KIND_OK,
                             fails ? std::vector<double>{}
                                   : std::vector<double>{CostOf(
                                         *space, trial.configuration)})
                      .ok());
    }
  }
  EXPECT_EQ(asked.size(), 240u);
}

TEST_P(BaselineTest, UsesUpASmallSpace) {
  const auto space = Space::Create({Parameter::Integer("x", 0, 5, 0),
                                    Parameter::Integer("y", 0, 5, 0)})
                         .value();
  auto optimizer = Make(space, 1);
  int asked = 0;
  for (auto trials = optimizer->Ask(1); !trials.empty();
       trials = optimizer->Ask(1)) {
    ++asked;
    ASSERT_TRUE(optimizer->Tell(trials[0].id, v1::OUTCOME_KIND_OK, {1.0}).ok());
  }
  EXPECT_EQ(asked, 36);
}

// Costs after `trials` trials, averaged over seeds.
double MeanBest(const std::function<std::unique_ptr<Sampler>()>& make,
                const std::shared_ptr<const Space>& space, int trials) {
  double sum = 0;
  constexpr int kSeeds = 10;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Optimizer::Options options;
    options.seed = static_cast<uint64_t>(seed);
    options.sampler = make();
    auto optimizer = Optimizer::Create(space, std::move(options)).value();
    for (int i = 0; i < trials; ++i) {
      const Trial trial = optimizer->Ask(1).front();
      EXPECT_TRUE(optimizer
                      ->Tell(trial.id, v1::OUTCOME_KIND_OK,
                             {CostOf(*space, trial.configuration)})
                      .ok());
    }
    sum += optimizer->Best()->cost / kSeeds;
  }
  return sum;
}

TEST_P(BaselineTest, FindsBetterThanRandomSearch) {
  const auto space = Mixed();
  const double random = MeanBest([] { return NewRandomSampler(); }, space, 150);
  EXPECT_LT(MeanBest(GetParam().make, space, 150), 0.95 * random);
}

INSTANTIATE_TEST_SUITE_P(All, BaselineTest, ::testing::ValuesIn(Baselines()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(UnseenTest, MutantsDifferAndHoldTheConstraints) {
  const auto space = Mixed();
  Random random(1);
  Configuration at = space->Default();
  for (int i = 0; i < 300; ++i) {
    const auto mutant = Mutate(*space, at, 0.2, random);
    ASSERT_TRUE(mutant.has_value());
    EXPECT_NE(*mutant, at);
    EXPECT_TRUE(space->Check(*mutant).ok());
    at = *mutant;
  }
}

TEST(UnseenTest, AnotherValueIsAnyOtherAlike) {
  const Parameter parameter = Parameter::Integer("x", 0, 4, 0);
  Random random(1);
  std::vector<int> counts(5);
  for (int i = 0; i < 4000; ++i) {
    ++counts[std::get<int64_t>(*OtherValue(parameter, int64_t{2}, random))];
  }
  EXPECT_EQ(counts[2], 0);
  for (const int other : {0, 1, 3, 4}) EXPECT_NEAR(counts[other], 1000, 150);
  EXPECT_FALSE(OtherValue(Parameter::Integer("x", 3, 3, 3), int64_t{3}, random)
                   .has_value());
}

}  // namespace
}  // namespace reprise::bayesopt
