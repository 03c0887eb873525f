// An application of the driver API for tests: finds the driver as a static
// cudart does, runs the scenario that its first argument names, and prints what
// it sees. Exit code 0 unless a call failed that should not.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/replay/recorder/driver/app_calls.h"

namespace {

void Launches() {
  const CUdeviceptr cell = Alloc(4);
  CHECK("cuMemsetD8", cell, static_cast<unsigned char>(0), size_t{4});
  for (int i = 0; i < 5; ++i) Check(Increment(cell), "launch");
  Check(Fill(cell, 7, 1), "launch");
  Check(Increment(cell), "launch");
  printf("cell %d\n", ReadInt(cell));
}

// One buffer of three blocks, one small one, a variable, pinned memory.
void Records() {
  const CUdeviceptr large = Alloc(3 << 20);
  const CUdeviceptr small = Alloc(100);
  void* pinned = nullptr;
  CHECK("cuMemHostAlloc", &pinned, size_t{5000}, 0u);
  memset(pinned, 'p', 5000);
  CUdeviceptr managed = 0;
  CHECK("cuMemAllocManaged", &managed, size_t{300},
        static_cast<unsigned>(CU_MEM_ATTACH_GLOBAL));
  memset(reinterpret_cast<void*>(managed), 'm', 300);
  CHECK("cuMemsetD8", large, static_cast<unsigned char>(1), size_t{3 << 20});
  CHECK("cuMemsetD8", small, static_cast<unsigned char>(2), size_t{100});
  printf("large %llx\nsmall %llx\n", large, small);
  Check(Fill(large + (1 << 20), 9, 10), "launch");
  // The packed form of the arguments.
  struct {
    CUdeviceptr to;
    int value;
    int count;
  } packed{small, 8, 2};
  size_t bytes = sizeof(packed);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  Check(Launch(Kernel("fill"), nullptr, {}, extra), "launch");
  printf("values %d %d\n", ReadInt(large + (1 << 20)), ReadInt(small + 4));
}

// Many times what the way out of the process holds.
void RecordsLarge() {
  constexpr size_t kBytes = 100 << 20;
  const CUdeviceptr large = Alloc(kBytes);
  for (size_t at = 0; at < kBytes; at += 1 << 20) {
    CHECK("cuMemsetD8", large + at, static_cast<unsigned char>(at >> 20),
          size_t{1 << 20});
  }
  Check(Fill(large + kBytes - 40, 9, 10), "launch");
  printf("value %d\n", ReadInt(large + kBytes - 40));
}

void Fails() {
  const CUresult launched = Launch(Kernel("fail"), nullptr, {});
  printf("launch %d\n", launched);
  printf("synchronize %d\n", Call("cuCtxSynchronize"));
  CUdeviceptr pointer = 0;
  printf("allocate %d\n", Call("cuMemAlloc", &pointer, size_t{100}));
}

void Allocations() {
  const CUdeviceptr a = Alloc(1);
  const CUdeviceptr b = Alloc(513);
  const CUdeviceptr c = Alloc(2 << 20);
  printf("aligned %d\n", a % 512 == 0 && b % 512 == 0 && c % (2 << 20) == 0);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  CHECK("cuMemGetAddressRange", &base, &bytes, b + 100);
  printf("range %d %zu\n", base == b, bytes);
  printf("interior free %d\n", Call("cuMemFree", b + 1));
  printf("free %d\n", Call("cuMemFree", b));
  printf("double free %d\n", Call("cuMemFree", b));
  printf("null free %d\n", Call("cuMemFree", CUdeviceptr{0}));
  printf("reused %d\n", Alloc(513) == b);
  printf("nothing %d\n", Call("cuMemAlloc", &base, size_t{0}));
  printf("too much %d\n", Call("cuMemAlloc", &base, size_t{1} << 40));
  CUcontext context = nullptr;
  CHECK("cuPointerGetAttribute", static_cast<void*>(&context),
        CU_POINTER_ATTRIBUTE_CONTEXT, c + 5);
  printf("context %d\n", context == g_context);
  unsigned type = 0;
  CHECK("cuMemFree", a);
  printf("freed memory %d\n",
         Call("cuPointerGetAttribute", static_cast<void*>(&type),
              CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  size_t pitch = 0;
  CHECK("cuMemAllocPitch", &base, &pitch, size_t{100}, size_t{3}, 4u);
  printf("pitch %zu\n", pitch);
  CUipcMemHandle handle;
  printf("ipc %d\n", Call("cuIpcGetMemHandle", &handle, c));
  // All memory, twice, so that freed memory must come back.
  for (int round = 0; round < 2; ++round) {
    std::vector<CUdeviceptr> all;
    CUdeviceptr one = 0;
    while (Call("cuMemAlloc", &one, size_t{64} << 20) == CUDA_SUCCESS)
      all.push_back(one);
    printf("blocks %zu\n", all.size());
    for (CUdeviceptr pointer : all) CHECK("cuMemFree", pointer);
  }
}

void Streams() {
  CUstream first = nullptr;
  CUstream second = nullptr;
  CHECK("cuStreamCreate", &first, 0u);
  CHECK("cuStreamCreate", &second, 0u);
  const auto hold =
      reinterpret_cast<void (*)(CUstream, int)>(dlsym(g_library, "fakeHold"));
  const CUdeviceptr a = AllocAsync(1000, first);
  hold(first, 1);
  CHECK("cuMemFreeAsync", a, first);
  printf("same stream %d\n", AllocAsync(1000, first) == a);
  CHECK("cuMemFreeAsync", a, first);
  printf("other stream %d\n", AllocAsync(1000, second) == a);
  printf("no stream %d\n", Alloc(1000) == a);
  CHECK("cuStreamSynchronize", first);
  printf("after synchronizing %d\n", AllocAsync(1000, second) == a);
  // By an event, once new memory would be needed: slots of 2 MiB / 2.
  hold(first, 1);
  const CUdeviceptr large = AllocAsync(4 << 20, first);
  CHECK("cuMemFreeAsync", large, first);
  printf("unfinished %d\n", AllocAsync(4 << 20, second) == large);
  hold(first, 0);
  printf("finished %d\n", AllocAsync(4 << 20, second) == large);
  printf("destroyed %d\n", Call("cuStreamDestroy", first));
  printf("bad stream %d\n",
         Call("cuMemFreeAsync", large, reinterpret_cast<CUstream>(0x1234)));
}

void Devices() {
  const CUdeviceptr first = Alloc(100);
  CUcontext other = nullptr;
  CHECK("cuDevicePrimaryCtxRetain", &other, CUdevice{1});
  CHECK("cuCtxSetCurrent", other);
  const CUdeviceptr second = Alloc(100);
  const auto access =
      reinterpret_cast<int (*)(CUdeviceptr)>(dlsym(g_library, "fakeAccess"));
  printf("stride %llx\n", (second - first) >> 32);
  printf("access %d %d\n", access(first), access(second));
  CHECK("cuCtxSetCurrent", g_context);
  printf("later %d\n", access(Alloc(8 << 20)));
  CHECK("cuMemFree", second);
  // Only this device's memory is recorded, until it may use the other's.
  Check(Fill(first, 1, 1), "launch");
  CHECK("cuCtxSetCurrent", other);
  Alloc(100);
  CHECK("cuCtxSetCurrent", g_context);
  Check(Fill(first, 1, 1), "launch");
  CHECK("cuCtxEnablePeerAccess", other, 0u);
  Check(Fill(first, 1, 1), "launch");
}

void TwoDevices() {
  Check(Fill(Alloc(100), 1, 1), "launch");
  CUcontext other = nullptr;
  CHECK("cuDevicePrimaryCtxRetain", &other, CUdevice{1});
  CHECK("cuCtxSetCurrent", other);
  Check(Fill(Alloc(100), 2, 1), "launch");
}

void Mappings() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const size_t piece = 2 << 20;
  CUdeviceptr at = 0;
  CHECK("cuMemAddressReserve", &at, 3 * piece, size_t{0}, CUdeviceptr{0}, 0ull);
  CUmemGenericAllocationHandle handle = 0;
  CHECK("cuMemCreate", &handle, 2 * piece,
        static_cast<const CUmemAllocationProp*>(&properties), 0ull);
  CHECK("cuMemMap", at, piece, size_t{0}, handle, 0ull);
  CHECK("cuMemMap", at + piece, piece, piece, handle, 0ull);
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK("cuMemSetAccess", at, piece,
        static_cast<const CUmemAccessDesc*>(&access), size_t{1});
  printf("mapped %llx\n", at);
  Check(Fill(at, 3, 100), "launch");
  CHECK("cuMemUnmap", at, 2 * piece);
  Check(Fill(Alloc(4), 3, 1), "launch");
}

void Contexts() {
  const auto used =
      reinterpret_cast<size_t (*)(int)>(dlsym(g_library, "fakeUsedBytes"));
  CUcontext own = nullptr;
  CHECK("cuCtxCreate", &own, static_cast<CUctxCreateParams*>(nullptr), 0u,
        CUdevice{0});
  Alloc(100);
  Alloc(40 << 20);
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CHECK("cuModuleLoadData", &module, static_cast<const void*>(&kFatbin));
  CHECK("cuModuleGetFunction", &kernel, module, "sample");
  printf("used %zu\n", used(0) >> 20);
  CHECK("cuCtxDestroy", own);
  printf("destroyed %zu\n", used(0) >> 20);
  CHECK("cuCtxSetCurrent", g_context);
  Alloc(100);
  Alloc(40 << 20);
  CHECK("cuDevicePrimaryCtxReset", CUdevice{0});
  printf("reset %zu\n", used(0) >> 20);
}

void Forms() {
  const CUdeviceptr cell = Alloc(4);
  CHECK("cuMemsetD8", cell, static_cast<unsigned char>(0), size_t{4});
  CUdeviceptr argument = cell;
  void* parameters[] = {&argument};
  void* address = nullptr;
  g_get("cuLaunchKernel", &address, CUDA_VERSION,
        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr);
  const auto launch = reinterpret_cast<decltype(&cuLaunchKernel)>(address);
  CUfunction kernel = Kernel("increment");
  Check(launch(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
        "launch");
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim = {2, 1, 1};
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[1].value.cooperative = 1;
  CUlaunchConfig config{};
  config.gridDimX = 4;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = 77;
  config.attrs = attributes;
  config.numAttrs = 2;
  CHECK("cuLaunchKernelEx", static_cast<const CUlaunchConfig*>(&config), kernel,
        static_cast<void**>(parameters), static_cast<void**>(nullptr));
  printf("cell %d\n", ReadInt(cell));
  const auto calls =
      reinterpret_cast<long (*)(const char*)>(dlsym(g_library, "fakeCalls"));
  printf("own stream's %ld\n", calls("cuLaunchKernel_ptsz"));
}

void Textures() {
  CUtexObject texture = 0;
  CHECK("cuTexObjectCreate", &texture,
        static_cast<const CUDA_RESOURCE_DESC*>(nullptr),
        static_cast<const CUDA_TEXTURE_DESC*>(nullptr),
        static_cast<const CUDA_RESOURCE_VIEW_DESC*>(nullptr));
  CUdeviceptr to = Alloc(4);
  for (int i = 0; i < 2; ++i)
    Check(Launch(Kernel("sample"), nullptr, {&texture, &to}), "launch");
  Check(Fill(to, 3, 1), "launch");  // 3 is the handle, but not eight bytes
}

void HostMemory() {
  std::vector<int> own(8);
  void* pinned = nullptr;
  CHECK("cuMemHostAlloc", &pinned, size_t{64}, 0u);
  printf("own %llx\n", reinterpret_cast<CUdeviceptr>(own.data()));
  Check(Fill(reinterpret_cast<CUdeviceptr>(own.data()), 1, 1), "launch");
  Check(Fill(Alloc(64) + 8, 1, 1), "launch");
  Check(Fill(reinterpret_cast<CUdeviceptr>(pinned), 1, 1), "launch");
  Check(Fill(CUdeviceptr{0x123456789000}, 1, 0), "launch");
}

// One process plays both.
void Ipc() {
  CUipcMemHandle handle;
  CUdeviceptr opened = 0;
  CHECK("cuIpcGetMemHandle", &handle, Alloc(1000));
  CHECK("cuIpcOpenMemHandle", &opened, handle, 1u);
  printf("opened %llx\n", opened);
  Check(Fill(opened, 3, 10), "launch");
  CHECK("cuIpcCloseMemHandle", opened);
  Check(Fill(Alloc(4), 3, 1), "launch");
}

// A kernel that the host ends after the launch, then one that another kernel
// ends.
void Spins() {
  CUstream first = nullptr;
  CUstream second = nullptr;
  CHECK("cuStreamCreate", &first, 0u);
  CHECK("cuStreamCreate", &second, 0u);
  void* memory = nullptr;
  CHECK("cuMemHostAlloc", &memory, size_t{64}, 0u);
  memset(memory, 0, 64);
  int* flags = static_cast<int*>(memory);
  Check(Launch(Kernel("spin"), first, {&flags}), "launch");
  flags[0] = 1;
  CHECK("cuStreamSynchronize", first);
  int* flag = &flags[1];
  int value = 1;
  int count = 1;
  Check(Launch(Kernel("spin"), first, {&flag}), "launch");
  Check(Launch(Kernel("fill"), second, {&flag, &value, &count}), "launch");
  CHECK("cuStreamSynchronize", first);
  printf("flags %d %d\n", flags[0], flags[1]);
  Check(Increment(Alloc(4)), "launch");
}

// A thread waits in a copy for a kernel that waits for this thread's launch.
void BlockedThread() {
  CUstream first = nullptr;
  CUstream second = nullptr;
  CHECK("cuStreamCreate", &first, 0u);
  CHECK("cuStreamCreate", &second, 0u);
  CUdeviceptr flag = Alloc(4);
  CHECK("cuMemsetD8", flag, static_cast<unsigned char>(0), size_t{4});
  Check(Launch(Kernel("spin"), first, {&flag}), "launch");
  std::thread reader([flag] {
    CHECK("cuCtxSetCurrent", g_context);
    printf("read %d\n", ReadInt(flag));
  });
  usleep(100000);  // into the copy
  int value = 1;
  int count = 1;
  Check(Launch(Kernel("fill"), second, {&flag, &value, &count}), "launch");
  reader.join();
}

void Pools() {
  const auto calls =
      reinterpret_cast<long (*)(const char*)>(dlsym(g_library, "fakeCalls"));
  const auto from = [&](CUmemoryPool pool) {
    CUdeviceptr pointer = 0;
    CHECK("cuMemAllocFromPoolAsync", &pointer, size_t{100}, pool,
          static_cast<CUstream>(nullptr));
    return pointer;
  };
  CUmemoryPool pool = nullptr;
  CHECK("cuDeviceGetDefaultMemPool", &pool, CUdevice{1});
  printf("other device's %llx\n", from(pool) >> 32);
  CUmemPoolProps properties{};
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CHECK("cuMemPoolCreate", &pool,
        static_cast<const CUmemPoolProps*>(&properties));
  printf("own %llx\n", from(pool) >> 32);
  printf("the driver's %ld\n", calls("cuMemAllocFromPoolAsync"));
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CHECK("cuMemPoolCreate", &pool,
        static_cast<const CUmemPoolProps*>(&properties));
  from(pool);
  printf("shared: the driver's %ld\n", calls("cuMemAllocFromPoolAsync"));
}

void Reloads() {
  const CUdeviceptr cell = Alloc(4);
  for (int i = 0; i < 3; ++i) {
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    CHECK("cuModuleLoadData", &module, static_cast<const void*>(&kFatbin));
    CHECK("cuModuleGetFunction", &kernel, module, "increment");
    CUdeviceptr argument = cell;
    Check(Launch(kernel, nullptr, {&argument}), "launch");
    CHECK("cuModuleUnload", module);
  }
}

void DlsymTransparency() {
  void* direct = dlsym(g_library, "cuLaunchKernel");
  void* asked = nullptr;
  g_get("cuLaunchKernel", &asked, CUDA_VERSION, 0, nullptr);
  printf("one hook %d\n", direct == asked);
  g_get("cuLaunchKernel", &asked, CUDA_VERSION,
        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr);
  printf("another for threads' own streams %d\n", direct != asked);
  printf("unhooked %d\n", dlsym(g_library, "cuDeviceGetCount") != nullptr);
  printf("missing %d\n", dlsym(g_library, "cuNoSuchCall") == nullptr);
  printf("error %d\n", dlerror() != nullptr);
  printf("old version %d\n",
         dlsym(g_library, "cuMemAlloc") == nullptr);  // the fake has none
  dlerror();
  printf("host %d\n",
         dlsym(RTLD_DEFAULT, "printf") == reinterpret_cast<void*>(&printf));
  printf("next %d\n", dlsym(RTLD_NEXT, "malloc") != nullptr);
  printf("no library's %d\n", dlsym(RTLD_NEXT, "cuNoSuchCall") == nullptr);
}

void Forks() {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    Start();
    Launches();
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d\n", status);
  fflush(stdout);
}

void Captures() {
  CUstream stream = nullptr;
  CHECK("cuStreamCreate", &stream, 0u);
  CUdeviceptr cell = Alloc(4);
  CHECK("cuMemsetD8", cell, static_cast<unsigned char>(0), size_t{4});
  CHECK("cuStreamBeginCapture", stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  Check(Launch(Kernel("increment"), stream, {&cell}), "launch");
  CUgraph graph = nullptr;
  CHECK("cuStreamEndCapture", stream, &graph);
  Check(Increment(cell), "launch");
  printf("cell %d\n", ReadInt(cell));
}

// Launches of one shape in every form, and one of another shape.
void Tuned() {
  CUdeviceptr cell = Alloc(4);
  CHECK("cuMemsetD8", cell, static_cast<unsigned char>(0), size_t{4});
  Check(Increment(cell), "launch");
  size_t bytes = sizeof(cell);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &cell,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  CUfunction kernel = Kernel("increment");
  Check(Launch(kernel, nullptr, {}, extra), "launch");
  void* parameters[] = {&cell};
  CUlaunchConfig config{};
  config.gridDimX = 2;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  CHECK("cuLaunchKernelEx", static_cast<const CUlaunchConfig*>(&config), kernel,
        static_cast<void**>(parameters), static_cast<void**>(nullptr));
  config.gridDimX = 3;
  CHECK("cuLaunchKernelEx", static_cast<const CUlaunchConfig*>(&config), kernel,
        static_cast<void**>(parameters), static_cast<void**>(nullptr));
  printf("cell %d\n", ReadInt(cell));
}

// A constant of the application changes between launches.
void TunedConstant() {
  CUdeviceptr table = 0;
  size_t bytes = 0;
  CHECK("cuLibraryGetGlobal", &table, &bytes, g_module, "table");
  const CUdeviceptr cell = Alloc(4);
  CHECK("cuMemsetD8", cell, static_cast<unsigned char>(0), size_t{4});
  for (const int value : {7, 30}) {
    CHECK("cuMemcpyHtoD", table, static_cast<const void*>(&value),
          sizeof(value));
    Check(Increment(cell), "launch");
  }
  printf("cell %d\n", ReadInt(cell));
}

// In two devices' contexts.
void TunedContexts() {
  const CUdeviceptr first = Alloc(4);
  Check(Increment(first), "launch");
  CUcontext other = nullptr;
  CHECK("cuDevicePrimaryCtxRetain", &other, CUdevice{1});
  CHECK("cuCtxSetCurrent", other);
  Check(Increment(Alloc(4)), "launch");
  CHECK("cuCtxSetCurrent", g_context);
  Check(Increment(first), "launch");
  printf("cell %d\n", ReadInt(first));
}

void Threads() {
  Increment(Alloc(4));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      CHECK("cuCtxSetCurrent", g_context);
      CUdeviceptr cell = Alloc(4);
      CHECK("cuMemsetD8", cell, static_cast<unsigned char>(0), size_t{4});
      for (int i = 0; i < 200; ++i) {
        Check(Increment(cell), "launch");
        CHECK("cuMemFree", Alloc(600));
      }
      if (ReadInt(cell) != 200) printf("lost a launch\n");
    });
  }
  for (std::thread& thread : threads) thread.join();
  printf("done\n");
}

}  // namespace

