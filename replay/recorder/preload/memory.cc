// Allocation and freeing of device, managed and pinned memory, pools, and what
// can be asked about a pointer.
#include <cuda_runtime_api.h>

#include "replay/recorder/preload/context.h"
#include "replay/recorder/preload/memory.h"

namespace reprise::standin {
namespace {

constexpr uint64_t kPitchBytes = 512;
constexpr uint64_t kMaxAllocationBytes = uint64_t{1} << 46;

struct Registered {
  uint64_t address;
  uint64_t bytes;
  unsigned flags;
};
constinit Array<Registered> registered;

uint64_t AddressOf(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

Registered* FindRegistered(uint64_t address) {
  for (Registered& range : registered)
    if (address - range.address < range.bytes) return &range;
  return nullptr;
}

cudaError_t Free(void* pointer, bool pinned) {
  if (pointer == nullptr) return cudaSuccess;
  ContextLock context;
  if (!context.ok()) return context.error();
  const uint64_t address = AddressOf(pointer);
  Allocation* found = context->arena.Find(address);
  if (found == nullptr || found->address != address ||
      (found->origin == wire::kOriginPinned) != pinned)
    return cudaErrorInvalidValue;
  context->arena.Release(found);
  if (!context->channel.Send(wire::kFree, wire::FreeNotice{address}))
    return context->Lost();
  return cudaSuccess;
}

cudaError_t AllocatePinned(void** pointer, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown =
      cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if (pointer == nullptr || (flags & ~kKnown) != 0)
    return cudaErrorInvalidValue;
  return Allocate(pointer, bytes, wire::kOriginPinned, flags, nullptr);
}

// Rows of `width` bytes, `rows` of them, padded to the pitch.
cudaError_t AllocateRows(void** pointer, size_t* pitch, size_t width,
                         size_t rows) {
  if (width > kMaxAllocationBytes || rows > kMaxAllocationBytes)
    return cudaErrorMemoryAllocation;
  *pitch = (width + kPitchBytes - 1) / kPitchBytes * kPitchBytes;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(*pitch, rows, &bytes))
    return cudaErrorMemoryAllocation;
  return Allocate(pointer, bytes, wire::kOriginDevice, 0, nullptr);
}

}  // namespace

cudaError_t Allocate(void** pointer, size_t bytes, uint32_t origin,
                     uint32_t flags, const void* pool) {
  ContextLock context;
  if (!context.ok()) return context.error();
  if (bytes == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  if (bytes > kMaxAllocationBytes) return cudaErrorMemoryAllocation;
  const uint64_t address = context->arena.Allocate(bytes, origin, flags, pool);
  if (address == 0) return cudaErrorMemoryAllocation;
  const wire::AllocateNotice notice{address, bytes, origin, 0};
  if (!context->channel.Send(wire::kAllocate, notice)) return context->Lost();
  *pointer = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t FreeDevice(void* pointer) { return Free(pointer, false); }

bool IsRegisteredHost(uint64_t address, uint64_t bytes) {
  const Registered* range = FindRegistered(address);
  return range != nullptr && bytes <= range->bytes - (address - range->address);
}

}  // namespace reprise::standin

using namespace reprise::standin;  // NOLINT: this file is its C face
namespace wire = reprise::wire;

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return Finish(cudaErrorInvalidValue);
  return Finish(Allocate(pointer, bytes, wire::kOriginDevice, 0, nullptr));
}

cudaError_t cudaFree(void* pointer) {
  const cudaError_t error = SynchronizeContext();
  return Finish(error != cudaSuccess ? error : FreeDevice(pointer));
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  if (pointer == nullptr ||
      (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
    return Finish(cudaErrorInvalidValue);
  return Finish(Allocate(pointer, bytes, wire::kOriginManaged, flags, nullptr));
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width,
                            size_t height) {
  if (pointer == nullptr || pitch == nullptr)
    return Finish(cudaErrorInvalidValue);
  return Finish(AllocateRows(pointer, pitch, width, height));
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  if (pitched == nullptr) return Finish(cudaErrorInvalidValue);
  size_t rows = 0;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
    return Finish(cudaErrorMemoryAllocation);
  cudaPitchedPtr made{nullptr, 0, extent.width, extent.height};
  const cudaError_t error =
      AllocateRows(&made.ptr, &made.pitch, extent.width, rows);
  if (error == cudaSuccess) *pitched = made;
  return Finish(error);
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return Finish(AllocatePinned(pointer, bytes, cudaHostAllocMapped));
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return Finish(AllocatePinned(pointer, bytes, flags));
}

cudaError_t cudaFreeHost(void* pointer) {
  return Finish(reprise::standin::Free(pointer, true));
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host,
                                     unsigned flags) {
  if (device == nullptr || flags != 0) return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  const uint64_t address = AddressOf(host);
  const Allocation* found = context->arena.Find(address);
  if (found != nullptr && found->origin == wire::kOriginPinned) {
    *device = host;
    return cudaSuccess;
  }
  // Kernels run in another process, which cannot see this one's own memory.
  if (FindRegistered(address) != nullptr) {
    Say("cudaHostGetDevicePointer: the stand-in's kernels cannot reach memory "
        "registered with cudaHostRegister; allocate it with cudaMallocHost");
    return Finish(cudaErrorNotSupported);
  }
  return Finish(cudaErrorInvalidValue);
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  if (flags == nullptr) return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  const Allocation* found = context->arena.Find(AddressOf(host));
  if (found == nullptr || found->origin != wire::kOriginPinned)
    return Finish(cudaErrorInvalidValue);
  *flags = found->flags | cudaHostAllocMapped;
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = cudaHostRegisterPortable |
                              cudaHostRegisterMapped | cudaHostRegisterReadOnly;
  if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0)
    return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  const uint64_t address = AddressOf(pointer);
  if (FindRegistered(address) != nullptr ||
      FindRegistered(address + bytes - 1) != nullptr ||
      context->arena.Contains(address))
    return Finish(cudaErrorHostMemoryAlreadyRegistered);
  registered.Append(Registered{address, bytes, flags});
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  ContextLock context;
  if (!context.ok()) return context.Fail();
  for (size_t i = 0; i < registered.size(); ++i) {
    if (registered[i].address != AddressOf(pointer)) continue;
    registered.Remove(i);
    return cudaSuccess;
  }
  return Finish(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  ContextLock context;
  if (!context.ok()) return context.Fail();
  const size_t total = context->hello.device_memory_bytes;
  if (total_bytes != nullptr) *total_bytes = total;
  if (free_bytes != nullptr) *free_bytes = total - context->arena.used_bytes();
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                     const void* pointer) {
  if (attributes == nullptr) return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  *attributes = {};
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->device = cudaInvalidDeviceId;
  void* const address = const_cast<void*>(pointer);
  attributes->hostPointer = address;
  const Allocation* found = context->arena.Find(AddressOf(pointer));
  const bool global = context->arena.IsGlobal(AddressOf(pointer));
  if (found == nullptr && !global) {
    if (FindRegistered(AddressOf(pointer)) != nullptr) {
      attributes->type = cudaMemoryTypeHost;
      attributes->device = 0;
    }
    return cudaSuccess;
  }
  attributes->device = 0;
  attributes->devicePointer = address;
  if (found != nullptr && found->origin == wire::kOriginPinned) {
    attributes->type = cudaMemoryTypeHost;
  } else if (found != nullptr && found->origin == wire::kOriginManaged) {
    attributes->type = cudaMemoryTypeManaged;
  } else {
    attributes->type = cudaMemoryTypeDevice;
    attributes->hostPointer = nullptr;
  }
  return cudaSuccess;
}

}  // extern "C"
