// Blocks with far more dynamic shared memory than the 48 KiB that need no
// permission: 160 KiB, beside some static shared memory. Results are exact.
// --size: number of segments, one block each.
#include "../common/app.h"

constexpr int kBlock = 512;
constexpr int kSegment = 40960;  // elements: 160 KiB
constexpr int kSharedBytes = kSegment * static_cast<int>(sizeof(int));
constexpr int kStride = 10007;  // shares no factor with kSegment

// Permutes each segment: output[i] = input[i * kStride mod kSegment], and
// writes the largest element of it. The whole segment goes through shared
// memory, which makes the permutation possible in place.
__global__ void PermuteSegmentsKernel(int* values, int* largest) {
  extern __shared__ int segment[];
  __shared__ int partial[kBlock];
  int* own = values + static_cast<size_t>(blockIdx.x) * kSegment;
  int best = own[threadIdx.x];
  for (int i = threadIdx.x; i < kSegment; i += kBlock) {
    segment[i] = own[i];
    best = max(best, own[i]);
  }
  partial[threadIdx.x] = best;
  __syncthreads();
  for (int i = threadIdx.x; i < kSegment; i += kBlock) {
    own[i] = segment[static_cast<long long>(i) * kStride % kSegment];
  }
  if (threadIdx.x != 0) return;
  for (int t = 1; t < kBlock; ++t) best = max(best, partial[t]);
  largest[blockIdx.x] = best;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "large_shared", {512, 3, 16384, "number of segments"});
  const int segments = static_cast<int>(options.size);
  int device = 0, allowed = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(
      &allowed, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  if (allowed < kSharedBytes + kBlock * static_cast<int>(sizeof(int))) {
    std::printf("large_shared: FAIL the device gives a block %d bytes only\n",
                allowed);
    return 1;
  }
  CUDA_CHECK(cudaFuncSetAttribute(PermuteSegmentsKernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kSharedBytes));

  std::vector<int> values =
      apps::RandomInts(static_cast<size_t>(segments) * kSegment, 1, 1 << 30);
  apps::DeviceArray<int> device_values(values), largest(segments);
  apps::RunIterations(options, [&] {
    PermuteSegmentsKernel<<<segments, kBlock, kSharedBytes>>>(
        device_values.get(), largest.get());
  });

  // Every iteration multiplies the position by kStride.
  int64_t stride = 1;
  for (int i = 0; i < options.iterations; ++i) {
    stride = stride * kStride % kSegment;
  }
  apps::Checker checker;
  const std::vector<int> got = device_values.ToHost();
  const std::vector<int> got_largest = largest.ToHost();
  const size_t step = apps::CheckStride(options, got.size(), 1 << 20);
  for (size_t i = 0; i < got.size(); i += step) {
    const size_t first = i / kSegment * kSegment;
    checker.Expect("value", i, got[i],
                   values[first + (i % kSegment) * stride % kSegment],
                   apps::kExact);
  }
  for (int s = 0; s < segments; ++s) {
    const auto first = values.begin() + static_cast<size_t>(s) * kSegment;
    checker.Expect("largest", s, got_largest[s],
                   *std::max_element(first, first + kSegment), apps::kExact);
  }
  return checker.Finish();
}
