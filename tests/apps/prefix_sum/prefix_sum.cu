// Inclusive prefix sum of integers. Every block scans its part in shared memory
// and leaves its total; the totals are scanned the same way, level by level,
// and added back.
// --size: number of elements.
#include <iterator>
#include <list>

#include "../common/app.h"

constexpr int kBlock = 256;

// The block size is at most kBlock. Input and output may be the same array.
__global__ void ScanBlocksKernel(const int* input, int* output, int* totals,
                                 int count) {
  __shared__ int scratch[kBlock];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  scratch[threadIdx.x] = i < count ? input[i] : 0;
  __syncthreads();
  for (int offset = 1; offset < blockDim.x; offset *= 2) {
    int left = threadIdx.x >= offset ? scratch[threadIdx.x - offset] : 0;
    __syncthreads();
    scratch[threadIdx.x] += left;
    __syncthreads();
  }
  if (i < count) {
    output[i] = scratch[threadIdx.x];
  }
  if (threadIdx.x == blockDim.x - 1) {
    totals[blockIdx.x] = scratch[threadIdx.x];
  }
}

// Adds to every block but the first the scanned total of the one before it.
__global__ void AddTotalsKernel(int* data, const int* totals, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0 && i < count) {
    data[i] += totals[blockIdx.x - 1];
  }
}

using Levels = std::list<apps::DeviceArray<int>>;

// Scans `count` elements; `totals` holds this level's array of block totals,
// then the next level's, and so on.
void Scan(const int* input, int* output, int count, Levels::iterator totals) {
  const int blocks = apps::BlocksFor(count, kBlock);
  int* const block_totals = totals->get();
  ScanBlocksKernel<<<blocks, kBlock>>>(input, output, block_totals, count);
  CUDA_CHECK(cudaGetLastError());
  if (blocks == 1) return;
  Scan(block_totals, block_totals, blocks, std::next(totals));
  AddTotalsKernel<<<blocks, kBlock>>>(output, block_totals, count);
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "prefix_sum",
      {int64_t{1} << 26, 10007, int64_t{1} << 27, "number of elements"});
  const int count = static_cast<int>(options.size);

  // Values from 0 to 9: the largest array sums to less than 2^31.
  const std::vector<int> input = apps::RandomInts(count, 23, 10);
  apps::DeviceArray<int> device_input(input);
  apps::DeviceArray<int> device_output(count);
  Levels levels;
  for (int left = count; levels.empty() || left > 1;) {
    left = apps::BlocksFor(left, kBlock);
    levels.emplace_back(static_cast<size_t>(left));
  }

  apps::RunIterations(options, [&] {
    Scan(device_input.get(), device_output.get(), count, levels.begin());
  });

  const std::vector<int> output = device_output.ToHost();
  apps::Checker checker;
  int expected = 0;
  for (size_t i = 0; i < output.size(); ++i) {
    expected += input[i];
    checker.Expect("output", i, output[i], expected, apps::kExact);
  }
  return checker.Finish();
}
