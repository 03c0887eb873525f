// One kernel launch on its way to the driver: counted, and recorded where the
// parent wants it. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_LAUNCH_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_LAUNCH_H_

#include <cuda.h>
#include <stdint.h>

namespace reprise::driver {

struct Kernel;

struct LaunchCall {
  CUfunction function = nullptr;  // or a CUkernel
  unsigned int grid[3] = {};
  unsigned int block[3] = {};
  unsigned int cluster[3] = {};
  unsigned int dynamic_shared_bytes = 0;
  bool cooperative = false;
  CUstream stream = nullptr;  // explicit
  void** parameters = nullptr;
  void** extra = nullptr;
};

// What a launch call launches: the application's kernel, or one in its place.
struct LaunchTarget {
  CUfunction function = nullptr;
  const unsigned int* grid = nullptr;
  const unsigned int* block = nullptr;
  unsigned int dynamic_shared_bytes = 0;
};

// The application's own call: its form, parameters, stream and attributes.
struct LaunchForm {
  CUresult (*call)(const void* arguments, const LaunchTarget& target) = nullptr;
  const void* arguments = nullptr;
  CUresult operator()(const LaunchTarget& target) const {
    return call(arguments, target);
  }
};

template <typename Callable>
LaunchForm AsLaunchForm(const Callable& callable) {
  return {[](const void* arguments, const LaunchTarget& target) {
            return (*static_cast<const Callable*>(arguments))(target);
          },
          &callable};
}

// The application's call as it is. Made once, or again where it got no memory.
struct RealLaunch {
  CUresult (*call)(const void* arguments) = nullptr;
  const void* arguments = nullptr;
  CUresult operator()() const { return call(arguments); }
};

template <typename Callable>
RealLaunch AsRealLaunch(const Callable& callable) {
  return {[](const void* arguments) {
            return (*static_cast<const Callable*>(arguments))();
          },
          &callable};
}

// The kernel behind a CUfunction, or a CUkernel in its place, known to the
// parent. Null: it cannot be named. Must not hold the channel.
Kernel* MeetKernel(CUfunction handle);

// Requires Active(). Answers what the driver answered.
CUresult Launch(const LaunchCall& launch, LaunchForm form);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_LAUNCH_H_
