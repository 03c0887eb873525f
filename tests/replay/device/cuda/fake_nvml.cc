// NVIDIA's management library as clock_reader.h loads it, for tests: one
// device, on PCI bus 0000:01:00.0, whose state is the text of the file that
// REPRISE_FAKE_NVML names, read at every call:
//   SM_MHZ MEMORY_MHZ EVENT_REASONS CELSIUS MILLIWATTS
// A number that is missing is not supported; without a file there is no driver.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kNotFound = 6,
              kDriverNotLoaded = 9;
int device_object = 0;

std::vector<unsigned long long> State() {
  const char* path = std::getenv("REPRISE_FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  std::vector<unsigned long long> numbers;
  for (unsigned long long number; file >> number;) numbers.push_back(number);
  return numbers;
}

template <typename Number>
int Get(void* device, size_t which, Number* number) {
  const std::vector<unsigned long long> state = State();
  if (device != &device_object || which >= state.size()) return kNotSupported;
  *number = static_cast<Number>(state[which]);
  return kSuccess;
}

}  // namespace

EXPORT int nvmlInit_v2() {
  return State().empty() ? kDriverNotLoaded : kSuccess;
}
EXPORT const char* nvmlErrorString(int result) {
  return result == kNotFound          ? "Not Found"
         : result == kNotSupported    ? "Not Supported"
         : result == kDriverNotLoaded ? "Driver Not Loaded"
                                      : "Success";
}
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  if (std::strcmp(id, "0000:01:00.0") != 0) return kNotFound;
  *device = &device_object;
  return kSuccess;
}
EXPORT int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  return type == 1 || type == 2
             ? Get(device, static_cast<size_t>(type - 1), mhz)
             : kNotSupported;
}
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(
    void* device, unsigned long long* reasons) {
  return Get(device, 2, reasons);
}
EXPORT int nvmlDeviceGetTemperature(void* device, int, unsigned* celsius) {
  return Get(device, 3, celsius);
}
EXPORT int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  return Get(device, 4, milliwatts);
}
