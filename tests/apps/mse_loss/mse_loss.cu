// Mean squared error of two arrays. Every block sums its squared differences in
// shared memory, pairing neighbours; a second kernel adds up the block sums.
// --size: number of elements.
#include "../common/app.h"

constexpr int kBlock = 256;
constexpr int kFinalBlock = 1024;

__global__ void SquaredErrorKernel(const float* predictions,
                                   const float* targets, float* block_sums,
                                   int count) {
  __shared__ float scratch[kBlock];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float difference = i < count ? predictions[i] - targets[i] : 0.0f;
  scratch[threadIdx.x] = difference * difference;
  __syncthreads();
  for (int stride = 1; stride < blockDim.x; stride *= 2) {
    if (threadIdx.x % (2 * stride) == 0 && threadIdx.x + stride < blockDim.x) {
      scratch[threadIdx.x] += scratch[threadIdx.x + stride];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    block_sums[blockIdx.x] = scratch[0];
  }
}

// One block.
__global__ void MeanKernel(const float* block_sums, float* loss, int blocks,
                           int count) {
  __shared__ float scratch[kFinalBlock];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < blocks; i += blockDim.x) {
    sum += block_sums[i];
  }
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int stride = 1; stride < blockDim.x; stride *= 2) {
    if (threadIdx.x % (2 * stride) == 0 && threadIdx.x + stride < blockDim.x) {
      scratch[threadIdx.x] += scratch[threadIdx.x + stride];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    *loss = scratch[0] / count;
  }
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "mse_loss",
      {int64_t{1} << 26, 10007, int64_t{1} << 30, "number of elements"});
  const int count = static_cast<int>(options.size);
  const int blocks = apps::BlocksFor(count, kBlock);

  const std::vector<float> predictions =
      apps::RandomFloats(count, 18, -1.0f, 1.0f);
  const std::vector<float> targets = apps::RandomFloats(count, 19, -1.0f, 1.0f);
  apps::DeviceArray<float> device_predictions(predictions);
  apps::DeviceArray<float> device_targets(targets);
  apps::DeviceArray<float> block_sums(blocks);
  apps::DeviceArray<float> device_loss(1);

  apps::RunIterations(options, [&] {
    SquaredErrorKernel<<<blocks, kBlock>>>(device_predictions.get(),
                                           device_targets.get(),
                                           block_sums.get(), count);
    MeanKernel<<<1, kFinalBlock>>>(block_sums.get(), device_loss.get(), blocks,
                                   count);
  });

  // Every element passes through at most 8 + blocks / 1024 + 10 additions of
  // positive numbers, each rounding by at most 2^-24; the difference (squared),
  // the square, the count and the quotient round five times more.
  const int chain = 23 + apps::BlocksFor(blocks, kFinalBlock);
  double expected = 0;
  for (int i = 0; i < count; ++i) {
    const double difference = static_cast<double>(predictions[i]) - targets[i];
    expected += difference * difference;
  }
  expected /= count;
  apps::Checker checker;
  checker.Expect("loss", 0, device_loss.ToHost()[0], expected,
                 {0, chain * 0x1p-24});
  return checker.Finish();
}
