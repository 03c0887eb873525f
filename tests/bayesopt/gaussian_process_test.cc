#include "bayesopt/gaussian_process.h"

#include <cmath>
#include <vector>

#include "bayesopt/candidate_posterior.h"
#include "bayesopt/kernel_fit.h"
#include "bayesopt/random.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

const std::vector<size_t> kOneGroup = {0};

KernelParameters Parameters(double length, double signal, double noise) {
  return {{std::log(length)}, std::log(signal), std::log(noise)};
}

// Two groups: a coordinate of its own, and two that share a length.
FitData RandomData(int count, uint64_t seed,
                   const std::vector<size_t>& group_of) {
  Random random(seed);
  FitData data;
  data.points.resize(static_cast<Eigen::Index>(group_of.size()), count);
  data.targets.resize(count);
  data.measured_variances.resize(count);
  data.group_of = group_of;
  for (int i = 0; i < count; ++i) {
    for (Eigen::Index c = 0; c < data.points.rows(); ++c) {
      data.points(c, i) = random.Unit();
    }
    data.targets(i) =
        std::sin(5 * data.points(0, i)) + 0.1 * (random.Unit() - 0.5);
    data.measured_variances(i) = 0.01 * random.Unit();
  }
  return data;
}

TEST(GaussianProcessTest, PosteriorOfTwoPointsIsTheTextbooks) {
  const KernelParameters parameters = Parameters(0.5, 2, 0.1);
  GaussianProcess process(parameters, kOneGroup);
  process.Append(std::vector<float>{0.0F});
  process.Append(std::vector<float>{1.0F}, /*measured_variance=*/0.3);
  process.SetTargets(std::vector<double>{1.0, -0.5}, 0.25);
  const auto k = [](double distance) {
    return 2 * Matern52(distance * distance / 0.25);
  };
  // By hand: mean + k' (K + N)^-1 (y - mean), k(0) - k' (K + N)^-1 k.
  const double a = 2.1;
  const double b = k(1);
  const double d = 2.4;
  const double determinant = a * d - b * b;
  const double k0 = k(0.4);
  const double k1 = k(0.6);
  const double w0 = (d * k0 - b * k1) / determinant;
  const double w1 = (a * k1 - b * k0) / determinant;
  const auto prediction = process.Predict(std::vector<float>{0.4F});
  EXPECT_NEAR(prediction.mean, 0.25 + w0 * 0.75 - w1 * 0.75, 1e-6);
  EXPECT_NEAR(prediction.variance, 2 - w0 * k0 - w1 * k1, 1e-6);
  const double z0 = 0.75;
  const double z1 = -0.75;
  const double quadratic =
      (d * z0 * z0 - 2 * b * z0 * z1 + a * z1 * z1) / determinant;
  EXPECT_NEAR(process.LogLikelihood(),
              -quadratic / 2 - std::log(determinant) / 2 -
                  std::log(2 * std::acos(-1.0)),
              1e-6);
}

TEST(GaussianProcessTest, MaternIsOneAtZeroAndItsSlopeIsItsDerivative) {
  EXPECT_EQ(Matern52(0), 1);
  for (const double squared : {0.01, 0.5, 4.0}) {
    const double step = 1e-6;
    const double numeric =
        (Matern52(squared + step) - Matern52(squared - step)) / (2 * step);
    EXPECT_NEAR(Matern52Slope(squared), -2 * numeric, 1e-6);
  }
}

