#include "replay/recorder/session/unit_description.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "replay/compiler/kernel_symbols.h"

namespace reprise {
namespace {

constexpr char kRecorderVersion[] = REPRISE_VERSION;

bool IsFloatingPoint(v1::ElementType type) {
  return type == v1::ELEMENT_TYPE_F16 || type == v1::ELEMENT_TYPE_BF16 ||
         type == v1::ELEMENT_TYPE_F32 || type == v1::ELEMENT_TYPE_F64;
}

// The argument's value where it can be an address, else 0.
uint64_t PointerArgument(const v1::CompiledKernelInfo& info, int parameter,
                         const std::string& arguments) {
  uint64_t value = 0;
  const uint64_t offset = info.parameter_offsets(parameter);
  if (info.parameter_bytes(parameter) != sizeof(value) ||
      offset + sizeof(value) > arguments.size())
    return 0;
  std::memcpy(&value, arguments.data() + offset, sizeof(value));
  return value;
}

v1::ElementType TypeAt(const std::vector<ImageRange>& image, uint64_t address) {
  for (const ImageRange& range : image)
    if (address - range.address < range.bytes) return range.element_type;
  return v1::ELEMENT_TYPE_UNTYPED;
}

// "Model name (4 threads)" of the processor.
std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  std::string name = "cpu";
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) name = line.substr(colon + 2);
    break;
  }
  return absl::StrCat(name, " (", std::thread::hardware_concurrency(),
                      " threads)");
}

}  // namespace

v1::Kernel DescribeKernel(const v1::CompiledKernelInfo& info,
                          const std::string& arguments,
                          const std::vector<ImageRange>& image) {
  v1::Kernel kernel;
  kernel.set_symbol(info.symbol());
  kernel.set_display_name(DemangledName(info.symbol()));
  kernel.set_source_path(info.source_path());
  kernel.set_source_line(info.source_line());
  for (int i = 0; i < info.parameter_offsets_size(); ++i) {
    v1::KernelParameter* parameter = kernel.add_parameters();
    parameter->set_offset(info.parameter_offsets(i));
    parameter->set_bytes(info.parameter_bytes(i));
    if (i < info.parameter_names_size())
      parameter->set_name(info.parameter_names(i));
    v1::ElementType pointee = v1::ELEMENT_TYPE_UNTYPED;
    if (i < info.parameter_pointees_size())
      pointee = info.parameter_pointees(i);
    const uint64_t pointer = PointerArgument(info, i, arguments);
    if (pointee == v1::ELEMENT_TYPE_UNTYPED && pointer != 0)
      pointee = TypeAt(image, pointer);
    parameter->set_pointee(pointee);
  }
  for (const v1::ToleranceAnnotation& annotation : info.tolerances()) {
    if (annotation.parameter() >= 0 &&
        annotation.parameter() < kernel.parameters_size()) {
      *kernel.mutable_parameters(annotation.parameter())->mutable_tolerance() =
          annotation.tolerance();
    }
  }
  return kernel;
}

void ApplyTolerances(const v1::CompiledKernelInfo& info,
                     const std::string& arguments, v1::Unit* unit) {
  std::vector<uint64_t> pointers;
  for (int i = 0; i < info.parameter_offsets_size(); ++i)
    pointers.push_back(PointerArgument(info, i, arguments));

  const v1::Tolerance* whole_kernel = nullptr;
  for (const v1::ToleranceAnnotation& annotation : info.tolerances()) {
    const int parameter = annotation.parameter();
    if (parameter < 0) whole_kernel = &annotation.tolerance();
    if (parameter < 0 || parameter >= static_cast<int>(pointers.size()))
      continue;
    const uint64_t pointer = pointers[parameter];
    if (pointer == 0) continue;
    // Where the next argument's memory begins.
    uint64_t end = UINT64_MAX;
    for (const uint64_t other : pointers)
      if (other > pointer) end = std::min(end, other);
    uint64_t reached = pointer;
    for (v1::MemoryRange& range : *unit->mutable_memory()) {
      const bool holds = pointer - range.address() < range.bytes();
      const bool follows = range.address() == reached;
      if (!holds && !follows) continue;
      if (range.address() >= end) break;
      reached = range.address() + range.bytes();
      if (IsFloatingPoint(range.element_type()))
        *range.mutable_tolerance() = annotation.tolerance();
    }
  }
  if (whole_kernel == nullptr) return;
  for (v1::MemoryRange& range : *unit->mutable_memory()) {
    if (range.has_epilogue() && !range.has_tolerance() &&
        IsFloatingPoint(range.element_type()))
      *range.mutable_tolerance() = *whole_kernel;
  }
}

v1::Provenance DescribeRecording(const std::vector<std::string>& command,
                                 absl::Duration duration) {
  v1::Provenance provenance;
  provenance.set_recorder_version(kRecorderVersion);
  provenance.set_device("cpu");
  provenance.set_device_name(ProcessorName());
  for (const std::string& word : command) provenance.add_command(word);
  std::error_code error;
  provenance.set_directory(std::filesystem::current_path(error).string());
  provenance.set_recorded_unix_seconds(
      static_cast<uint64_t>(absl::ToUnixSeconds(absl::Now())));
  provenance.set_duration_ms(absl::ToDoubleMilliseconds(duration));
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof(host) - 1);
  provenance.set_host(host);
  return provenance;
}

}  // namespace reprise
