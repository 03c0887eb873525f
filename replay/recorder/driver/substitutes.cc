#include "replay/recorder/driver/substitutes.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <new>

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/contexts.h"
#include "replay/recorder/driver/driver.h"

namespace reprise::driver {

namespace wire = driver_wire;

namespace {

// What a kernel may use without being allowed more.
constexpr uint32_t kPlainSharedBytes = 48 << 10;
constexpr uint32_t kPortableCluster = 8;  // blocks

struct ConstantCopy {
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;
  size_t bytes = 0;
};

// A substitute in one context.
struct Loaded {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;  // null: it does not load
  ConstantCopy* constants = nullptr;
};

struct Substitute {
  wire::Substitute wire;
  const char* symbol = nullptr;  // behind it, names of constants
  const char* code = nullptr;
};

Mutex g_mutex;  // of what is loaded
std::atomic<KernelSubstitutes*> g_all{nullptr};

}  // namespace

struct KernelSubstitutes {
  Substitute* list = nullptr;
  uint32_t count = 0;
  Array<Loaded*>* loaded = nullptr;   // by substitute
  KernelSubstitutes* next = nullptr;  // in g_all
};

namespace {

const char* NextName(const char* name) { return name + strlen(name) + 1; }

bool SameSizes(const uint32_t* a, const uint32_t* b) {
  return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

// None is one block.
uint32_t Blocks(const uint32_t* cluster) {
  return cluster[0] == 0 ? 1 : cluster[0] * cluster[1] * cluster[2];
}

bool SameCluster(const uint32_t* a, const uint32_t* b) {
  return SameSizes(a, b) || (Blocks(a) == 1 && Blocks(b) == 1);
}

bool Matches(const wire::LaunchShape& guard, const LaunchCall& launch) {
  return SameSizes(guard.grid, launch.grid) &&
         SameSizes(guard.block, launch.block) &&
         SameCluster(guard.cluster, launch.cluster) &&
         guard.dynamic_shared_bytes == launch.dynamic_shared_bytes &&
         (guard.cooperative != 0) == launch.cooperative;
}

// So many names, each ended, and nothing behind them.
bool AreNames(const char* text, uint64_t bytes, uint64_t count) {
  uint64_t ended = 0;
  for (uint64_t i = 0; i < bytes; ++i) ended += text[i] == 0 ? 1 : 0;
  return ended == count && bytes > 0 && text[bytes - 1] == 0;
}

// Takes one from the front of what the parent sent. Names stay where they are.
bool Take(const char** at, const char* end, Substitute* substitute) {
  wire::Substitute& wire = substitute->wire;
  if (static_cast<size_t>(end - *at) < sizeof(wire)) return false;
  memcpy(&wire, *at, sizeof(wire));
  *at += sizeof(wire);
  if (wire.refused != 0) return true;
  const uint64_t left = static_cast<uint64_t>(end - *at);
  if (wire.name_bytes > left || wire.code_bytes > left - wire.name_bytes ||
      wire.code_bytes == 0 ||
      !AreNames(*at, wire.name_bytes, 1 + 2 * uint64_t{wire.constant_count}))
    return false;
  substitute->symbol = *at;
  *at += wire.name_bytes;
  char* code = static_cast<char*>(malloc(wire.code_bytes));  // aligned
  if (code == nullptr) return false;
  memcpy(code, *at, wire.code_bytes);
  substitute->code = code;
  *at += wire.code_bytes;
  return true;
}

// Keeps `bytes` where it answers something.
KernelSubstitutes* Parse(const char* bytes,
                         const wire::SubstitutesReply& reply) {
  void* memory = calloc(1, sizeof(KernelSubstitutes));
  auto* list =
      static_cast<Substitute*>(calloc(reply.count, sizeof(Substitute)));
  void* loaded = calloc(reply.count, sizeof(Array<Loaded*>));
  bool ok = memory != nullptr && list != nullptr && loaded != nullptr;
  const char* at = bytes;
  for (uint32_t i = 0; ok && i < reply.count; ++i)
    ok = Take(&at, bytes + reply.bytes, &list[i]);
  if (!ok) {
    for (uint32_t i = 0; list != nullptr && i < reply.count; ++i)
      free(const_cast<char*>(list[i].code));
    free(memory);
    free(list);
    free(loaded);
    return nullptr;
  }
  auto* parsed = new (memory) KernelSubstitutes;
  parsed->list = list;
  parsed->count = reply.count;
  parsed->loaded = static_cast<Array<Loaded*>*>(loaded);
  return parsed;
}

CUresult SetAttributes(CUfunction function, const wire::Substitute& wire) {
  int fixed = 0;
  CUresult result = CUDA_CALL(cuFuncGetAttribute, &fixed,
                              CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
  if (result == CUDA_SUCCESS &&
      wire.dynamic_shared_bytes + static_cast<uint32_t>(fixed) >
          kPlainSharedBytes)
    result = CUDA_CALL(cuFuncSetAttribute, function,
                       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       static_cast<int>(wire.dynamic_shared_bytes));
  if (result == CUDA_SUCCESS && Blocks(wire.guard.cluster) > kPortableCluster)
    result = CUDA_CALL(cuFuncSetAttribute, function,
                       CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  return result;
}

// Finds the constants of the code and of the application. Null, or why not.
const char* FindConstants(const Kernel& kernel, const Substitute& substitute,
                          Loaded* loaded) {
  const uint32_t count = substitute.wire.constant_count;
  if (count == 0) return nullptr;
  loaded->constants =
      static_cast<ConstantCopy*>(calloc(count, sizeof(ConstantCopy)));
  if (loaded->constants == nullptr) return "out of host memory";
  const char* name = NextName(substitute.symbol);
  for (uint32_t i = 0; i < count; ++i) {
    const char* in_application = NextName(name);
    ConstantCopy* copy = &loaded->constants[i];
    uint64_t from = 0;
    uint64_t bytes = 0;
    if (CUDA_CALL(cuModuleGetGlobal_v2, &copy->to, &copy->bytes, loaded->module,
                  name) != CUDA_SUCCESS ||
        !FindVariable(*kernel.module, in_application, &from, &bytes) ||
        bytes != copy->bytes)
      return "a constant of it is not the application's";
    copy->from = from;
    name = NextName(in_application);
  }
  return nullptr;
}

// In the current context.
void LoadCode(const Kernel& kernel, const Substitute& substitute,
              Loaded* loaded) {
  const RelaxedCapture relaxed;
  const char* why = nullptr;
  CUresult result = WithTrim([&] {
    return CUDA_CALL(cuModuleLoadData, &loaded->module,
                     static_cast<const void*>(substitute.code));
  });
  if (result != CUDA_SUCCESS) {
    loaded->module = nullptr;
  } else {
    CUfunction function = nullptr;
    result = CUDA_CALL(cuModuleGetFunction, &function, loaded->module,
                       substitute.symbol);
    if (result == CUDA_SUCCESS)
      result = SetAttributes(function, substitute.wire);
    if (result == CUDA_SUCCESS) why = FindConstants(kernel, substitute, loaded);
    if (result == CUDA_SUCCESS && why == nullptr) loaded->function = function;
  }
  if (loaded->function != nullptr) return;
  if (loaded->module != nullptr) CUDA_CALL(cuModuleUnload, loaded->module);
  if (why != nullptr)
    Problem("the tuned code of %s is not used: %s", kernel.name, why);
  else
    Problem(
        "the tuned code of %s is not used: the driver does not load it "
        "(error %d)",
        kernel.name, static_cast<int>(result));
}

// The substitute in a context, loaded on the first call. Null: out of memory.
const Loaded* InContext(const Kernel& kernel, uint32_t index,
                        const Context& context) {
  const CUcontext handle = context.handle.load();
  MutexLock lock(g_mutex);
  Array<Loaded*>& known = kernel.substitutes->loaded[index];
  for (Loaded* loaded : known)
    if (loaded->context == handle) return loaded;
  void* memory = malloc(sizeof(Loaded));
  if (memory == nullptr) return nullptr;
  auto* loaded = new (memory) Loaded;
  if (!known.Append(loaded)) {
    free(memory);
    return nullptr;
  }
  loaded->context = handle;
  const WithContext with(handle);
  if (with.ok()) LoadCode(kernel, kernel.substitutes->list[index], loaded);
  return loaded;
}

CUresult CopyConstants(const Loaded& loaded, uint32_t count, CUstream stream) {
  for (uint32_t i = 0; i < count; ++i) {
    const ConstantCopy& copy = loaded.constants[i];
    const CUresult result =
        CUDA_CALL(cuMemcpyDtoDAsync_v2, copy.to, copy.from, copy.bytes, stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// True: launched, or failed so that the application's own would fail too.
bool LaunchLoaded(const Kernel& kernel, const wire::Substitute& wire,
                  const Loaded& loaded, const LaunchCall& launch,
                  LaunchForm form, CUresult* result) {
  *result = CopyConstants(loaded, wire.constant_count, launch.stream);
  if (*result == CUDA_SUCCESS) {
    *result = form(
        {loaded.function, wire.grid, wire.block, wire.dynamic_shared_bytes});
  }
  if (*result == CUDA_SUCCESS || BreaksContext(*result)) return true;
  Problem(
      "the tuned code of %s is not used: the driver does not launch it "
      "(error %d)",
      kernel.name, static_cast<int>(*result));
  return false;
}

}  // namespace

void FetchSubstitutes(ParentLock& parent, Kernel* kernel) {
  wire::SubstitutesReply reply;
  uint64_t rest = 0;
  if (!SendModule(parent, kernel->module)) return;
  const wire::SubstitutesRequest request{kernel->number, 0};
  if (!parent->Send(wire::kSubstitutes, request) ||
      !parent->Receive(wire::kSubstitutes, &reply, &rest,
                       wire::kMaxSubstituteBytes) ||
      rest != reply.bytes || reply.count > wire::kMaxSubstitutes) {
    parent.Lost("asking for tuned code");
    return;
  }
  char* bytes = static_cast<char*>(malloc(rest > 0 ? rest : 1));
  if (bytes == nullptr || !parent->ReceiveBytes(bytes, rest)) {
    free(bytes);
    parent.Lost("receiving tuned code");
    return;
  }
  if (reply.count > 0) kernel->substitutes = Parse(bytes, reply);
  if (kernel->substitutes == nullptr) {
    free(bytes);
    return;
  }
  // Without g_mutex: the channel is held.
  KernelSubstitutes* first = g_all.load();
  do {
    kernel->substitutes->next = first;
  } while (!g_all.compare_exchange_weak(first, kernel->substitutes));
}

bool LaunchSubstitute(const Kernel& kernel, const LaunchCall& launch,
                      LaunchForm form, CUresult* result) {
  const KernelSubstitutes& all = *kernel.substitutes;
  uint32_t index = 0;
  while (index < all.count && !Matches(all.list[index].wire.guard, launch))
    ++index;
  wire::Decline why = wire::kOtherLaunch;
  if (index < all.count) {
    const wire::Substitute& wire = all.list[index].wire;
    const Context* context =
        wire.refused == 0 ? StreamContext(launch.stream) : nullptr;
    const Loaded* loaded =
        context != nullptr ? InContext(kernel, index, *context) : nullptr;
    why = wire.refused != 0 ? wire::kRefused : wire::kNotLoaded;
    if (loaded != nullptr && loaded->function != nullptr) {
      why = wire::kNotLaunched;
      if (LaunchLoaded(kernel, wire, *loaded, launch, form, result)) {
        __atomic_fetch_add(&kernel.counter->substituted, 1, __ATOMIC_RELAXED);
        return true;
      }
    }
  }
  CountDeclined(kernel, why, 1);
  return false;
}

void CountDeclined(const Kernel& kernel, wire::Decline why, uint64_t launches) {
  if (kernel.substitutes == nullptr) return;
  __atomic_fetch_add(&kernel.counter->declined[why], launches,
                     __ATOMIC_RELAXED);
}

void ForgetContextSubstitutes(CUcontext context) {
  MutexLock lock(g_mutex);
  for (KernelSubstitutes* all = g_all.load(); all != nullptr; all = all->next) {
    for (uint32_t i = 0; i < all->count; ++i)
      for (Loaded* loaded : all->loaded[i])
        if (loaded->context == context) loaded->context = nullptr;
  }
}

}  // namespace reprise::driver
