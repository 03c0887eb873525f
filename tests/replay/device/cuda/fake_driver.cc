// A CUDA driver over host memory, as a shared library: what driver.h loads, so
// that the executor, its memory and its protocol are tested without a GPU.
//
// Memory is mapped at the addresses that are asked for, with the protection
// that is asked for. Everything runs at once, in the calling thread. The
// support kernels run as support_kernels_body.h says. Other code is text:
//   fake
//   kernel NAME        a function of fake_kernels below
//   variable NAME BYTES FIRST_WORD
// A bad access of such a kernel is CUDA_ERROR_ILLEGAL_ADDRESS for ever after.
//
// REPRISE_FAKE_CUDA_BYTES limits what MemCreate gives;
// REPRISE_FAKE_CUDA_DEVICES is the number of devices (1);
// REPRISE_FAKE_CUDA_TAKEN names a file with a byte for each process, from now
// on, that has something of its own where units were recorded; with
// REPRISE_FAKE_CUDA_NO_PINNING=1 no memory is registered; at upload number
// REPRISE_FAKE_CUDA_DIE_AT_UPLOAD the process is killed.
#include <cuda.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "replay/device/cuda/access_notes.h"

#define REPRISE_BODY
#include "replay/device/cuda/support_kernels.h"

namespace reprise::cuda {

static void AddTo(uint64_t* to, uint64_t value) { *to += value; }
static void AddTo(double* to, double value) { *to += value; }
static void MaxTo(uint64_t* to, uint64_t value) {
  if (value > *to) *to = value;
}
static bool Any(bool mine) { return mine; }
static void Merge(CompareCounts* to, const CompareCounts& mine) {
  AddTo(&to->wrong, mine.wrong);
  AddTo(&to->outside, mine.outside);
  MaxTo(&to->first_wrong, mine.first_wrong);
  MaxTo(&to->max_absolute, mine.max_absolute);
  MaxTo(&to->max_relative, mine.max_relative);
  AddTo(&to->squares, mine.squares);
}

}  // namespace reprise::cuda

#include "replay/device/cuda/support_kernels_body.h"

using namespace reprise::cuda;

#undef cuEventElapsedTime
#define EXPORT extern "C" __attribute__((visibility("default")))

