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
  absl::StatusOr<std::unique_ptr<Optimizer>> Restore(
      std::shared_ptr<const Space> space, uint64_t seed,
      const std::string& bytes) {
    Optimizer::Options options;
    options.seed = seed;
    options.sampler = GetParam().make();
    return Optimizer::Restore(std::move(space), std::move(options), bytes);
  }

  std::unique_ptr<Optimizer> Make(std::shared_ptr<const Space> space,
                                  uint64_t seed) {
    Optimizer::Options options;
    options.seed = seed;
    options.sampler = GetParam().make();
    return Optimizer::Create(std::move(space), std::move(options)).value();
  }
};

// Those and the ones that are no comparison of ours.
using SavedSamplerTest = BaselineTest;

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

// Outcomes that depend on the trial alone; some never come.
void Drive(Optimizer& optimizer, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (const Trial& trial : optimizer.Ask(3)) {
      if (trial.id % 13 == 6) continue;
      const bool fails = trial.id % 5 == 3;
      ASSERT_TRUE(
          optimizer
              .Tell(trial.id,
                    fails ? v1::OUTCOME_KIND_TIMEOUT : v1::OUTCOME_KIND_OK,
                    fails ? std::vector<double>{}
                          : std::vector<double>{CostOf(optimizer.space(),
                                                       trial.configuration)})
              .ok());
    }
  }
}

TEST_P(SavedSamplerTest, ARestoredSearchGoesOnBitForBit) {
  const auto space = Mixed();
  for (const int at : {0, 1, 4, 25, 60}) {
    auto original = Make(space, 5);
    Drive(*original, at);
    const std::string saved = original->Save().value();
    auto restored = Restore(space, 5, saved);
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_EQ((*restored)->Save().value(), saved);
    Drive(*original, 30);
    Drive(**restored, 30);
    EXPECT_EQ((*restored)->Save().value(), original->Save().value());
  }
}

TEST_P(SavedSamplerTest, ChangedBytesAreRefusedOrStillWork) {
  const auto space = Mixed();
  auto optimizer = Make(space, 5);
  Drive(*optimizer, 25);
  const std::string saved = optimizer->Save().value();
  const auto begin = saved.size() * 3 / 4;  // the sampler's are the last
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    std::string changed = saved;
    changed[begin + random.Below(saved.size() - begin)] ^=
        static_cast<char>(1 << random.Below(8));
    auto restored = Restore(space, 5, changed);
    if (restored.ok()) EXPECT_EQ((*restored)->Ask(2).size(), 2u);
  }
  EXPECT_FALSE(Restore(space, 5, saved + "x").ok());
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

std::vector<Baseline> Saved() {
  std::vector<Baseline> saved = Baselines();
  saved.push_back({"local_search", [] { return NewLocalSearchSampler(); }});
  saved.push_back({"random", [] { return NewRandomSampler(); }});
  return saved;
}

INSTANTIATE_TEST_SUITE_P(All, SavedSamplerTest, ::testing::ValuesIn(Saved()),
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
