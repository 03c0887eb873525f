// Asks the CUDA runtime for everything but launches, rightly and wrongly, and
// prints its answers. Plain C++: no device code.
#include "transcript.h"

namespace {

void Errors() {
  Section("errors");
  void* p = nullptr;
  cudaFree(reinterpret_cast<void*>(0x10));
  std::printf("peek %s\n", cudaGetErrorName(cudaPeekAtLastError()));
  std::printf("peek %s\n", cudaGetErrorName(cudaPeekAtLastError()));
  std::printf("get %s\n", cudaGetErrorName(cudaGetLastError()));
  std::printf("get %s\n", cudaGetErrorName(cudaGetLastError()));
  cudaFree(reinterpret_cast<void*>(0x10));
  cudaMalloc(&p, 256);
  std::printf("after a good call %s\n", cudaGetErrorName(cudaGetLastError()));
  cudaFree(p);
  for (int code = 0; code < 1000; ++code) {
    const auto error = static_cast<cudaError_t>(code);
    if (std::strcmp(cudaGetErrorName(error), "unrecognized error code") == 0)
      continue;
    std::printf("%d %s: %s\n", code, cudaGetErrorName(error),
                cudaGetErrorString(error));
  }
  std::printf("%s\n", cudaGetErrorString(static_cast<cudaError_t>(12345)));
}

void Allocation() {
  Section("allocation");
  void* p = nullptr;
  SHOW(cudaMalloc(nullptr, 16));
  p = &p;
  SHOW(cudaMalloc(&p, 0));
  VALUE(p == nullptr);
  SHOW(cudaMalloc(&p, size_t{1} << 50));
  SHOW(cudaMalloc(&p, ~size_t{0}));
  SHOW(cudaFree(nullptr));
  SHOW(cudaMalloc(&p, 1000));
  VALUE(reinterpret_cast<size_t>(p) % 256);
  SHOW(cudaFree(static_cast<char*>(p) + 16));
  SHOW(cudaFree(p));
  SHOW(cudaFree(p));
  SHOW(cudaFree(&p));
  SHOW(cudaMallocHost(&p, 1000));
  SHOW(cudaFree(p));
  SHOW(cudaFreeHost(p));
  SHOW(cudaFreeHost(p));
  SHOW(cudaFreeHost(nullptr));
  SHOW(cudaMallocHost(&p, 0));
  VALUE(p == nullptr);
  SHOW(cudaHostAlloc(&p, 64, 0x100));
  SHOW(cudaHostAlloc(&p, 64, cudaHostAllocMapped | cudaHostAllocPortable));
  void* device = nullptr;
  SHOW(cudaHostGetDevicePointer(&device, p, 0));
  VALUE(device == p);
  unsigned flags = 0;
  SHOW(cudaHostGetFlags(&flags, p));
  VALUE(flags);
  SHOW(cudaHostGetDevicePointer(&device, p, 1));
  SHOW(cudaHostGetDevicePointer(&device, &device, 0));
  SHOW(cudaHostGetFlags(&flags, &flags));
  SHOW(cudaFreeHost(p));
  SHOW(cudaMallocManaged(&p, 0, cudaMemAttachGlobal));
  SHOW(cudaMallocManaged(&p, 64, 7));
  SHOW(cudaMallocManaged(&p, 64, cudaMemAttachGlobal));
  std::memset(p, 7, 64);
  VALUE(static_cast<char*>(p)[63]);
  SHOW(cudaFreeHost(p));
  SHOW(cudaFree(p));
  size_t pitch = 0;
  SHOW(cudaMallocPitch(&p, &pitch, 100, 10));
  VALUE(pitch);
  SHOW(cudaFree(p));
  SHOW(cudaMallocPitch(&p, &pitch, 513, 10));
  VALUE(pitch);
  SHOW(cudaFree(p));
  SHOW(cudaMallocPitch(&p, &pitch, 0, 10));
  SHOW(cudaMallocPitch(nullptr, &pitch, 10, 10));
  cudaPitchedPtr pitched = {};
  SHOW(cudaMalloc3D(&pitched, cudaExtent{100, 5, 3}));
  VALUE(pitched.pitch);
  VALUE(pitched.xsize);
  VALUE(pitched.ysize);
  SHOW(cudaFree(pitched.ptr));
  SHOW(cudaMalloc3D(&pitched, cudaExtent{0, 5, 3}));
  static char registered[1 << 16];
  SHOW(cudaHostUnregister(registered));
  SHOW(cudaHostRegister(registered, sizeof(registered), 0));
  SHOW(cudaHostRegister(registered, sizeof(registered), 0));
  SHOW(cudaHostUnregister(registered));
  SHOW(cudaHostRegister(nullptr, 10, 0));
  SHOW(cudaHostRegister(registered, 0, 0));
}

void Copies() {
  Section("copies");
  char host[256];
  char back[256];
  for (int i = 0; i < 256; ++i) host[i] = static_cast<char>(i);
  void* a = nullptr;
  void* b = nullptr;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  SHOW(cudaMemcpy(a, host, 256, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy(b, a, 256, cudaMemcpyDeviceToDevice));
  SHOW(cudaMemcpy(back, b, 256, cudaMemcpyDeviceToHost));
  VALUE(std::memcmp(host, back, 256));
  SHOW(cudaMemcpy(back, host, 256, cudaMemcpyHostToHost));
  SHOW(cudaMemcpy(back, b, 256, cudaMemcpyDefault));
  SHOW(cudaMemcpy(back, host, 256, cudaMemcpyDefault));
  SHOW(cudaMemcpy(back, host, 256, cudaMemcpyDeviceToHost));
  SHOW(cudaMemcpy(back, host, 256, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy(a, b, 256, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy(a, b, 256, cudaMemcpyDeviceToHost));
  SHOW(cudaMemcpy(a, host, 256, cudaMemcpyDeviceToDevice));
  SHOW(cudaMemcpy(a, b, 256, static_cast<cudaMemcpyKind>(9)));
  SHOW(cudaMemcpy(nullptr, host, 256, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy(a, nullptr, 256, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy(back, static_cast<char*>(b) + 128, 128,
                  cudaMemcpyDeviceToHost));
  VALUE(std::memcmp(host + 128, back, 128));
  SHOW(cudaMemcpyAsync(a, host, 256, cudaMemcpyHostToDevice, nullptr));
  SHOW(cudaMemcpyPeer(b, 0, a, 0, 256));
  SHOW(cudaMemcpyPeer(b, 1, a, 0, 256));

  Section("copies 2-D");
  char* wide = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&wide), 32 * 8);
  cudaMemset(wide, 1, 32 * 8);
  SHOW(cudaMemcpy2D(wide, 32, host, 16, 16, 8, cudaMemcpyHostToDevice));
  std::memset(back, 0, 256);
  SHOW(cudaMemcpy(back, wide, 256, cudaMemcpyDeviceToHost));
  VALUE(back[32 + 3]);
  VALUE(back[32 + 16]);
  VALUE(back[7 * 32 + 15]);
  SHOW(cudaMemcpy2D(back, 20, wide, 32, 16, 8, cudaMemcpyDeviceToHost));
  VALUE(back[20 + 3]);
  SHOW(cudaMemcpy2D(wide, 8, host, 16, 16, 8, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy2D(wide, 32, host, 8, 16, 8, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy2D(wide, 32, host, 16, 0, 8, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy2D(wide, 32, host, 16, 16, 0, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy2DAsync(wide, 32, host, 16, 16, 8, cudaMemcpyHostToDevice,
                         nullptr));
  SHOW(cudaMemset2D(wide, 32, 5, 4, 8));
  SHOW(cudaMemcpy(back, wide, 256, cudaMemcpyDeviceToHost));
  VALUE(back[32 + 3]);
  VALUE(back[32 + 4]);
  SHOW(cudaMemset2D(wide, 2, 5, 4, 8));

  Section("copies 3-D");
  cudaPitchedPtr volume = {};
  cudaMalloc3D(&volume, cudaExtent{16, 4, 4});
  SHOW(cudaMemset3D(volume, 3, cudaExtent{16, 4, 4}));
  cudaMemcpy3DParms parms = {};
  parms.srcPtr = cudaPitchedPtr{host, 16, 16, 4};
  parms.dstPtr = volume;
  parms.extent = cudaExtent{16, 4, 4};
  parms.kind = cudaMemcpyHostToDevice;
  SHOW(cudaMemcpy3D(&parms));
  std::memset(back, 0, 256);
  parms = {};
  parms.srcPtr = volume;
  parms.srcPos = cudaPos{4, 1, 1};
  parms.dstPtr = cudaPitchedPtr{back, 16, 16, 4};
  parms.extent = cudaExtent{8, 2, 2};
  parms.kind = cudaMemcpyDeviceToHost;
  SHOW(cudaMemcpy3D(&parms));
  VALUE(back[0]);
  VALUE(back[7]);
  VALUE(back[8]);
  VALUE(back[64 + 16 + 7]);
  SHOW(cudaMemcpy3D(nullptr));
  parms.extent = cudaExtent{17, 2, 2};
  SHOW(cudaMemcpy3D(&parms));
  parms.extent = cudaExtent{8, 2, 2};
  parms.srcPtr = {};
  SHOW(cudaMemcpy3D(&parms));
  cudaFree(volume.ptr);

  Section("memset");
  SHOW(cudaMemset(a, 0x1ff, 256));
  SHOW(cudaMemcpy(back, a, 256, cudaMemcpyDeviceToHost));
  VALUE(back[255]);
  SHOW(cudaMemset(host, 1, 256));
  SHOW(cudaMemset(nullptr, 1, 256));
  SHOW(cudaMemset(nullptr, 1, 0));
  SHOW(cudaMemsetAsync(a, 0, 256, nullptr));
  cudaFree(wide);
  cudaFree(a);
  cudaFree(b);
  SHOW(cudaMemcpy(back, a, 256, cudaMemcpyDeviceToHost));
  SHOW(cudaMemset(a, 1, 256));
}

void Pools() {
  Section("pools");
  void* p = nullptr;
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  SHOW(cudaMallocAsync(&p, 1000, stream));
  SHOW(cudaMemsetAsync(p, 1, 1000, stream));
  SHOW(cudaFreeAsync(p, stream));
  SHOW(cudaStreamSynchronize(stream));
  SHOW(cudaFreeAsync(p, stream));
  SHOW(cudaFreeAsync(nullptr, stream));
  SHOW(cudaMallocAsync(&p, 0, stream));
  SHOW(cudaMallocAsync(nullptr, 10, stream));
  SHOW(cudaMallocAsync(&p, 1000, stream));
  SHOW(cudaFree(p));
  SHOW(cudaMalloc(&p, 1000));
  SHOW(cudaFreeAsync(p, stream));
  cudaMemPool_t pool = nullptr;
  SHOW(cudaDeviceGetDefaultMemPool(&pool, 0));
  SHOW(cudaDeviceGetDefaultMemPool(&pool, 7));
  unsigned long long threshold = 5;
  SHOW(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold,
                               &threshold));
  VALUE(threshold);
  threshold = 1 << 20;
  SHOW(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold,
                               &threshold));
  threshold = 0;
  SHOW(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold,
                               &threshold));
  VALUE(threshold);
  SHOW(cudaMallocFromPoolAsync(&p, 1000, pool, stream));
  SHOW(cudaMemPoolTrimTo(pool, 0));
  SHOW(cudaFreeAsync(p, stream));
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t own = nullptr;
  SHOW(cudaMemPoolCreate(&own, &props));
  SHOW(cudaDeviceSetMemPool(0, own));
  cudaMemPool_t current = nullptr;
  SHOW(cudaDeviceGetMemPool(&current, 0));
  VALUE(current == own);
  SHOW(cudaDeviceSetMemPool(0, pool));
  SHOW(cudaMemPoolDestroy(own));
  SHOW(cudaMemPoolDestroy(pool));
  cudaStreamDestroy(stream);
}

void Streams() {
  Section("streams");
  cudaStream_t stream = nullptr;
  SHOW(cudaStreamCreate(nullptr));
  SHOW(cudaStreamCreate(&stream));
  SHOW(cudaStreamQuery(stream));
  SHOW(cudaStreamSynchronize(stream));
  unsigned flags = 9;
  int priority = 9;
  SHOW(cudaStreamGetFlags(stream, &flags));
  VALUE(flags);
  SHOW(cudaStreamGetPriority(stream, &priority));
  VALUE(priority);
  SHOW(cudaStreamDestroy(stream));
  SHOW(cudaStreamCreateWithFlags(&stream, 77));
  SHOW(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  SHOW(cudaStreamGetFlags(stream, &flags));
  VALUE(flags);
  SHOW(cudaStreamDestroy(stream));
  int least = 9;
  int greatest = 9;
  SHOW(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  VALUE(least);
  VALUE(greatest);
  SHOW(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  SHOW(cudaStreamGetPriority(stream, &priority));
  VALUE(priority == greatest);
  SHOW(cudaStreamDestroy(stream));
  SHOW(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -100));
  SHOW(cudaStreamGetPriority(stream, &priority));
  VALUE(priority == greatest);
  SHOW(cudaStreamDestroy(stream));
  SHOW(cudaStreamSynchronize(nullptr));
  SHOW(cudaStreamSynchronize(cudaStreamLegacy));
  SHOW(cudaStreamSynchronize(cudaStreamPerThread));
  SHOW(cudaStreamDestroy(nullptr));
  SHOW(cudaStreamQuery(nullptr));
  SHOW(cudaStreamGetFlags(nullptr, &flags));
  VALUE(flags);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  SHOW(cudaStreamIsCapturing(nullptr, &status));
  VALUE(status);
  cudaStreamCreate(&stream);
  static int called = 0;
  SHOW(cudaLaunchHostFunc(
      stream, [](void* p) { ++*static_cast<int*>(p); }, &called));
  SHOW(cudaStreamAddCallback(
      stream,
      [](cudaStream_t, cudaError_t error, void* p) {
        if (error == cudaSuccess) *static_cast<int*>(p) += 10;
      },
      &called, 0));
  SHOW(cudaStreamSynchronize(stream));
  VALUE(called);
  SHOW(cudaLaunchHostFunc(stream, nullptr, nullptr));
  SHOW(cudaStreamAddCallback(stream, nullptr, nullptr, 0));
  cudaStreamDestroy(stream);
}

void Events() {
  Section("events");
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  float ms = -1;
  SHOW(cudaEventCreate(nullptr));
  SHOW(cudaEventCreate(&start));
  SHOW(cudaEventCreate(&stop));
  SHOW(cudaEventElapsedTime(&ms, start, stop));
  SHOW(cudaEventQuery(start));
  SHOW(cudaEventSynchronize(start));
  SHOW(cudaEventRecord(start, nullptr));
  SHOW(cudaEventElapsedTime(&ms, start, stop));
  SHOW(cudaEventRecord(stop, nullptr));
  SHOW(cudaEventSynchronize(stop));
  SHOW(cudaEventQuery(stop));
  SHOW(cudaEventElapsedTime(&ms, start, stop));
  VALUE(ms >= 0);
  SHOW(cudaEventElapsedTime(nullptr, start, stop));
  SHOW(cudaStreamWaitEvent(nullptr, start, 0));
  SHOW(cudaStreamWaitEvent(nullptr, start, 99));
  SHOW(cudaStreamWaitEvent(nullptr, nullptr, 0));
  SHOW(cudaEventRecord(nullptr, nullptr));
  SHOW(cudaEventDestroy(nullptr));
  SHOW(cudaEventSynchronize(nullptr));
  SHOW(cudaEventQuery(nullptr));
  cudaEvent_t untimed = nullptr;
  SHOW(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  SHOW(cudaEventRecord(untimed, nullptr));
  SHOW(cudaEventElapsedTime(&ms, start, untimed));
  SHOW(cudaEventCreateWithFlags(&untimed, 0x80));
  SHOW(cudaEventCreateWithFlags(&untimed, cudaEventInterprocess));
  SHOW(cudaEventRecordWithFlags(start, nullptr, 0));
  SHOW(cudaEventDestroy(start));
  SHOW(cudaEventDestroy(stop));
}

void Devices() {
  Section("devices");
  int value = -1;
  SHOW(cudaGetDevice(&value));
  VALUE(value);
  SHOW(cudaGetDevice(nullptr));
  SHOW(cudaGetDeviceCount(nullptr));
  SHOW(cudaSetDevice(0));
  SHOW(cudaSetDevice(-1));
  SHOW(cudaSetDevice(1000));
  SHOW(cudaInitDevice(0, 0, 0));
  cudaDeviceProp prop = {};
  SHOW(cudaGetDeviceProperties(&prop, 0));
  SHOW(cudaGetDeviceProperties(&prop, 1000));
  SHOW(cudaGetDeviceProperties(nullptr, 0));
  VALUE(prop.warpSize);
  VALUE(prop.maxThreadsPerBlock);
  VALUE(prop.maxThreadsDim[0]);
  VALUE(prop.maxThreadsDim[2]);
  VALUE(prop.maxGridSize[0]);
  VALUE(prop.maxGridSize[1]);
  VALUE(prop.sharedMemPerBlock);
  VALUE(prop.regsPerBlock);
  VALUE(prop.totalConstMem);
  VALUE(prop.unifiedAddressing);
  VALUE(prop.managedMemory);
  SHOW(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0));
  VALUE(value);
  SHOW(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
  VALUE(value);
  SHOW(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1000));
  SHOW(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(99999), 0));
  SHOW(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
  for (int a = 1; a <= 150; ++a) {
    int got = 0;
    const cudaError_t code =
        cudaDeviceGetAttribute(&got, static_cast<cudaDeviceAttr>(a), 0);
    if (code != cudaSuccess) {
      std::printf("attribute %d: %s\n", a, cudaGetErrorName(code));
      cudaGetLastError();
    }
  }
  size_t limit = 0;
  SHOW(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  VALUE(limit);
  SHOW(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
  VALUE(limit > 0);
  SHOW(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  VALUE(limit);
  SHOW(cudaDeviceGetLimit(&limit, static_cast<cudaLimit>(99)));
  SHOW(cudaDeviceGetLimit(nullptr, cudaLimitStackSize));
  SHOW(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  SHOW(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  VALUE(limit);
  SHOW(cudaDeviceSetLimit(static_cast<cudaLimit>(99), 1));
  cudaFuncCache cache = cudaFuncCachePreferL1;
  SHOW(cudaDeviceGetCacheConfig(&cache));
  VALUE(cache);
  SHOW(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
  unsigned flags = 99;
  SHOW(cudaGetDeviceFlags(&flags));
  VALUE(flags);
  SHOW(cudaSetDeviceFlags(cudaDeviceScheduleYield));
  SHOW(cudaSetDeviceFlags(0xff00));
  int peer = 9;
  SHOW(cudaDeviceCanAccessPeer(&peer, 0, 0));
  VALUE(peer);
  SHOW(cudaDeviceCanAccessPeer(&peer, 0, 1000));
  SHOW(cudaDeviceEnablePeerAccess(0, 0));
  SHOW(cudaDeviceEnablePeerAccess(1000, 0));
  SHOW(cudaDeviceDisablePeerAccess(0));
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  SHOW(cudaMemGetInfo(&free_bytes, &total_bytes));
  VALUE(free_bytes > 0 && free_bytes <= total_bytes);
  SHOW(cudaMemGetInfo(nullptr, &total_bytes));
  SHOW(cudaRuntimeGetVersion(&value));
  VALUE(value);
  SHOW(cudaRuntimeGetVersion(nullptr));
  SHOW(cudaDriverGetVersion(&value));
  VALUE(value >= 13000);
  char bus[32] = "";
  SHOW(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
  VALUE(std::strlen(bus));
  SHOW(cudaDeviceGetByPCIBusId(&value, bus));
  VALUE(value);
  SHOW(cudaDeviceGetByPCIBusId(&value, "ffff:ff:ff.0"));
  int chosen = -1;
  SHOW(cudaChooseDevice(&chosen, &prop));
  VALUE(chosen);
}

void ShowPointer(const char* what, const void* pointer) {
  cudaPointerAttributes attributes = {};
  Show(what, cudaPointerGetAttributes(&attributes, pointer));
  std::printf("  type %d device %d device pointer %d host pointer %d\n",
              static_cast<int>(attributes.type), attributes.device,
              attributes.devicePointer == pointer,
              attributes.hostPointer == pointer);
}

void Pointers() {
  Section("pointers");
  void* p = nullptr;
  cudaMalloc(&p, 100);
  ShowPointer("device", p);
  ShowPointer("device interior", static_cast<char*>(p) + 50);
  cudaFree(p);
  cudaMallocHost(&p, 100);
  ShowPointer("pinned", p);
  cudaFreeHost(p);
  cudaMallocManaged(&p, 100, cudaMemAttachGlobal);
  ShowPointer("managed", p);
  cudaMemLocation location = {};
  location.type = cudaMemLocationTypeDevice;
  SHOW(cudaMemPrefetchAsync(p, 100, location, 0, nullptr));
  SHOW(cudaMemAdvise(p, 100, cudaMemAdviseSetReadMostly, location));
  SHOW(cudaMemPrefetchAsync(&p, 8, location, 0, nullptr));
  cudaFree(p);
  ShowPointer("stack", &p);
  ShowPointer("null", nullptr);
  SHOW(cudaPointerGetAttributes(nullptr, &p));
}

void Unknown() {
  Section("unknown symbols and functions");
  static int variable = 0;
  void* address = nullptr;
  size_t bytes = 0;
  SHOW(cudaGetSymbolAddress(&address, &variable));
  SHOW(cudaGetSymbolSize(&bytes, &variable));
  SHOW(cudaMemcpyToSymbol(&variable, &bytes, 4, 0, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpyFromSymbol(&bytes, &variable, 4, 0, cudaMemcpyDeviceToHost));
  cudaFuncAttributes attributes = {};
  SHOW(cudaFuncGetAttributes(&attributes, &variable));
  SHOW(cudaFuncGetAttributes(nullptr, &variable));
  SHOW(cudaLaunchKernel(&variable, dim3(), dim3(), nullptr, 0, nullptr));
  SHOW(cudaLaunchKernel(nullptr, dim3(), dim3(), nullptr, 0, nullptr));
  int blocks = 0;
  SHOW(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &variable, 32, 0));
}

void Reset() {
  Section("reset");
  void* p = nullptr;
  cudaMalloc(&p, 100);
  SHOW(cudaDeviceSynchronize());
  SHOW(cudaDeviceReset());
  SHOW(cudaFree(p));
  SHOW(cudaMalloc(&p, 100));
  SHOW(cudaFree(p));
  SHOW(cudaProfilerStart());
  SHOW(cudaProfilerStop());
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Devices();
  Errors();
  Allocation();
  Copies();
  Pools();
  Streams();
  Events();
  Pointers();
  Unknown();
  Reset();
  return 0;
}
