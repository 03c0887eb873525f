// The host may touch managed and pinned memory; device memory faults.
#include <cuda_runtime_api.h>

#include <cstdio>

int main() {
  char* pointer = nullptr;
  cudaMallocManaged(reinterpret_cast<void**>(&pointer), 64);
  *pointer = 1;
  std::printf("managed %d\n", *pointer);
  cudaMallocHost(reinterpret_cast<void**>(&pointer), 64);
  *pointer = 2;
  std::printf("pinned %d\n", *pointer);
  std::fflush(stdout);
  cudaMalloc(reinterpret_cast<void**>(&pointer), 64);
  *pointer = 3;
  std::printf("device %d\n", *pointer);
  return 0;
}
