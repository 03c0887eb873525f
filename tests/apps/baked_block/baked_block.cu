// Kernels that are right for one block size only: shared tiles sized by a
// compile-time block size, launch bounds, and indices that use the constant in
// place of blockDim. A tuner must not change their block.
// --size: number of samples.
#include "../common/app.h"

constexpr int kBlock = 128;
constexpr int kRadius = 32;
constexpr int kTaps = 2 * kRadius + 1;

// output[i] = sum of weights[k] * input[i + k - kRadius]; samples outside are
// 0.
__global__ void __launch_bounds__(kBlock)
    FilterKernel(const float* input, const float* weights,
                 REPRISE_TOLERANCE(1e-5) float* output, int count) {
  __shared__ float tile[kBlock + 2 * kRadius];
  __shared__ float taps[kTaps];
  int first = blockIdx.x * kBlock;
  for (int t = threadIdx.x; t < kBlock + 2 * kRadius; t += kBlock) {
    int sample = first + t - kRadius;
    tile[t] = sample >= 0 && sample < count ? input[sample] : 0.0f;
  }
  if (threadIdx.x < kTaps) taps[threadIdx.x] = weights[threadIdx.x];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < kTaps; ++k) sum += taps[k] * tile[threadIdx.x + k];
  int i = first + threadIdx.x;
  if (i < count) output[i] = sum;
}

// energies[b] = sum of the squares of the b-th run of kBlock samples, by a tree
// that starts at half the block.
__global__ void __launch_bounds__(kBlock)
    EnergyKernel(const float* samples, REPRISE_TOLERANCE(1e-5) float* energies,
                 int count) {
  __shared__ float partial[kBlock];
  int i = blockIdx.x * kBlock + threadIdx.x;
  float sample = i < count ? samples[i] : 0.0f;
  partial[threadIdx.x] = sample * sample;
#pragma unroll
  for (int half = kBlock / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      partial[threadIdx.x] += partial[threadIdx.x + half];
    }
  }
  if (threadIdx.x == 0) energies[blockIdx.x] = partial[0];
}

// 65 products below 1 / 16 each, and sums of 128 squares.
constexpr apps::Tolerance kFilterTolerance{1e-5, 0};
constexpr apps::Tolerance kEnergyTolerance{1e-6, 1e-5};

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "baked_block",
      {int64_t{1} << 26, 10007, int64_t{1} << 29, "number of samples"});
  const int count = static_cast<int>(options.size);
  const int blocks = apps::BlocksFor(count, kBlock);
  const std::vector<float> input = apps::RandomFloats(count, 1, -1.0f, 1.0f);
  const std::vector<float> weights =
      apps::RandomFloats(kTaps, 2, -0.0625f, 0.0625f);
  apps::DeviceArray<float> device_input(input);
  apps::DeviceArray<float> device_weights(weights);
  apps::DeviceArray<float> device_output(count);
  apps::DeviceArray<float> device_energies(blocks);

  apps::RunIterations(options, [&] {
    FilterKernel<<<blocks, kBlock>>>(device_input.get(), device_weights.get(),
                                     device_output.get(), count);
    EnergyKernel<<<blocks, kBlock>>>(device_output.get(), device_energies.get(),
                                     count);
  });

  const std::vector<float> output = device_output.ToHost();
  const std::vector<float> energies = device_energies.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, output.size(), 1 << 20);
  for (size_t i = 0; i < output.size(); i += stride) {
    double expected = 0;
    for (int k = 0; k < kTaps; ++k) {
      const int64_t sample = static_cast<int64_t>(i) + k - kRadius;
      if (sample < 0 || sample >= count) continue;
      expected += static_cast<double>(weights[k]) * input[sample];
    }
    checker.Expect("output", i, output[i], expected, kFilterTolerance);
  }
  for (int b = 0; b < blocks; ++b) {
    double expected = 0;
    for (int i = b * kBlock; i < std::min((b + 1) * kBlock, count); ++i) {
      expected += static_cast<double>(output[i]) * output[i];
    }
    checker.Expect("energy", b, energies[b], expected, kEnergyTolerance);
  }
  return checker.Finish();
}
