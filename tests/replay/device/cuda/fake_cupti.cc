// A CUPTI without a GPU, as a shared library: what executor/cupti.h loads, so
// that counting is tested on the fake driver (fake_driver.cc). It holds its
// caller to the order of calls and to one launch in each range; whether memory
// was put back between passes shows in the kernel's own results.
//
// Values: "sm__inst_executed.sum" is the passes that ended; of other metrics
// the number of bytes in the name.
//
// REPRISE_FAKE_CUPTI=
//   denied        the driver keeps counters for administrators
//   denied_late   the same, but only said when counting begins
//   unsupported   the device cannot be profiled
//   few_metrics   nothing of l1tex is known
//   not_a_number  of dram, no number comes
//   endless       never has all passes
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

struct CUpti_Profiler_Host_Object {
  bool refused = false;
};

namespace {

constexpr size_t kPasses = 3;
constexpr size_t kImageBytes = 16;

bool initialized = false, configured = false, started = false, pushed = false,
     decoded = false;
size_t passes = 0;
char profiler;

bool Is(const char* behaviour) {
  const char* chosen = std::getenv("REPRISE_FAKE_CUPTI");
  return chosen != nullptr && std::strcmp(chosen, behaviour) == 0;
}

CUptiResult Expect(bool good) {
  return good ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}

CUpti_RangeProfiler_Object* Profiler() {
  return reinterpret_cast<CUpti_RangeProfiler_Object*>(&profiler);
}

}  // namespace

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
              ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
          : result == CUPTI_ERROR_INVALID_OPERATION
              ? "CUPTI_ERROR_INVALID_OPERATION"
              : "CUPTI_ERROR_FAKE";
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params*) {
  initialized = true;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult
cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params*) {
  initialized = false;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult
cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params* p) {
  p->isSupported = Is("unsupported") ? CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED
                                     : CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  return Expect(initialized);
}
EXPORT CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* p) {
  p->pChipName = "FAKE100";
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiProfilerGetCounterAvailability(
    CUpti_Profiler_GetCounterAvailability_Params* p) {
  if (Is("denied")) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  p->counterAvailabilityImageSize = kImageBytes;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult
cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* p) {
  p->pHostObject = new CUpti_Profiler_Host_Object;
  return Expect(std::strcmp(p->pChipName, "FAKE100") == 0);
}
EXPORT CUptiResult
cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params* p) {
  delete p->pHostObject;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiProfilerHostConfigAddMetrics(
    CUpti_Profiler_Host_ConfigAddMetrics_Params* p) {
  for (size_t i = 0; i < p->numMetrics; ++i) {
    if (!Is("few_metrics") ||
        std::strncmp(p->ppMetricNames[i], "l1tex", 5) != 0)
      continue;
    p->pHostObject->refused = true;
  }
  return p->pHostObject->refused ? CUPTI_ERROR_INVALID_METRIC_NAME
                                 : CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiProfilerHostGetConfigImageSize(
    CUpti_Profiler_Host_GetConfigImageSize_Params* p) {
  p->configImageSize = kImageBytes;
  return Expect(!p->pHostObject->refused);
}
EXPORT CUptiResult
cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params* p) {
  std::memset(p->pConfigImage, 1, p->configImageSize);
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult
cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* p) {
  p->numOfPasses = kPasses;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiProfilerHostEvaluateToGpuValues(
    CUpti_Profiler_Host_EvaluateToGpuValues_Params* p) {
  for (size_t i = 0; i < p->numMetrics; ++i) {
    const std::string name = p->ppMetricNames[i];
    p->pMetricValues[i] = static_cast<double>(name.size());
    if (name == "sm__inst_executed.sum")
      p->pMetricValues[i] = static_cast<double>(passes);
    if (Is("not_a_number") && name.rfind("dram", 0) == 0)
      p->pMetricValues[i] = NAN;
  }
  return Expect(decoded);
}
EXPORT CUptiResult
cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* p) {
  p->pRangeProfilerObject = Profiler();
  configured = started = pushed = decoded = false;
  passes = 0;
  return Expect(initialized);
}
EXPORT CUptiResult
cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params*) {
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiRangeProfilerGetCounterDataSize(
    CUpti_RangeProfiler_GetCounterDataSize_Params* p) {
  p->counterDataSize = kImageBytes;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params* p) {
  return Expect(p->counterDataSize == kImageBytes);
}
EXPORT CUptiResult
cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params* p) {
  configured = p->range == CUPTI_UserRange && p->replayMode == CUPTI_UserReplay;
  return Expect(configured && p->pConfig[0] == 1);
}
EXPORT CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params*) {
  if (Is("denied_late")) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  const bool good = configured && !started;
  started = true;
  return Expect(good);
}
EXPORT CUptiResult
cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params*) {
  const bool good = started && !pushed;
  pushed = true;
  return Expect(good);
}
EXPORT CUptiResult
cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params*) {
  const bool good = pushed;
  pushed = false;
  return Expect(good);
}
EXPORT CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params* p) {
  const bool good = started && !pushed;
  started = false;
  ++passes;
  p->isAllPassSubmitted = passes >= kPasses && !Is("endless");
  return Expect(good);
}
EXPORT CUptiResult
cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params*) {
  decoded = passes == kPasses && !started;
  return Expect(decoded);
}
