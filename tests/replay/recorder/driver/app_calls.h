// Calls of the driver API for test applications, found as a static cudart finds
// them. What should not fail ends the program.
#ifndef REPRISE_TESTS_REPLAY_RECORDER_DRIVER_APP_CALLS_H_
#define REPRISE_TESTS_REPLAY_RECORDER_DRIVER_APP_CALLS_H_

#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

inline void* g_library = nullptr;
inline GetProcAddress g_get = nullptr;

template <typename... A>
CUresult Call(const char* name, A... arguments) {
  void* address = nullptr;
  if (g_get(name, &address, CUDA_VERSION, 0, nullptr) != CUDA_SUCCESS) {
    printf("no %s\n", name);
    exit(2);
  }
  return reinterpret_cast<CUresult (*)(A...)>(address)(arguments...);
}

inline void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  printf("%s: %d\n", what, static_cast<int>(result));
  fflush(stdout);
  exit(1);
}
#define CHECK(name, ...) Check(Call(name __VA_OPT__(, ) __VA_ARGS__), name)

// A module as nvcc's host code holds it: a wrapper in the file's own memory.
struct Fatbin {
  uint32_t magic = 0xba55ed50;
  uint16_t version = 1;
  uint16_t header_bytes = 16;
  uint64_t payload_bytes = 200;
  char text[200] =
      "kernel fill\nkernel increment\nkernel fail\nkernel sample\n"
      "kernel spin\n"
      "variable table 64\n";
};
inline const Fatbin kFatbin;
struct Wrapper {
  uint32_t magic = 0x466243b1;
  uint32_t version = 1;
  const void* image = &kFatbin;
  const void* unused = nullptr;
};
inline const Wrapper kWrapper;

inline CUcontext g_context = nullptr;
inline CUlibrary g_module = nullptr;

inline void Start() {
  g_library = dlopen("libcuda.so.1", RTLD_NOW);
  if (g_library == nullptr) {
    printf("no driver: %s\n", dlerror());
    exit(2);
  }
  g_get =
      reinterpret_cast<GetProcAddress>(dlsym(g_library, "cuGetProcAddress_v2"));
  CHECK("cuInit", 0u);
  CHECK("cuDevicePrimaryCtxRetain", &g_context, CUdevice{0});
  CHECK("cuCtxSetCurrent", g_context);
  CHECK("cuLibraryLoadData", &g_module, static_cast<const void*>(&kWrapper),
        static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr), 0u,
        static_cast<CUlibraryOption*>(nullptr), static_cast<void**>(nullptr),
        0u);
}

inline CUfunction Kernel(const char* name) {
  CUkernel kernel = nullptr;
  CHECK("cuLibraryGetKernel", &kernel, g_module, name);
  return reinterpret_cast<CUfunction>(kernel);
}

inline CUdeviceptr Alloc(size_t bytes) {
  CUdeviceptr pointer = 0;
  CHECK("cuMemAlloc", &pointer, bytes);
  return pointer;
}

inline CUdeviceptr AllocAsync(size_t bytes, CUstream stream) {
  CUdeviceptr pointer = 0;
  CHECK("cuMemAllocAsync", &pointer, bytes, stream);
  return pointer;
}

inline CUresult Launch(CUfunction kernel, CUstream stream,
                       std::vector<void*> parameters, void** extra = nullptr) {
  return Call("cuLaunchKernel", kernel, 2u, 1u, 1u, 32u, 1u, 1u, 0u, stream,
              extra != nullptr ? nullptr : parameters.data(), extra);
}

inline CUresult Fill(CUdeviceptr to, int value, int count) {
  static CUfunction kernel = Kernel("fill");
  return Launch(kernel, nullptr, {&to, &value, &count});
}

inline CUresult Increment(CUdeviceptr cell) {
  static CUfunction kernel = Kernel("increment");
  return Launch(kernel, nullptr, {&cell});
}

inline int ReadInt(CUdeviceptr from) {
  int value = 0;
  CHECK("cuMemcpyDtoH", static_cast<void*>(&value), from, sizeof(value));
  return value;
}

#endif  // REPRISE_TESTS_REPLAY_RECORDER_DRIVER_APP_CALLS_H_