struct Variable {
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

struct CUfunc_st {
  CUmod_st* module = nullptr;
  std::string name;
};

struct CUmod_st {
  std::map<std::string, Variable> variables;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
  ~CUmod_st();
};

namespace {

CUresult sticky = CUDA_SUCCESS;
uint64_t created_bytes = 0;
uint64_t uploads = 0;
std::map<char*, size_t> registered;
double last_ns = 0;
useconds_t escaped_us = 0;  // of work that only the whole context waits for
std::map<CUmemGenericAllocationHandle, size_t> handles;
sigjmp_buf after_fault;

void OnFault(int) { siglongjmp(after_fault, 1); }

void* MapAt(void* wish, size_t bytes, int protection, int flags, int fd) {
  return mmap(wish, bytes, protection, flags, fd, 0);
}

uint64_t Environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// --- Kernels of fake code. Arguments: in, out, count.

struct Arguments {
  const float* in;
  float* out;
  uint64_t count;
};

using FakeKernel = void (*)(CUmod_st& module, const Arguments& arguments);

void Double(CUmod_st&, const Arguments& a) {
  for (uint64_t i = 0; i < a.count; ++i) a.out[i] = 2 * a.in[i];
}

void NearlyDouble(CUmod_st&, const Arguments& a) {
  for (uint64_t i = 0; i < a.count; ++i) a.out[i] = 2 * a.in[i] * (1 + 1e-5f);
}

// What is there takes part.
void Increment(CUmod_st&, const Arguments& a) {
  for (uint64_t i = 0; i < a.count; ++i) a.out[i] += a.in[i];
}
void Triple(CUmod_st&, const Arguments& a) {
  for (uint64_t i = 0; i < a.count; ++i) a.out[i] = 3 * a.in[i];
}

// Right, but two milliseconds of work escape its stream.
void Escape(CUmod_st& module, const Arguments& a) {
  Double(module, a);
  escaped_us = 2000;
}

void Nothing(CUmod_st&, const Arguments&) {}

// The benchmark's: in is the only argument, each thread writes 16 bytes there.
void Zeros(CUmod_st&, const Arguments& a) {
  std::memset(const_cast<float*>(a.in), 0, 16 * a.count);
}

// Right, and one float more, which the recorded launch did not write.
void Stray(CUmod_st& module, const Arguments& a) {
  Double(module, a);
  a.out[a.count] = 42;
}

// Right, and the last byte of the granule, which is nobody's.
void Slack(CUmod_st& module, const Arguments& a) {
  Double(module, a);
  const uint64_t granule = reinterpret_cast<uint64_t>(a.out) | 0x1fffff;
  *reinterpret_cast<char*>(granule) = 1;
}

void WritesInput(CUmod_st& module, const Arguments& a) {
  Double(module, a);
  const_cast<float*>(a.in)[0] = 1;
}

void Null(CUmod_st&, const Arguments&) {
  *reinterpret_cast<volatile int*>(16) = 1;
}

void Spin(CUmod_st&, const Arguments&) {
  for (;;) usleep(1000);
}

void Print(CUmod_st& module, const Arguments& a) {
  Double(module, a);
  std::printf("hello from block %d\n", 3);
}

// Ends the process where `out` still holds what a launch before it left.
void Poisoned(CUmod_st& module, const Arguments& a) {
  const float before = a.out[0];
  Double(module, a);
  if (before == a.out[0]) raise(SIGKILL);
}

// Uses variable "factor" through its own address, and counts its launches in
// "count": out = in * (factor + count - 1).
void Scale(CUmod_st& module, const Arguments& a) {
  auto* factor =
      reinterpret_cast<uint64_t*>(module.variables["factor"].address);
  auto* count = reinterpret_cast<uint64_t*>(module.variables["count"].address);
  const uint64_t times = count == nullptr ? 0 : (*count)++;
  for (uint64_t i = 0; i < a.count; ++i)
    a.out[i] = a.in[i] * static_cast<float>(*factor + times);
}

// in[0..7] holds the address of variable "factor".
void ScaleThroughPointer(CUmod_st&, const Arguments& a) {
  uint64_t address;
  std::memcpy(&address, a.in, sizeof(address));
  const uint64_t factor = *reinterpret_cast<uint64_t*>(address);
  for (uint64_t i = 0; i < a.count; ++i)
    a.out[i] = static_cast<float>(factor + i);
}

// As instrumented code would: in is read, out written.
void Notes(CUmod_st& module, const Arguments& a) {
  auto& notes = *reinterpret_cast<AccessNotes*>(
      module.variables[kAccessNotesSymbol].address);
  auto* ranges = reinterpret_cast<NotedRange*>(notes.ranges);
  const auto mark = [&](uint64_t address, bool write) {
    for (uint64_t i = 0; i < notes.range_count; ++i) {
      const NotedRange& range = ranges[i];
      if (address < range.begin || address >= range.end) continue;
      const uint64_t at = address - range.begin;
      auto* plane =
          reinterpret_cast<uint32_t*>(write ? range.written : range.read);
      plane[address / kPlaneWordBits - range.begin / kPlaneWordBits] |=
          0xfu << address % kPlaneWordBits;
      reinterpret_cast<uint8_t*>(range.types)[at / kTypePageBytes] = 3 + 1;
      (write ? notes.bytes_written : notes.bytes_read) += 4;
      return;
    }
    ++notes.outside_count;
    notes.first_outside = address;
  };
  for (uint64_t i = 0; i < a.count; ++i) {
    mark(reinterpret_cast<uint64_t>(a.in + i), false);
    mark(reinterpret_cast<uint64_t>(a.out + i), true);
  }
  notes.flops += a.count;
  Double(module, a);
}

const std::map<std::string, FakeKernel>& FakeKernels() {
  static const auto& kernels = *new std::map<std::string, FakeKernel>{
      {"double", Double},
      {"nearly_double", NearlyDouble},
      {"triple", Triple},
      {"increment", Increment},
      {"lazy", Nothing},
      {"nothing", Nothing},
      {"zeros", Zeros},
      {"stray", Stray},
      {"slack", Slack},
      {"writes_input", WritesInput},
      {"null", Null},
      {"escape", Escape},
      {"spin", Spin},
      {"print", Print},
      {"poisoned", Poisoned},
      {"scale", Scale},
      {"scale_through_pointer", ScaleThroughPointer},
      {"notes", Notes}};
  return kernels;
}

void RunFake(CUfunc_st& function, const Arguments& arguments) {
  struct sigaction action = {}, old_segv, old_bus;
  action.sa_handler = OnFault;
  sigaction(SIGSEGV, &action, &old_segv);
  sigaction(SIGBUS, &action, &old_bus);
  if (sigsetjmp(after_fault, 1) == 0) {
    FakeKernels().at(function.name)(*function.module, arguments);
  } else {
    sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  sigaction(SIGSEGV, &old_segv, nullptr);
  sigaction(SIGBUS, &old_bus, nullptr);
}

template <typename T>
T Argument(void** arguments, int i) {
  return *static_cast<T*>(arguments[i]);
}

void RunSupport(const std::string& name, uint64_t threads, uint32_t block,
                void** p) {
  for (uint64_t thread = 0; thread < threads; ++thread) {
    const Place here = {thread, threads};
    if (name == kCopyKernel) {
      CopyBody(Argument<CopyTile*>(p, 0), Argument<uint64_t>(p, 1),
               Argument<uint32_t>(p, 2), here);
    } else if (name == kPoisonKernel) {
      PoisonBody(Argument<FillTile*>(p, 0), Argument<uint64_t>(p, 1),
                 Argument<uint32_t>(p, 2), Argument<uint64_t>(p, 3), here);
    } else if (name == kCompareKernel) {
      CompareBody(Argument<CompareTile*>(p, 0), Argument<uint64_t>(p, 1),
                  Argument<CompareJob*>(p, 2), Argument<CompareCounts*>(p, 3),
                  block, here);
    } else if (name == kStoreWordsKernel) {
      StoreWordsBody(Argument<Word*>(p, 0), Argument<uint64_t>(p, 1), here);
    } else if (name == kStreamWriteKernel) {
      StreamWriteBody(Argument<uint64_t>(p, 0), Argument<uint64_t>(p, 1),
                      Argument<uint32_t>(p, 2), here);
    } else if (name == kStreamReadKernel) {
      StreamReadBody(Argument<uint64_t>(p, 0), Argument<uint64_t>(p, 1),
                     Argument<uint32_t>(p, 2), Argument<uint64_t*>(p, 3), here);
    } else if (name == kMultiplyAdd32Kernel) {
      MultiplyAddBody<float>(Argument<uint32_t>(p, 0),
                             Argument<uint64_t*>(p, 1), here);
    } else if (name == kMultiplyAdd64Kernel) {
      MultiplyAddBody<double>(Argument<uint32_t>(p, 0),
                              Argument<uint64_t*>(p, 1), here);
    }
  }
}

bool IsSupport(const std::string& name) {
  return name.rfind("reprise_", 0) == 0;
}

void AddFunction(CUmod_st* module, const std::string& name) {
  auto function = std::make_unique<CUfunc_st>();
  function->module = module;
  function->name = name;
  module->functions.push_back(std::move(function));
}

}  // namespace

CUmod_st::~CUmod_st() {
  for (const auto& [name, variable] : variables)
    munmap(reinterpret_cast<void*>(variable.address), variable.bytes);
}

EXPORT CUresult cuInit(unsigned) {
  return Environment("REPRISE_FAKE_CUDA_DEVICES", 1) == 0 ? CUDA_ERROR_NO_DEVICE
                                                          : CUDA_SUCCESS;
}
EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = static_cast<int>(Environment("REPRISE_FAKE_CUDA_VERSION", 13000));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == CUDA_ERROR_NO_BINARY_FOR_GPU
              ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
              : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "the fake driver says so";
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetCount(int* count) {
  *count = static_cast<int>(Environment("REPRISE_FAKE_CUDA_DEVICES", 1));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU");
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                     CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 227 << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = 64 << 10;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = nullptr;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
EXPORT CUresult cuCtxSynchronize() {
  usleep(std::exchange(escaped_us, 0));
  return sticky;
}
EXPORT CUresult cuDeviceGetPCIBusId(char* id, int bytes, CUdevice device) {
  std::snprintf(id, static_cast<size_t>(bytes), "0000:%02x:00.0", device + 1);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  for (char& byte : uuid->bytes)
    byte = static_cast<char>(0xa0 + device + (&byte - uuid->bytes));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = Environment("REPRISE_FAKE_CUDA_BYTES", uint64_t{1} << 40);
  *free = *total - created_bytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  void* memory = std::malloc(bytes);
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  std::free(reinterpret_cast<void*>(address));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  if (Environment("REPRISE_FAKE_CUDA_NO_PINNING", 0) != 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  registered[static_cast<char*>(memory)] = bytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from,
                                     size_t bytes, CUstream) {
  if (++uploads == Environment("REPRISE_FAKE_CUDA_DIE_AT_UPLOAD", 0))
    raise(SIGKILL);
  // Within one registration or none.
  const auto* begin = static_cast<const char*>(from);
  for (const auto& [memory, size] : registered) {
    const bool touches = begin < memory + size && begin + bytes > memory;
    if (touches && (begin < memory || begin + bytes > memory + size))
      return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return sticky;
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes,
                                     CUstream) {
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return sticky;
}
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from,
                                     size_t bytes, CUstream) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from),
              bytes);
  return sticky;
}
EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                                size_t bytes, CUstream) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return sticky;
}

