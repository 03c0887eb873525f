// What a campaign believes, on a device whose timings are noise that a seed
// decides (tests/replay/engine/fake_device.h).
#include "services/coordinator/local_campaign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "evolution/archive.h"
#include "evolution/measures.h"
#include "replay/base/file_util.h"
#include "services/coordinator/result_files.h"
#include "tests/replay/engine/fake_device.h"

namespace reprise {
namespace {

// Proposes sources that the fake pool takes for machine code, one after the
// other.
class ListEmitter : public evolution::Emitter {
 public:
  explicit ListEmitter(std::vector<std::string> codes)
      : codes_(std::move(codes)) {}
  std::string name() const override { return "list"; }

 private:
  absl::StatusOr<std::vector<evolution::Proposal>> DoAsk(
      const evolution::Archive&, int n) override {
    std::vector<evolution::Proposal> proposals;
    for (; n > 0 && next_ < codes_.size(); --n) {
      proposals.emplace_back().files["a.cu"] = codes_[next_++];
      proposals.back().description = codes_[next_ - 1];
    }
    return proposals;
  }
  void DoTell(const evolution::Proposal&,
              const evolution::Evaluation&) override {}

  const std::vector<std::string> codes_;
  size_t next_ = 0;
};

class LocalCampaignTest : public testing::Test {
 protected:
  void SetUp() override {
    store_ = *ChunkStore::Open({.directory = directory_.path()});
    unit_.mutable_kernel()->set_symbol("k");
    unit_.mutable_provenance()->set_device("cpu");
    for (v1::Dim3* dim : {unit_.mutable_launch()->mutable_grid(),
                          unit_.mutable_launch()->mutable_block()}) {
      dim->set_x(1);
      dim->set_y(1);
      dim->set_z(1);
    }
    unit_.add_translation_units()->set_main_file("a.cu");
    // Launches differ by 2 %, and one of fifty takes half as long again.
    device_.behaviour.noise = [this] {
      return std::exp(0.02 * std::normal_distribution<double>()(random_)) *
             (random_() % 50 == 0 ? 1.5 : 1);
    };
    options_.compare_equal_code = true;
    options_.tune = false;
    options_.batch = 1;
  }
  v1::Result Run(const std::vector<std::string>& codes) {
    options_.max_trials = codes.size();
    options_.sources =
        [&](const UnitReader&, const v1::CompileInput&,
            const SourceOptions&) -> absl::StatusOr<ProposedSources> {
      ProposedSources proposed;
      proposed.emitter = std::make_unique<ListEmitter>(codes);
      return proposed;
    };
    LocalCampaign campaign(UnitReader("k-1", unit_, store_), device_, pool_,
                           options_, {});
    auto result = campaign.Run();
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("campaign-test");
  std::shared_ptr<const ChunkStore> store_;
  v1::Unit unit_;
  FakeDevice device_;
  FakePool pool_;
  CampaignOptions options_;
  std::mt19937_64 random_{1};
};

TEST_F(LocalCampaignTest, ManyEquivalentVariantsMakeNoWin) {
  int fooled = 0;
  for (int campaign = 0; campaign < 8; ++campaign) {
    const v1::Result result = Run(std::vector<std::string>(200, "time=100"));
    EXPECT_EQ(result.trials(), 200u);
    EXPECT_FALSE(result.better()) << result.outcome().speedup().ratio();
    if (result.remeasurements_size() > 0) ++fooled;
  }
  // Or nothing was shown: the search alone has to have found "winners".
  EXPECT_GE(fooled, 4);
}

TEST_F(LocalCampaignTest, WhatFailsUnderAnotherL2PolicyIsNoWinner) {
  device_.mutable_facts().l2 = v1::L2_POLICY_COLD;
  const v1::Result sound = Run({"time=50"});
  EXPECT_TRUE(sound.better());
  ASSERT_EQ(sound.other_l2_size(), 2);
  EXPECT_EQ(sound.other_l2(0).l2(), v1::L2_POLICY_WARM);
  EXPECT_EQ(sound.other_l2(1).l2(), v1::L2_POLICY_DIRTY);
  const v1::Result result = Run({"time=50 breaks warm"});
  EXPECT_FALSE(result.better());
  ASSERT_GT(result.remeasurements_size(), 0);
  EXPECT_EQ(result.remeasurements().rbegin()->outcome().kind(),
            v1::OUTCOME_KIND_TIMEOUT);
}

TEST_F(LocalCampaignTest, ElitesOfTheArchiveAreMeasuredAgain) {
  options_.islands.islands = 2;
  std::vector<std::string> codes(60, "time=100");
  codes[7] = "time=60";
  const v1::Result result = Run(codes);
  const v1::Archive& archive = result.archive();
  ASSERT_EQ(archive.islands_size(), 2);
  EXPECT_GT(archive.islands(0).evaluations(), 0u);
  EXPECT_GT(archive.islands(1).evaluations(), 0u);
  ASSERT_GT(archive.elites_size(), 0);
  EXPECT_EQ(archive.elites(0).description(), "time=60");
  EXPECT_GT(archive.elites(0).remeasurements(), 0u);
  EXPECT_NEAR(archive.elites(0).objective(), std::log(100.0 / 60), 0.05);
  // Most trials are for what is new.
  EXPECT_GE(result.source_variants(), 40u);
  EXPECT_EQ(ResultJson(result)["archive"]["elites"][0]["description"],
            "time=60");
  EXPECT_THAT(ResultText(result), testing::HasSubstr("archive    "));
}

TEST_F(LocalCampaignTest, CellsMayBeOfMeasures) {
  options_.islands.archive.cells = *evolution::ParseCells("grid:registers", 1);
  options_.cells = "grid:registers";
  const v1::Result result = Run({"time=50", "time=100", "time=40"});
  ASSERT_EQ(result.archive().measures_size(), 1);
  // All have as many registers, so one is the elite.
  ASSERT_EQ(result.archive().elites_size(), 1);
  EXPECT_EQ(result.archive().elites(0).description(), "time=40");
  EXPECT_EQ(result.archive().elites(0).measures_size(), 1);
}

TEST_F(LocalCampaignTest, WinnerIsReportedByASampleThatTookPartInNoChoice) {
  std::vector<std::string> codes(40, "time=100");
  codes[17] = "time=95";
  const v1::Result result = Run(codes);
  ASSERT_TRUE(result.better());
  EXPECT_EQ(result.changes(0), "time=95");
  EXPECT_EQ(result.outcome().speedup().stopped_by(), "fixed sample");
  EXPECT_EQ(result.outcome().baseline_ns_size(), 60);
  EXPECT_NEAR(result.outcome().speedup().ratio(), 100.0 / 95, 0.015);
  ASSERT_GE(result.remeasurements_size(), 2);
  EXPECT_EQ(result.remeasurements(0).phase(), "confirm");
  const v1::Remeasurement& last =
      result.remeasurements(result.remeasurements_size() - 1);
  EXPECT_EQ(last.phase(), "final");
  // What was counted is beside the sample, not of it.
  v1::Outcome reported = result.outcome();
  EXPECT_EQ(reported.counters().absent(), "the cpu device has no counters");
  reported.clear_counters();
  EXPECT_EQ(last.outcome().SerializeAsString(), reported.SerializeAsString());
}

TEST_F(LocalCampaignTest, GainBelowAHundredthIsNoWin) {
  device_.behaviour.noise = nullptr;
  options_.budget = absl::Seconds(20);
  // 0.5 %: sure, since nothing varies, and too small to matter.
  pool_.baseline = "time=1000";
  EXPECT_FALSE(Run({"time=995"}).better());
  EXPECT_TRUE(Run({"time=985"}).better());
}

TEST_F(LocalCampaignTest, TimeThatEscapesTheEventsWinsNothing) {
  const v1::Result result = Run({"time=50 escapes=2000", "time=95"});
  EXPECT_EQ(result.outcomes().at("REJECTED"), 1u);
  ASSERT_TRUE(result.better());
  EXPECT_EQ(result.changes(0), "time=95");
}

}  // namespace
}  // namespace reprise
