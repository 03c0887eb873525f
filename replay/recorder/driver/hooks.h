// The driver's entry points that the recorder stands in front of, and the real
// ones behind them. Every hook is an exported symbol of the driver's name, so
// that programs linked to libcuda bind to it; lookups by dlsym and
// cuGetProcAddress are answered with it. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_HOOKS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_HOOKS_H_

#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

namespace reprise::driver {

// Types of older forms that cudaTypedefs.h leaves out.
using PFN_cuCtxDestroy_v2000 = PFN_cuCtxDestroy_v4000;
using PFN_cuDevicePrimaryCtxRelease_v7000 =
    PFN_cuDevicePrimaryCtxRelease_v11000;
using PFN_cuDevicePrimaryCtxReset_v7000 = PFN_cuDevicePrimaryCtxReset_v11000;
using PFN_cuGraphInstantiate_v10000 = CUresult(CUDAAPI*)(CUgraphExec*, CUgraph,
                                                         CUgraphNode*, char*,
                                                         size_t);
using PFN_cuGraphInstantiate_v11000 = PFN_cuGraphInstantiate_v10000;
using PFN_cuGraphInstantiate_v12000 = PFN_cuGraphInstantiateWithFlags_v11040;
using PFN_cuIpcOpenMemHandle_v4010 = PFN_cuIpcOpenMemHandle_v11000;
using PFN_cuMemHostRegister_v4000 = PFN_cuMemHostRegister_v6050;
using PFN_cuStreamBeginCapture_v10000 = CUresult(CUDAAPI*)(CUstream);
using PFN_cuStreamBeginCapture_v10000_ptsz = CUresult(CUDAAPI*)(CUstream);
using PFN_cuStreamDestroy_v2000 = PFN_cuStreamDestroy_v4000;

enum Hook : int {
#define HOOK(symbol, base, version, suffix, handler) k_##symbol,
#include "replay/recorder/driver/hook_table.inc"
#undef HOOK
  kHookCount
};

// HookType<hook>::type: pointer to the driver's function.
template <Hook kHook>
struct HookType;
#define HOOK(symbol, base, version, suffix, handler)        \
  template <>                                               \
  struct HookType<k_##symbol> {                             \
    using type = PFN_##base##_v##version##suffix;           \
    static constexpr bool kPerThread = sizeof(#suffix) > 1; \
  };
#include "replay/recorder/driver/hook_table.inc"
#undef HOOK

// Where the driver's own function is; looked up when nobody asked for it yet.
// Null: this driver has none.
void* RealAddress(Hook hook);

template <Hook kHook>
typename HookType<kHook>::type Real() {
  return reinterpret_cast<typename HookType<kHook>::type>(RealAddress(kHook));
}

// Calls the driver's own function.
template <Hook kHook, typename... Arguments>
CUresult CallReal(Arguments... arguments) {
  const auto real = Real<kHook>();
  return real != nullptr ? real(arguments...) : CUDA_ERROR_NOT_FOUND;
}

// glibc's dlsym, or that of the next preloaded library.
void* RealDlsym(void* handle, const char* symbol);

// The loaded libcuda.so.1; null where the process has none. With `load`, loads
// it.
void* DriverLibrary(bool load);

// Bodies of the hooks cuGetProcAddress and cuGetProcAddress_v2: what the driver
// answered (`found`, of cuda_version) is replaced by the hook of that form.
void* HookedAddress(const char* base, int cuda_version, bool per_thread,
                    void* found);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_HOOKS_H_
