// Kernels that read and write the host's memory: cudaHostAlloc'ed and mapped,
// and the program's own memory after cudaHostRegister. The host reads and
// changes both between launches. Results are exact. --size: number of values.
#include "../common/app.h"

constexpr int kBlock = 256;
constexpr size_t kPage = 4096;

// pinned[i] += registered[i], registered[count - 1 - i] is counted in
// device_sums[i % kBlock], all modulo 2^32.
__global__ void AddHostKernel(unsigned int* pinned,
                              const unsigned int* registered, int count,
                              unsigned int* device_sums) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  pinned[i] += registered[i];
  atomicAdd(&device_sums[i % kBlock], registered[count - 1 - i]);
}

// registered[i] = 5 registered[i] + 1.
__global__ void AdvanceHostKernel(unsigned int* registered, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) registered[i] = registered[i] * 5u + 1u;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "mapped_host", {1 << 20, 10007, 1 << 26, "number of values"});
  const int count = static_cast<int>(options.size);
  const size_t bytes = count * sizeof(unsigned int);
  unsigned int* pinned = nullptr;
  CUDA_CHECK(cudaHostAlloc(&pinned, bytes, cudaHostAllocMapped));
  unsigned int* own = static_cast<unsigned int*>(
      std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage));
  CUDA_CHECK(cudaHostRegister(own, bytes, cudaHostRegisterMapped));
  unsigned int *device_pinned = nullptr, *device_own = nullptr;
  CUDA_CHECK(cudaHostGetDevicePointer(&device_pinned, pinned, 0));
  CUDA_CHECK(cudaHostGetDevicePointer(&device_own, own, 0));

  std::vector<unsigned int> sums(count), values(count), device_sums(kBlock);
  for (int i = 0; i < count; ++i) {
    sums[i] = pinned[i] = apps::HashBits(1, i);
    values[i] = own[i] = apps::HashBits(2, i);
  }
  apps::DeviceArray<unsigned int> totals(kBlock);
  totals.Clear();

  apps::Checker checker;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const int blocks = apps::BlocksFor(count, kBlock);
    AddHostKernel<<<blocks, kBlock>>>(device_pinned, device_own, count,
                                      totals.get());
    CUDA_CHECK(cudaGetLastError());
    AdvanceHostKernel<<<blocks, kBlock>>>(device_own, count);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < count; ++i) {
      sums[i] += values[i];
      device_sums[i % kBlock] += values[count - 1 - i];
    }
    for (int i = 0; i < count; ++i) {
      values[i] = values[i] * 5u + 1u;
      checker.Expect("pinned", i, pinned[i], sums[i], apps::kExact);
      checker.Expect("registered", i, own[i], values[i], apps::kExact);
    }
    for (int i = iteration; i < count; i += 97) {  // the host's turn
      ++sums[i], ++pinned[i];
      ++values[i], ++own[i];
    }
  }
  const std::vector<unsigned int> got = totals.ToHost();
  for (int i = 0; i < kBlock; ++i) {
    checker.Expect("device sum", i, got[i], device_sums[i], apps::kExact);
  }
  CUDA_CHECK(cudaHostUnregister(own));
  CUDA_CHECK(cudaFreeHost(pinned));
  std::free(own);
  return checker.Finish();
}
