// Layer normalization of every row: (x - mean) / sqrt(variance + epsilon) *
// gamma + beta. One block per row; mean and variance are summed in shared
// memory.
// --size: number of rows.
#include "../common/app.h"

constexpr int kBlock = 256;

// The sum of `value` over the block, returned to every thread. The block size
// is a power of two, at most kBlock.
__device__ float BlockSum(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
  }
  float total = scratch[0];
  __syncthreads();  // before scratch is used again
  return total;
}

__global__ void LayerNormKernel(const float* input, const float* gamma,
                                const float* beta,
                                REPRISE_TOLERANCE(1e-5) float* output,
                                int columns, float epsilon) {
  __shared__ float scratch[kBlock];
  const float* row = input + blockIdx.x * columns;

  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    sum += row[i];
  }
  float mean = BlockSum(sum, scratch) / columns;

  float squares = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    squares += (row[i] - mean) * (row[i] - mean);
  }
  float variance = BlockSum(squares, scratch) / columns;

  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    float normalized = (row[i] - mean) / sqrtf(variance + epsilon);
    output[blockIdx.x * columns + i] = normalized * gamma[i] + beta[i];
  }
}

// Sums of a few dozen roundings per thread and eight in the tree keep mean and
// variance right to about 1e-6, and results lie within about +-5.
constexpr apps::Tolerance kTolerance{1e-5, 1e-5};
constexpr float kEpsilon = 1e-5f;

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "layer_norm", {16384, 37, 1 << 18, "number of rows"});
  const int rows = static_cast<int>(options.size);
  const int columns = options.small ? 1000 : 4096;

  // Rows of different spread; in the narrowest ones epsilon counts.
  std::vector<float> input =
      apps::RandomFloats(static_cast<size_t>(rows) * columns, 9, -1.0f, 3.0f);
  for (size_t i = 0; i < input.size(); ++i) input[i] /= 1 << (i / columns % 8);
  const std::vector<float> gamma = apps::RandomFloats(columns, 10, 0.5f, 2.0f);
  const std::vector<float> beta = apps::RandomFloats(columns, 11, -1.0f, 1.0f);
  apps::DeviceArray<float> device_input(input);
  apps::DeviceArray<float> device_gamma(gamma);
  apps::DeviceArray<float> device_beta(beta);
  apps::DeviceArray<float> device_output(input.size());

  apps::RunIterations(options, [&] {
    LayerNormKernel<<<rows, kBlock>>>(device_input.get(), device_gamma.get(),
                                      device_beta.get(), device_output.get(),
                                      columns, kEpsilon);
  });

  const std::vector<float> output = device_output.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, rows, 512);
  for (size_t row = 0; row < static_cast<size_t>(rows); row += stride) {
    const float* x = input.data() + row * columns;
    double mean = 0;
    for (int i = 0; i < columns; ++i) mean += x[i];
    mean /= columns;
    double variance = 0;
    for (int i = 0; i < columns; ++i) variance += (x[i] - mean) * (x[i] - mean);
    variance /= columns;
    for (int i = 0; i < columns; ++i) {
      const double expected =
          (x[i] - mean) / std::sqrt(variance + kEpsilon) * gamma[i] + beta[i];
      const size_t at = row * columns + i;
      checker.Expect("output", at, output[at], expected, kTolerance);
    }
  }
  return checker.Finish();
}
