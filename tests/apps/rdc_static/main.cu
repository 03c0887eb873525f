// Static and anonymous-namespace kernels of the same names in two translation
// units, linked on the device with a function and a variable of a third: every
// symbol of a kernel says which unit it is of, each compiler in its own way.
// Results are exact. --size: number of values.
#include "../common/app.h"
#include "stages.h"

__device__ unsigned int salt = 0x9e3779b9u;
__device__ unsigned int Mix(unsigned int value) {
  return (value ^ (value >> 15)) + salt;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "rdc_static", {1 << 22, 10007, 1 << 28, "number of values"});
  const int count = static_cast<int>(options.size);
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  apps::DeviceArray<unsigned int> device_values(values);
  apps::RunIterations(options, [&] {
    RunLeft(device_values.get(), count);
    RunRight(device_values.get(), count);
  });
  const auto mix = [](unsigned int value) {
    return (value ^ (value >> 15)) + 0x9e3779b9u;
  };
  const std::vector<unsigned int> got = device_values.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, got.size(), 1 << 20);
  for (size_t i = 0; i < got.size(); i += stride) {
    unsigned int value = values[i];
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      value = mix(value * 3u + 1u);
      value = mix(value * 5u + 2u);
    }
    checker.Expect("value", i, got[i], value, apps::kExact);
  }
  return checker.Finish();
}
