// Leases, imports, and saving and restoring.
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bayesopt/optimizer.h"
#include "bayesopt/trial_space.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

constexpr auto kOk = v1::OUTCOME_KIND_OK;
constexpr auto kWrong = v1::OUTCOME_KIND_WRONG_RESULT;
constexpr auto kInfrastructure = v1::OUTCOME_KIND_INFRASTRUCTURE;

std::shared_ptr<const Space> Grid(int levels) {
  return Space::Create({Parameter::Integer("x", 0, levels - 1, 0),
                        Parameter::Integer("y", 0, levels - 1, 0)})
      .value();
}

std::unique_ptr<Optimizer> Make(std::shared_ptr<const Space> space,
                                Optimizer::Options options) {
  return Optimizer::Create(std::move(space), std::move(options)).value();
}

Optimizer::Options Options(uint64_t seed, uint64_t lease = 0) {
  Optimizer::Options options;
  options.seed = seed;
  options.lease = lease;
  return options;
}

double Number(const Configuration& configuration, size_t index) {
  return static_cast<double>(std::get<int64_t>(configuration.values[index]));
}

double Bowl(const Configuration& configuration) {
  return 1 + std::pow(Number(configuration, 0) - 14, 2) / 40 +
         std::pow(Number(configuration, 1) - 5, 2) / 20;
}

TEST(LeaseTest, AnExpiredTrialIsAskedForAgainUnderANewId) {
  auto optimizer = Make(Grid(20), Options(1, 10));
  optimizer->AdvanceTo(5);
  const auto trials = optimizer->Ask(2);
  optimizer->AdvanceTo(14);
  EXPECT_EQ(optimizer->counts().pending, 2u);
  ASSERT_TRUE(optimizer->Tell(trials[1].id, kOk, {2.0}).ok());
  optimizer->AdvanceTo(15);
  EXPECT_EQ(optimizer->counts().pending, 0u);
  EXPECT_EQ(optimizer->counts().expired, 1u);
  const Trial again = optimizer->Ask(1)[0];
  EXPECT_EQ(again.configuration, trials[0].configuration);
  EXPECT_EQ(again.attempt, 2);
  EXPECT_EQ(again.origin, "retry");
}

TEST(LeaseTest, ALateOutcomeCountsWhenItIsTheFirst) {
  auto optimizer = Make(Grid(20), Options(1, 10));
  const Trial trial = optimizer->Ask(1)[0];
  optimizer->AdvanceTo(10);
  ASSERT_TRUE(optimizer->Tell(trial.id, kOk, {3.0}).ok());
  ASSERT_TRUE(optimizer->Tell(trial.id, kOk, {3.0}).ok());
  EXPECT_EQ(optimizer->counts().ok, 1u);
  EXPECT_EQ(optimizer->counts().pending, 0u);
  EXPECT_EQ(optimizer->Best()->cost, 3.0);
  // Nothing is left to retry.
  EXPECT_FALSE(optimizer->Ask(1)[0].configuration == trial.configuration);
}

TEST(LeaseTest, ALateOutcomeAfterTheRetrysIsTakenAndIgnored) {
  auto optimizer = Make(Grid(20), Options(1, 10));
  const Trial trial = optimizer->Ask(1)[0];
  optimizer->AdvanceTo(10);
  const Trial retry = optimizer->Ask(1)[0];
  ASSERT_TRUE(optimizer->Tell(retry.id, kOk, {3.0}).ok());
  ASSERT_TRUE(optimizer->Tell(trial.id, kOk, {1.0}).ok());
  EXPECT_EQ(optimizer->counts().ok, 1u);
  EXPECT_EQ(optimizer->Best()->cost, 3.0);
  EXPECT_EQ(optimizer->Tell(trial.id, kOk, {0.5}).code(),
            absl::StatusCode::kAlreadyExists);
}

