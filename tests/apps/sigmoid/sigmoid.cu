// Sigmoid of every element: output[i] = 1 / (1 + exp(-input[i])). One thread
// per element.
// --size: number of elements.
#include "../common/app.h"

__global__ void SigmoidKernel(const float* input,
                              REPRISE_TOLERANCE(1e-6) float* output,
                              int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    output[i] = 1.0f / (1.0f + expf(-input[i]));
  }
}

// expf is within 2 ulp, the sum and the quotient round once each: together
// below 4 ulp, 4.8e-7.
constexpr apps::Tolerance kTolerance{0, 1e-6};
constexpr int kBlock = 256;

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "sigmoid",
      {int64_t{1} << 27, 10007, int64_t{1} << 30, "number of elements"});
  const int count = static_cast<int>(options.size);

  const std::vector<float> input = apps::RandomFloats(count, 1, -8.0f, 8.0f);
  apps::DeviceArray<float> device_input(input);
  apps::DeviceArray<float> device_output(count);

  apps::RunIterations(options, [&] {
    SigmoidKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(
        device_input.get(), device_output.get(), count);
  });

  const std::vector<float> output = device_output.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, output.size(), 1 << 20);
  for (size_t i = 0; i < output.size(); i += stride) {
    const double expected =
        1.0 / (1.0 + std::exp(-static_cast<double>(input[i])));
    checker.Expect("output", i, output[i], expected, kTolerance);
  }
  return checker.Finish();
}
