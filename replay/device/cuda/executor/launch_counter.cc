#include "replay/device/cuda/executor/launch_counter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"

namespace reprise::cuda {
namespace {

// More than any choice of the counters below needs.
constexpr uint32_t kMostPasses = 64;

struct Term {
  const char* metric;
  double factor = 1;
};

// A counter as a sum of the profiler's metrics.
struct CounterKind {
  const char* name;
  const char* unit;
  std::vector<Term> terms;
};

const std::vector<CounterKind>& Kinds() {
  static const auto& kinds = *new std::vector<CounterKind>{
      {"instructions", "warp instructions", {{"sm__inst_executed.sum"}}},
      {"instructions_per_cycle",
       "per multiprocessor",
       {{"sm__inst_executed.avg.per_cycle_active"}}},
      {"instruction_throughput",
       "%",
       {{"sm__inst_executed.avg.pct_of_peak_sustained_active"}}},
      {"achieved_occupancy",
       "%",
       {{"sm__warps_active.avg.pct_of_peak_sustained_active"}}},
      {"shared_bank_conflicts",
       "conflicts",
       {{"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"}}},
      {"dram_bytes_read", "bytes", {{"dram__bytes_read.sum"}}},
      {"dram_bytes_written", "bytes", {{"dram__bytes_write.sum"}}},
      {"l2_bytes", "bytes", {{"lts__t_bytes.sum"}}},
      {"f32_flops",
       "flops",
       {{"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"},
        {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"},
        {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 2}}},
      {"f64_flops",
       "flops",
       {{"smsp__sass_thread_inst_executed_op_dadd_pred_on.sum"},
        {"smsp__sass_thread_inst_executed_op_dmul_pred_on.sum"},
        {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", 2}}}};
  return kinds;
}

std::string FormulaOf(const CounterKind& kind) {
  std::string text;
  for (const Term& term : kind.terms) {
    absl::StrAppend(&text, text.empty() ? "" : " + ",
                    term.factor == 1 ? "" : absl::StrCat(term.factor, " "),
                    term.metric);
  }
  return text;
}

std::vector<const char*> Names(const std::vector<std::string>& metrics) {
  std::vector<const char*> names;
  for (const std::string& metric : metrics) names.push_back(metric.c_str());
  return names;
}

v1::Counter ValueOf(const CounterKind& kind,
                    const std::map<std::string, double>& values) {
  v1::Counter counter;
  counter.set_name(kind.name);
  counter.set_unit(kind.unit);
  counter.set_metric(FormulaOf(kind));
  double sum = 0;
  for (const Term& term : kind.terms) {
    const auto found = values.find(term.metric);
    if (found == values.end()) {
      counter.set_absent(
          absl::StrCat("this device has no metric ", term.metric));
      return counter;
    }
    sum += term.factor * found->second;
  }
  if (std::isfinite(sum)) {
    counter.set_value(sum);
  } else {
    counter.set_absent("the profiler gave no number");
  }
  return counter;
}

}  // namespace

class LaunchCounter::Metrics {
 public:
  static absl::StatusOr<std::unique_ptr<Metrics>> Create(
      const Cupti& cupti, const std::string& chip,
      const std::vector<uint8_t>& availability) {
    CUPTI_PARAMETERS(CUpti_Profiler_Host_Initialize_Params, parameters);
    parameters.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    parameters.pChipName = chip.c_str();
    parameters.pCounterAvailabilityImage = availability.data();
    CUPTI_RETURN_IF_ERROR(cupti, HostInitialize, &parameters);
    return std::unique_ptr<Metrics>(new Metrics(cupti, parameters.pHostObject));
  }
  ~Metrics() {
    CUPTI_PARAMETERS(CUpti_Profiler_Host_Deinitialize_Params, parameters);
    parameters.pHostObject = host_;
    (void)cupti_.HostDeinitialize(&parameters);
  }
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  absl::Status Add(const std::vector<std::string>& metrics) {
    std::vector<const char*> names = Names(metrics);
    CUPTI_PARAMETERS(CUpti_Profiler_Host_ConfigAddMetrics_Params, parameters);
    parameters.pHostObject = host_;
    parameters.ppMetricNames = names.data();
    parameters.numMetrics = names.size();
    CUPTI_RETURN_IF_ERROR(cupti_, HostConfigAddMetrics, &parameters);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<uint8_t>> ConfigImage() {
    CUPTI_PARAMETERS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    size.pHostObject = host_;
    CUPTI_RETURN_IF_ERROR(cupti_, HostGetConfigImageSize, &size);
    std::vector<uint8_t> image(size.configImageSize);
    CUPTI_PARAMETERS(CUpti_Profiler_Host_GetConfigImage_Params, parameters);
    parameters.pHostObject = host_;
    parameters.configImageSize = image.size();
    parameters.pConfigImage = image.data();
    CUPTI_RETURN_IF_ERROR(cupti_, HostGetConfigImage, &parameters);
    return image;
  }

  absl::StatusOr<std::map<std::string, double>> Evaluate(
      const std::vector<std::string>& metrics,
      const std::vector<uint8_t>& data) {
    std::vector<const char*> names = Names(metrics);
    std::vector<double> values(names.size());
    CUPTI_PARAMETERS(CUpti_Profiler_Host_EvaluateToGpuValues_Params,
                     parameters);
    parameters.pHostObject = host_;
    parameters.pCounterDataImage = data.data();
    parameters.counterDataImageSize = data.size();
    parameters.ppMetricNames = names.data();
    parameters.numMetrics = names.size();
    parameters.pMetricValues = values.data();
    CUPTI_RETURN_IF_ERROR(cupti_, HostEvaluateToGpuValues, &parameters);
    std::map<std::string, double> by_name;
    for (size_t i = 0; i < metrics.size(); ++i) by_name[metrics[i]] = values[i];
    return by_name;
  }

 private:
  Metrics(const Cupti& cupti, CUpti_Profiler_Host_Object* host)
      : cupti_(cupti), host_(host) {}
  const Cupti& cupti_;
  CUpti_Profiler_Host_Object* const host_;
};

LaunchCounter::LaunchCounter(Gpu& gpu, std::unique_ptr<const Cupti> cupti)
    : gpu_(gpu), cupti_(std::move(cupti)) {}

LaunchCounter::~LaunchCounter() {
  if (profiler_ != nullptr) {
    CUPTI_PARAMETERS(CUpti_RangeProfiler_Disable_Params, parameters);
    parameters.pRangeProfilerObject = profiler_;
    (void)cupti_->RangeDisable(&parameters);
  }
  host_.reset();
  if (!initialized_) return;
  CUPTI_PARAMETERS(CUpti_Profiler_DeInitialize_Params, parameters);
  (void)cupti_->DeInitialize(&parameters);
}

absl::StatusOr<std::unique_ptr<LaunchCounter>> LaunchCounter::Create(
    Gpu& gpu, const std::string& cuda_home) {
  ASSIGN_OR_RETURN(auto cupti, Cupti::Load(cuda_home));
  auto counter =
      std::unique_ptr<LaunchCounter>(new LaunchCounter(gpu, std::move(cupti)));
  RETURN_IF_ERROR(counter->Start());
  return counter;
}

absl::Status LaunchCounter::Start() {
  CUPTI_PARAMETERS(CUpti_Profiler_Initialize_Params, parameters);
  CUPTI_RETURN_IF_ERROR(*cupti_, Initialize, &parameters);
  initialized_ = true;
  RETURN_IF_ERROR(ReadDevice());
  RETURN_IF_ERROR(ChooseMetrics());
  return Configure();
}

absl::Status LaunchCounter::ReadDevice() {
  CUPTI_PARAMETERS(CUpti_Profiler_DeviceSupported_Params, supported);
  supported.cuDevice = gpu_.device();
  supported.api = CUPTI_PROFILER_RANGE_PROFILING;
  CUPTI_RETURN_IF_ERROR(*cupti_, DeviceSupported, &supported);
  if (supported.isSupported != CUPTI_PROFILER_CONFIGURATION_SUPPORTED) {
    return absl::FailedPreconditionError(absl::StrCat(
        "CUPTI cannot count on ", gpu_.facts().name(), ": support level ",
        static_cast<int>(supported.isSupported), ", expected ",
        static_cast<int>(CUPTI_PROFILER_CONFIGURATION_SUPPORTED)));
  }
  CUPTI_PARAMETERS(CUpti_Device_GetChipName_Params, chip);
  chip.deviceIndex = static_cast<size_t>(gpu_.device());
  CUPTI_RETURN_IF_ERROR(*cupti_, GetChipName, &chip);
  chip_ = chip.pChipName;
  CUPTI_PARAMETERS(CUpti_Profiler_GetCounterAvailability_Params, availability);
  availability.ctx = gpu_.context();
  CUPTI_RETURN_IF_ERROR(*cupti_, GetCounterAvailability, &availability);
  availability_.resize(availability.counterAvailabilityImageSize);
  availability.pCounterAvailabilityImage = availability_.data();
  CUPTI_RETURN_IF_ERROR(*cupti_, GetCounterAvailability, &availability);
  return absl::OkStatus();
}

// A host object takes no more metrics after it has refused one.
bool LaunchCounter::IsKnown(const std::string& metric) {
  auto host = Metrics::Create(*cupti_, chip_, availability_);
  return host.ok() && (*host)->Add({metric}).ok() &&
         (*host)->ConfigImage().ok();
}

absl::Status LaunchCounter::ChooseMetrics() {
  for (const CounterKind& kind : Kinds()) {
    for (const Term& term : kind.terms) metrics_.push_back(term.metric);
  }
  ASSIGN_OR_RETURN(host_, Metrics::Create(*cupti_, chip_, availability_));
  if (host_->Add(metrics_).ok() && host_->ConfigImage().ok())
    return absl::OkStatus();
  std::erase_if(metrics_,
                [&](const std::string& metric) { return !IsKnown(metric); });
  if (metrics_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("CUPTI knows none of the metrics of chip ", chip_));
  }
  ASSIGN_OR_RETURN(host_, Metrics::Create(*cupti_, chip_, availability_));
  return host_->Add(metrics_);
}

absl::Status LaunchCounter::Configure() {
  ASSIGN_OR_RETURN(config_, host_->ConfigImage());
  CUPTI_PARAMETERS(CUpti_Profiler_Host_GetNumOfPasses_Params, passes);
  passes.configImageSize = config_.size();
  passes.pConfigImage = config_.data();
  CUPTI_RETURN_IF_ERROR(*cupti_, HostGetNumOfPasses, &passes);
  LOG_DEBUG("{} metrics of {} take {} passes", metrics_.size(), chip_,
            passes.numOfPasses);
  CUPTI_PARAMETERS(CUpti_RangeProfiler_Enable_Params, enable);
  enable.ctx = gpu_.context();
  CUPTI_RETURN_IF_ERROR(*cupti_, RangeEnable, &enable);
  profiler_ = enable.pRangeProfilerObject;
  std::vector<const char*> names = Names(metrics_);
  CUPTI_PARAMETERS(CUpti_RangeProfiler_GetCounterDataSize_Params, size);
  size.pRangeProfilerObject = profiler_;
  size.pMetricNames = names.data();
  size.numMetrics = names.size();
  size.maxNumOfRanges = 1;
  size.maxNumRangeTreeNodes = 1;
  CUPTI_RETURN_IF_ERROR(*cupti_, RangeGetCounterDataSize, &size);
  data_.resize(size.counterDataSize);
  CUPTI_PARAMETERS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params,
                   data);
  data.pRangeProfilerObject = profiler_;
  data.counterDataSize = data_.size();
  data.pCounterData = data_.data();
  CUPTI_RETURN_IF_ERROR(*cupti_, RangeInitializeData, &data);
  CUPTI_PARAMETERS(CUpti_RangeProfiler_SetConfig_Params, config);
  config.pRangeProfilerObject = profiler_;
  config.configSize = config_.size();
  config.pConfig = config_.data();
  config.counterDataImageSize = data_.size();
  config.pCounterDataImage = data_.data();
  config.range = CUPTI_UserRange;
  config.replayMode = CUPTI_UserReplay;
  config.maxRangesPerPass = 1;
  config.numNestingLevels = 1;
  config.minNestingLevel = 1;
  config.targetNestingLevel = 1;
  CUPTI_RETURN_IF_ERROR(*cupti_, RangeSetConfig, &config);
  return absl::OkStatus();
}

absl::Status LaunchCounter::Begin() {
  CUPTI_PARAMETERS(CUpti_RangeProfiler_Start_Params, start);
  start.pRangeProfilerObject = profiler_;
  CUPTI_RETURN_IF_ERROR(*cupti_, RangeStart, &start);
  CUPTI_PARAMETERS(CUpti_RangeProfiler_PushRange_Params, push);
  push.pRangeProfilerObject = profiler_;
  push.pRangeName = "launch";
  CUPTI_RETURN_IF_ERROR(*cupti_, RangePush, &push);
  return absl::OkStatus();
}

absl::Status LaunchCounter::End(bool* done) {
  CUPTI_PARAMETERS(CUpti_RangeProfiler_PopRange_Params, pop);
  pop.pRangeProfilerObject = profiler_;
  CUPTI_RETURN_IF_ERROR(*cupti_, RangePop, &pop);
  CUPTI_PARAMETERS(CUpti_RangeProfiler_Stop_Params, stop);
  stop.pRangeProfilerObject = profiler_;
  CUPTI_RETURN_IF_ERROR(*cupti_, RangeStop, &stop);
  *done = stop.isAllPassSubmitted != 0;
  if (++passes_ < kMostPasses || *done) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("CUPTI wants more than ", kMostPasses,
                                          " launches for its counters"));
}

absl::StatusOr<v1::Counters> LaunchCounter::Values() {
  CUPTI_PARAMETERS(CUpti_RangeProfiler_DecodeData_Params, decode);
  decode.pRangeProfilerObject = profiler_;
  CUPTI_RETURN_IF_ERROR(*cupti_, RangeDecodeData, &decode);
  using Values = std::map<std::string, double>;
  ASSIGN_OR_RETURN(const Values values, host_->Evaluate(metrics_, data_));
  v1::Counters counters;
  counters.set_passes(passes_);
  for (const CounterKind& kind : Kinds())
    *counters.add_values() = ValueOf(kind, values);
  return counters;
}

}  // namespace reprise::cuda
