// Calls something that the stand-in does not offer, twice.
#include <cuda_runtime_api.h>

#include <cstdio>

int main() {
  cudaGraph_t graph = nullptr;
  std::printf("%s\n", cudaGetErrorName(cudaGraphCreate(&graph, 0)));
  std::printf("%s\n", cudaGetErrorName(cudaGraphCreate(&graph, 0)));
  std::printf("last %s\n", cudaGetErrorName(cudaGetLastError()));
  void* pointer = nullptr;
  cudaMalloc(&pointer, 16);
  return 0;
}