TEST(LeaseTest, AttemptsAreBoundedAndTheDuplicatesGoWithTheirOwner) {
  auto options = Options(1, 10);
  options.max_attempts = 1;
  auto optimizer = Make(Grid(20), std::move(options));
  const auto trials = optimizer->Ask(2);
  ASSERT_TRUE(optimizer->ClaimKey(trials[0].id, "code").value().first);
  ASSERT_FALSE(optimizer->ClaimKey(trials[1].id, "code").value().first);
  optimizer->AdvanceTo(10);
  EXPECT_EQ(optimizer->counts().pending, 0u);
  EXPECT_FALSE(optimizer->Ask(1)[0].configuration == trials[0].configuration);
}

TEST(LeaseTest, WithoutALeaseNothingExpires) {
  auto optimizer = Make(Grid(20), Options(1));
  optimizer->Ask(3);
  optimizer->AdvanceTo(UINT64_MAX);
  EXPECT_EQ(optimizer->counts().pending, 3u);
}

TEST(ImportTest, RefusesWhatIsNotOfTheSpaceOrNoCost) {
  auto optimizer = Make(Grid(5), Options(1));
  EXPECT_FALSE(optimizer->Import({{{{int64_t{9}, int64_t{0}}}, 1, 1}}).ok());
  EXPECT_FALSE(optimizer->Import({{{{int64_t{1}, int64_t{0}}}, 0, 1}}).ok());
  EXPECT_FALSE(optimizer->Import({{{{int64_t{1}, int64_t{0}}}, 1, 1.5}}).ok());
  EXPECT_FALSE(optimizer->Import({{{{int64_t{1}, int64_t{0}}}, 1, 0}}).ok());
  EXPECT_TRUE(optimizer->Import({{{{int64_t{1}, int64_t{0}}}, 1, 0.5}}).ok());
}

// Trials until the optimum of the bowl, with what another device measured:
// the same bowl at ten times the cost, or its opposite.
int TrialsToOptimum(uint64_t seed, double imported_sign) {
  const auto space = Grid(30);
  auto options = Options(seed);
  options.start_with_default = false;
  auto optimizer = Make(space, std::move(options));
  if (imported_sign != 0) {
    Random random(seed, 99);
    std::vector<ImportedObservation> imported;
    for (int i = 0; i < 30; ++i) {
      const Configuration c = space->Sample(random).value();
      imported.push_back({c, 10 * std::pow(Bowl(c), imported_sign), 1});
    }
    EXPECT_TRUE(optimizer->Import(imported).ok());
  }
  for (int i = 1; i <= 120; ++i) {
    const Trial trial = optimizer->Ask(1).at(0);
    const double cost = Bowl(trial.configuration);
    EXPECT_TRUE(optimizer->Tell(trial.id, kOk, {cost}).ok());
    if (cost == 1) return i;
  }
  return 121;
}

TEST(ImportTest, AnotherDevicesBowlHelpsAndItsOppositeIsGotOver) {
  int cold = 0;
  int warm = 0;
  int misled = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    cold += TrialsToOptimum(seed, 0);
    warm += TrialsToOptimum(seed, 1);
    misled += TrialsToOptimum(seed, -1);
  }
  EXPECT_LT(warm, cold);
  EXPECT_LT(misled, 8 * 60);
}

// Rounds of asking and telling in which everything happens.
void Drive(Optimizer& optimizer, int first_round, int rounds) {
  for (int round = first_round; round < first_round + rounds; ++round) {
    optimizer.AdvanceTo(static_cast<uint64_t>(round));
    if (round == 4) {
      (void)optimizer.Inject(Configuration{{int64_t{3}, int64_t{17}}});
    }
    for (const Trial& trial : optimizer.Ask(3)) {
      const double x = Number(trial.configuration, 0);
      if (trial.id % 7 == 3) continue;  // never told: expires
      const auto claim = optimizer.ClaimKey(
          trial.id,
          std::to_string(
              static_cast<int>(x * 1000 + Number(trial.configuration, 1)) / 2));
      ASSERT_TRUE(claim.ok());
      if (!claim->first) continue;
      const double cost = Bowl(trial.configuration);
      const auto kind = trial.id % 11 == 5  ? kInfrastructure
                        : trial.id % 5 == 2 ? kWrong
                                            : kOk;
      ASSERT_TRUE(optimizer
                      .Tell(trial.id, kind,
                            kind == kOk ? std::vector<double>{cost, cost * 1.01}
                                        : std::vector<double>())
                      .ok());
    }
  }
}

