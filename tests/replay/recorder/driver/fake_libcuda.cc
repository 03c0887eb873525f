// A libcuda.so.1 over host memory, for tests without a GPU: two devices, VMM by
// memfds mapped at fixed addresses, streams that execute at once, kernels that
// are host functions, and modules from images of this form:
//
//   a fatbin header, then text: one "kernel NAME" or "variable NAME BYTES" a
//   line, ended by a NUL; or an ELF file with that text in a section, behind
//   a line "fake module"
//
// What a test needs beyond libcuda's interface is exported as fake*. Calls that
// nothing here uses are left out: cuGetProcAddress does not find them.
// Thread-safe by one lock.
#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/replay/recorder/driver/fake_graphs.h"

namespace {

constexpr int kDevices = 2;
constexpr size_t kTotalBytes = size_t{1} << 30;
constexpr size_t kGranularity = 2 << 20;

struct FakeContext {
  int device;
};
struct FakeStream {
  CUcontext context;
  bool held = false;
  const volatile int* spins_on = nullptr;  // work in it ends once that is set
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  fake::Capture captured;
  std::vector<std::function<void()>>
      waiting;  // graphs behind a spinning kernel
};
struct FakeEvent {
  FakeStream* stream = nullptr;  // unfinished when the event was recorded
};
struct Physical {
  int fd;
  size_t bytes;
  int device;
};
struct Region {
  size_t bytes;
  int device;
  bool native;  // cuMemAlloc's
};
struct FakeModule;
struct FakeKernel {
  FakeModule* module;
  std::string name;
};
struct FakeModule {
  std::map<std::string, FakeKernel*> kernels;
  std::map<std::string, std::pair<char*, size_t>> variables;
};

struct KernelInfo {
  const char* name;
  void (*run)(void**, unsigned blocks, unsigned threads);
  size_t count;          // of parameters
  size_t parameters[3];  // sizes, all naturally aligned
};

template <typename T>
T Argument(void** arguments, int i) {
  T value;
  memcpy(&value, arguments[i], sizeof(value));
  return value;
}

CUresult g_sticky = CUDA_SUCCESS;
FakeModule* g_running = nullptr;  // of the kernel that runs

constexpr KernelInfo kKernels[] = {
    // fill(int* to, int value, int count)
    {"fill",
     [](void** a, unsigned, unsigned) {
       int* to = Argument<int*>(a, 0);
       for (int i = 0; i < Argument<int>(a, 2); ++i)
         to[i] = Argument<int>(a, 1);
     },
     3,
     {8, 4, 4}},
    // increment(int* cell)
    {"increment",
     [](void** a, unsigned, unsigned) { ++*Argument<int*>(a, 0); },
     1,
     {8}},
    // Tuned code in place of increment.
    {"add_threads",
     [](void** a, unsigned blocks, unsigned threads) {
       *Argument<int*>(a, 0) += static_cast<int>(blocks * threads);
     },
     1,
     {8}},
    {"increment__intern__tuned",
     [](void** a, unsigned, unsigned) { *Argument<int*>(a, 0) += 10; },
     1,
     {8}},
    {"add_table",
     [](void** a, unsigned, unsigned) {
       int value = 0;
       memcpy(&value, g_running->variables.at("table").first, sizeof(value));
       *Argument<int*>(a, 0) += value;
     },
     1,
     {8}},
    // sample(texture, int* to): does nothing
    {"sample", [](void**, unsigned, unsigned) {}, 2, {8, 8}},
    // spin(int* flag): does not end before *flag is set
    {"spin", [](void**, unsigned, unsigned) {}, 1, {8}},
    // fail()
    {"fail",
     [](void**, unsigned, unsigned) { g_sticky = CUDA_ERROR_ILLEGAL_ADDRESS; },
     0,
     {}},
};

const KernelInfo* InfoOf(const std::string& name) {
  for (const KernelInfo& info : kKernels)
    if (name == info.name) return &info;
  return nullptr;
}

size_t OffsetOf(const KernelInfo& info, size_t index) {
  size_t end = 0;
  for (size_t i = 0; i < info.count && i < std::size(info.parameters); ++i) {
    const size_t bytes = info.parameters[i];
    const size_t offset = (end + bytes - 1) / bytes * bytes;
    if (i == index) return offset;
    end = offset + bytes;
  }
  return end;
}

std::recursive_mutex g_mutex;
using Lock = std::lock_guard<std::recursive_mutex>;
bool g_initialized = false;
FakeContext g_primary[kDevices] = {{0}, {1}};
int g_primary_uses[kDevices] = {};
thread_local std::vector<CUcontext> t_contexts;
std::map<uint64_t, Region> g_regions;  // live memory by address
size_t g_used[kDevices] = {};
std::map<std::string, std::atomic<long>> g_calls;
std::set<FakeStream*> g_streams;
std::map<uint64_t, int> g_access;  // bits of devices, by mapping

void Count(const char* call) { ++g_calls[call]; }

CUcontext Current() { return t_contexts.empty() ? nullptr : t_contexts.back(); }
FakeContext* AsContext(CUcontext context) {
  return reinterpret_cast<FakeContext*>(context);
}
FakeStream* AsStream(CUstream stream) {
  const bool implicit = stream == nullptr || stream == CU_STREAM_LEGACY ||
                        stream == CU_STREAM_PER_THREAD;
  return implicit ? nullptr : reinterpret_cast<FakeStream*>(stream);
}

std::map<uint64_t, Region>::iterator RegionOf(uint64_t address) {
  auto it = g_regions.upper_bound(address);
  if (it == g_regions.begin()) return g_regions.end();
  --it;
  return address - it->first < it->second.bytes ? it : g_regions.end();
}

CUresult Ready() {
  if (!g_initialized) return CUDA_ERROR_NOT_INITIALIZED;
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return g_sticky;
}

// What stands behind "fake module" in an ELF file; null: nothing.
const char* TextOfElf(const void* image) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof(header));
  constexpr char kMarker[] = "fake module\n";
  const void* found =
      memmem(image, header.e_shoff, kMarker, sizeof(kMarker) - 1);
  return found != nullptr
             ? static_cast<const char*>(found) + sizeof(kMarker) - 1
             : nullptr;
}

