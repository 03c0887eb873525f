// Reverses an array in place. Each thread swaps one pair of elements, so an
// even number of iterations gives the original array back.
// --size: number of elements.
#include "../common/app.h"

__global__ void ReverseKernel(float* data, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count / 2) {
    float other = data[count - 1 - i];
    data[count - 1 - i] = data[i];
    data[i] = other;
  }
}

constexpr int kBlock = 256;

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "reverse",
      {int64_t{1} << 27, 10007, int64_t{1} << 30, "number of elements"});
  const int count = static_cast<int>(options.size);

  const std::vector<float> data = apps::RandomFloats(count, 4, -1.0f, 1.0f);
  apps::DeviceArray<float> device_data(data);

  // At least one block, also for an array of one element.
  const int blocks = std::max(1, apps::BlocksFor(count / 2, kBlock));
  apps::RunIterations(options, [&] {
    ReverseKernel<<<blocks, kBlock>>>(device_data.get(), count);
  });

  const std::vector<float> result = device_data.ToHost();
  const bool reversed = options.iterations % 2 == 1;
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, result.size(), 1 << 20);
  for (size_t i = 0; i < result.size(); i += stride) {
    const size_t from = reversed ? result.size() - 1 - i : i;
    checker.Expect("data", i, result[i], data[from], apps::kExact);
  }
  return checker.Finish();
}
