#include "bayesopt/optimizer.h"

#include <cmath>
#include <cstdint>
#include <limits>
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

constexpr auto kOk = v1::OUTCOME_KIND_OK;
constexpr auto kWrong = v1::OUTCOME_KIND_WRONG_RESULT;
constexpr auto kInfrastructure = v1::OUTCOME_KIND_INFRASTRUCTURE;

std::shared_ptr<const Space> Grid(int parameters, int levels) {
  std::vector<Parameter> list;
  for (int i = 0; i < parameters; ++i) {
    list.push_back(
        Parameter::Integer("p" + std::to_string(i), 0, levels - 1, 0));
  }
  return Space::Create(std::move(list)).value();
}

std::unique_ptr<Optimizer> Make(std::shared_ptr<const Space> space,
                                Optimizer::Options options = {}) {
  auto optimizer = Optimizer::Create(std::move(space), std::move(options));
  EXPECT_TRUE(optimizer.ok()) << optimizer.status();
  return *std::move(optimizer);
}

Optimizer::Options Seeded(uint64_t seed, bool random_only = false) {
  Optimizer::Options options;
  options.seed = seed;
  if (random_only) options.sampler = NewRandomSampler();
  return options;
}

// A bowl with its bottom at (levels / 3, ...), and a rippled floor.
double Bowl(const Space& space, const Configuration& configuration) {
  double cost = 1;
  for (const Value& value : configuration.values) {
    const double x = static_cast<double>(std::get<int64_t>(value));
    cost += (x - 6) * (x - 6) / 20 + 0.2 * std::fmod(x * 7, 3);
  }
  return cost;
}

TEST(OptimizerTest, TheFirstTrialIsTheDefaultThenTheSeeds) {
  const auto space = Grid(2, 20);
  Optimizer::Options options;
  options.seeds = {space->FromAssignment({{"p0", int64_t{5}}}).value(),
                   space->FromAssignment({{"p1", int64_t{7}}}).value()};
  const auto seeds = options.seeds;
  auto optimizer = Make(space, std::move(options));
  const auto trials = optimizer->Ask(4);
  ASSERT_EQ(trials.size(), 4u);
  EXPECT_EQ(trials[0].configuration, space->Default());
  EXPECT_EQ(trials[0].origin, "default");
  EXPECT_EQ(trials[1].configuration, seeds[0]);
  EXPECT_EQ(trials[2].configuration, seeds[1]);
  EXPECT_EQ(trials[2].origin, "seed");
  EXPECT_EQ(trials[3].id, 4u);
}

TEST(OptimizerTest, RefusesARepeatedOrInvalidSeed) {
  const auto space = Grid(1, 3);
  Optimizer::Options repeated;
  repeated.seeds = {space->Default()};
  EXPECT_FALSE(Optimizer::Create(space, std::move(repeated)).ok());
  Optimizer::Options invalid;
  invalid.seeds = {Configuration{{int64_t{9}}}};
  EXPECT_FALSE(Optimizer::Create(space, std::move(invalid)).ok());
}

TEST(OptimizerTest, UsesUpTheSpaceWithoutARepeat) {
  for (const bool random_only : {true, false}) {
    const auto space = Grid(3, 7);
    auto optimizer = Make(space, Seeded(3, random_only));
    std::set<ConfigurationHash> seen;
    while (true) {
      const auto trials = optimizer->Ask(5);
      for (const Trial& trial : trials) {
        EXPECT_TRUE(seen.insert(space->Hash(trial.configuration)).second);
        EXPECT_TRUE(optimizer
                        ->Tell(trial.id, trial.id % 3 == 0 ? kWrong : kOk,
                               {1.0 + 0.1 * static_cast<double>(trial.id)})
                        .ok());
      }
      if (trials.size() < 5) break;
    }
    EXPECT_EQ(seen.size(), 343u);
    EXPECT_TRUE(optimizer->Ask(1).empty());
    EXPECT_EQ(optimizer->counts().pending, 0u);
  }
}

TEST(OptimizerTest, TheSameCallsGiveTheSameTrials) {
  for (const bool random_only : {true, false}) {
    const auto space = Grid(4, 20);
    auto a = Make(space, Seeded(11, random_only));
    auto b = Make(space, Seeded(11, random_only));
    auto other = Make(space, Seeded(12, random_only));
    bool differs = false;
    for (int round = 0; round < 40; ++round) {
      const auto ours = a->Ask(3);
      const auto theirs = b->Ask(3);
      const auto others = other->Ask(3);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(ours[i].configuration, theirs[i].configuration);
        differs |= !(ours[i].configuration == others[i].configuration);
        const double cost = Bowl(*space, ours[i].configuration);
        ASSERT_TRUE(a->Tell(ours[i].id, kOk, {cost}).ok());
        ASSERT_TRUE(b->Tell(theirs[i].id, kOk, {cost}).ok());
        ASSERT_TRUE(other->Tell(others[i].id, kOk, {cost}).ok());
      }
    }
    EXPECT_TRUE(differs);
  }
}

