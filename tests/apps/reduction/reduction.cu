// Sum of an array. One kernel leaves one sum per block and is launched again
// over these sums until a single one is left.
// --size: number of elements.
#include "../common/app.h"

constexpr int kBlock = 256;

// The block size is a power of two, at most kBlock.
__global__ void ReduceKernel(const float* input, float* block_sums, int count) {
  __shared__ float scratch[kBlock];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  scratch[threadIdx.x] = i < count ? input[i] : 0.0f;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    block_sums[blockIdx.x] = scratch[0];
  }
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "reduction",
      {int64_t{1} << 27, 10007, int64_t{1} << 30, "number of elements"});
  const int count = static_cast<int>(options.size);

  const std::vector<float> input = apps::RandomFloats(count, 20, -1.0f, 1.0f);
  apps::DeviceArray<float> device_input(input);
  // The levels of sums are written by turns to these two.
  const int blocks = apps::BlocksFor(count, kBlock);
  apps::DeviceArray<float> odd_sums(blocks);
  apps::DeviceArray<float> even_sums(apps::BlocksFor(blocks, kBlock));
  float* result = nullptr;

  apps::RunIterations(options, [&] {
    const float* from = device_input.get();
    float* to = odd_sums.get();
    float* next = even_sums.get();
    int left = count;
    do {
      const int sums = apps::BlocksFor(left, kBlock);
      ReduceKernel<<<sums, kBlock>>>(from, to, left);
      left = sums;
      result = to;
      from = to;
      std::swap(to, next);
    } while (left > 1);
  });

  float sum = 0;
  CUDA_CHECK(cudaMemcpy(&sum, result, sizeof(sum), cudaMemcpyDeviceToHost));
  double expected = 0;
  for (float value : input) expected += value;
  // Terms have random signs: every level of the tree adds count * 2^-48 / 9 to
  // the variance of the error, so 30 levels end near 1.1e-7 * sqrt(count).
  // Allow ten times that; one forgotten element is 0.5 on average.
  const double absolute = 1.1e-6 * std::sqrt(count);
  apps::Checker checker;
  checker.Expect("sum", 0, sum, expected, {absolute, 0});
  return checker.Finish();
}
