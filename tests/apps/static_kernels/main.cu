// Static and anonymous-namespace kernels that have the same name in three
// translation units, with different bodies, so that a kernel's name alone does
// not say which one was launched. Results are exact.
// --size: number of values.
#include "../common/app.h"
#include "stages.h"

// The third StepKernel.
static __global__ void StepKernel(unsigned int* values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += static_cast<unsigned int>(i);
}

int main(int argc, char** argv) {
  constexpr int kBlock = 512;
  const apps::Options options = apps::ParseOptions(
      argc, argv, "static_kernels",
      {int64_t{1} << 26, 10007, int64_t{1} << 29, "number of values"});
  const int count = static_cast<int>(options.size);
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  apps::DeviceArray<unsigned int> device_values(values);

  apps::RunIterations(options, [&] {
    RunAlpha(device_values.get(), count);
    RunBeta(device_values.get(), count);
    StepKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(device_values.get(),
                                                           count);
  });

  const std::vector<unsigned int> got = device_values.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, got.size(), 1 << 20);
  for (size_t i = 0; i < got.size(); i += stride) {
    unsigned int value = values[i];
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      value = value * 3u + 1u;
      value ^= value >> 7;
      value = value * 5u + 2u;
      value ^= value << 9;
      value += static_cast<unsigned int>(i);
    }
    checker.Expect("value", i, got[i], value, apps::kExact);
  }
  checker.Expect("alpha steps", 0, AlphaSteps(), options.iterations,
                 apps::kExact);
  checker.Expect("beta steps", 0, BetaSteps(), options.iterations,
                 apps::kExact);
  return checker.Finish();
}
