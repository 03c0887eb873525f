// Grids sized by what the device holds: by the occupancy of a block size and
// the number of multiprocessors, and by the block size that the runtime
// suggests. Grid-stride loops make the results independent of both; they are
// exact. --size: number of values.
#include "../common/app.h"

constexpr int kBlock = 192;

// values[i] = 3 values[i] + i, modulo 2^32.
__global__ void AdvanceStridedKernel(unsigned int* values, int count) {
  const int threads = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
    values[i] = values[i] * 3u + static_cast<unsigned int>(i);
  }
}

// *sum += all values, modulo 2^64; one atomic per thread.
__global__ void SumStridedKernel(const unsigned int* values, int count,
                                 unsigned long long* sum) {
  const int threads = static_cast<int>(gridDim.x * blockDim.x);
  unsigned long long own = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
    own += values[i];
  }
  if (own != 0) atomicAdd(sum, own);
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "occupancy_grid",
                         {1 << 24, 100003, 1 << 29, "number of values"});
  const int count = static_cast<int>(options.size);
  int device = 0, processors = 0, resident = 0, grid = 0, block = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                    device));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &resident, AdvanceStridedKernel, kBlock, 0));
  CUDA_CHECK(
      cudaOccupancyMaxPotentialBlockSize(&grid, &block, SumStridedKernel));

  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  apps::DeviceArray<unsigned int> device_values(values);
  apps::DeviceArray<unsigned long long> sum(1);
  sum.Clear();
  apps::RunIterations(options, [&] {
    AdvanceStridedKernel<<<resident * processors, kBlock>>>(device_values.get(),
                                                            count);
    SumStridedKernel<<<grid, block>>>(device_values.get(), count, sum.get());
  });

  unsigned long long expected_sum = 0;
  for (int i = 0; i < count; ++i) {
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      values[i] = values[i] * 3u + static_cast<unsigned int>(i);
      expected_sum += values[i];
    }
  }
  apps::Checker checker;
  const std::vector<unsigned int> got = device_values.ToHost();
  for (int i = 0; i < count; ++i) {
    checker.Expect("value", i, got[i], values[i], apps::kExact);
  }
  checker.Expect("sum", 0, static_cast<double>(sum.ToHost()[0]),
                 static_cast<double>(expected_sum), apps::kExact);
  return checker.Finish();
}
