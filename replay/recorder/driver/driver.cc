#include "replay/recorder/driver/driver.h"

#include <atomic>

#include "replay/recorder/driver/hooks.h"

namespace reprise::driver {
namespace {

constexpr const char* kNames[] = {
#define CALL(symbol, type) #symbol,
#include "replay/recorder/driver/driver_calls.inc"
#undef CALL
};

std::atomic<void*> g_calls[kDriverCallCount];

}  // namespace

void* DriverCallAddress(DriverCall call) {
  void* address = g_calls[call].load(std::memory_order_acquire);
  if (address != nullptr) return address;
  void* library = DriverLibrary(/*load=*/true);
  if (library == nullptr) return nullptr;
  address = RealDlsym(library, kNames[call]);
  g_calls[call].store(address, std::memory_order_release);
  return address;
}

WithContext::WithContext(CUcontext context) {
  CUcontext current = nullptr;
  CUDA_CALL(cuCtxGetCurrent, &current);
  if (current == context) return;
  pushed_ = CUDA_CALL(cuCtxPushCurrent_v2, context) == CUDA_SUCCESS;
  ok_ = pushed_;
}

WithContext::~WithContext() {
  CUcontext popped = nullptr;
  if (pushed_) CUDA_CALL(cuCtxPopCurrent_v2, &popped);
}

RelaxedCapture::RelaxedCapture() {
  exchanged_ =
      CUDA_CALL(cuThreadExchangeStreamCaptureMode, &mode_) == CUDA_SUCCESS;
}

RelaxedCapture::~RelaxedCapture() {
  if (exchanged_) CUDA_CALL(cuThreadExchangeStreamCaptureMode, &mode_);
}

}  // namespace reprise::driver
