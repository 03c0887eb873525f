#include "bayesopt/experience.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

constexpr auto kOk = v1::OUTCOME_KIND_OK;
constexpr auto kTimeout = v1::OUTCOME_KIND_TIMEOUT;

class ExperienceTest : public ::testing::Test {
 protected:
  ExperienceTest() {
    history_.space = space_.get();
    history_.observations = &observations_;
    history_.imported = &imported_;
  }

  void Observe(v1::OutcomeKind kind, double cost,
               std::string origin = "model") {
    Observation& seen = observations_.emplace_back();
    seen.id = observations_.size();
    seen.configuration = {{static_cast<int64_t>(observations_.size())}};
    seen.kind = kind;
    seen.cost = cost;
    seen.origin = std::move(origin);
    experience_.Digest(history_, [this](const Observation&, bool gained) {
      gains_ += gained ? 1 : 0;
    });
  }

  // Every `nth` of `count` trials fails; nothing is gained.
  void ObserveInVain(int count, int nth) {
    for (int i = 1; i <= count; ++i) {
      Observe(i % nth == 0 ? kTimeout : kOk, 5);
    }
  }

  const std::shared_ptr<const Space> space_ =
      Space::Create({Parameter::Integer("x", 0, 999, 0)}).value();
  FeatureMap map_{*space_};
  Experience experience_{*space_, map_};
  std::vector<Observation> observations_;
  std::vector<ImportedObservation> imported_;
  History history_;
  int gains_ = 0;
};

TEST_F(ExperienceTest, SortsWhatWasObserved) {
  Observe(kOk, 3, "seed");
  Observe(kTimeout, 0, "injected");
  Observe(kOk, 4, "spread");
  Observe(kOk, 2);
  EXPECT_EQ(experience_.outcomes().size(), 4u);
  EXPECT_EQ(experience_.costs().size(), 3u);
  EXPECT_TRUE(experience_.any_failed());
  EXPECT_EQ(experience_.given(), 2u);
  EXPECT_EQ(gains_, 2);
  const auto elites = experience_.Elites(history_, 2);
  ASSERT_EQ(elites.size(), 2u);
  EXPECT_EQ(*elites[0], observations_[3].configuration);
  EXPECT_EQ(*elites[1], observations_[0].configuration);
}

TEST_F(ExperienceTest, ToleratesAFifthOfFailuresWhileThereAreGains) {
  Observe(kOk, 4);
  ObserveInVain(40, 5);
  EXPECT_EQ(experience_.Caution(), 1);
  ObserveInVain(80, 5);
  EXPECT_GT(experience_.Caution(), 2);
  Observe(kOk, 3);
  EXPECT_EQ(experience_.Caution(), 1);
}

TEST_F(ExperienceTest, IsCautiousWhereMostTrialsFail) {
  Observe(kOk, 4);
  ObserveInVain(10, 2);
  EXPECT_EQ(experience_.Caution(), 1);  // 5 of 20
  ObserveInVain(10, 2);
  EXPECT_GT(experience_.Caution(), 4);
}

}  // namespace
}  // namespace reprise::bayesopt
