// Prices a European call option by Monte Carlo. Every thread follows a number
// of paths; the random numbers are a hash of the path's number, so each path is
// the same whoever computes it. The threads' sums of payoffs are added up on
// the host.
// --size: number of paths.
#include "../common/app.h"

// The finalizer of SplitMix64: 64 random bits for a counter.
__host__ __device__ inline unsigned long long RandomBits(
    unsigned long long seed, unsigned long long counter) {
  unsigned long long x = seed + (counter + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// 24 bits as a number in (0, 1], exact in float.
__host__ __device__ inline float ToUnit(unsigned int bits) {
  return ((bits >> 8) + 1) * 0x1p-24f;
}

// A path's payoff is a difference of values near 100, which a compiler may
// round once or twice (fma).
__global__ void MonteCarloKernel(REPRISE_TOLERANCE(1e-5) float* payoff_sums,
                                 long long paths, int paths_per_thread,
                                 unsigned long long seed, float spot,
                                 float strike, float rate, float volatility,
                                 float years) {
  long long thread = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  long long first = thread * paths_per_thread;
  if (first >= paths) {
    return;
  }
  float sum = 0.0f;
  for (int i = 0; i < paths_per_thread && first + i < paths; ++i) {
    unsigned long long bits = RandomBits(seed, first + i);
    float u1 = ToUnit((unsigned int)(bits >> 32));
    float u2 = ToUnit((unsigned int)bits);
    float normal = sqrtf(-2.0f * logf(u1)) * cosf(6.2831853f * u2);
    float drift = (rate - 0.5f * volatility * volatility) * years;
    float price = spot * expf(drift + volatility * sqrtf(years) * normal);
    sum += fmaxf(price - strike, 0.0f);
  }
  payoff_sums[thread] = sum;
}

constexpr int kBlock = 256;
constexpr unsigned long long kSeed = 20261129;
constexpr float kSpot = 100.0f;
constexpr float kStrike = 105.0f;
constexpr float kRate = 0.03f;
constexpr float kVolatility = 0.25f;
constexpr float kYears = 1.5f;
// The rounding of 2 pi u2 moves a normal number by up to 3e-6, hence a price of
// a few hundred by up to 3e-4 and mostly by a tenth of that; adding up a
// thread's payoffs is right to about 1e-6.
constexpr double kAbsolutePerPath = 1e-4;
constexpr double kRelative = 1e-5;

double ExpectedSum(long long paths, int paths_per_thread, long long thread) {
  const double volatility = kVolatility;
  const double drift = (kRate - 0.5 * volatility * volatility) * kYears;
  const long long first = thread * paths_per_thread;
  double sum = 0;
  for (long long p = first; p < std::min(first + paths_per_thread, paths);
       ++p) {
    const unsigned long long bits = RandomBits(kSeed, p);
    const double u1 = ToUnit(static_cast<unsigned int>(bits >> 32));
    const double u2 = ToUnit(static_cast<unsigned int>(bits));
    const double normal =
        std::sqrt(-2 * std::log(u1)) * std::cos(2 * M_PI * u2);
    const double price =
        kSpot * std::exp(drift + volatility * std::sqrt(kYears) * normal);
    sum += std::max(price - kStrike, 0.0);
  }
  return sum;
}

double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// Black and Scholes' undiscounted mean payoff, and the payoff's deviation.
void ClosedForm(double* mean, double* deviation) {
  const double root = kVolatility * std::sqrt(kYears);
  const double forward = kSpot * std::exp(kRate * kYears);
  const double d = std::log(forward / kStrike) / root - root / 2;
  *mean = forward * NormalCdf(d + root) - kStrike * NormalCdf(d);
  const double square =
      forward * forward * std::exp(root * root) * NormalCdf(d + 2 * root) -
      2.0 * kStrike * forward * NormalCdf(d + root) +
      static_cast<double>(kStrike) * kStrike * NormalCdf(d);
  *deviation = std::sqrt(square - *mean * *mean);
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "monte_carlo",
      {int64_t{1} << 28, 100003, int64_t{1} << 34, "number of paths"});
  const long long paths = options.size;
  const int paths_per_thread = options.small ? 16 : 256;
  const int threads = apps::BlocksFor(paths, paths_per_thread);
  apps::DeviceArray<float> device_sums(threads);

  apps::RunIterations(options, [&] {
    MonteCarloKernel<<<apps::BlocksFor(threads, kBlock), kBlock>>>(
        device_sums.get(), paths, paths_per_thread, kSeed, kSpot, kStrike,
        kRate, kVolatility, kYears);
  });

  const std::vector<float> sums = device_sums.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, sums.size(), 4096);
  for (size_t i = 0; i < sums.size(); i += stride) {
    checker.Expect("payoff_sums", i, sums[i],
                   ExpectedSum(paths, paths_per_thread, i),
                   {kAbsolutePerPath * paths_per_thread, kRelative});
  }
  // The estimate is within five standard errors of the exact price.
  double total = 0;
  for (float sum : sums) total += sum;
  double mean = 0;
  double deviation = 0;
  ClosedForm(&mean, &deviation);
  checker.Expect("mean payoff", 0, total / paths, mean,
                 {5 * deviation / std::sqrt(paths), 0});
  return checker.Finish();
}
