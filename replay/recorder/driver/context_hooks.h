// Hooks of calls that bring contexts and streams up, wait for them, or end
// them.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_CONTEXT_HOOKS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_CONTEXT_HOOKS_H_

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/contexts.h"
#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/gate.h"
#include "replay/recorder/driver/graphs.h"
#include "replay/recorder/driver/hooks.h"
#include "replay/recorder/driver/image_copy.h"
#include "replay/recorder/driver/modules.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/profile.h"
#include "replay/recorder/driver/substitutes.h"

namespace reprise::driver {

template <Hook kHook>
CUresult CUDAAPI Init(unsigned int flags) {
  // Connects while the process has one thread: with more, the kernel takes 10
  // ms to make room for the socket's high number.
  Active();
  return CallReal<kHook>(flags);
}

inline void ForgetEverythingOf(CUcontext context) {
  ForgetTimings(context);
  ForgetContextGraphs(context);
  ForgetContextModules(context);
  ForgetContextSubstitutes(context);
  ForgetWindow(context);
  ForgetContextMemory(context);
  ForgetContext(context);
}

template <Hook kHook>
CUresult CUDAAPI CtxDestroy(CUcontext context) {
  if (!Active()) return CallReal<kHook>(context);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(context);
  if (result == CUDA_SUCCESS) ForgetEverythingOf(context);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI PrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const CUresult result = CallReal<kHook>(context, device);
  if (result == CUDA_SUCCESS && Active()) SetPrimaryContext(device, *context);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI PrimaryCtxReset(CUdevice device) {
  if (!Active()) return CallReal<kHook>(device);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(device);
  const CUcontext primary = PrimaryContext(device);
  if (result == CUDA_SUCCESS && primary != nullptr) ForgetEverythingOf(primary);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI PrimaryCtxRelease(CUdevice device) {
  if (!Active()) return CallReal<kHook>(device);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(device);
  const CUcontext primary = PrimaryContext(device);
  unsigned int flags = 0;
  int active = 1;
  if (result == CUDA_SUCCESS && primary != nullptr &&
      CUDA_CALL(cuDevicePrimaryCtxGetState, device, &flags, &active) ==
          CUDA_SUCCESS &&
      active == 0)
    ForgetEverythingOf(primary);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI StreamDestroy(CUstream stream) {
  if (!Active()) return CallReal<kHook>(stream);
  RetireStream(stream);
  const bool capturing = IsCapturing(stream);
  const CUresult result = CallReal<kHook>(stream);
  if (capturing && result == CUDA_SUCCESS) NoteCapture(-1);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI CtxSynchronize() {
  if (!Active()) return CallReal<kHook>();
  const uint64_t mark = MarkFrees();
  const CUresult result = Noted(CallReal<kHook>());
  ResolveTimings();
  CUcontext current = nullptr;
  if (result == CUDA_SUCCESS &&
      CUDA_CALL(cuCtxGetCurrent, &current) == CUDA_SUCCESS)
    SettleContext(current, mark);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI CtxSynchronizeOf(CUcontext context) {
  if (!Active()) return CallReal<kHook>(context);
  const uint64_t mark = MarkFrees();
  const CUresult result = Noted(CallReal<kHook>(context));
  ResolveTimings();
  if (result == CUDA_SUCCESS) SettleContext(context, mark);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI StreamSynchronize(CUstream stream) {
  if (!Active()) return CallReal<kHook>(stream);
  const uint64_t mark = MarkFrees();
  const CUresult result = Noted(CallReal<kHook>(stream));
  ResolveTimings();
  if (result == CUDA_SUCCESS)
    SettleStream(stream, HookType<kHook>::kPerThread, mark);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI EventSynchronize(CUevent event) {
  const CUresult result = CallReal<kHook>(event);
  if (Active()) {
    Noted(result);
    ResolveTimings();
  }
  return result;
}

template <Hook kHook>
CUresult CUDAAPI CtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  const CUresult result = CallReal<kHook>(peer, flags);
  if (result == CUDA_SUCCESS && Active()) {
    const Context* current = CurrentContext();
    const Context* other = FindContext(peer);
    if (current != nullptr) NoteAccessor(current->device);
    if (current != nullptr && other != nullptr)
      NotePeer(current->device, other->device);
  }
  return result;
}

// All forms of cuStreamBeginCapture.
template <Hook kHook, typename Function = typename HookType<kHook>::type>
struct BeginCaptureCall;
template <Hook kHook, typename... Arguments>
struct BeginCaptureCall<kHook, CUresult(CUDAAPI*)(Arguments...)> {
  static CUresult CUDAAPI Call(Arguments... arguments) {
    const CUresult result = CallReal<kHook>(arguments...);
    if (result == CUDA_SUCCESS) NoteCapture(1);
    return result;
  }
};
template <Hook kHook>
constexpr typename HookType<kHook>::type BeginCapture =
    &BeginCaptureCall<kHook>::Call;

template <Hook kHook>
CUresult CUDAAPI EndCapture(CUstream stream, CUgraph* graph) {
  const bool capturing =
      IsCapturing(Explicit(stream, HookType<kHook>::kPerThread));
  const CUresult result = CallReal<kHook>(stream, graph);
  // A capture that broke ends here too.
  if (capturing) NoteCapture(-1);
  return result;
}

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_CONTEXT_HOOKS_H_
