// Kepler's equation in double precision, solved by Newton's method, and sums of
// the results gathered with double atomicAdd.
// --size: number of orbits.
#include "../common/app.h"

constexpr int kBlock = 256;
constexpr int kBins = 4096;
constexpr int kNewtonSteps = 8;

// Solves E - e sin(E) = M for the eccentric anomaly E.
__global__ void SolveKeplerKernel(const double* mean_anomaly,
                                  const double* eccentricity,
                                  REPRISE_TOLERANCE(1e-13) double* anomaly,
                                  int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  double m = mean_anomaly[i];
  double e = eccentricity[i];
  double estimate = m + e * sin(m);
  for (int step = 0; step < kNewtonSteps; ++step) {
    double error = estimate - e * sin(estimate) - m;
    estimate -= error / (1.0 - e * cos(estimate));
  }
  anomaly[i] = estimate;
}

// Adds every orbit's radius, 1 - e cos(E), to its bin.
__global__ void SumRadiiKernel(const double* anomaly,
                               const double* eccentricity,
                               REPRISE_TOLERANCE(1e-12) double* bins,
                               int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  double radius = 1.0 - eccentricity[i] * cos(anomaly[i]);
  atomicAdd(&bins[i % kBins], radius);
}

// A relative error of a few 1e-16 in sin and cos, divided by 1 - e >= 0.1.
constexpr apps::Tolerance kAnomalyTolerance{2e-14, 2e-14};
// One rounding for each of up to some thousand additions.
constexpr apps::Tolerance kBinTolerance{0, 1e-12};

double SolveKepler(double m, double e) {
  double estimate = m + e * std::sin(m);
  for (int step = 0; step < kNewtonSteps; ++step) {
    const double error = estimate - e * std::sin(estimate) - m;
    estimate -= error / (1.0 - e * std::cos(estimate));
  }
  return estimate;
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "double_precision",
                         {1 << 23, 5003, 1 << 28, "number of orbits"});
  const int count = static_cast<int>(options.size);
  std::vector<double> mean_anomaly(count);
  std::vector<double> eccentricity(count);
  for (int i = 0; i < count; ++i) {
    mean_anomaly[i] = apps::HashBits(1, i) * 0x1p-32 * 6.25;
    eccentricity[i] = apps::HashBits(2, i) * 0x1p-32 * 0.9;
  }
  apps::DeviceArray<double> device_mean_anomaly(mean_anomaly);
  apps::DeviceArray<double> device_eccentricity(eccentricity);
  apps::DeviceArray<double> anomaly(count);
  apps::DeviceArray<double> bins(kBins);

  apps::RunIterations(
      options,
      [&] {
        const int blocks = apps::BlocksFor(count, kBlock);
        SolveKeplerKernel<<<blocks, kBlock>>>(device_mean_anomaly.get(),
                                              device_eccentricity.get(),
                                              anomaly.get(), count);
        SumRadiiKernel<<<blocks, kBlock>>>(
            anomaly.get(), device_eccentricity.get(), bins.get(), count);
      },
      [&] { bins.Clear(); });

  const std::vector<double> got_anomaly = anomaly.ToHost();
  const std::vector<double> got_bins = bins.ToHost();
  std::vector<double> expected_bins(kBins, 0);
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, got_anomaly.size(), 1 << 18);
  for (size_t i = 0; i < got_anomaly.size(); ++i) {
    expected_bins[i % kBins] +=
        1.0 - eccentricity[i] * std::cos(got_anomaly[i]);
    if (i % stride != 0) continue;
    checker.Expect("anomaly", i, got_anomaly[i],
                   SolveKepler(mean_anomaly[i], eccentricity[i]),
                   kAnomalyTolerance);
  }
  for (int b = 0; b < kBins; ++b) {
    checker.Expect("bin", b, got_bins[b], expected_bins[b], kBinTolerance);
  }
  return checker.Finish();
}
