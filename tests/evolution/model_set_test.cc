// Which of several models is asked.
#include "evolution/llm/model_set.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "evolution/llm/scripted_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

class ModelSetTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, ModelRole role) {
    models_.push_back(std::make_unique<ScriptedModel>(
        [](const ChatRequest&) { return ChatReply(); }, name));
    members_.push_back({models_.back().get(), role});
  }
  ModelSet Make(ModelSetOptions options = {}) {
    return ModelSet::Create(members_, options).value();
  }

  std::vector<std::unique_ptr<ScriptedModel>> models_;
  std::vector<ModelMember> members_;
};

// How many of `n` choices are of each model; each brings its reward and cost.
std::vector<int> Play(ModelSet& set, double idleness, int n,
                      const std::vector<double>& rewards,
                      const std::vector<double>& costs) {
  std::vector<int> counts(set.size());
  for (int i = 0; i < n; ++i) {
    const size_t index = set.Choose(idleness).value();
    ++counts[index];
    set.Tell(index, rewards[index], costs[index]);
  }
  return counts;
}

TEST_F(ModelSetTest, IdleDevicesAreFedByFastModels) {
  Add("fast", ModelRole::kFast);
  Add("accurate", ModelRole::kAccurate);
  ModelSet set = Make();
  EXPECT_EQ(Play(set, 0.05, 100, {1, 1}, {1, 1}), (std::vector<int>{0, 100}));
  EXPECT_EQ(Play(set, 0.5, 100, {1, 1}, {1, 1}), (std::vector<int>{100, 0}));
  const std::vector<int> between = Play(set, 0.275, 1000, {1, 1}, {1, 1});
  EXPECT_NEAR(between[0], 500, 60);
}

TEST_F(ModelSetTest, ModelsThatBringMoreAreAskedMore) {
  Add("good", ModelRole::kFast);
  Add("bad", ModelRole::kFast);
  ModelSet set = Make();
  const std::vector<int> counts = Play(set, 1, 400, {0.8, 0.2}, {1, 1});
  EXPECT_GT(counts[0], 3 * counts[1]);
  EXPECT_GT(counts[1], 0);
}

TEST_F(ModelSetTest, WhatIsDearHasToBringMore) {
  Add("dear", ModelRole::kAccurate);
  Add("cheap", ModelRole::kAccurate);
  ModelSet aware = Make();
  const std::vector<int> counts = Play(aware, 0, 400, {0.6, 0.4}, {100, 1});
  EXPECT_GT(counts[1], 2 * counts[0]);
  ModelSetOptions options;
  options.cost_weight = 0;
  ModelSet unaware = Make(options);
  const std::vector<int> rich = Play(unaware, 0, 400, {0.6, 0.4}, {100, 1});
  EXPECT_GT(rich[0], rich[1]);
}

TEST_F(ModelSetTest, ModelsWithoutAPriceAreEqual) {
  Add("a", ModelRole::kFast);
  Add("b", ModelRole::kFast);
  ModelSet set = Make();
  const std::vector<int> counts = Play(set, 1, 200, {0.5, 0.5}, {0, 0});
  EXPECT_NEAR(counts[0], 100, 5);
}

TEST_F(ModelSetTest, TheSameSeedGivesTheSameChoices) {
  Add("a", ModelRole::kFast);
  Add("b", ModelRole::kAccurate);
  const auto choices = [&](uint64_t seed) {
    ModelSetOptions options;
    options.seed = seed;
    ModelSet set = Make(options);
    std::vector<size_t> chosen;
    for (int i = 0; i < 64; ++i) chosen.push_back(set.Choose(0.3).value());
    return chosen;
  };
  EXPECT_EQ(choices(1), choices(1));
  EXPECT_NE(choices(1), choices(2));
}

TEST_F(ModelSetTest, AModelThatIsAwayIsPassedOverEverLonger) {
  Add("away", ModelRole::kFast);
  Add("there", ModelRole::kAccurate);
  ModelSet set = Make();
  std::vector<int> gaps;
  int gap = 0;
  while (gaps.size() < 9) {
    const size_t index = set.Choose(1).value();
    if (index == 0) {
      set.TellError(0, absl::UnavailableError("busy"));
      gaps.push_back(std::exchange(gap, 0));
    } else {
      set.Tell(1, 0.5, 1);
      ++gap;
    }
  }
  EXPECT_THAT(gaps, testing::ElementsAre(0, 1, 2, 4, 8, 16, 32, 64, 64));
  // An answer ends it.
  for (int i = 0; i < 64; ++i) EXPECT_EQ(set.Choose(1).value(), 1u);
  EXPECT_EQ(set.Choose(1).value(), 0u);
  set.Tell(0, 0.5, 1);
  EXPECT_EQ(set.Choose(1).value(), 0u);
}

TEST_F(ModelSetTest, TheOnlyModelIsAskedEvenWhenItIsAway) {
  Add("only", ModelRole::kFast);
  ModelSet set = Make();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(set.Choose(0).ok());
    set.TellError(0, absl::UnavailableError("busy"));
  }
}

TEST_F(ModelSetTest, ModelsWithoutQuotaOrKeyAreOut) {
  Add("a", ModelRole::kFast);
  Add("b", ModelRole::kAccurate);
  ModelSet set = Make();
  EXPECT_EQ(set.Choose(1).value(), 0u);
  set.TellError(0, absl::ResourceExhaustedError("quota"));
  EXPECT_EQ(set.Choose(1).value(), 1u);
  set.TellError(1, absl::InvalidArgumentError("too long"));
  EXPECT_EQ(set.Choose(1).value(), 1u);
  set.TellError(1, absl::PermissionDeniedError("key"));
  EXPECT_EQ(set.Choose(1).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(ModelSetTest, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(ModelSet::Create({}).ok());
  Add("a", ModelRole::kFast);
  for (const ModelSetOptions& options :
       {ModelSetOptions{0, 0.5, 0.5}, ModelSetOptions{0, -1, 0.5},
        ModelSetOptions{0, 0, 2}, ModelSetOptions{0, 0.1, 0.5, -1}}) {
    EXPECT_FALSE(ModelSet::Create(members_, options).ok());
  }
  Add("a", ModelRole::kAccurate);
  EXPECT_FALSE(ModelSet::Create(members_).ok());
}

}  // namespace
}  // namespace reprise::evolution
