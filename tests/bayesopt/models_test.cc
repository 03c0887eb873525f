// The models beside the Gaussian process, and what is around them.
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "bayesopt/acquisition.h"
#include "bayesopt/bandit.h"
#include "bayesopt/cost_model.h"
#include "bayesopt/feasibility.h"
#include "bayesopt/feature_map.h"
#include "bayesopt/random_forest.h"
#include "bayesopt/tpe.h"
#include "bayesopt/trial_statistics.h"
#include "bayesopt/vector_loops.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

using std::string_literals::operator""s;

std::vector<std::vector<float>> Grid(int side) {
  std::vector<std::vector<float>> points;
  for (int i = 0; i < side; ++i) {
    for (int j = 0; j < side; ++j) {
      points.push_back({static_cast<float>(i) / static_cast<float>(side),
                        static_cast<float>(j) / static_cast<float>(side)});
    }
  }
  return points;
}

TEST(RandomForestTest, LearnsAStepAndIsSureWhereThePointsAgree) {
  const auto points = Grid(12);
  std::vector<double> targets;
  for (const auto& point : points) targets.push_back(point[0] > 0.5F ? 3 : 1);
  Random random(1);
  const RandomForest forest(points, targets, {}, random);
  const auto low = forest.Predict(std::vector<float>{0.1F, 0.7F});
  const auto high = forest.Predict(std::vector<float>{0.9F, 0.2F});
  EXPECT_NEAR(low.mean, 1, 0.1);
  EXPECT_NEAR(high.mean, 3, 0.1);
  EXPECT_LT(low.variance, 0.1);
}

TEST(FeasibilityTest, LearnsEachKindOfFailureWhereItHappens) {
  Feasibility feasibility;
  std::vector<Feasibility::Example> examples;
  for (const auto& point : Grid(10)) {
    examples.push_back({point, point[0] > 0.7F ? v1::OUTCOME_KIND_COMPILE_ERROR
                               : point[1] > 0.7F ? v1::OUTCOME_KIND_WRONG_RESULT
                                                 : v1::OUTCOME_KIND_OK});
  }
  EXPECT_EQ(feasibility.Probability(std::vector<float>{0.9F, 0.1F}), 1);
  feasibility.Learn(examples);
  const std::vector<float> fine = {0.2F, 0.2F};
  const std::vector<float> broken = {0.9F, 0.2F};
  const std::vector<float> wrong = {0.2F, 0.9F};
  EXPECT_GT(feasibility.Probability(fine), 0.8);
  EXPECT_LT(feasibility.Probability(broken), 0.3);
  EXPECT_LT(feasibility.Probability(wrong), 0.3);
  EXPECT_GT(feasibility.Probability(v1::OUTCOME_KIND_COMPILE_ERROR, broken),
            0.7);
  EXPECT_LT(feasibility.Probability(v1::OUTCOME_KIND_COMPILE_ERROR, wrong),
            0.3);
  EXPECT_GT(feasibility.Probability(v1::OUTCOME_KIND_WRONG_RESULT, wrong), 0.7);
  EXPECT_EQ(feasibility.Probability(v1::OUTCOME_KIND_TIMEOUT, wrong), 0);
}

TEST(TpeTest, LikesTheValuesOfCheapTrialsAndDrawsThem) {
  const auto space =
      Space::Create({Parameter::Integer("x", 0, 19, 0),
                     Parameter::Categorical("mode", {"a"s, "b"s, "c"s}, "a"s)})
          .value();
  Random random(2);
  std::vector<Configuration> configurations;
  std::vector<TreeParzenEstimator::Example> examples;
  for (int i = 0; i < 80; ++i) configurations.push_back(*space->Sample(random));
  for (const Configuration& c : configurations) {
    const double x = static_cast<double>(std::get<int64_t>(c.values[0]));
    const bool fails = c.values[1] == Value("c"s);
    examples.push_back({&c, fails ? std::numeric_limits<double>::infinity()
                                  : 1 + std::abs(x - 15) +
                                        (c.values[1] == Value("b"s) ? 0 : 9)});
  }
  TreeParzenEstimator estimator(*space, examples);
  EXPECT_GT(estimator.Score({{int64_t{15}, "b"s}}),
            estimator.Score({{int64_t{3}, "b"s}}) + 1);
  EXPECT_GT(estimator.Score({{int64_t{15}, "b"s}}),
            estimator.Score({{int64_t{15}, "c"s}}) + 1);
  int near = 0;
  for (int i = 0; i < 200; ++i) {
    const auto draw = estimator.Draw(random);
    ASSERT_TRUE(draw && space->Check(*draw).ok());
    near += std::abs(std::get<int64_t>(draw->values[0]) - 15) <= 5 &&
                    draw->values[1] == Value("b"s)
                ? 1
                : 0;
  }
  EXPECT_GT(near, 120);  // uniform draws: 37
}

