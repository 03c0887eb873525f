// An application that is linked to libcuda: its calls bind by symbol.
#include <cuda.h>

#include <cstdio>

int main() {
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  cuMemAlloc(&pointer, 100);
  struct {
    unsigned magic = 0xba55ed50;
    unsigned short version = 1;
    unsigned short header_bytes = 16;
    unsigned long long payload_bytes = 20;
    char text[20] = "kernel increment\n";
  } image;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  cuModuleLoadData(&module, &image);
  image.text[0] = 'x';  // the application's memory is its own again
  cuModuleGetFunction(&kernel, module, "increment");
  void* parameters[] = {&pointer};
  const CUresult launched =
      cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  std::printf("launch %d\n", launched);
  std::printf("in arena %d\n", pointer >> 40 == 0x20);
  return 0;
}