TEST(GaussianProcessTest, AppendingAfterTruncatingGivesTheSameBitsAsAnew) {
  Random random(3);
  std::vector<std::vector<float>> points;
  for (int i = 0; i < 60; ++i) {
    points.push_back({static_cast<float>(random.Unit())});
  }
  const KernelParameters parameters = Parameters(0.3, 1, 0.01);
  GaussianProcess grown(parameters, kOneGroup);
  for (int i = 0; i < 40; ++i) grown.Append(points[i]);
  grown.Append(std::vector<float>{0.5F});  // a pending one
  grown.Truncate(40);
  for (int i = 40; i < 60; ++i) grown.Append(points[i]);
  GaussianProcess anew(parameters, kOneGroup);
  for (const auto& point : points) anew.Append(point);
  for (size_t i = 0; i < points.size(); ++i) {
    const auto a = grown.FactorRow(i);
    const auto b = anew.FactorRow(i);
    EXPECT_EQ(std::vector<double>(a.begin(), a.end()),
              std::vector<double>(b.begin(), b.end()));
  }
  // And L L' is the covariance.
  double sum = 0;
  for (size_t j = 0; j <= 20; ++j) {
    sum += anew.FactorRow(50)[j] * anew.FactorRow(20)[j];
  }
  EXPECT_NEAR(sum, anew.kernel().Between(points[50], points[20]), 1e-9);
}

TEST(CandidatePosteriorTest, AgreesWithThePointByPointPrediction) {
  Random random(5);
  const std::vector<size_t> group_of = {0, 1, 1};
  GaussianProcess process({{-0.5, 0.3}, 0.2, -4}, group_of);
  std::vector<double> targets;
  const auto draw = [&] {
    return std::vector<float>{static_cast<float>(random.Unit()),
                              static_cast<float>(random.Unit()),
                              static_cast<float>(random.Unit())};
  };
  Points candidates(3, 1500);
  for (Eigen::Index j = 0; j < candidates.cols(); ++j) {
    const auto point = draw();
    for (Eigen::Index c = 0; c < 3; ++c) {
      candidates(c, j) = point[static_cast<size_t>(c)];
    }
  }
  CandidatePosterior posterior;
  posterior.Reset(candidates);
  for (int i = 0; i < 50; ++i) {
    process.Append(draw());
    targets.push_back(random.Unit());
    process.SetTargets(targets, 0.5);
    if (i % 7 == 0) posterior.Update(process);
  }
  posterior.Update(process);
  for (const Eigen::Index j : {0, 511, 512, 1499}) {
    const std::vector<float> point = {candidates(0, j), candidates(1, j),
                                      candidates(2, j)};
    const auto expected = process.Predict(point);
    EXPECT_NEAR(posterior.mean()(j), expected.mean, 2e-3);
    EXPECT_NEAR(posterior.variance()(j), expected.variance, 2e-3);
  }
}

TEST(KernelFitTest, TheGradientIsTheDerivative) {
  const std::vector<size_t> group_of = {0, 1, 1};
  const FitData data = RandomData(20, 1, group_of);
  KernelParameters at{{-0.7, 0.4}, 0.3, -3};
  std::vector<double> gradient;
  LogPosterior(data, at, {}, &gradient);
  ASSERT_EQ(gradient.size(), 4u);
  const double step = 1e-5;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const auto moved = [&](double by) {
      KernelParameters there = at;
      double& x = i < 2    ? there.log_lengths[i]
                  : i == 2 ? there.log_signal_variance
                           : there.log_noise_variance;
      x += by;
      return LogPosterior(data, there, {}, nullptr);
    };
    EXPECT_NEAR(gradient[i], (moved(step) - moved(-step)) / (2 * step), 1e-4);
  }
}

TEST(KernelFitTest, FindsWhichCoordinatesMatter) {
  const std::vector<size_t> group_of = {0, 1, 1};
  const FitData data = RandomData(60, 2, group_of);
  const KernelParameters start = PriorMean(2, {});
  const KernelParameters fitted = FitKernel(data, start, {}, 60);
  EXPECT_GT(LogPosterior(data, fitted, {}, nullptr),
            LogPosterior(data, start, {}, nullptr) + 5);
  EXPECT_LT(fitted.log_lengths[0] + 0.7, fitted.log_lengths[1]);
}

}  // namespace
}  // namespace reprise::bayesopt