TEST(TpeTest, KnowsPipelinesByTheirPasses) {
  PipelineSpace::Options options;
  const auto space =
      Space::Create({Parameter::Pipeline(
                        "pipeline", std::make_shared<PipelineSpace>(options))})
          .value();
  const Configuration good = {{"default<O3>,function(sroa)"s}};
  const Configuration bad = {{"default<O3>,function(dce)"s}};
  std::vector<TreeParzenEstimator::Example> examples = {
      {&good, 1}, {&good, 1}, {&good, 1}, {&bad, 2}, {&bad, 2}, {&bad, 2}};
  TreeParzenEstimator estimator(*space, examples);
  EXPECT_GT(estimator.Score({{"default<O3>,function(sroa,gvn)"s}}),
            estimator.Score({{"default<O3>,function(dce,gvn)"s}}));
}

TEST(AcquisitionTest, IsTheLogOfTheExpectedImprovementAndNeverUnderflows) {
  // By numeric integration of max(0, best - y).
  const double mean = 0.3;
  const double deviation = 0.5;
  double integral = 0;
  for (double y = -8; y < 0; y += 1e-4) {
    const double z = (y - mean) / deviation;
    integral += -y * std::exp(-z * z / 2) / (deviation * 2.50662827463) * 1e-4;
  }
  EXPECT_NEAR(LogExpectedImprovement(mean, deviation, 0), std::log(integral),
              1e-3);
  const double far = LogExpectedImprovement(60, 1, 0);
  EXPECT_TRUE(std::isfinite(far));
  EXPECT_GT(LogExpectedImprovement(59, 1, 0), far);
  EXPECT_NEAR(LogExpectedImprovement(4.999, 1, 0),
              LogExpectedImprovement(5.001, 1, 0), 0.02);
}

TEST(BanditTest, GivesMoreToTheArmThatGainsAndTheLeastToAll) {
  Bandit bandit({{0.1, 0.1, 10}, {0.1, 0.1, 10}, {0.1, 0.1, 10}});
  for (int i = 0; i < 60; ++i)
    bandit.Tell(static_cast<size_t>(i % 3), i % 3 == 1);
  const auto shares = bandit.Shares();
  EXPECT_NEAR(shares[0] + shares[1] + shares[2], 1, 1e-12);
  EXPECT_GT(shares[1], 0.6);
  EXPECT_GE(shares[0], 0.1);
  Random random(4);
  int picked = 0;
  for (int i = 0; i < 1000; ++i) picked += bandit.Pick(random) == 1 ? 1 : 0;
  EXPECT_NEAR(picked / 1000.0, shares[1], 0.05);
}

TEST(FeatureMapTest, CategoriesAreEquallyFarAndInactiveOnesNeverDiffer) {
  const auto space =
      Space::Create({Parameter::Categorical("mode", {"a"s, "b"s, "c"s}, "a"s),
                     Parameter::Ordinal("size", {16, 32, 48, 64, 80}, 16, false)
                         .When("mode", {"b"s})})
          .value();
  FeatureMap map(*space);
  const auto distance = [&](const Configuration& x, const Configuration& y) {
    std::vector<float> a(map.width());
    std::vector<float> b(map.width());
    map.Encode(x, a);
    map.Encode(y, b);
    double squared = 0;
    for (size_t i = 0; i < a.size(); ++i)
      squared += (a[i] - b[i]) * (a[i] - b[i]);
    return squared;
  };
  const Configuration a = {{"a"s, std::monostate()}};
  const Configuration c = {{"c"s, std::monostate()}};
  EXPECT_NEAR(distance(a, c), 1, 1e-6);
  const Configuration b80 = {{"b"s, int64_t{80}}};
  const Configuration b64 = {{"b"s, int64_t{64}}};
  const Configuration b48 = {{"b"s, int64_t{48}}};
  EXPECT_GT(distance(a, b80), 1);
  // 64 lies between 48 and 80, but is aligned as neither.
  EXPECT_GT(distance(b48, b64), distance(b48, b80));
}

