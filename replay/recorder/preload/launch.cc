// Launches in all their forms.
#include <cuda_runtime_api.h>

#include "replay/recorder/preload/context.h"
#include "replay/recorder/preload/function.h"
#include "replay/recorder/preload/modules.h"
#include "replay/recorder/preload/stream.h"

namespace reprise::standin {
namespace {

struct Shape {
  dim3 grid;
  dim3 block;
  uint32_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  bool cooperative = false;
  dim3 cluster = dim3(0, 0, 0);
};

// <<<...>>> leaves its configuration here for the stub that follows. Deeper
// than one only where an argument's evaluation launches too.
struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  void* stream = nullptr;
};
constexpr size_t kMaxConfigurations = 16;
thread_local Configuration configurations[kMaxConfigurations];
thread_local size_t configuration_count = 0;

bool Fits(const dim3& dim, uint64_t x, uint64_t y, uint64_t z) {
  return dim.x >= 1 && dim.x <= x && dim.y >= 1 && dim.y <= y && dim.z >= 1 &&
         dim.z <= z;
}

cudaError_t Check(const Function& function, const Shape& shape) {
  const uint64_t threads =
      uint64_t{shape.block.x} * shape.block.y * shape.block.z;
  if (!Fits(shape.grid, 0x7fffffff, 65535, 65535) ||
      !Fits(shape.block, 1024, 1024, 64) ||
      threads > function.info.max_threads_per_block ||
      shape.shared_bytes > MaxDynamicSharedBytes(function))
    return cudaErrorInvalidValue;
  if (!shape.cooperative) return cudaSuccess;
  const uint64_t blocks = uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  const uint64_t room = ResidentBlocks(function, static_cast<uint32_t>(threads),
                                       shape.shared_bytes) *
                        uint64_t{MultiprocessorCount()};
  return blocks > room ? cudaErrorCooperativeLaunchTooLarge : cudaSuccess;
}

bool ReceiveLaunch(Context& context, wire::LaunchReply* reply) {
  uint64_t bytes = 0;
  if (!context.channel.ReceiveHeader(wire::kLaunch, &bytes) ||
      bytes < sizeof(*reply) ||
      !context.channel.Receive(reply, sizeof(*reply)) ||
      reply->text_bytes != bytes - sizeof(*reply) ||
      reply->text_bytes > wire::kMaxTextBytes)
    return false;
  if (reply->text_bytes == 0) return true;
  char* text = static_cast<char*>(malloc(reply->text_bytes));
  const bool received =
      text != nullptr && context.channel.Receive(text, reply->text_bytes);
  if (received) context.Keep(text, reply->text_bytes);
  free(text);
  return received;
}

cudaError_t Run(Context& context, const Function& function, const Shape& shape,
                void** arguments) {
  wire::LaunchRequest request;
  request.function = function.info.function;
  const dim3* from[] = {&shape.grid, &shape.block, &shape.cluster};
  uint32_t* to[] = {request.grid, request.block, request.cluster};
  for (int i = 0; i < 3; ++i) {
    to[i][0] = from[i]->x;
    to[i][1] = from[i]->y;
    to[i][2] = from[i]->z;
  }
  request.dynamic_shared_bytes = shape.shared_bytes;
  request.cooperative = shape.cooperative ? 1 : 0;
  request.argument_bytes = function.info.argument_bytes;

  static char buffer[wire::kMaxArgumentBytes];  // under the context's mutex
  if (request.argument_bytes > sizeof(buffer)) return cudaErrorInvalidValue;
  memset(buffer, 0, request.argument_bytes);
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const wire::Parameter& parameter = function.parameters[i];
    memcpy(buffer + parameter.offset, arguments[i], parameter.bytes);
  }
  wire::LaunchReply reply;
  if (!context.channel.Send(wire::kLaunch, request,
                            Bytes{buffer, request.argument_bytes}) ||
      !ReceiveLaunch(context, &reply))
    return context.Lost();
  context.Exclude(reply.excluded_ns);
  if (reply.sticky != 0) {
    const auto sticky = static_cast<cudaError_t>(reply.sticky);
    context.Break(sticky);
    const char* blocking = getenv("CUDA_LAUNCH_BLOCKING");
    if (blocking != nullptr && *blocking == '1') return sticky;
  }
  return static_cast<cudaError_t>(reply.error);
}

cudaError_t Launch(const void* key, const Shape& shape, void** arguments) {
  if (key == nullptr) return cudaErrorInvalidDeviceFunction;
  ContextLock context;
  if (!context.ok()) return context.error();
  Function* function = FindFunction(key);
  if (function == nullptr || !IsStream(shape.stream))
    return cudaErrorInvalidResourceHandle;
  cudaError_t error = Resolve(*context, *function);
  if (error == cudaSuccess) error = Check(*function, shape);
  if (error == cudaSuccess) error = Run(*context, *function, shape, arguments);
  return error;
}

// What CUDA makes of a size_t: it hands 32 bits to the driver.
uint32_t SharedBytes(size_t bytes) { return static_cast<uint32_t>(bytes); }

// Reads what changes the result from the attributes; the rest are hints. False:
// an attribute that this runtime cannot honour, which has been said.
bool ReadAttributes(const cudaLaunchConfig_t& config, Shape* shape) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case cudaLaunchAttributeCooperative:
        shape->cooperative = attribute.val.cooperative != 0;
        break;
      case cudaLaunchAttributeClusterDimension:
        shape->cluster =
            dim3(attribute.val.clusterDim.x, attribute.val.clusterDim.y,
                 attribute.val.clusterDim.z);
        break;
      case cudaLaunchAttributeProgrammaticEvent:
      case cudaLaunchAttributeLaunchCompletionEvent:
      case cudaLaunchAttributeDeviceUpdatableKernelNode:
        Say("cudaLaunchKernelExC: the stand-in does not know launch attribute "
            "%d",
            static_cast<int>(attribute.id));
        return false;
      default:
        break;
    }
  }
  return true;
}

}  // namespace
}  // namespace reprise::standin

using namespace reprise::standin;  // NOLINT: this file is its C face

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     void* stream) {
  if (configuration_count == kMaxConfigurations) return 1;
  configurations[configuration_count++] =
      Configuration{grid, block, shared_bytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block,
                                       size_t* shared_bytes, void* stream) {
  if (configuration_count == 0) return Finish(cudaErrorMissingConfiguration);
  const Configuration& top = configurations[--configuration_count];
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<void**>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block,
                             void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  const Shape shape{grid, block, SharedBytes(shared_bytes), stream};
  return Finish(Launch(function, shape, arguments));
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void** arguments, size_t shared_bytes,
                               cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid,
                                        dim3 block, void** arguments,
                                        size_t shared_bytes,
                                        cudaStream_t stream) {
  const Shape shape{grid, block, SharedBytes(shared_bytes), stream, true};
  return Finish(Launch(function, shape, arguments));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config,
                                const void* function, void** arguments) {
  if (config == nullptr) return Finish(cudaErrorInvalidValue);
  Shape shape{config->gridDim, config->blockDim,
              SharedBytes(config->dynamicSmemBytes), config->stream};
  if (!ReadAttributes(*config, &shape)) return Finish(cudaErrorNotSupported);
  return Finish(Launch(function, shape, arguments));
}

REPRISE_PTSZ(cudaLaunchKernel)
REPRISE_PTSZ(__cudaLaunchKernel)
REPRISE_PTSZ(cudaLaunchCooperativeKernel)
REPRISE_PTSZ(cudaLaunchKernelExC)

}  // extern "C"
