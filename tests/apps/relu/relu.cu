// ReLU of every element: output[i] = max(0, input[i]). One thread per element.
// --size: number of elements.
#include "../common/app.h"

__global__ void ReluKernel(const float* input, float* output, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    output[i] = input[i] > 0.0f ? input[i] : 0.0f;
  }
}

constexpr int kBlock = 256;

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "relu",
      {int64_t{1} << 27, 10007, int64_t{1} << 30, "number of elements"});
  const int count = static_cast<int>(options.size);

  const std::vector<float> input = apps::RandomFloats(count, 2, -1.0f, 1.0f);
  apps::DeviceArray<float> device_input(input);
  apps::DeviceArray<float> device_output(count);

  apps::RunIterations(options, [&] {
    ReluKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(
        device_input.get(), device_output.get(), count);
  });

  // Nothing is rounded, so the result is exact.
  const std::vector<float> output = device_output.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, output.size(), 1 << 20);
  for (size_t i = 0; i < output.size(); i += stride) {
    checker.Expect("output", i, output[i], std::max(0.0f, input[i]),
                   apps::kExact);
  }
  return checker.Finish();
}
