// A kernel that runs well a few times, then one that writes out of bounds: the
// program expects the error that CUDA documents for it, from the call that
// waits and from every later one, and prints which came. Exit code 0 when it is
// cudaErrorIllegalAddress. --size: number of values.
#include "../common/app.h"

constexpr int kBlock = 256;

// values[i] = 3 values[i] + i, modulo 2^32.
__global__ void WellBehavedKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 3u + static_cast<unsigned int>(i);
}

__global__ void OutOfBoundsKernel(unsigned int* values, long long index) {
  values[index] = 1;
}

// Prints a FAIL line unless `status` is the expected error.
bool IsIllegalAddress(const char* call, cudaError_t status) {
  if (status == cudaErrorIllegalAddress) return true;
  std::printf("fault: FAIL %s: got %s, expected cudaErrorIllegalAddress\n",
              call, cudaGetErrorName(status));
  return false;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "fault", {1 << 20, 10007, 1 << 28, "number of values"});
  const int count = static_cast<int>(options.size);
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  // Not a DeviceArray: freeing fails after the fault, as everything does.
  const size_t bytes = count * sizeof(unsigned int);
  unsigned int* data = nullptr;
  CUDA_CHECK(cudaMalloc(&data, bytes));
  CUDA_CHECK(cudaMemcpy(data, values.data(), bytes, cudaMemcpyHostToDevice));
  apps::RunIterations(options, [&] {
    WellBehavedKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(data, count);
  });
  std::vector<unsigned int> got(count);
  CUDA_CHECK(cudaMemcpy(got.data(), data, bytes, cudaMemcpyDeviceToHost));
  apps::Checker checker;
  for (int i = 0; i < count; ++i) {
    unsigned int value = values[i];
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      value = value * 3u + static_cast<unsigned int>(i);
    }
    checker.Expect("value", i, got[i], value, apps::kExact);
  }
  if (!checker.Right()) return checker.Finish();

  // The element that would lie at address 4096, where neither host nor device
  // ever has memory.
  const long long index =
      (4096 - static_cast<long long>(reinterpret_cast<uintptr_t>(data))) /
      static_cast<long long>(sizeof(unsigned int));
  OutOfBoundsKernel<<<1, 1>>>(data, index);
  CUDA_CHECK(cudaPeekAtLastError());  // the launch itself is in order
  const cudaError_t status = cudaDeviceSynchronize();
  std::printf("fault: cudaDeviceSynchronize: %s\n", cudaGetErrorName(status));
  void* more = nullptr;
  const bool right =
      IsIllegalAddress("cudaDeviceSynchronize", status) &&
      IsIllegalAddress("cudaGetLastError", cudaGetLastError()) &&
      IsIllegalAddress("cudaMalloc after it", cudaMalloc(&more, bytes)) &&
      IsIllegalAddress("cudaFree after it", cudaFree(data));
  return right ? checker.Finish() : 1;
}