FakeModule* Load(const void* image) {
  uint32_t magic = 0;
  memcpy(&magic, image, 4);
  if (magic == 0x466243b1) {
    memcpy(&image, static_cast<const char*>(image) + 8, 8);
    memcpy(&magic, image, 4);
  }
  const char* contents = nullptr;
  if (memcmp(image, ELFMAG, SELFMAG) == 0)
    contents = TextOfElf(image);
  else if (magic == 0xba55ed50)
    contents = static_cast<const char*>(image) + 16;
  if (contents == nullptr) return nullptr;
  auto* module = new FakeModule;
  std::istringstream text(contents);
  std::string kind, name;
  while (text >> kind >> name) {
    if (kind == "kernel") {
      module->kernels[name] = new FakeKernel{module, name};
    } else {
      size_t bytes = 0;
      text >> bytes;
      module->variables[name] = {static_cast<char*>(calloc(bytes, 1)), bytes};
    }
  }
  return module;
}

// Null: it is not being captured.
FakeStream* Capturing(CUstream stream) {
  FakeStream* at = AsStream(stream);
  return at != nullptr && at->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE
             ? at
             : nullptr;
}

CUresult Execute(CUfunction function, unsigned blocks, unsigned threads,
                 CUstream stream, void** parameters, void** extra) {
  Lock lock(g_mutex);
  Count("launch");
  if (const CUresult ready = Ready(); ready != CUDA_SUCCESS) return ready;
  const auto* kernel = reinterpret_cast<FakeKernel*>(function);
  const KernelInfo* info = InfoOf(kernel->name);
  if (info == nullptr || threads == 0) return CUDA_ERROR_INVALID_VALUE;
  if (FakeStream* capturing = Capturing(stream); capturing != nullptr) {
    CUDA_KERNEL_NODE_PARAMS node{};
    node.kern = reinterpret_cast<CUkernel>(function);
    node.gridDimX = blocks;
    node.blockDimX = threads;
    node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = parameters;
    node.extra = extra;
    capturing->captured.AddKernel(node);
    return CUDA_SUCCESS;
  }
  std::vector<void*> pointers;
  if (parameters == nullptr && extra != nullptr) {
    char* buffer = nullptr;
    for (void** e = extra; *e != CU_LAUNCH_PARAM_END; e += 2)
      if (e[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
        buffer = static_cast<char*>(e[1]);
    for (size_t i = 0; i < info->count; ++i)
      pointers.push_back(buffer + OffsetOf(*info, i));
    parameters = pointers.data();
  }
  g_running = kernel->module;
  info->run(parameters, blocks, threads);
  if (FakeStream* at = AsStream(stream);
      kernel->name == "spin" && at != nullptr)
    at->spins_on = Argument<const volatile int*>(parameters, 0);
  return CUDA_SUCCESS;
}

bool Spins(const FakeStream& stream) {
  return stream.spins_on != nullptr && *stream.spins_on == 0;
}

// Whether work of the stream is not done; goes on with what can run.
bool Busy(FakeStream* stream) {
  while (!Spins(*stream) && !stream->waiting.empty()) {
    const std::function<void()> work = stream->waiting.front();
    stream->waiting.erase(stream->waiting.begin());
    work();
  }
  return Spins(*stream);
}

// Requires that the lock is not held.
void AwaitSpinning(const FakeStream* only) {
  for (;; usleep(1000)) {
    Lock lock(g_mutex);
    bool any = false;
    for (FakeStream* stream : g_streams)
      any = any || ((only == nullptr || stream == only) && Busy(stream));
    if (!any) return;
  }
}

CUresult NativeAlloc(CUdeviceptr* pointer, size_t bytes) {
  Lock lock(g_mutex);
  if (const CUresult ready = Ready(); ready != CUDA_SUCCESS) return ready;
  if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const int device = AsContext(Current())->device;
  if (g_used[device] + bytes > kTotalBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = aligned_alloc(512, (bytes + 511) / 512 * 512);
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  g_regions[*pointer] = {bytes, device, true};
  g_used[device] += bytes;
  return CUDA_SUCCESS;
}

CUresult NativeFree(CUdeviceptr pointer) {
  Lock lock(g_mutex);
  const auto it = g_regions.find(pointer);
  if (it == g_regions.end() || !it->second.native)
    return CUDA_ERROR_INVALID_VALUE;
  g_used[it->second.device] -= it->second.bytes;
  g_regions.erase(it);
  free(reinterpret_cast<void*>(pointer));
  return CUDA_SUCCESS;
}

}  // namespace

namespace fake {

std::recursive_mutex& Mutex() { return g_mutex; }
void Count(const char* call) { ::Count(call); }

std::vector<size_t> ParameterBytes(CUfunction function) {
  const KernelInfo* info =
      InfoOf(reinterpret_cast<FakeKernel*>(function)->name);
  return {info->parameters, info->parameters + info->count};
}

std::vector<size_t> ParameterOffsets(CUfunction function) {
  const KernelInfo* info =
      InfoOf(reinterpret_cast<FakeKernel*>(function)->name);
  std::vector<size_t> offsets;
  for (size_t i = 0; i < info->count; ++i)
    offsets.push_back(OffsetOf(*info, i));
  return offsets;
}

CUresult RunKernel(CUfunction function, unsigned blocks, unsigned threads,
                   CUstream stream, void** parameters) {
  return Execute(function, blocks, threads, stream, parameters, nullptr);
}

}  // namespace fake

#define EXPORT extern "C" __attribute__((visibility("default")))

// How often a call was made ("cuMemAlloc_v2", ...).
EXPORT long fakeCalls(const char* call) {
  Lock lock(g_mutex);
  return g_calls[call];
}
// Work in a held stream counts as unfinished.
EXPORT void fakeHold(CUstream stream, int held) {
  Lock lock(g_mutex);
  AsStream(stream)->held = held != 0;
}
// Bits of the devices that may use a mapping.
EXPORT int fakeAccess(CUdeviceptr pointer) {
  Lock lock(g_mutex);
  const auto it = RegionOf(pointer);
  return it == g_regions.end() ? 0 : g_access[it->first];
}
EXPORT size_t fakeUsedBytes(int device) {
  Lock lock(g_mutex);
  return g_used[device];
}

EXPORT CUresult cuInit(unsigned int) {
  g_initialized = true;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDriverGetVersion(int* version) {
#ifdef FAKE_CUDA_12_2
  *version = 12020;
#else
  *version = CUDA_VERSION;
#endif
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetCount(int* count) {
  *count = kDevices;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = kTotalBytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  Lock lock(g_mutex);
  if (device < 0 || device >= kDevices) return CUDA_ERROR_INVALID_DEVICE;
  ++g_primary_uses[device];
  *context = reinterpret_cast<CUcontext>(&g_primary[device]);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Lock lock(g_mutex);
  --g_primary_uses[device];
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  Lock lock(g_mutex);
  g_sticky = CUDA_SUCCESS;
  (void)device;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags,
                                           int* active) {
  Lock lock(g_mutex);
  *flags = 0;
  *active = g_primary_uses[device] > 0;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = Current();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  if (!t_contexts.empty()) t_contexts.pop_back();
  if (context != nullptr) t_contexts.push_back(context);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  t_contexts.push_back(context);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  *context = Current();
  t_contexts.pop_back();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  if (Current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = AsContext(Current())->device;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  *can = 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxEnablePeerAccess(CUcontext, unsigned int) {
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSynchronize(void) {
  AwaitSpinning(nullptr);
  Lock lock(g_mutex);
  Count("cuCtxSynchronize");
  return Ready();
}
EXPORT CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams*,
                               unsigned int, CUdevice device) {
  *context = reinterpret_cast<CUcontext>(new FakeContext{device});
  t_contexts.push_back(*context);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
  if (Current() == context) t_contexts.pop_back();
  delete AsContext(context);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned int) {
  Lock lock(g_mutex);
  auto* fresh = new FakeStream{Current()};
  g_streams.insert(fresh);
  *stream = reinterpret_cast<CUstream>(fresh);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  Lock lock(g_mutex);
  g_streams.erase(AsStream(stream));  // kept: events may name it
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  Lock lock(g_mutex);
  if (AsStream(stream) == nullptr) {
    *context = Current();
  } else {
    if (g_streams.count(AsStream(stream)) == 0)
      return CUDA_ERROR_INVALID_HANDLE;
    *context = AsStream(stream)->context;
  }
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  if (AsStream(stream) != nullptr) AwaitSpinning(AsStream(stream));
  Lock lock(g_mutex);
  if (AsStream(stream) != nullptr) AsStream(stream)->held = false;
  return Ready();
}
EXPORT CUresult cuStreamQuery(CUstream stream) {
  Lock lock(g_mutex);
  FakeStream* at = AsStream(stream);
  if (at != nullptr && (at->held || Busy(at))) return CUDA_ERROR_NOT_READY;
  return Ready();
}
EXPORT CUresult cuStreamIsCapturing(CUstream stream,
                                    CUstreamCaptureStatus* status) {
  Lock lock(g_mutex);
  *status = AsStream(stream) != nullptr ? AsStream(stream)->capture
                                        : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  Lock lock(g_mutex);
  AsStream(stream)->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  AsStream(stream)->captured.Begin();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  Lock lock(g_mutex);
  AsStream(stream)->capture = CU_STREAM_CAPTURE_STATUS_NONE;
  *graph = AsStream(stream)->captured.End();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  Lock lock(g_mutex);
  Count("cuGraphLaunch");
  if (const CUresult ready = Ready(); ready != CUDA_SUCCESS) return ready;
  if (FakeStream* capturing = Capturing(stream); capturing != nullptr) {
    capturing->captured.AddGraph(exec);
    return CUDA_SUCCESS;
  }
  const std::function<void()> work = fake::WorkOf(exec, stream);
  if (work == nullptr) return CUDA_ERROR_INVALID_VALUE;
  FakeStream* at = AsStream(stream);
  if (at != nullptr && (Spins(*at) || !at->waiting.empty()))
    at->waiting.push_back(work);
  else
    work();  // what fails is met later
  return CUDA_SUCCESS;
}
EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(current, *mode);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent* event, unsigned int) {
  *event = reinterpret_cast<CUevent>(new FakeEvent);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  delete reinterpret_cast<FakeEvent*>(event);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  Lock lock(g_mutex);
  FakeStream* at = AsStream(stream);
  reinterpret_cast<FakeEvent*>(event)->stream =
      at != nullptr && (at->held || Spins(*at)) ? at : nullptr;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventQuery(CUevent event) {
  Lock lock(g_mutex);
  const FakeStream* stream = reinterpret_cast<FakeEvent*>(event)->stream;
  return stream != nullptr && (stream->held || Spins(*stream))
             ? CUDA_ERROR_NOT_READY
             : g_sticky;
}
// Streams execute at once: it counts only.
EXPORT CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned int) {
  Lock lock(g_mutex);
  Count("cuStreamWaitEvent");
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventSynchronize(CUevent) { return g_sticky; }
#undef cuEventElapsedTime
EXPORT CUresult cuEventElapsedTime(float* ms, CUevent, CUevent) {
  *ms = 0.25f;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr* pointer, size_t bytes, size_t,
                                    CUdeviceptr at, unsigned long long) {
  void* memory = mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes) {
  munmap(reinterpret_cast<void*>(pointer), bytes);
  return CUDA_SUCCESS;
}
EXPORT CUresult
cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                              CUmemAllocationGranularity_flags) {
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                            const CUmemAllocationProp* properties,
                            unsigned long long) {
  Lock lock(g_mutex);
  Count("cuMemCreate");
  const int device = properties->location.id;
  if (bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (g_used[device] + bytes > kTotalBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const int fd = memfd_create("fake", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  g_used[device] += bytes;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(
      new Physical{fd, bytes, device});
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  Lock lock(g_mutex);
  auto* physical = reinterpret_cast<Physical*>(handle);
  g_used[physical->device] -= physical->bytes;
  close(physical->fd);
  delete physical;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                         CUmemGenericAllocationHandle handle,
                         unsigned long long) {
  Lock lock(g_mutex);
  const auto* physical = reinterpret_cast<Physical*>(handle);
  if (mmap(reinterpret_cast<void*>(pointer), bytes, PROT_NONE,
           MAP_SHARED | MAP_FIXED, physical->fd,
           static_cast<off_t>(offset)) == MAP_FAILED)
    return CUDA_ERROR_INVALID_VALUE;
  g_regions[pointer] = {bytes, physical->device, false};
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes,
                               const CUmemAccessDesc* access, size_t count) {
  Lock lock(g_mutex);
  for (size_t i = 0; i < count; ++i)
    g_access[pointer] |= 1 << access[i].location.id;
  return mprotect(reinterpret_cast<void*>(pointer), bytes,
                  PROT_READ | PROT_WRITE) == 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  Lock lock(g_mutex);
  g_regions.erase(pointer);
  g_access.erase(pointer);
  return mmap(reinterpret_cast<void*>(pointer), bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
              0) != MAP_FAILED
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  Count("cuMemAlloc_v2");
  return NativeAlloc(pointer, bytes);
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  Count("cuMemFree_v2");
  return pointer == 0 ? CUDA_SUCCESS : NativeFree(pointer);
}
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch,
                                   size_t width, size_t height,
                                   unsigned int element) {
  if (element != 4 && element != 8 && element != 16)
    return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + 511) / 512 * 512;
  return NativeAlloc(pointer, *pitch * height);
}
EXPORT CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream) {
  Count("cuMemAllocAsync");
  return NativeAlloc(pointer, bytes);
}
EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, size_t bytes,
                                     CUstream) {
  Count("cuMemAllocAsync_ptsz");
  return NativeAlloc(pointer, bytes);
}
EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  if (device >= kDevices) return CUDA_ERROR_INVALID_DEVICE;
  *pool = reinterpret_cast<CUmemoryPool>(&g_primary[device]);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps*) {
  *pool = reinterpret_cast<CUmemoryPool>(new int);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes,
                                        CUmemoryPool, CUstream) {
  Count("cuMemAllocFromPoolAsync");
  return NativeAlloc(pointer, bytes);
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream) {
  return NativeFree(pointer);
}
EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream) {
  return NativeFree(pointer);
}
EXPORT CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  Lock lock(g_mutex);
  *total = kTotalBytes;
  *free_bytes = kTotalBytes - g_used[AsContext(Current())->device];
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes,
                                        CUdeviceptr pointer) {
  Lock lock(g_mutex);
  const auto it = RegionOf(pointer);
  if (it == g_regions.end()) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = it->first;
  if (bytes != nullptr) *bytes = it->second.bytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuPointerGetAttribute(void* value, CUpointer_attribute what,
                                      CUdeviceptr pointer) {
  Lock lock(g_mutex);
  const auto it = RegionOf(pointer);
  if (it == g_regions.end()) return CUDA_ERROR_INVALID_VALUE;
  if (what == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    *static_cast<unsigned*>(value) = CU_MEMORYTYPE_DEVICE;
  else if (what == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    *static_cast<int*>(value) = it->second.device;
  else if (what == CU_POINTER_ATTRIBUTE_CONTEXT)
    *static_cast<CUcontext*>(value) = nullptr;
  else
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned int) {
  *pointer = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemFreeHost(void* pointer) {
  free(pointer);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemHostRegister_v2(void*, size_t, unsigned int) {
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemHostUnregister(void*) { return CUDA_SUCCESS; }
EXPORT CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes,
                                  unsigned int) {
  *pointer = reinterpret_cast<CUdeviceptr>(calloc(bytes, 1));
  return CUDA_SUCCESS;
}
// Only of cuMemAlloc's memory. What is opened is other memory of that size.
EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  Lock lock(g_mutex);
  const auto it = g_regions.find(pointer);
  if (it == g_regions.end() || !it->second.native)
    return CUDA_ERROR_INVALID_VALUE;
  memcpy(handle, &it->second.bytes, sizeof(size_t));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer,
                                      CUipcMemHandle handle, unsigned int) {
  size_t bytes = 0;
  memcpy(&bytes, &handle, sizeof(bytes));
  return NativeAlloc(pointer, bytes);
}
EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  return NativeFree(pointer);
}
EXPORT CUresult cuTexObjectCreate(CUtexObject* object,
                                  const CUDA_RESOURCE_DESC*,
                                  const CUDA_TEXTURE_DESC*,
                                  const CUDA_RESOURCE_VIEW_DESC*) {
  *object = 3;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuTexObjectDestroy(CUtexObject) { return CUDA_SUCCESS; }
EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from,
                                size_t bytes) {
  Lock lock(g_mutex);
  memcpy(reinterpret_cast<void*>(to), from, bytes);
  return g_sticky;
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes,
                                     CUstream) {
  Lock lock(g_mutex);
  if (g_sticky == CUDA_SUCCESS)
    memcpy(to, reinterpret_cast<void*>(from), bytes);
  return g_sticky;
}
EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  AwaitSpinning(nullptr);
  return cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
}
EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value,
                              size_t bytes) {
  memset(reinterpret_cast<void*>(to), value, bytes);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from,
                                     size_t bytes, CUstream stream) {
  Lock lock(g_mutex);
  if (FakeStream* capturing = Capturing(stream); capturing != nullptr)
    capturing->captured.AddCopy(to, from, bytes);
  else
    memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                                size_t bytes, CUstream stream) {
  Lock lock(g_mutex);
  if (FakeStream* capturing = Capturing(stream); capturing != nullptr) {
    capturing->captured.AddMemset(to, value, bytes);
    return CUDA_SUCCESS;
  }
  return cuMemsetD8_v2(to, value, bytes);
}

EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  FakeModule* loaded = Load(image);
  *module = reinterpret_cast<CUmodule>(loaded);
  return loaded != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}
EXPORT CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module,
                                    const char* name) {
  auto* loaded = reinterpret_cast<FakeModule*>(module);
  const auto it = loaded->kernels.find(name);
  if (it == loaded->kernels.end()) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(it->second);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, size_t* bytes,
                                     CUmodule module, const char* name) {
  auto* loaded = reinterpret_cast<FakeModule*>(module);
  const auto it = loaded->variables.find(name);
  if (it == loaded->variables.end()) return CUDA_ERROR_NOT_FOUND;
  if (pointer != nullptr)
    *pointer = reinterpret_cast<CUdeviceptr>(it->second.first);
  if (bytes != nullptr) *bytes = it->second.second;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuLibraryLoadData(CUlibrary* library, const void* code,
                                  CUjit_option*, void**, unsigned int,
                                  CUlibraryOption*, void**, unsigned int) {
  FakeModule* loaded = Load(code);
  *library = reinterpret_cast<CUlibrary>(loaded);
  return loaded != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}
EXPORT CUresult cuLibraryUnload(CUlibrary) { return CUDA_SUCCESS; }
EXPORT CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library,
                                   const char* name) {
  return cuModuleGetFunction(reinterpret_cast<CUfunction*>(kernel),
                             reinterpret_cast<CUmodule>(library), name);
}
EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, size_t* bytes,
                                   CUlibrary library, const char* name) {
  return cuModuleGetGlobal_v2(pointer, bytes,
                              reinterpret_cast<CUmodule>(library), name);
}
EXPORT CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
  Count("cuFuncSetAttribute");
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                   CUfunction) {
  *value = static_cast<int>(attribute) + 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute,
                                     CUkernel, CUdevice) {
  *value = static_cast<int>(attribute) + 1;
  return CUDA_SUCCESS;
}
#ifndef FAKE_CUDA_12_2
EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index,
                                   size_t* offset, size_t* bytes) {
  const KernelInfo* info =
      InfoOf(reinterpret_cast<FakeKernel*>(function)->name);
  if (index >= info->count || index >= std::size(info->parameters))
    return CUDA_ERROR_INVALID_VALUE;
  *offset = OffsetOf(*info, index);
  *bytes = info->parameters[index];
  return CUDA_SUCCESS;
}
EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index,
                                     size_t* offset, size_t* bytes) {
  return cuFuncGetParamInfo(reinterpret_cast<CUfunction>(kernel), index, offset,
                            bytes);
}
#endif

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x,
                               unsigned int grid_y, unsigned int grid_z,
                               unsigned int block_x, unsigned int block_y,
                               unsigned int block_z, unsigned int,
                               CUstream stream, void** parameters,
                               void** extra) {
  return Execute(function, grid_x * grid_y * grid_z,
                 block_x * block_y * block_z, stream, parameters, extra);
}
EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x,
                                    unsigned int grid_y, unsigned int grid_z,
                                    unsigned int block_x, unsigned int block_y,
                                    unsigned int block_z, unsigned int,
                                    CUstream stream, void** parameters,
                                    void** extra) {
  Count("cuLaunchKernel_ptsz");
  return Execute(function, grid_x * grid_y * grid_z,
                 block_x * block_y * block_z, stream, parameters, extra);
}
EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config,
                                 CUfunction function, void** parameters,
                                 void** extra) {
  return Execute(function,
                 config->gridDimX * config->gridDimY * config->gridDimZ,
                 config->blockDimX * config->blockDimY * config->blockDimZ,
                 config->hStream, parameters, extra);
}

// As the driver: the newest form that cuda_version knows, by its base name.
EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** address, int,
                                    cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* status) {
  static void* self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  // dlsym may be interposed; the answer must be our own function.
  static const auto real = reinterpret_cast<void* (*)(void*, const char*)>(
      dlvsym(dlopen("libc.so.6", RTLD_LAZY), "dlsym", "GLIBC_2.2.5"));
  *address = nullptr;
  const bool per_thread =
      (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  std::string base = symbol;
  // The newest form of this one has a name of its own.
  if (base == "cuGraphInstantiate") base = "cuGraphInstantiateWithFlags";
  if (per_thread) *address = real(self, (base + "_ptsz").c_str());
  for (const char* suffix : {"_v4", "_v2", ""})
    if (*address == nullptr) *address = real(self, (base + suffix).c_str());
  if (status != nullptr)
    *status = *address != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
                                  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *address != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
#undef cuGetProcAddress
EXPORT CUresult cuGetProcAddress(const char* symbol, void** address,
                                 int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, address, version, flags, nullptr);
}
