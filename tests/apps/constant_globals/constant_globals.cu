// A polynomial in constant memory times a gain table in a device global, with a
// histogram of the result in another: `__constant__` scalars, arrays and
// structs, and `__device__` arrays that kernels read, write and count in.
// --size: number of samples.
#include "../common/app.h"

constexpr int kDegree = 7;
constexpr int kTableSize = 1000;
constexpr int kBins = 64;
constexpr int kBlock = 256;

struct Window {
  float low;
  float bins_per_unit;
  int last_bin;
};

__constant__ float polynomial[kDegree + 1];
__constant__ Window window;
__constant__ float damping = 0.5f;  // never set by the host
__device__ float gain_table[kTableSize];
__device__ unsigned int histogram[kBins];
__device__ unsigned long long samples_seen;

__host__ __device__ inline int BinOf(float value, const Window& bounds) {
  const float position = (value - bounds.low) * bounds.bins_per_unit;
  if (position < 0.0f) return 0;
  const int bin = static_cast<int>(position);
  return bin < bounds.last_bin ? bin : bounds.last_bin;
}

__global__ void EvaluateKernel(const float* input,
                               REPRISE_TOLERANCE(1e-5) float* output,
                               int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float value = polynomial[kDegree];
  for (int k = kDegree - 1; k >= 0; --k) {
    value = value * input[i] + polynomial[k];
  }
  value *= gain_table[i % kTableSize];
  output[i] = value;
  atomicAdd(&histogram[BinOf(value, window)], 1u);
  if (threadIdx.x == 0) {
    int rest = count - static_cast<int>(blockIdx.x * blockDim.x);
    int in_block = static_cast<int>(blockDim.x);
    atomicAdd(&samples_seen, static_cast<unsigned long long>(
                                 rest < in_block ? rest : in_block));
  }
}

// Changes the table that the next EvaluateKernel reads.
__global__ void AdvanceTableKernel() {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kTableSize) gain_table[i] = 1.0f - damping * gain_table[i];
}

// The polynomial of one iteration; coefficients below 2 in magnitude.
std::vector<float> Coefficients(int iteration) {
  return apps::RandomFloats(kDegree + 1, 100 + iteration, -2.0f, 2.0f);
}

// |input| < 1, so the rounding errors of Horner's rule stay below
// 2 * degree * ulp of the coefficients' sum (16): about 1.4e-5.
constexpr apps::Tolerance kTolerance{2e-5, 1e-6};

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "constant_globals",
      {int64_t{1} << 23, 10007, int64_t{1} << 29, "number of samples"});
  const int count = static_cast<int>(options.size);
  const std::vector<float> input = apps::RandomFloats(count, 1, -1.0f, 1.0f);
  apps::DeviceArray<float> device_input(input);
  apps::DeviceArray<float> device_output(count);

  const Window bounds{-8.0f, kBins / 16.0f, kBins - 1};
  std::vector<float> table = apps::RandomFloats(kTableSize, 2, 0.0f, 1.0f);
  const unsigned long long none_seen = 0;
  CUDA_CHECK(cudaMemcpyToSymbol(window, &bounds, sizeof(bounds)));
  CUDA_CHECK(cudaMemcpyToSymbol(gain_table, table.data(), sizeof(gain_table)));
  CUDA_CHECK(cudaMemcpyToSymbol(samples_seen, &none_seen, sizeof(none_seen)));
  void* histogram_address = nullptr;
  CUDA_CHECK(cudaGetSymbolAddress(&histogram_address, histogram));

  int iteration = 0;
  apps::RunIterations(
      options,
      [&] {
        EvaluateKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(
            device_input.get(), device_output.get(), count);
        AdvanceTableKernel<<<apps::BlocksFor(kTableSize, kBlock), kBlock>>>();
      },
      [&] {
        // The two halves go in separate copies, the second at an offset.
        const std::vector<float> coefficients = Coefficients(iteration++);
        const size_t half = sizeof(polynomial) / 2;
        CUDA_CHECK(cudaMemcpyToSymbol(polynomial, coefficients.data(), half));
        CUDA_CHECK(cudaMemcpyToSymbol(
            polynomial, coefficients.data() + coefficients.size() / 2, half,
            half));
        CUDA_CHECK(cudaMemset(histogram_address, 0, sizeof(histogram)));
      });

  // The gain table before the last AdvanceTableKernel is what the last
  // EvaluateKernel read.
  std::vector<float> last_table;
  for (int i = 0; i < options.iterations; ++i) {
    last_table = table;
    for (float& gain : table) gain = 1.0f - 0.5f * gain;
  }
  const std::vector<float> coefficients = Coefficients(options.iterations - 1);
  const std::vector<float> output = device_output.ToHost();
  apps::Checker checker;
  std::vector<unsigned int> expected_bins(kBins, 0);
  for (size_t i = 0; i < output.size(); ++i) {
    double expected = coefficients[kDegree];
    for (int k = kDegree - 1; k >= 0; --k) {
      expected = expected * input[i] + coefficients[k];
    }
    checker.Expect("output", i, output[i],
                   expected * last_table[i % kTableSize], kTolerance);
    ++expected_bins[BinOf(output[i], bounds)];
  }

  std::vector<unsigned int> bins(kBins);
  std::vector<float> device_table(kTableSize);
  unsigned long long seen = 0;
  CUDA_CHECK(cudaMemcpyFromSymbol(bins.data(), histogram, sizeof(histogram)));
  CUDA_CHECK(cudaMemcpyFromSymbol(device_table.data(), gain_table,
                                  sizeof(gain_table)));
  CUDA_CHECK(cudaMemcpyFromSymbol(&seen, samples_seen, sizeof(seen)));
  for (int b = 0; b < kBins; ++b) {
    checker.Expect("histogram", b, bins[b], expected_bins[b], apps::kExact);
  }
  for (int i = 0; i < kTableSize; ++i) {
    checker.Expect("gain_table", i, device_table[i], table[i], {1e-6, 0});
  }
  checker.Expect("samples_seen", 0, static_cast<double>(seen),
                 static_cast<double>(count) * options.iterations, apps::kExact);
  return checker.Finish();
}
