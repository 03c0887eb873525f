// The driver's functions as the recorder itself calls them: never hooked ones.
// A function that the driver lacks answers CUDA_ERROR_NOT_FOUND. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_DRIVER_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_DRIVER_H_

#include <cuda.h>
#include <cudaTypedefs.h>

namespace reprise::driver {

enum DriverCall : int {
#define CALL(symbol, type) kCall_##symbol,
#include "replay/recorder/driver/driver_calls.inc"
#undef CALL
  kDriverCallCount
};

// Null: this driver has none.
void* DriverCallAddress(DriverCall call);

template <typename Function, typename... Arguments>
CUresult CallDriver(DriverCall call, Arguments... arguments) {
  void* address = DriverCallAddress(call);
  return address != nullptr ? reinterpret_cast<Function>(address)(arguments...)
                            : CUDA_ERROR_NOT_FOUND;
}

// CUDA_CALL(cuCtxGetCurrent, &context): names as libcuda exports them.
#define CUDA_CALL(symbol, ...)                                               \
  ::reprise::driver::CallDriver<::reprise::driver::DriverCallType_##symbol>( \
      ::reprise::driver::kCall_##symbol __VA_OPT__(, ) __VA_ARGS__)

#define CALL(symbol, type) using DriverCallType_##symbol = type;
#include "replay/recorder/driver/driver_calls.inc"
#undef CALL

// Makes a context current for a while; nothing where it is current already.
class WithContext {
 public:
  explicit WithContext(CUcontext context);
  ~WithContext();
  WithContext(const WithContext&) = delete;
  WithContext& operator=(const WithContext&) = delete;
  bool ok() const { return ok_; }

 private:
  bool pushed_ = false;
  bool ok_ = true;
};

// Lets this thread make calls that would break another stream's capture.
class RelaxedCapture {
 public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_DRIVER_H_
