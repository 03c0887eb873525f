// NVIDIA's profiling library, loaded at run time and only where something is to
// be counted: no binary of Reprise needs it, and a process that times launches
// never has it.
//
// Cupti holds the library's entry points under their own names, and is the one
// place where a CUptiResult becomes an absl::Status. The calls are those of the
// Range Profiler, which CUDA 12.6 and newer have.
//
// Thread-safe once loaded; the library is never unloaded.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CUPTI_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CUPTI_H_

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// X(member, declaration, which is also the symbol).
#define REPRISE_CUPTI_ENTRY_POINTS(X)                                  \
  X(GetResultString, cuptiGetResultString)                             \
  X(Initialize, cuptiProfilerInitialize)                               \
  X(DeInitialize, cuptiProfilerDeInitialize)                           \
  X(DeviceSupported, cuptiProfilerDeviceSupported)                     \
  X(GetChipName, cuptiDeviceGetChipName)                               \
  X(GetCounterAvailability, cuptiProfilerGetCounterAvailability)       \
  X(HostInitialize, cuptiProfilerHostInitialize)                       \
  X(HostDeinitialize, cuptiProfilerHostDeinitialize)                   \
  X(HostConfigAddMetrics, cuptiProfilerHostConfigAddMetrics)           \
  X(HostGetConfigImageSize, cuptiProfilerHostGetConfigImageSize)       \
  X(HostGetConfigImage, cuptiProfilerHostGetConfigImage)               \
  X(HostGetNumOfPasses, cuptiProfilerHostGetNumOfPasses)               \
  X(HostEvaluateToGpuValues, cuptiProfilerHostEvaluateToGpuValues)     \
  X(RangeEnable, cuptiRangeProfilerEnable)                             \
  X(RangeDisable, cuptiRangeProfilerDisable)                           \
  X(RangeGetCounterDataSize, cuptiRangeProfilerGetCounterDataSize)     \
  X(RangeInitializeData, cuptiRangeProfilerCounterDataImageInitialize) \
  X(RangeSetConfig, cuptiRangeProfilerSetConfig)                       \
  X(RangeStart, cuptiRangeProfilerStart)                               \
  X(RangeStop, cuptiRangeProfilerStop)                                 \
  X(RangePush, cuptiRangeProfilerPushRange)                            \
  X(RangePop, cuptiRangeProfilerPopRange)                              \
  X(RangeDecodeData, cuptiRangeProfilerDecodeData)

namespace reprise::cuda {

// Names the library to load instead of those CuptiPlaces finds; for tests.
inline constexpr char kCuptiVariable[] = "REPRISE_CUPTI";

// Names for dlopen, best first: in the toolkit, then where the loader looks.
std::vector<std::string> CuptiPlaces(const std::string& cuda_home);

class Cupti {
 public:
  // NOT_FOUND where there is none; FAILED_PRECONDITION where it is too old.
  static absl::StatusOr<std::unique_ptr<const Cupti>> Load(
      const std::string& cuda_home);

  // OK, or the error with the call's text. That this user may not count is
  // PERMISSION_DENIED and says what to do; an unknown metric NOT_FOUND; a
  // device that cannot be profiled FAILED_PRECONDITION; all else INTERNAL.
  absl::Status Check(CUptiResult result, std::string_view call) const;

#define REPRISE_CUPTI_MEMBER(member, declaration) \
  decltype(&::declaration) member = nullptr;
  REPRISE_CUPTI_ENTRY_POINTS(REPRISE_CUPTI_MEMBER)
#undef REPRISE_CUPTI_MEMBER
};

// Declares parameters of a call, empty but for their size, which tells the
// library what they hold.
#define CUPTI_PARAMETERS(type, name) \
  type name = {};                    \
  name.structSize = type##_STRUCT_SIZE

// Returns from the enclosing function when a call fails:
// CUPTI_RETURN_IF_ERROR(cupti, RangeStart, &parameters).
#define CUPTI_RETURN_IF_ERROR(cupti, member, parameters)    \
  RETURN_IF_ERROR((cupti).Check((cupti).member(parameters), \
                                "CUPTI'"                    \
                                "s " #member))

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CUPTI_H_