TEST(SaveTest, ARestoredOptimizerGoesOnBitForBit) {
  const auto space = Grid(20);
  for (const int at : {0, 2, 9, 20}) {
    auto original = Make(space, Options(5, 4));
    ASSERT_TRUE(original
                    ->Import({{{{int64_t{14}, int64_t{6}}}, 3, 0.5},
                              {{{int64_t{2}, int64_t{6}}}, 9, 0.5}})
                    .ok());
    Drive(*original, 0, at);
    const std::string saved = original->Save().value();
    auto restored = Optimizer::Restore(space, Options(5, 4), saved);
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_EQ((*restored)->Save().value(), saved);
    EXPECT_EQ((*restored)->counts(), original->counts());
    Drive(*original, at, 15);
    Drive(**restored, at, 15);
    EXPECT_EQ((*restored)->Save().value(), original->Save().value());
    const auto a = original->Ask(8);
    const auto b = (*restored)->Ask(8);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].id, b[i].id);
      EXPECT_EQ(a[i].configuration, b[i].configuration);
      EXPECT_EQ(a[i].origin, b[i].origin);
    }
  }
}

TEST(SaveTest, PipelineSpacesGoOnBitForBitToo) {
  TrialSpaceOptions trial_space;
  trial_space.device_kind = "cuda";
  trial_space.recorded.mutable_block()->set_x(256);
  trial_space.recorded.mutable_block()->set_y(1);
  trial_space.recorded.mutable_block()->set_z(1);
  trial_space.block_may_change = true;
  const auto space = BuildTrialSpace(trial_space).value();
  const auto drive = [&](Optimizer& optimizer, int trials) {
    for (int i = 0; i < trials; ++i) {
      const Trial trial = optimizer.Ask(1).at(0);
      const double cost =
          1 +
          0.1 * static_cast<double>(space->Hash(trial.configuration).low % 97);
      ASSERT_TRUE(optimizer.Tell(trial.id, kOk, {cost}).ok());
    }
  };
  auto original = Make(space, Options(9));
  drive(*original, 30);
  auto restored =
      Optimizer::Restore(space, Options(9), original->Save().value());
  ASSERT_TRUE(restored.ok()) << restored.status();
  drive(*original, 10);
  drive(**restored, 10);
  EXPECT_EQ((*restored)->Save().value(), original->Save().value());
}

TEST(SaveTest, RefusesDamagedBytesAndAnotherSpace) {
  const auto space = Grid(20);
  auto optimizer = Make(space, Options(5));
  Drive(*optimizer, 0, 8);
  const std::string saved = optimizer->Save().value();
  EXPECT_FALSE(Optimizer::Restore(Grid(21), Options(5), saved).ok());
  EXPECT_FALSE(Optimizer::Restore(space, Options(6), saved).ok());
  EXPECT_FALSE(Optimizer::Restore(space, Options(5), "").ok());
  EXPECT_FALSE(Optimizer::Restore(space, Options(5), saved + "x").ok());
  for (size_t length = 0; length < saved.size(); length += 97) {
    EXPECT_FALSE(
        Optimizer::Restore(space, Options(5), saved.substr(0, length)).ok());
  }
  // Any byte changed: refused, or something that still works.
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    std::string changed = saved;
    changed[random.Below(changed.size())] ^=
        static_cast<char>(1 << random.Below(8));
    auto restored = Optimizer::Restore(space, Options(5), changed);
    if (restored.ok()) (void)(*restored)->Ask(2);
  }
}

// A sampler that somebody else wrote, and that keeps no state.
class FirstUnseenSampler : public Sampler {
  std::optional<Suggestion> DoSuggest(const History& history,
                                      Random& random) override {
    return std::nullopt;
  }
};

TEST(SaveTest, OfASamplerThatCannotIsUnimplemented) {
  auto options = Options(1);
  options.sampler = std::make_unique<FirstUnseenSampler>();
  auto optimizer = Make(Grid(5), std::move(options));
  EXPECT_EQ(optimizer->Save().status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace reprise::bayesopt
