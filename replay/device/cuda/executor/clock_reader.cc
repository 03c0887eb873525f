#include "replay/device/cuda/executor/clock_reader.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace reprise::cuda {
namespace {

using std::chrono::steady_clock;

constexpr auto kAlwaysCheap = std::chrono::microseconds(50);
constexpr int kCostShare = 20;
// They change slowly, and power is an average over a second on some devices.
constexpr auto kTemperatureEvery = std::chrono::milliseconds(100);

// As NVIDIA documents them (NVML API Reference Guide).
using NvmlReturn = int;  // 0: success
using NvmlDevice = void*;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kTemperatureOfGpu = 0;

struct Nvml {
  NvmlReturn (*init)() = nullptr;
  const char* (*error_string)(NvmlReturn) = nullptr;
  NvmlReturn (*handle_by_pci_bus_id)(const char*, NvmlDevice*) = nullptr;
  NvmlReturn (*clock_info)(NvmlDevice, int, unsigned*) = nullptr;
  // These may be missing.
  NvmlReturn (*event_reasons)(NvmlDevice, unsigned long long*) = nullptr;
  NvmlReturn (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlReturn (*power_usage)(NvmlDevice, unsigned*) = nullptr;  // mW
};

template <typename Function>
bool Resolve(void* library, const char* symbol, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, symbol));
  return *function != nullptr;
}

// Why it cannot be used; empty: it can.
std::string LoadLibrary(Nvml* nvml) {
  const char* chosen = std::getenv(kManagementVariable);
  const char* path = chosen != nullptr ? chosen : "libnvidia-ml.so.1";
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return absl::StrCat("NVIDIA's management library is missing: ", dlerror());
  const bool complete =
      Resolve(library, "nvmlInit_v2", &nvml->init) &&
      Resolve(library, "nvmlErrorString", &nvml->error_string) &&
      Resolve(library, "nvmlDeviceGetHandleByPciBusId_v2",
              &nvml->handle_by_pci_bus_id) &&
      Resolve(library, "nvmlDeviceGetClockInfo", &nvml->clock_info);
  if (!complete) return absl::StrCat(path, " is too old to tell clocks");
  // The second is the name in drivers before 535.
  if (!Resolve(library, "nvmlDeviceGetCurrentClocksEventReasons",
               &nvml->event_reasons)) {
    Resolve(library, "nvmlDeviceGetCurrentClocksThrottleReasons",
            &nvml->event_reasons);
  }
  Resolve(library, "nvmlDeviceGetTemperature", &nvml->temperature);
  Resolve(library, "nvmlDeviceGetPowerUsage", &nvml->power_usage);
  const NvmlReturn result = nvml->init();
  return result == 0 ? ""
                     : absl::StrCat("NVIDIA's management library: ",
                                    nvml->error_string(result));
}

class UnknownClocks : public ClockReader {
 public:
  explicit UnknownClocks(const std::string& reason) {
    sample_.set_unknown(reason);
  }
  std::optional<v1::ClockSample> SampleIfDue() override { return sample_; }

 private:
  v1::ClockSample sample_;
};

class NvmlClocks : public ClockReader {
 public:
  NvmlClocks(Nvml nvml, NvmlDevice device) : nvml_(nvml), device_(device) {}

  std::optional<v1::ClockSample> SampleIfDue() override {
    const Pace::Time begin = steady_clock::now();
    if (!pace_.IsDue(begin)) return std::nullopt;
    if (begin >= next_temperature_) {
      ReadTemperature();
      next_temperature_ = begin + kTemperatureEvery;
    }
    ReadClocks();
    pace_.Note(begin, steady_clock::now());
    return sample_;
  }

 private:
  void ReadClocks() {
    unsigned mhz = 0;
    const NvmlReturn result = nvml_.clock_info(device_, kClockSm, &mhz);
    sample_.set_sm_mhz(result == 0 ? mhz : 0);
    sample_.set_unknown(result == 0 ? "" : nvml_.error_string(result));
    mhz = 0;
    sample_.set_memory_mhz(
        nvml_.clock_info(device_, kClockMemory, &mhz) == 0 ? mhz : 0);
    unsigned long long reasons = 0;
    const bool known = nvml_.event_reasons != nullptr &&
                       nvml_.event_reasons(device_, &reasons) == 0;
    sample_.set_event_reasons(known ? reasons : 0);
  }
  void ReadTemperature() {
    unsigned celsius = 0, milliwatts = 0;
    if (nvml_.temperature != nullptr &&
        nvml_.temperature(device_, kTemperatureOfGpu, &celsius) == 0)
      sample_.set_temperature_c(celsius);
    if (nvml_.power_usage != nullptr &&
        nvml_.power_usage(device_, &milliwatts) == 0)
      sample_.set_power_w(milliwatts / 1e3);
  }

  const Nvml nvml_;
  const NvmlDevice device_;
  Pace pace_;
  Pace::Time next_temperature_ = Pace::Time::min();
  v1::ClockSample sample_;
};

}  // namespace

void Pace::Note(Time begin, Time end) {
  const auto cost = end - begin;
  next_ = cost <= kAlwaysCheap ? end : end + kCostShare * cost;
}

std::unique_ptr<ClockReader> ClockReader::Create(
    const std::string& pci_bus_id) {
  Nvml nvml;
  const std::string problem = LoadLibrary(&nvml);
  if (!problem.empty()) return std::make_unique<UnknownClocks>(problem);
  NvmlDevice device = nullptr;
  const NvmlReturn result =
      nvml.handle_by_pci_bus_id(pci_bus_id.c_str(), &device);
  if (result != 0) {
    return std::make_unique<UnknownClocks>(
        absl::StrCat("NVIDIA's management library knows no device ", pci_bus_id,
                     ": ", nvml.error_string(result)));
  }
  return std::make_unique<NvmlClocks>(nvml, device);
}

}  // namespace reprise::cuda
