// Takes device memory until there is none, in pieces of 1 GiB and then of 16
// MiB, launches a kernel on the first piece while nothing is free, frees all but
// that, and launches another. The error of the allocation that fails must be
// cudaErrorMemoryAllocation, and must not stick. With --pieces it prints how
// many it got. --size: number of values of the first piece.
#include <cstring>

#include "../common/app.h"

constexpr int kBlock = 256;
constexpr size_t kMaxPieces = 4096;

__global__ void FullDeviceKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += 2u * static_cast<unsigned int>(i);
}

__global__ void RoomAgainKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 3u + 1u;
}

// False: an error other than the one that is expected.
bool TakeAll(size_t bytes, std::vector<void*>* pieces) {
  while (pieces->size() < kMaxPieces) {
    void* piece = nullptr;
    const cudaError_t status = cudaMalloc(&piece, bytes);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return true;
    }
    if (status != cudaSuccess) {
      std::printf("exhausted: FAIL cudaMalloc: got %s\n",
                  cudaGetErrorName(status));
      return false;
    }
    pieces->push_back(piece);
  }
  return true;
}

int main(int argc, char** argv) {
  bool print = false;
  if (argc > 1 && std::strcmp(argv[argc - 1], "--pieces") == 0) {
    print = true;
    --argc;
  }
  const apps::Options options = apps::ParseOptions(
      argc, argv, "exhausted", {1 << 20, 10007, 1 << 28, "number of values"});
  const int count = static_cast<int>(options.size);
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  apps::DeviceArray<unsigned int> data(values);

  std::vector<void*> pieces;
  if (!TakeAll(size_t{1} << 30, &pieces)) return 1;
  const size_t large = pieces.size();
  if (!TakeAll(size_t{16} << 20, &pieces)) return 1;
  if (print) {
    std::printf("exhausted: %zu GiB and %zu pieces of 16 MiB\n", large,
                pieces.size() - large);
  }
  FullDeviceKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(data.get(),
                                                               count);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  for (void* piece : pieces) CUDA_CHECK(cudaFree(piece));
  RoomAgainKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(data.get(),
                                                              count);
  CUDA_CHECK(cudaGetLastError());
  const std::vector<unsigned int> got = data.ToHost();
  apps::Checker checker;
  for (int i = 0; i < count; ++i) {
    const unsigned int expected =
        (values[i] + 2u * static_cast<unsigned int>(i)) * 3u + 1u;
    checker.Expect("value", i, got[i], expected, apps::kExact);
  }
  return checker.Finish();
}
