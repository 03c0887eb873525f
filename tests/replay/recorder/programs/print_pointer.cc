#include <cuda_runtime_api.h>

#include <cstdio>

int main() {
  void* pointer = nullptr;
  cudaMalloc(&pointer, 64);
  std::printf("%p\n", pointer);
  return 0;
}