int main(int, char** argv) {
  const std::string scenario = argv[1];
  if (scenario == "forks") {
    Forks();
    return 0;
  }
  Start();
  if (scenario == "launches") Launches();
  if (scenario == "records") Records();
  if (scenario == "records-large") RecordsLarge();
  if (scenario == "fails") Fails();
  if (scenario == "allocations") Allocations();
  if (scenario == "streams") Streams();
  if (scenario == "dlsym") DlsymTransparency();
  if (scenario == "captures") Captures();
  if (scenario == "tuned") Tuned();
  if (scenario == "tuned-constant") TunedConstant();
  if (scenario == "tuned-contexts") TunedContexts();
  if (scenario == "threads") Threads();
  if (scenario == "devices") Devices();
  if (scenario == "two-devices") TwoDevices();
  if (scenario == "mappings") Mappings();
  if (scenario == "contexts") Contexts();
  if (scenario == "forms") Forms();
  if (scenario == "textures") Textures();
  if (scenario == "host-memory") HostMemory();
  if (scenario == "ipc") Ipc();
  if (scenario == "spins") Spins();
  if (scenario == "blocked-thread") BlockedThread();
  if (scenario == "pools") Pools();
  if (scenario == "reloads") Reloads();
  if (scenario == "used-then-forks") {
    Launches();
    Forks();
  }
  fflush(stdout);
  const auto calls =
      reinterpret_cast<long (*)(const char*)>(dlsym(g_library, "fakeCalls"));
  printf("native allocations %ld\n",
         calls("cuMemAlloc_v2") + calls("cuMemAllocAsync"));
  return 0;
}