TEST(FeatureMapTest, PipelinesThatShareMoreAreNearer) {
  const auto space =
      Space::Create(
          {Parameter::Pipeline("pipeline", std::make_shared<PipelineSpace>(
                                               PipelineSpace::Options()))})
          .value();
  FeatureMap map(*space, {1, [](const Configuration& c, std::span<float> out) {
                            out[0] = static_cast<float>(
                                std::get<std::string>(c.values[0]).size());
                          }});
  EXPECT_EQ(map.groups(), 3u);  // passes, pairs, statistics
  const auto encode = [&](const std::string& text) {
    std::vector<float> point(map.width());
    map.Encode({{text}}, point);
    return point;
  };
  const auto distance = [&](const std::string& x, const std::string& y) {
    const auto a = encode(x);
    const auto b = encode(y);
    double squared = 0;
    for (size_t i = 0; i + 1 < a.size(); ++i) {
      squared += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return squared;
  };
  const std::string one = "default<O3>,function(sroa)";
  const std::string two = "default<O3>,function(sroa,gvn)";
  const std::string far = "default<O1>,function(dce,sink,adce)";
  EXPECT_GT(distance("default<O3>", one), 0);
  EXPECT_LT(distance(one, two), distance(one, far));
  EXPECT_EQ(encode(one).back(), static_cast<float>(one.size()));
}

TEST(TrialStatisticsTest, TakesFewSamplesOfLosersAndManyOfContenders) {
  const SamplePolicy policy;
  EXPECT_EQ(MoreSamples(policy, {}, 1.0), 3);
  EXPECT_EQ(MoreSamples(policy, {1.5, 1.51, 1.49}, 1.0), 0);
  EXPECT_EQ(MoreSamples(policy, {1.0, 1.03, 0.97}, 1.0), 3);
  EXPECT_EQ(MoreSamples(policy, std::vector<double>(3, 1.0), 1.0), 0);
  std::vector<double> noisy;
  for (int i = 0; i < 30; ++i) noisy.push_back(i % 2 == 0 ? 0.9 : 1.1);
  EXPECT_EQ(MoreSamples(policy, noisy, 1.0), 0);
  noisy.resize(24);
  EXPECT_EQ(MoreSamples(policy, noisy, 1.0), 6);
}

TEST(TrialStatisticsTest, RankCorrelationIgnoresScaleAndKnowsTies) {
  EXPECT_NEAR(RankCorrelation({1, 2, 3, 4}, {1, 10, 100, 1000}), 1, 1e-12);
  EXPECT_NEAR(RankCorrelation({1, 2, 3, 4}, {9, 5, 2, 1}), -1, 1e-12);
  EXPECT_EQ(RankCorrelation({1, 1, 1}, {1, 2, 3}), 0);
}

// A line over [0, 1]: cost falls or rises with the coordinate.
std::vector<CostModel::Datum> Line(int count, double slope, uint64_t seed) {
  Random random(seed);
  std::vector<CostModel::Datum> data;
  for (int i = 0; i < count; ++i) {
    const double x = random.Unit();
    data.push_back({{static_cast<float>(x)}, slope * x, 0});
  }
  return data;
}

TEST(CostModelTest, KeepsImportsThatCorrelateAndDropsOthers) {
  for (const double slope : {1.0, -1.0}) {
    CostModel model({0}, {});
    model.Update(Line(20, 1, 1), Line(15, slope, 2), {});
    EXPECT_EQ(model.dropped_imported(), slope < 0);
    EXPECT_EQ(model.process().size(), slope < 0 ? 20u : 35u);
  }
}

TEST(CostModelTest, ImportsGuideWhereLittleWasMeasured) {
  const std::vector<CostModel::Datum> own = {{{0.5F}, 0.5, 0},
                                             {{0.45F}, 0.45, 0}};
  CostModel with({0}, {});
  with.Update(own, Line(20, 1, 3), {});
  const double low = with.process().Predict(std::vector<float>{0.0F, 0}).mean;
  const double high = with.process().Predict(std::vector<float>{1.0F, 0}).mean;
  EXPECT_LT(low + 0.5, high);
}

TEST(CostModelTest, MemoryIsBoundedAndTheCheapestStay) {
  CostModel::Options options;
  options.most_points = 40;
  options.fit_points = 20;
  CostModel model({0}, options);
  std::vector<CostModel::Datum> own = Line(300, 1, 4);
  own[150].log_cost = -5;
  own[150].point[0] = 0.77F;
  for (size_t n = 5; n <= own.size(); ++n) {
    model.Update({own.begin(), own.begin() + static_cast<ptrdiff_t>(n)}, {},
                 {});
    EXPECT_LE(model.process().size(), 45u);
  }
  bool there = false;
  for (size_t i = 0; i < model.process().size(); ++i) {
    there |= model.process().point(i)[0] == 0.77F;
  }
  EXPECT_TRUE(there);
}

TEST(VectorLoopsTest, MaternIsAccurateInSinglePrecision) {
  std::vector<float> values;
  for (double squared = 0; squared < 2000; squared += 0.37) {
    values.push_back(static_cast<float>(squared));
  }
  const std::vector<float> squared = values;
  MaternInPlace(2, values.size(), values.data());
  for (size_t i = 0; i < values.size(); ++i) {
    const double r = std::sqrt(5 * double{squared[i]});
    EXPECT_NEAR(values[i], 2 * (1 + r + r * r / 3) * std::exp(-r), 2e-6);
  }
}

}  // namespace
}  // namespace reprise::bayesopt
