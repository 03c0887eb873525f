// A kernel whose arguments carry what it does not use: an address of malloc's
// memory, and a number that equals the handle of a texture object. A recorder
// must not take them for more than they are. Results are exact.
// --size: number of values.
#include "../common/app.h"

constexpr int kBlock = 256;

struct Field {
  unsigned int* host;  // of use to the host alone
  unsigned int* device;
  int count;
};

// field.device[i] = 9 field.device[i] + number, modulo 2^32.
__global__ void AdvanceFieldKernel(Field field, unsigned long long number) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < field.count) {
    field.device[i] = field.device[i] * 9u + static_cast<unsigned int>(number);
  }
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "carried_pointer",
                         {1 << 20, 10007, 1 << 26, "number of values"});
  const int count = static_cast<int>(options.size);
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  apps::DeviceArray<unsigned int> device_values(values);
  // Linear memory alone, so that no array is needed.
  apps::DeviceArray<unsigned int> texels(1024);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = texels.get();
  resource.res.linear.desc = cudaCreateChannelDesc<unsigned int>();
  resource.res.linear.sizeInBytes = texels.bytes();
  cudaTextureDesc description = {};
  cudaTextureObject_t texture = 0;
  CUDA_CHECK(
      cudaCreateTextureObject(&texture, &resource, &description, nullptr));

  const Field field{values.data(), device_values.get(), count};
  apps::RunIterations(options, [&] {
    AdvanceFieldKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(field,
                                                                   texture);
  });

  const std::vector<unsigned int> got = device_values.ToHost();
  apps::Checker checker;
  for (int i = 0; i < count; ++i) {
    unsigned int value = values[i];
    for (int iteration = 0; iteration < options.iterations; ++iteration)
      value = value * 9u + static_cast<unsigned int>(texture);
    checker.Expect("value", i, got[i], value, apps::kExact);
  }
  CUDA_CHECK(cudaDestroyTextureObject(texture));
  return checker.Finish();
}
