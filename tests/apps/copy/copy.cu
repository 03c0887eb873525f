// Copies an array. A fixed number of blocks walks over it in grid-size steps.
// --size: number of elements.
#include "../common/app.h"

__global__ void CopyKernel(const float* source, float* destination, int count) {
  int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    destination[i] = source[i];
  }
}

constexpr int kBlock = 256;
constexpr int kMaxBlocks = 2048;

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "copy",
      {int64_t{1} << 27, 100003, int64_t{1} << 30, "number of elements"});
  const int count = static_cast<int>(options.size);
  // With --small fewer threads than elements, so that the loop takes steps.
  const int blocks =
      std::min(apps::BlocksFor(count, kBlock), options.small ? 32 : kMaxBlocks);

  const std::vector<float> source = apps::RandomFloats(count, 3, -1.0f, 1.0f);
  apps::DeviceArray<float> device_source(source);
  apps::DeviceArray<float> device_destination(count);

  apps::RunIterations(options, [&] {
    CopyKernel<<<blocks, kBlock>>>(device_source.get(),
                                   device_destination.get(), count);
  });

  const std::vector<float> destination = device_destination.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, destination.size(), 1 << 20);
  for (size_t i = 0; i < destination.size(); i += stride) {
    checker.Expect("destination", i, destination[i], source[i], apps::kExact);
  }
  return checker.Finish();
}
