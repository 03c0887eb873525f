// Two processes that share device memory by CUDA IPC: one exports an array, the
// other maps it, and each in turn launches a kernel on it. Results are exact.
// --size: number of values.
#include "../common/ranks.h"

constexpr int kBlock = 256;

// values[i] = 3 values[i] + i, modulo 2^32.
__global__ void AdvanceOwnedKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 3u + static_cast<unsigned int>(i);
}

// values[i] = 5 values[i] + 1, modulo 2^32.
__global__ void AdvanceOpenedKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 5u + 1u;
}

int RunOwner(const apps::Options& options, const apps::Rank& rank) {
  const int count = static_cast<int>(options.size);
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  apps::DeviceArray<unsigned int> device_values(values);
  cudaIpcMemHandle_t handle;
  CUDA_CHECK(cudaIpcGetMemHandle(&handle, device_values.get()));
  rank.Send(handle);
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    AdvanceOwnedKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(
        device_values.get(), count);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    rank.Send(iteration);
    rank.Receive<int>();
  }
  const std::vector<unsigned int> got = device_values.ToHost();
  rank.Receive<int>();  // the other has let go
  apps::Checker checker;
  for (int i = 0; i < count; ++i) {
    unsigned int value = values[i];
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      value = value * 3u + static_cast<unsigned int>(i);
      value = value * 5u + 1u;
    }
    checker.Expect("value", i, got[i], value, apps::kExact);
  }
  return checker.Right() ? 0 : checker.Finish();
}

int RunOther(const apps::Options& options, const apps::Rank& rank) {
  const int count = static_cast<int>(options.size);
  const auto handle = rank.Receive<cudaIpcMemHandle_t>();
  void* opened = nullptr;
  CUDA_CHECK(
      cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess));
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    rank.Receive<int>();
    AdvanceOpenedKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(
        static_cast<unsigned int*>(opened), count);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    rank.Send(iteration);
  }
  CUDA_CHECK(cudaIpcCloseMemHandle(opened));
  rank.Send(0);
  return 0;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "ipc", {1 << 22, 10007, 1 << 28, "number of values"});
  const apps::Rank rank = apps::ThisRank();
  if (rank.number < 0) return apps::RunRanks(2, argv);
  return rank.number == 0 ? RunOwner(options, rank) : RunOther(options, rank);
}
