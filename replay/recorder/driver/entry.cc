// How calls reach the hooks: exported symbols, dlsym and cuGetProcAddress.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "replay/recorder/driver/context_hooks.h"
#include "replay/recorder/driver/gate.h"
#include "replay/recorder/driver/graph_hooks.h"
#include "replay/recorder/driver/hooks.h"
#include "replay/recorder/driver/launch_hooks.h"
#include "replay/recorder/driver/memory_hooks.h"
#include "replay/recorder/driver/module_hooks.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/profile.h"

// The oldest dlvsym: newer glibcs moved it to libc.so.6 under a new version.
__asm__(".symver reprise_dlvsym, dlvsym@GLIBC_2.2.5");
extern "C" void* reprise_dlvsym(void* handle, const char* symbol,
                                const char* version);

#ifndef __x86_64__
#error "the exported functions and dlsym below are written for x86-64"
#endif

namespace reprise::driver {

// Hook `kHook` of any call that launches or changes memory and needs nothing
// but to wait while a launch is recorded.
template <Hook kHook, typename Function = typename HookType<kHook>::type>
struct GatedCall;
template <Hook kHook, typename... Arguments>
struct GatedCall<kHook, CUresult(CUDAAPI*)(Arguments...)> {
  static CUresult CUDAAPI Call(Arguments... arguments) {
    SharedGate gate;
    return CallReal<kHook>(arguments...);
  }
  static CUresult CUDAAPI Wait(Arguments... arguments) {
    const CUresult result = Call(arguments...);
    if (Active()) {
      Noted(result);
      ResolveTimings();
    }
    return result;
  }
};

template <Hook kHook>
constexpr typename HookType<kHook>::type Gated = &GatedCall<kHook>::Call;
// The same for calls that wait for work before them.
template <Hook kHook>
constexpr typename HookType<kHook>::type GatedWait = &GatedCall<kHook>::Wait;

template <Hook kHook>
CUresult CUDAAPI GetProcAddress1(const char* symbol, void** address,
                                 int cuda_version, cuuint64_t flags) {
  const CUresult result = CallReal<kHook>(symbol, address, cuda_version, flags);
  if (result == CUDA_SUCCESS && address != nullptr && *address != nullptr) {
    *address = HookedAddress(
        symbol, cuda_version,
        (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0, *address);
  }
  return result;
}

template <Hook kHook>
CUresult CUDAAPI GetProcAddress2(const char* symbol, void** address,
                                 int cuda_version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult* status) {
  const CUresult result =
      CallReal<kHook>(symbol, address, cuda_version, flags, status);
  if (result == CUDA_SUCCESS && address != nullptr && *address != nullptr) {
    *address = HookedAddress(
        symbol, cuda_version,
        (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0, *address);
  }
  return result;
}

}  // namespace reprise::driver

// Exported functions: each jumps to its handler, all registers as they came.
#define HOOK(symbol, base, version, suffix, handler)                     \
  extern "C" __attribute__((                                             \
      visibility("hidden"))) void* const reprise_handler_##symbol;       \
  void* const reprise_handler_##symbol = reinterpret_cast<void*>(        \
      static_cast<                                                       \
          reprise::driver::HookType<reprise::driver::k_##symbol>::type>( \
          reprise::driver::handler<reprise::driver::k_##symbol>));       \
  __asm__(".text\n.p2align 4\n.globl " #symbol "\n.type " #symbol        \
          ", @function\n.hidden reprise_hook_" #symbol                   \
          "\n.globl reprise_hook_" #symbol "\n" #symbol                  \
          ":\nreprise_hook_" #symbol                                     \
          ":\n\tendbr64\n\tjmp *reprise_handler_" #symbol                \
          "(%rip)\n.size " #symbol ", . - " #symbol "\n");
#include "replay/recorder/driver/hook_table.inc"
#undef HOOK

#define HOOK(symbol, base, version, suffix, handler) \
  extern "C" __attribute__((visibility("hidden"))) char reprise_hook_##symbol;
#include "replay/recorder/driver/hook_table.inc"
#undef HOOK

namespace reprise::driver {
namespace {

struct HookInfo {
  const char* symbol;
  const char* base;
  int version;
  bool per_thread;
  void* hook;
};

constexpr HookInfo kHooks[] = {
#define HOOK(symbol, base, version, suffix, handler) \
  {#symbol, #base, version, sizeof(#suffix) > 1, &reprise_hook_##symbol},
#include "replay/recorder/driver/hook_table.inc"
#undef HOOK
};

std::atomic<void*> g_real[kHookCount];

using Dlsym = void* (*)(void*, const char*);

Dlsym FindDlsym() {
  return reinterpret_cast<Dlsym>(
      reprise_dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
}

// Hooks are few and lookups rare: a hash over a fixed table would not pay.
int FindHook(const char* symbol) {
  for (int i = 0; i < kHookCount; ++i)
    if (strcmp(kHooks[i].symbol, symbol) == 0) return i;
  return -1;
}

void SetReal(int hook, void* address) {
  void* none = nullptr;
  g_real[hook].compare_exchange_strong(none, address);
}

// Whether libcuda exports `found` as some form of `base`; `symbol` (of `size`
// bytes) then holds that form's name.
bool NameOf(void* found, const char* base, bool per_thread, char* symbol,
            size_t size) {
  void* library = DriverLibrary(/*load=*/false);
  if (library == nullptr) return false;
  const char* suffixes[] = {"", "_ptsz", "_ptds"};
  for (int version = 1; version < 6; ++version) {
    for (int i = per_thread ? 2 : 0; i >= 0; --i) {
      if (version == 1)
        snprintf(symbol, size, "%s%s", base, suffixes[i]);
      else
        snprintf(symbol, size, "%s_v%d%s", base, version, suffixes[i]);
      if (RealDlsym(library, symbol) == found) return true;
    }
  }
  return false;
}

// The hook of an entry point that libcuda exports.
int FindExported(void* found, const char* base) {
  void* library = DriverLibrary(/*load=*/false);
  if (library == nullptr) return -1;
  for (int i = 0; i < kHookCount; ++i) {
    if (strcmp(kHooks[i].base, base) == 0 &&
        RealDlsym(library, kHooks[i].symbol) == found)
      return i;
  }
  return -1;
}

// The newest form of `base` that cuda_version knows.
int FindForm(const char* base, int cuda_version, bool per_thread) {
  int best = -1;
  for (int i = 0; i < kHookCount; ++i) {
    const HookInfo& hook = kHooks[i];
    if (strcmp(hook.base, base) != 0 || hook.version > cuda_version) continue;
    if (hook.per_thread && !per_thread) continue;
    const bool better = best < 0 || hook.per_thread > kHooks[best].per_thread ||
                        (hook.per_thread == kHooks[best].per_thread &&
                         hook.version > kHooks[best].version);
    if (better) best = i;
  }
  return best;
}

}  // namespace

void* RealDlsym(void* handle, const char* symbol) {
  static std::atomic<Dlsym> real{nullptr};
  Dlsym function = real.load(std::memory_order_acquire);
  if (function == nullptr) {
    function = FindDlsym();
    real.store(function, std::memory_order_release);
  }
  return function(handle, symbol);
}

void* DriverLibrary(bool load) {
  static std::atomic<void*> library{nullptr};
  void* known = library.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  using Dlopen = void* (*)(const char*, int);
  const auto open = reinterpret_cast<Dlopen>(RealDlsym(RTLD_DEFAULT, "dlopen"));
  if (open == nullptr) return nullptr;
  known = open("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (known == nullptr && load) known = open("libcuda.so.1", RTLD_LAZY);
  if (known != nullptr) library.store(known, std::memory_order_release);
  return known;
}

void* RealAddress(Hook hook) {
  void* real = g_real[hook].load(std::memory_order_acquire);
  if (real != nullptr) return real;
  // What a program linked to libcuda would have bound to without us.
  real = RealDlsym(RTLD_NEXT, kHooks[hook].symbol);
  if (real == nullptr) {
    void* library = DriverLibrary(/*load=*/true);
    if (library != nullptr) real = RealDlsym(library, kHooks[hook].symbol);
  }
  if (real == kHooks[hook].hook) real = nullptr;
  if (real != nullptr) SetReal(hook, real);
  return real;
}

void* HookedAddress(const char* base, int cuda_version, bool per_thread,
                    void* found) {
  if (!Enabled() || base == nullptr) return found;
  for (const HookInfo& hook : kHooks)
    if (hook.hook == found) return found;
  char symbol[128];
  int hook = FindExported(found, base);
  if (hook >= 0) {
    // Also where it is exported under another name.
  } else if (FindForm(base, 1 << 30, /*per_thread=*/true) < 0) {
    hook = FindHook(base);  // asked for by an exported name
  } else if (NameOf(found, base, per_thread, symbol, sizeof(symbol))) {
    hook = FindHook(symbol);
  } else {
    hook = FindForm(base, cuda_version, per_thread);
  }
  if (hook < 0) return found;
  SetReal(hook, found);
  return kHooks[hook].hook;
}

namespace {

// What dlsym shall do. `tail`: go on to the real dlsym, as if called from where
// we were called (RTLD_NEXT and RTLD_DEFAULT depend on that).
struct Decision {
  void* address;
  uint64_t tail;
};

}  // namespace
}  // namespace reprise::driver

extern "C" __attribute__((visibility("hidden"))) void* reprise_real_dlsym;
void* reprise_real_dlsym = nullptr;

namespace reprise::driver {
namespace {

Decision Decide(void* handle, const char* symbol) {
  if (__atomic_load_n(&reprise_real_dlsym, __ATOMIC_ACQUIRE) == nullptr) {
    __atomic_store_n(&reprise_real_dlsym, reinterpret_cast<void*>(FindDlsym()),
                     __ATOMIC_RELEASE);
  }
  if (symbol == nullptr || symbol[0] != 'c' || symbol[1] != 'u')
    return {nullptr, 1};
  const int hook = FindHook(symbol);
  if (hook < 0 || handle == RTLD_NEXT) return {nullptr, 1};
  void* library = DriverLibrary(/*load=*/false);
  if (library == nullptr && handle == RTLD_DEFAULT) {
    // Only our own export could be found: as good as none.
    return {RealDlsym(RTLD_NEXT, symbol), 0};
  }
  if (handle == RTLD_DEFAULT) return {nullptr, 1};
  void* found = RealDlsym(handle, symbol);
  if (found == kHooks[hook].hook && library == nullptr)
    return {RealDlsym(RTLD_NEXT, symbol), 0};
  if (found == nullptr || library == nullptr || !Enabled()) return {found, 0};
  if (found != RealDlsym(library, symbol)) return {found, 0};
  SetReal(hook, found);
  return {kHooks[hook].hook, 0};
}

}  // namespace
}  // namespace reprise::driver

extern "C" __attribute__((visibility("hidden"), used)) reprise::driver::Decision
reprise_decide_dlsym(void* handle, const char* symbol) {
  return reprise::driver::Decide(handle, symbol);
}

// void* dlsym(void* handle, const char* symbol)
// With glibc's versions: another library in front of this one that stands in
// front of dlsym itself finds the next one by dlvsym.
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl reprise_dlsym\n"
    ".type reprise_dlsym, @function\n"
    ".globl reprise_old_dlsym\n"
    ".type reprise_old_dlsym, @function\n"
    ".symver reprise_dlsym, dlsym@@GLIBC_2.34\n"
    ".symver reprise_old_dlsym, dlsym@GLIBC_2.2.5\n"
    "reprise_dlsym:\n"
    "reprise_old_dlsym:\n"
    "\tendbr64\n"
    "\tpushq %rdi\n"
    "\tpushq %rsi\n"
    "\tsubq $8, %rsp\n"
    "\tcallq reprise_decide_dlsym\n"
    "\taddq $8, %rsp\n"
    "\tpopq %rsi\n"
    "\tpopq %rdi\n"
    "\ttestq %rdx, %rdx\n"
    "\tjnz 1f\n"
    "\tretq\n"
    "1:\n"
    "\tjmpq *reprise_real_dlsym(%rip)\n"
    ".size reprise_dlsym, . - reprise_dlsym\n"
    ".size reprise_old_dlsym, . - reprise_old_dlsym\n");