// Whether something of this process lies where units were recorded: in as many
// processes as the file has bytes, from when they first look on.
bool UnitAddressesAreTaken() {
  const char* path = std::getenv("REPRISE_FAKE_CUDA_TAKEN");
  static bool taken = false;
  struct stat file;
  if (!taken && path != nullptr && stat(path, &file) == 0 && file.st_size > 0)
    taken = truncate(path, file.st_size - 1) == 0;
  return taken;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr* got, size_t bytes, size_t,
                                    CUdeviceptr wish, unsigned long long) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  constexpr CUdeviceptr kEndOfUnits = 0x500000000000;
  if (wish < kEndOfUnits && UnitAddressesAreTaken()) wish = 0;
  void* memory = wish == 0 ? MAP_FAILED
                           : MapAt(reinterpret_cast<void*>(wish), bytes,
                                   PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1);
  if (memory == MAP_FAILED)
    memory = MapAt(nullptr, bytes, PROT_NONE, flags, -1);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *got = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  munmap(reinterpret_cast<void*>(address), bytes);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                            const CUmemAllocationProp*, unsigned long long) {
  if (bytes % (2 << 20) != 0) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t limit =
      Environment("REPRISE_FAKE_CUDA_BYTES", uint64_t{1} << 40);
  if (created_bytes + bytes > limit) return CUDA_ERROR_OUT_OF_MEMORY;
  const int fd = memfd_create("fake-device", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  created_bytes += bytes;
  *handle = static_cast<CUmemGenericAllocationHandle>(fd);
  handles[*handle] = bytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  created_bytes -= handles[handle];
  handles.erase(handle);
  close(static_cast<int>(handle));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t,
                         CUmemGenericAllocationHandle handle,
                         unsigned long long) {
  void* memory = MapAt(reinterpret_cast<void*>(address), bytes, PROT_NONE,
                       MAP_SHARED | MAP_FIXED, static_cast<int>(handle));
  return memory == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  void* memory =
      MapAt(reinterpret_cast<void*>(address), bytes, PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1);
  return memory == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes,
                               const CUmemAccessDesc* access, size_t) {
  const bool writable = access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const int result = mprotect(reinterpret_cast<void*>(address), bytes,
                              writable ? PROT_READ | PROT_WRITE : PROT_READ);
  return result == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = nullptr;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamSynchronize(CUstream) { return sticky; }
EXPORT CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = nullptr;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventRecord(CUevent, CUstream) { return sticky; }
EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  *milliseconds = static_cast<float>(last_ns / 1e6);
  return sticky;
}

EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  const char* text = static_cast<const char*>(image);
  auto loaded = std::make_unique<CUmod_st>();
  if (std::strncmp(text, "other device", 12) == 0)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (std::strncmp(text, "fake", 4) != 0) {
    bool any = false;
    for (const char* name : {"nothing", "zeros"}) {
      const std::string entry = std::string(".entry ") + name + "(";
      if (std::strstr(text, entry.c_str()) == nullptr) continue;
      AddFunction(loaded.get(), name);
      any = true;
    }
    if (!any && std::strstr(text, kCompareKernel) == nullptr)
      return CUDA_ERROR_INVALID_IMAGE;
    for (const char* name :
         {kCopyKernel, kPoisonKernel, kCompareKernel, kStoreWordsKernel,
          kDelayKernel, kStreamWriteKernel, kStreamReadKernel,
          kMultiplyAdd32Kernel, kMultiplyAdd64Kernel})
      AddFunction(loaded.get(), name);
    *module = loaded.release();
    return CUDA_SUCCESS;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what, name;
    words >> what >> name;
    if (what == "kernel") AddFunction(loaded.get(), name);
    if (what != "variable") continue;
    Variable variable;
    uint64_t first = 0;
    words >> variable.bytes >> first;
    void* memory = MapAt(nullptr, variable.bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1);
    std::memcpy(memory, &first, sizeof(first));
    variable.address = reinterpret_cast<CUdeviceptr>(memory);
    loaded->variables[name] = variable;
  }
  *module = loaded.release();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleUnload(CUmodule module) {
  delete module;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module,
                                    const char* name) {
  for (const auto& candidate : module->functions) {
    if (candidate->name != name) continue;
    *function = candidate.get();
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}
EXPORT CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleEnumerateFunctions(CUfunction* functions,
                                           unsigned count, CUmodule module) {
  for (unsigned i = 0; i < count; ++i)
    functions[i] = module->functions[i].get();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetName(const char** name, CUfunction function) {
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes,
                                     CUmodule module, const char* name) {
  const auto found = module->variables.find(name);
  if (found == module->variables.end()) return CUDA_ERROR_NOT_FOUND;
  *address = found->second.address;
  *bytes = found->second.bytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute,
                                   CUfunction) {
  *value = 0;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute attribute,
                                   int value) {
  return attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
                 value > 227 << 10
             ? CUDA_ERROR_INVALID_VALUE
             : CUDA_SUCCESS;
}
EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config,
                                 CUfunction function, void** parameters,
                                 void** extra) {
  if (sticky != CUDA_SUCCESS) return sticky;
  const uint64_t block =
      uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
  if (block == 0 || block > 1024) return CUDA_ERROR_INVALID_VALUE;
  timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  if (IsSupport(function->name)) {
    RunSupport(function->name, config->gridDimX * block,
               static_cast<uint32_t>(block), parameters);
  } else {
    Arguments arguments = {};
    const size_t bytes = *static_cast<const size_t*>(extra[3]);
    std::memcpy(&arguments, extra[1], std::min(bytes, sizeof(arguments)));
    if (bytes < sizeof(arguments)) arguments.count = config->gridDimX * block;
    RunFake(*function, arguments);
  }
  clock_gettime(CLOCK_MONOTONIC, &after);
  last_ns = (after.tv_sec - before.tv_sec) * 1e9 +
            static_cast<double>(after.tv_nsec - before.tv_nsec);
  return CUDA_SUCCESS;
}