TEST(OptimizerTest, TellsComeOutOfOrderAndTwice) {
  auto optimizer = Make(Grid(2, 10), Seeded(1));
  const auto trials = optimizer->Ask(3);
  EXPECT_TRUE(optimizer->Tell(3, kOk, {2.0, 4.0, 2.5}).ok());
  EXPECT_TRUE(optimizer->Tell(1, kOk, {3.0}).ok());
  EXPECT_TRUE(optimizer->Tell(3, kOk, {2.0, 4.0, 2.5}).ok());
  EXPECT_EQ(optimizer->Tell(3, kOk, {1.0}).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(optimizer->Tell(9, kOk, {1.0}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(optimizer->Tell(2, kOk, {}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(optimizer->Tell(2, kOk, {-1.0}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(optimizer->Tell(2, kOk, {std::nan("")}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(optimizer->counts().ok, 2u);
  EXPECT_EQ(optimizer->counts().pending, 1u);
  ASSERT_TRUE(optimizer->Best().has_value());
  EXPECT_EQ(optimizer->Best()->trial.id, 3u);
  EXPECT_EQ(optimizer->Best()->cost, 2.5);  // the median
}

TEST(OptimizerTest, FailuresAreNeverTheBestAndNeverAskedAgain) {
  const auto space = Grid(1, 4);
  auto optimizer = Make(space, Seeded(1));
  for (const Trial& trial : optimizer->Ask(4)) {
    ASSERT_TRUE(optimizer->Tell(trial.id, kWrong, {0.5}).ok());
  }
  EXPECT_FALSE(optimizer->Best().has_value());
  EXPECT_TRUE(optimizer->Ask(1).empty());
}

TEST(OptimizerTest, InfrastructureIsRetriedUnderANewIdAndThenGivenUp) {
  auto optimizer = Make(Grid(1, 50), Seeded(1));
  const Trial first = optimizer->Ask(1)[0];
  ASSERT_TRUE(optimizer->Tell(first.id, kInfrastructure, {}).ok());
  ASSERT_TRUE(optimizer->Tell(first.id, kInfrastructure, {}).ok());
  const Trial second = optimizer->Ask(1)[0];
  EXPECT_EQ(second.configuration, first.configuration);
  EXPECT_EQ(second.origin, "retry");
  EXPECT_EQ(second.attempt, 2);
  EXPECT_NE(second.id, first.id);
  ASSERT_TRUE(optimizer->Tell(second.id, kInfrastructure, {}).ok());
  const Trial third = optimizer->Ask(1)[0];
  ASSERT_TRUE(optimizer->Tell(third.id, kInfrastructure, {}).ok());
  for (const Trial& trial : optimizer->Ask(49)) {
    EXPECT_FALSE(trial.configuration == first.configuration);
  }
  EXPECT_EQ(optimizer->counts().infrastructure, 3u);
  EXPECT_EQ(optimizer->counts().failed, 0u);
}

TEST(OptimizerTest, AKeyMakesTheSecondTrialADuplicate) {
  auto optimizer = Make(Grid(2, 10), Seeded(1));
  optimizer->Ask(4);
  EXPECT_TRUE(optimizer->ClaimKey(2, "code").value().first);
  EXPECT_TRUE(optimizer->ClaimKey(2, "code").value().first);
  const auto claim = optimizer->ClaimKey(1, "code").value();
  EXPECT_FALSE(claim.first);
  EXPECT_EQ(claim.owner, 2u);
  EXPECT_FALSE(optimizer->ClaimKey(1, "code").value().first);
  EXPECT_FALSE(optimizer->ClaimKey(1, "other").ok());
  EXPECT_EQ(optimizer->counts().pending, 4u);
  ASSERT_TRUE(optimizer->Tell(2, kOk, {5.0}).ok());
  EXPECT_EQ(optimizer->counts().pending, 2u);
  EXPECT_EQ(optimizer->counts().duplicates, 1u);
  // After the owner's outcome, too.
  EXPECT_FALSE(optimizer->ClaimKey(3, "code").value().first);
  EXPECT_EQ(optimizer->counts().pending, 1u);
  EXPECT_EQ(optimizer->counts().duplicates, 2u);
  EXPECT_EQ(optimizer->Best()->trial.id, 2u);
  EXPECT_EQ(optimizer->Tell(3, kOk, {1.0}).code(),
            absl::StatusCode::kAlreadyExists);
}

TEST(OptimizerTest, ARetriedOwnerKeepsItsDuplicates) {
  auto optimizer = Make(Grid(2, 10), Seeded(1));
  optimizer->Ask(2);
  ASSERT_TRUE(optimizer->ClaimKey(1, "code").value().first);
  ASSERT_FALSE(optimizer->ClaimKey(2, "code").value().first);
  ASSERT_TRUE(optimizer->Tell(1, kInfrastructure, {}).ok());
  const Trial retry = optimizer->Ask(1)[0];
  EXPECT_TRUE(optimizer->ClaimKey(retry.id, "code").value().first);
  ASSERT_TRUE(optimizer->Tell(retry.id, kOk, {2.0}).ok());
  EXPECT_EQ(optimizer->counts().pending, 0u);
  EXPECT_EQ(optimizer->counts().duplicates, 1u);
}

TEST(OptimizerTest, InjectedConfigurationsComeNextAndOnce) {
  const auto space = Grid(2, 10);
  auto optimizer = Make(space, Seeded(1));
  optimizer->Ask(3);
  const auto wanted = space->FromAssignment({{"p0", int64_t{9}}}).value();
  const absl::Status first = optimizer->Inject(wanted);
  if (first.ok()) {
    EXPECT_EQ(optimizer->Ask(1)[0].configuration, wanted);
  }
  EXPECT_EQ(optimizer->Inject(wanted).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(optimizer->Inject(Configuration{{int64_t{99}, int64_t{0}}}).code(),
            absl::StatusCode::kInvalidArgument);
}

// Best cost after `trials` trials, eight at a time.
double BestAfter(int trials, uint64_t seed, bool random_only) {
  const auto space = Grid(5, 20);
  auto optimizer = Make(space, Seeded(seed, random_only));
  while (optimizer->counts().asked < static_cast<uint64_t>(trials)) {
    for (const Trial& trial : optimizer->Ask(8)) {
      EXPECT_TRUE(
          optimizer->Tell(trial.id, kOk, {Bowl(*space, trial.configuration)})
              .ok());
    }
  }
  return optimizer->Best()->cost;
}

TEST(OptimizerTest, ModelsFindBetterThanRandomOnASmoothSpace) {
  int better = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    better += BestAfter(120, seed, false) < BestAfter(120, seed, true) ? 1 : 0;
  }
  EXPECT_GE(better, 9);
}

TEST(OptimizerTest, ConvergesWithFailuresInTwoFifthsOfTheSpace) {
  const auto space = Grid(4, 20);
  auto optimizer = Make(space, Seeded(4));
  double optimum = std::numeric_limits<double>::infinity();
  const auto fails = [&](const Configuration& c) {
    return space->Hash(c).low % 5 < 2;
  };
  space->Enumerate(0, [&](const Configuration& c) {
    if (!fails(c)) optimum = std::min(optimum, Bowl(*space, c));
    return true;
  });
  for (int i = 0; i < 400; ++i) {
    const Trial trial = optimizer->Ask(1)[0];
    ASSERT_TRUE(optimizer
                    ->Tell(trial.id, fails(trial.configuration) ? kWrong : kOk,
                           {Bowl(*space, trial.configuration)})
                    .ok());
  }
  EXPECT_LT(optimizer->Best()->cost, optimum * 1.5);
}

TEST(OptimizerTest, PipelinesAreSearchedWithoutRepeats) {
  PipelineSpace::Options options;
  options.target = PipelineTarget::kNvptx;
  const auto space =
      Space::Create({Parameter::Pipeline(
                        "pipeline", std::make_shared<PipelineSpace>(options))})
          .value();
  EXPECT_FALSE(space->finite());
  auto optimizer = Make(space, Seeded(2));
  std::set<std::string> seen;
  for (int i = 0; i < 25; ++i) {
    for (const Trial& trial : optimizer->Ask(8)) {
      const auto& text = std::get<std::string>(trial.configuration.values[0]);
      EXPECT_TRUE(seen.insert(text).second) << text;
      ASSERT_TRUE(optimizer
                      ->Tell(trial.id, kOk,
                             {100.0 + static_cast<double>(text.size() % 50)})
                      .ok());
    }
  }
  EXPECT_EQ(seen.size(), 200u);
}

}  // namespace
}  // namespace reprise::bayesopt
