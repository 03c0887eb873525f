// Dot product of two arrays. Warps add up by shuffles, blocks in shared memory,
// and the blocks' sums meet in one atomic float, so that the last bits depend
// on the order in which blocks finish.
// --size: number of elements.
#include "../common/app.h"

REPRISE_TOLERANCE(1e-3)
__global__ void DotKernel(const float* x, const float* y, float* result,
                          int count) {
  __shared__ float warp_sums[32];
  float sum = 0.0f;
  int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    sum += x[i] * y[i];
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, offset);
  }
  if (threadIdx.x % 32 == 0) {
    warp_sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float block_sum = 0.0f;
    for (int warp = 0; warp < blockDim.x / 32; ++warp) {
      block_sum += warp_sums[warp];
    }
    atomicAdd(result, block_sum);
  }
}

constexpr int kBlock = 256;
constexpr int kMaxBlocks = 1024;

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "dot",
      {int64_t{1} << 27, 10007, int64_t{1} << 30, "number of elements"});
  const int count = static_cast<int>(options.size);
  const int blocks = std::min(apps::BlocksFor(count, kBlock), kMaxBlocks);

  const std::vector<float> x = apps::RandomFloats(count, 21, -1.0f, 1.0f);
  const std::vector<float> y = apps::RandomFloats(count, 22, -1.0f, 1.0f);
  apps::DeviceArray<float> device_x(x);
  apps::DeviceArray<float> device_y(y);
  apps::DeviceArray<float> device_result(1);

  apps::RunIterations(
      options,
      [&] {
        DotKernel<<<blocks, kBlock>>>(device_x.get(), device_y.get(),
                                      device_result.get(), count);
      },
      [&] { device_result.Clear(); });

  double expected = 0;
  for (int i = 0; i < count; ++i) expected += static_cast<double>(x[i]) * y[i];
  // Products have variance 1/9 and random signs, so every partial sum stays
  // near sqrt(count) / 3 or below. The longest chain is of about 1,500
  // additions, each rounding by at most 2^-24 of that: with random signs below
  // 8e-7 * sqrt(count). Allow five times that; one forgotten product is 0.25 on
  // average.
  const double absolute = 4e-6 * std::sqrt(count);
  apps::Checker checker;
  checker.Expect("result", 0, device_result.ToHost()[0], expected,
                 {absolute, 0});
  return checker.Finish();
}
