// Every device of the machine, up to four, works on an array of its own, then
// on what the device before it has: by a copy, and where devices reach each
// other, by reading it directly. With one device it is its own neighbour.
// Results are exact. --size: number of values of a device.
#include "../common/app.h"

constexpr int kBlock = 256;
constexpr int kMostDevices = 4;

// values[i] = 3 values[i] + copied[i], modulo 2^32.
__global__ void AddCopyKernel(unsigned int* values, const unsigned int* copied,
                              int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 3u + copied[i];
}

// values[i] += remote[count - 1 - i], modulo 2^32.
__global__ void AddRemoteKernel(unsigned int* values,
                                const unsigned int* remote, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += remote[count - 1 - i];
}

// Lets `device` read what `other` has; false: it cannot.
bool Reach(int device, int other) {
  if (device == other) return true;
  int can = 0;
  CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, other));
  if (can == 0) return false;
  CUDA_CHECK(cudaSetDevice(device));
  CUDA_CHECK(cudaDeviceEnablePeerAccess(other, 0));
  return true;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "two_devices",
      {1 << 20, 10007, 1 << 26, "number of values of a device"});
  const int count = static_cast<int>(options.size);
  const size_t bytes = count * sizeof(unsigned int);
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  devices = std::min(devices, kMostDevices);

  std::vector<std::vector<unsigned int>> expected(devices);
  std::vector<unsigned int*> values(devices), copies(devices);
  std::vector<bool> reaches(devices);
  for (int d = 0; d < devices; ++d) {
    for (int i = 0; i < count; ++i) expected[d].push_back(apps::HashBits(d, i));
    CUDA_CHECK(cudaSetDevice(d));
    CUDA_CHECK(cudaMalloc(&values[d], bytes));
    CUDA_CHECK(cudaMalloc(&copies[d], bytes));
    CUDA_CHECK(cudaMemcpy(values[d], expected[d].data(), bytes,
                          cudaMemcpyHostToDevice));
    reaches[d] = Reach(d, (d + devices - 1) % devices);
  }

  const int blocks = apps::BlocksFor(count, kBlock);
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    for (int d = 0; d < devices; ++d) {
      const int before = (d + devices - 1) % devices;
      CUDA_CHECK(cudaSetDevice(d));
      CUDA_CHECK(cudaMemcpyPeer(copies[d], d, values[before], before, bytes));
      AddCopyKernel<<<blocks, kBlock>>>(values[d], copies[d], count);
      CUDA_CHECK(cudaGetLastError());
      const std::vector<unsigned int> copied = expected[before];
      for (int i = 0; i < count; ++i)
        expected[d][i] = expected[d][i] * 3u + copied[i];
      CUDA_CHECK(cudaDeviceSynchronize());
      if (!reaches[d] || before == d) continue;
      AddRemoteKernel<<<blocks, kBlock>>>(values[d], values[before], count);
      CUDA_CHECK(cudaGetLastError());
      for (int i = 0; i < count; ++i)
        expected[d][i] += expected[before][count - 1 - i];
      CUDA_CHECK(cudaDeviceSynchronize());
    }
  }

  apps::Checker checker;
  std::vector<unsigned int> got(count);
  for (int d = 0; d < devices; ++d) {
    CUDA_CHECK(cudaSetDevice(d));
    CUDA_CHECK(
        cudaMemcpy(got.data(), values[d], bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i)
      checker.Expect("value", i, got[i], expected[d][i], apps::kExact);
    CUDA_CHECK(cudaFree(values[d]));
    CUDA_CHECK(cudaFree(copies[d]));
  }
  return checker.Finish();
}
