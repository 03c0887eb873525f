#include "replay/recorder/driver/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/gate.h"
#include "replay/recorder/driver/modules.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/profile.h"
#include "replay/recorder/driver/recording.h"
#include "replay/recorder/driver/substitutes.h"

namespace reprise::driver {
namespace {

namespace wire = driver_wire;

// Asks about a handle, which is a CUkernel or a CUfunction.
class HandleQuery {
 public:
  HandleQuery(CUfunction handle, const Kernel& kernel)
      : handle_(handle),
        kernel_(reinterpret_cast<CUkernel>(handle) == kernel.cu_kernel
                    ? kernel.cu_kernel
                    : nullptr) {
    const Context* context = CurrentContext();
    if (context != nullptr) device_ = context->device;
  }

  CUresult Parameter(size_t index, size_t* offset, size_t* bytes) const {
    if (kernel_ != nullptr)
      return CUDA_CALL(cuKernelGetParamInfo, kernel_, index, offset, bytes);
    return CUDA_CALL(cuFuncGetParamInfo, handle_, index, offset, bytes);
  }

  uint32_t Attribute(CUfunction_attribute attribute) const {
    int value = 0;
    const CUresult result =
        kernel_ != nullptr
            ? CUDA_CALL(cuKernelGetAttribute, &value, attribute, kernel_,
                        device_)
            : CUDA_CALL(cuFuncGetAttribute, &value, attribute, handle_);
    return result == CUDA_SUCCESS && value > 0 ? static_cast<uint32_t>(value)
                                               : 0;
  }

 private:
  CUfunction handle_;
  CUkernel kernel_;
  CUdevice device_ = 0;
};

bool AskParameters(const HandleQuery& query, Kernel* kernel) {
  Array<wire::Parameter> parameters;
  for (size_t i = 0; i < wire::kMaxParameters; ++i) {
    size_t offset = 0;
    size_t bytes = 0;
    const CUresult result = query.Parameter(i, &offset, &bytes);
    if (result == CUDA_ERROR_INVALID_VALUE) break;  // behind the last
    if (result != CUDA_SUCCESS || offset + bytes > wire::kMaxArgumentBytes)
      return false;
    if (!parameters.Append(
            {static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)}))
      return false;
    const uint32_t end = static_cast<uint32_t>(offset + bytes);
    if (end > kernel->argument_bytes) kernel->argument_bytes = end;
  }
  kernel->parameters = parameters.data();
  kernel->parameter_count = static_cast<uint32_t>(parameters.size());
  return true;
}

// Requires the channel.
const char* NoParameters() {
  static char text[128];
  int version = 0;
  CUDA_CALL(cuDriverGetVersion, &version);
  snprintf(text, sizeof(text),
           "the driver is for CUDA %d.%d and does not tell its parameters; one "
           "for CUDA 12.4 or newer (550) does",
           version / 1000, version % 1000 / 10);
  return text;
}

// Tells the parent of a kernel before its first launch. Why the kernel cannot
// be recorded although the parent wants it; else null. Requires the channel.
const char* Introduce(ParentLock& parent, const HandleQuery& query,
                      Kernel* kernel) {
  static uint32_t next_number = 0;
  kernel->number = next_number++;
  kernel->counter = CounterOf(kernel->number);
  const bool parameters_known = AskParameters(query, kernel);
  bool wanted = false;
  if (parent.ok() && kernel->number < wire::kMaxKernels) {
    wire::KernelRequest request;
    request.kernel = kernel->number;
    request.parameter_count = kernel->parameter_count;
    request.module = kernel->module->number;
    request.static_shared_bytes =
        query.Attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    request.max_threads_per_block =
        query.Attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    request.registers = query.Attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
    request.local_bytes = query.Attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    wire::KernelReply reply;
    const size_t table = kernel->parameter_count * sizeof(wire::Parameter);
    if (parent->Send(wire::kKernel, request, {kernel->parameters, table},
                     {kernel->name, strlen(kernel->name)}) &&
        parent->Receive(wire::kKernel, &reply)) {
      wanted = reply.wanted != 0;
      if (reply.substitutes != 0) FetchSubstitutes(parent, kernel);
    } else {
      parent.Lost("naming a kernel");
    }
  }
  const char* refusal = nullptr;
  if (wanted && !parameters_known)
    refusal = NoParameters();
  else if (wanted && kernel->module->image.bytes == 0)
    refusal = "its module's machine code is in no known form";
  kernel->wanted.store(wanted && refusal == nullptr, std::memory_order_relaxed);
  kernel->introduced.store(true, std::memory_order_release);
  return refusal;
}

}  // namespace

Kernel* MeetKernel(CUfunction handle) {
  Kernel* kernel = FindKernel(handle);
  if (kernel == nullptr && handle != nullptr)
    kernel = FindUnknownKernel(handle);
  if (kernel == nullptr) return nullptr;
  const char* refusal = nullptr;
  if (!kernel->introduced.load(std::memory_order_acquire)) {
    ParentLock parent;
    if (!kernel->introduced.load(std::memory_order_acquire))
      refusal = Introduce(parent, HandleQuery(handle, *kernel), kernel);
  }
  if (refusal != nullptr)
    Problem("%s is not recorded: %s", kernel->name, refusal);
  return kernel;
}

CUresult Launch(const LaunchCall& launch, LaunchForm form) {
  const auto trimming = [&] {
    return WithTrim([&] {
      return Noted(form({launch.function, launch.grid, launch.block,
                         launch.dynamic_shared_bytes}));
    });
  };
  const RealLaunch own = AsRealLaunch(trimming);

  SharedGate gate;
  Kernel* kernel = FindKernel(launch.function);
  if (kernel == nullptr ||
      !kernel->introduced.load(std::memory_order_acquire)) {
    kernel = MeetKernel(launch.function);
    if (kernel == nullptr) return own();
  }
  // A node of a graph: its graph's launches count.
  if (IsCapturing(launch.stream)) return own();
  const uint64_t occurrence =
      __atomic_fetch_add(&kernel->counter->launches, 1, __ATOMIC_RELAXED);
  if (kernel->wanted.load(std::memory_order_relaxed) && ParentListens()) {
    gate.Release();
    return RecordLaunch(kernel, occurrence, launch, own);
  }
  const auto substituting = [&] {
    CUresult result = CUDA_SUCCESS;
    return LaunchSubstitute(*kernel, launch, form, &result) ? Noted(result)
                                                            : own();
  };
  const RealLaunch real =
      kernel->substitutes != nullptr ? AsRealLaunch(substituting) : own;
  return Profiling() && !Capturing() ? LaunchTimed(kernel, launch.stream, real)
                                     : real();
}

}  // namespace reprise::driver
