// A kernel that works on memory of malloc, which devices reach by HMM or ATS. A
// recorder that does not have that memory at replay must say so. Where the
// device does not reach it, a kernel of another name works on a copy. Results
// are exact. --size: number of values.
#include "../common/app.h"

constexpr int kBlock = 256;

__device__ void Advance(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 7u + static_cast<unsigned int>(i);
}

// values[i] = 7 values[i] + i, modulo 2^32.
__global__ void AdvanceSystemKernel(unsigned int* values, int count) {
  Advance(values, count);
}
__global__ void AdvanceCopyKernel(unsigned int* values, int count) {
  Advance(values, count);
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "system_memory",
                         {1 << 20, 10007, 1 << 26, "number of values"});
  const int count = static_cast<int>(options.size);
  const size_t bytes = count * sizeof(unsigned int);
  auto* values = static_cast<unsigned int*>(std::malloc(bytes));
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  int reaches = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&reaches, cudaDevAttrPageableMemoryAccess,
                                    /*device=*/0));
  const int blocks = apps::BlocksFor(count, kBlock);
  if (reaches != 0) {
    apps::RunIterations(options, [&] {
      AdvanceSystemKernel<<<blocks, kBlock>>>(values, count);
    });
  } else {
    apps::DeviceArray<unsigned int> copy(count);
    CUDA_CHECK(cudaMemcpy(copy.get(), values, bytes, cudaMemcpyHostToDevice));
    apps::RunIterations(options, [&] {
      AdvanceCopyKernel<<<blocks, kBlock>>>(copy.get(), count);
    });
    CUDA_CHECK(cudaMemcpy(values, copy.get(), bytes, cudaMemcpyDeviceToHost));
  }
  apps::Checker checker;
  for (int i = 0; i < count; ++i) {
    unsigned int value = apps::HashBits(1, i);
    for (int iteration = 0; iteration < options.iterations; ++iteration)
      value = value * 7u + static_cast<unsigned int>(i);
    checker.Expect("value", i, values[i], value, apps::kExact);
  }
  std::free(values);
  return checker.Finish();
}
