// Every call of libcudart.so.13 that the stand-in does not offer: it says so,
// once a call, instead of letting the real library answer half of a program.
#include <cuda_runtime_api.h>

#include "replay/recorder/preload/context.h"
#include "replay/recorder/preload/support.h"

namespace {

cudaError_t Refuse(const char* name, bool* said) {
  if (!__atomic_exchange_n(said, true, __ATOMIC_RELAXED)) {
    reprise::standin::Say(
        "%s is not supported by the CUDA runtime stand-in (it returns "
        "cudaErrorNotSupported)",
        name);
  }
  return reprise::standin::Finish(cudaErrorNotSupported);
}

}  // namespace

// Arguments are left where the caller put them.
#define REPRISE_UNSUPPORTED(name)                                              \
  extern "C" cudaError_t Refuse_##name() __asm__(#name) __attribute__((used)); \
  cudaError_t Refuse_##name() {                                                \
    static bool said = false;                                                  \
    return Refuse(#name, &said);                                               \
  }

#include "replay/recorder/preload/unsupported_calls.inc"

#undef REPRISE_UNSUPPORTED

extern "C" cudaChannelFormatDesc cudaCreateChannelDesc(
    int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return cudaChannelFormatDesc{x, y, z, w, kind};
}
