// Dynamic shared memory whose size each launch chooses: a bitonic sort of
// chunks (keys and payloads carved out of one array, up to 64 KiB, beyond the
// default limit) and a histogram with a varying number of bins.
// --size: number of keys, rounded up to whole chunks of 8192.
#include "../common/app.h"

constexpr int kLargestChunk = 8192;
constexpr int kLargestSortBlock = 512;
constexpr int kCountBlock = 256;
constexpr int kCountBlocks = 264;

__device__ inline bool Before(unsigned int key_a, int payload_a,
                              unsigned int key_b, int payload_b) {
  return key_a < key_b || (key_a == key_b && payload_a < payload_b);
}

// Sorts each chunk by (key, payload). `chunk` is a power of two; shared memory:
// chunk * (sizeof(unsigned int) + sizeof(int)). One block per chunk.
__global__ void SortChunksKernel(unsigned int* keys, int* payloads, int chunk) {
  extern __shared__ unsigned int shared_words[];
  unsigned int* shared_keys = shared_words;
  int* shared_payloads = reinterpret_cast<int*>(shared_words + chunk);
  size_t first = static_cast<size_t>(blockIdx.x) * chunk;
  for (int i = threadIdx.x; i < chunk; i += blockDim.x) {
    shared_keys[i] = keys[first + i];
    shared_payloads[i] = payloads[first + i];
  }
  for (int width = 2; width <= chunk; width *= 2) {
    for (int distance = width / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < chunk; i += blockDim.x) {
        int j = i ^ distance;
        if (j < i) continue;
        bool ascending = (i & width) == 0;
        bool in_order = Before(shared_keys[i], shared_payloads[i],
                               shared_keys[j], shared_payloads[j]);
        if (in_order == ascending) continue;
        unsigned int key = shared_keys[i];
        shared_keys[i] = shared_keys[j];
        shared_keys[j] = key;
        int payload = shared_payloads[i];
        shared_payloads[i] = shared_payloads[j];
        shared_payloads[j] = payload;
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < chunk; i += blockDim.x) {
    keys[first + i] = shared_keys[i];
    payloads[first + i] = shared_payloads[i];
  }
}

// Adds the number of keys in each of `bins` equal parts of the key range to
// `histogram`. Shared memory: bins * sizeof(unsigned int).
__global__ void CountKeysKernel(const unsigned int* keys, int count,
                                unsigned int* histogram, int bins) {
  extern __shared__ unsigned int shared_words[];
  for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
    shared_words[bin] = 0;
  }
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += blockDim.x * gridDim.x) {
    unsigned int bin = static_cast<unsigned int>(
        (static_cast<unsigned long long>(keys[i]) * bins) >> 32);
    atomicAdd(&shared_words[bin], 1u);
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
    atomicAdd(&histogram[bin], shared_words[bin]);
  }
}

// Bytes that SortChunksKernel needs for `chunk` keys.
size_t SortBytes(int chunk) {
  return chunk * (sizeof(unsigned int) + sizeof(int));
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "dynamic_shared",
      {int64_t{1} << 24, 8192, int64_t{1} << 28, "number of keys"});
  const int count =
      apps::BlocksFor(options.size, kLargestChunk) * kLargestChunk;
  // Sorting with growing chunks: each launch finds its input partly sorted.
  const std::vector<int> chunks = {256, 2048, kLargestChunk};
  const std::vector<int> bin_counts = {16, 1000, 6000};
  std::vector<unsigned int> keys(count);
  std::vector<int> payloads(count);
  for (int i = 0; i < count; ++i) {
    // Every key occurs several times.
    keys[i] = apps::HashBits(1, i / 4) & 0xfffff000u;
    payloads[i] = count - i;
  }
  apps::DeviceArray<unsigned int> original_keys(keys);
  apps::DeviceArray<int> original_payloads(payloads);
  apps::DeviceArray<unsigned int> device_keys(count);
  apps::DeviceArray<int> device_payloads(count);
  apps::DeviceArray<unsigned int> histogram(bin_counts.back());
  CUDA_CHECK(cudaFuncSetAttribute(SortChunksKernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(SortBytes(kLargestChunk))));

  int bins = 0;
  int iteration = 0;
  apps::RunIterations(
      options,
      [&] {
        for (int chunk : chunks) {
          const int block = std::min(chunk / 2, kLargestSortBlock);
          SortChunksKernel<<<count / chunk, block, SortBytes(chunk)>>>(
              device_keys.get(), device_payloads.get(), chunk);
        }
        CountKeysKernel<<<kCountBlocks, kCountBlock,
                          bins * sizeof(unsigned int)>>>(
            device_keys.get(), count, histogram.get(), bins);
      },
      [&] {
        bins = bin_counts[iteration++ % bin_counts.size()];
        device_keys.CopyFrom(original_keys);
        device_payloads.CopyFrom(original_payloads);
        histogram.Clear();
      });

  std::vector<std::pair<unsigned int, int>> expected(count);
  std::vector<unsigned int> expected_bins(bins, 0);
  for (int i = 0; i < count; ++i) {
    expected[i] = {keys[i], payloads[i]};
    ++expected_bins[(static_cast<uint64_t>(keys[i]) * bins) >> 32];
  }
  for (int first = 0; first < count; first += kLargestChunk) {
    std::sort(expected.begin() + first,
              expected.begin() + first + kLargestChunk);
  }
  const std::vector<unsigned int> got_keys = device_keys.ToHost();
  const std::vector<int> got_payloads = device_payloads.ToHost();
  const std::vector<unsigned int> got_bins = histogram.ToHost();
  apps::Checker checker;
  for (int i = 0; i < count; ++i) {
    checker.Expect("key", i, got_keys[i], expected[i].first, apps::kExact);
    checker.Expect("payload", i, got_payloads[i], expected[i].second,
                   apps::kExact);
  }
  for (int bin = 0; bin < bins; ++bin) {
    checker.Expect("bin", bin, got_bins[bin], expected_bins[bin], apps::kExact);
  }
  return checker.Finish();
}
