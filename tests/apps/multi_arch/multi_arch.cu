// One compressed fatbin with machine code for two architectures and PTX for
// later ones; the driver chooses. The kernel is not the same code in each and
// says which one ran. Results are exact. --size: number of values.
#include "../common/app.h"

constexpr int kBlock = 256;

// values[i] = 7 values[i] + i, modulo 2^32; *ran = the architecture that this
// code was generated for, as __CUDA_ARCH__ has it.
__global__ void AdvanceByArchitectureKernel(unsigned int* values, int count,
                                            int* ran) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  values[i] = values[i] * 7u + static_cast<unsigned int>(i);
#else
  values[i] = (values[i] << 3) - values[i] + static_cast<unsigned int>(i);
#endif
#ifdef __CUDA_ARCH__
  if (i == 0) *ran = __CUDA_ARCH__;
#endif
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "multi_arch", {1 << 22, 10007, 1 << 28, "number of values"});
  const int count = static_cast<int>(options.size);
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  apps::DeviceArray<unsigned int> device_values(values);
  apps::DeviceArray<int> ran(1);
  apps::RunIterations(options, [&] {
    AdvanceByArchitectureKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(
        device_values.get(), count, ran.get());
  });

  // ptxVersion is what the code was generated for, whether or not it was
  // translated by the driver.
  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, AdvanceByArchitectureKernel));
  apps::Checker checker;
  checker.Expect("architecture", 0, ran.ToHost()[0], attributes.ptxVersion * 10,
                 apps::kExact);
  const std::vector<unsigned int> got = device_values.ToHost();
  for (int i = 0; i < count; ++i) {
    unsigned int value = values[i];
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      value = value * 7u + static_cast<unsigned int>(i);
    }
    checker.Expect("value", i, got[i], value, apps::kExact);
  }
  return checker.Finish();
}
