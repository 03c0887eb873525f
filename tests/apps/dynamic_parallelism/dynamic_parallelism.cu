// Dynamic parallelism: a kernel launches a grid for every ragged row of a
// matrix, and one more that runs after all of them. A recorder that cannot
// replay launches made on the device must say so of the first kernel and still
// record the last one. Results are exact. --size: number of rows.
#include "../common/app.h"

constexpr int kBlock = 64;

// values[first .. first + length) *= factor, modulo 2^32.
__global__ void ScaleRowKernel(unsigned int* values, int length,
                               unsigned int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < length) values[i] *= factor;
}

// *sum = all values, modulo 2^64. Launched on the device.
__global__ void SumAfterKernel(const unsigned int* values, int count,
                               unsigned long long* sum) {
  __shared__ unsigned long long partial[kBlock];
  unsigned long long own = 0;
  for (int i = threadIdx.x; i < count; i += kBlock) own += values[i];
  partial[threadIdx.x] = own;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int t = 1; t < kBlock; ++t) own += partial[t];
  *sum = own;
}

// Row r is values[starts[r] .. starts[r + 1]) and is multiplied by 2 r + 3.
// *failed counts launches that did not succeed.
__global__ void LaunchRowsKernel(unsigned int* values, const int* starts,
                                 int rows, unsigned long long* sum,
                                 int* failed) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const int length = starts[row + 1] - starts[row];
  if (length > 0) {
    ScaleRowKernel<<<(length + kBlock - 1) / kBlock, kBlock, 0,
                     cudaStreamFireAndForget>>>(values + starts[row], length,
                                                2u * row + 3u);
    if (cudaGetLastError() != cudaSuccess) atomicAdd(failed, 1);
  }
  if (row != 0) return;
  SumAfterKernel<<<1, kBlock, 0, cudaStreamTailLaunch>>>(values, starts[rows],
                                                         sum);
  if (cudaGetLastError() != cudaSuccess) atomicAdd(failed, 1);
}

// values[i] += i, modulo 2^32. Launched by the host.
__global__ void AddIndexKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += static_cast<unsigned int>(i);
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "dynamic_parallelism", {1000, 50, 2000, "number of rows"});
  const int rows = static_cast<int>(options.size);
  std::vector<int> starts(rows + 1);
  for (int r = 0; r < rows; ++r) {
    starts[r + 1] = starts[r] + static_cast<int>(apps::HashBits(1, r) % 400);
  }
  const int count = starts[rows];
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(2, i);
  apps::DeviceArray<int> device_starts(starts), failed(1);
  apps::DeviceArray<unsigned int> device_values(values);
  apps::DeviceArray<unsigned long long> sum(1);
  failed.Clear();

  apps::RunIterations(options, [&] {
    LaunchRowsKernel<<<apps::BlocksFor(rows, kBlock), kBlock>>>(
        device_values.get(), device_starts.get(), rows, sum.get(),
        failed.get());
    AddIndexKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(
        device_values.get(), count);
  });

  unsigned long long expected_sum = 0;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    expected_sum = 0;
    for (int r = 0; r < rows; ++r) {
      for (int i = starts[r]; i < starts[r + 1]; ++i) {
        values[i] *= 2u * r + 3u;
        expected_sum += values[i];
        values[i] += static_cast<unsigned int>(i);
      }
    }
  }
  apps::Checker checker;
  checker.Expect("failed launches", 0, failed.ToHost()[0], 0, apps::kExact);
  checker.Expect("sum", 0, static_cast<double>(sum.ToHost()[0]),
                 static_cast<double>(expected_sum), apps::kExact);
  const std::vector<unsigned int> got = device_values.ToHost();
  for (int i = 0; i < count; ++i) {
    checker.Expect("value", i, got[i], values[i], apps::kExact);
  }
  return checker.Finish();
}
