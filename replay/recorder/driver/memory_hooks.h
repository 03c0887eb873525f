// Hooks of calls that allocate memory, free it, or ask about it.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_MEMORY_HOOKS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_MEMORY_HOOKS_H_

#include <stdint.h>

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/gate.h"
#include "replay/recorder/driver/hooks.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/textures.h"

namespace reprise::driver {

template <typename T>
uint64_t AddressOf(T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

inline uint64_t* AsAddress(CUdeviceptr* pointer) {
  static_assert(sizeof(CUdeviceptr) == sizeof(uint64_t));
  return reinterpret_cast<uint64_t*>(pointer);
}

template <Hook kHook>
CUresult CUDAAPI MemAlloc(CUdeviceptr* pointer, size_t bytes) {
  if (!Active()) return CallReal<kHook>(pointer, bytes);
  SharedGate gate;
  const Served served = Allocate(AsAddress(pointer), bytes);
  if (served.by_us) return served.result;
  const CUresult result =
      WithTrim([&] { return CallReal<kHook>(pointer, bytes); });
  if (result == CUDA_SUCCESS)
    Track(*pointer, bytes, driver_wire::kOriginDevice);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemAllocPitch(CUdeviceptr* pointer, size_t* pitch,
                               size_t width, size_t height,
                               unsigned int element_bytes) {
  if (!Active())
    return CallReal<kHook>(pointer, pitch, width, height, element_bytes);
  SharedGate gate;
  const Served served =
      AllocatePitch(AsAddress(pointer), pitch, width, height, element_bytes);
  if (served.by_us) return served.result;
  const CUresult result = WithTrim([&] {
    return CallReal<kHook>(pointer, pitch, width, height, element_bytes);
  });
  if (result == CUDA_SUCCESS)
    Track(*pointer, *pitch * height, driver_wire::kOriginDevice);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemFree(CUdeviceptr pointer) {
  if (!Active() || pointer == 0) return CallReal<kHook>(pointer);
  const Served served = Free(pointer);
  if (served.by_us) return served.result;
  SharedGate gate;
  const CUresult result = CallReal<kHook>(pointer);
  if (result == CUDA_SUCCESS) Untrack(pointer);
  return result;
}

// Memory from a captured call exists only while its graph runs.
inline void TrackPooled(CUdeviceptr pointer, size_t bytes, CUstream stream,
                        bool per_thread) {
  if (!IsCapturing(Explicit(stream, per_thread)))
    Track(pointer, bytes, driver_wire::kOriginPool);
}

template <Hook kHook>
CUresult CUDAAPI MemAllocAsync(CUdeviceptr* pointer, size_t bytes,
                               CUstream stream) {
  if (!Active()) return CallReal<kHook>(pointer, bytes, stream);
  SharedGate gate;
  const Served served = AllocateAsync(AsAddress(pointer), bytes, stream,
                                      HookType<kHook>::kPerThread);
  if (served.by_us) return served.result;
  const CUresult result =
      WithTrim([&] { return CallReal<kHook>(pointer, bytes, stream); });
  if (result == CUDA_SUCCESS)
    TrackPooled(*pointer, bytes, stream, HookType<kHook>::kPerThread);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes,
                                       CUmemoryPool pool, CUstream stream) {
  if (!Active()) return CallReal<kHook>(pointer, bytes, pool, stream);
  SharedGate gate;
  const Served served = AllocateFromPool(AsAddress(pointer), bytes, pool,
                                         stream, HookType<kHook>::kPerThread);
  if (served.by_us) return served.result;
  const CUresult result = CallReal<kHook>(pointer, bytes, pool, stream);
  if (result == CUDA_SUCCESS)
    TrackPooled(*pointer, bytes, stream, HookType<kHook>::kPerThread);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  if (!Active()) return CallReal<kHook>(pointer, stream);
  SharedGate gate;
  const Served served = FreeAsync(pointer, stream, HookType<kHook>::kPerThread);
  if (served.by_us) return served.result;
  const CUresult result = CallReal<kHook>(pointer, stream);
  if (result == CUDA_SUCCESS) Untrack(pointer);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemPoolCreate(CUmemoryPool* pool,
                               const CUmemPoolProps* properties) {
  const CUresult result = CallReal<kHook>(pool, properties);
  if (result == CUDA_SUCCESS && Active()) NotePool(*pool, *properties);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemPoolDestroy(CUmemoryPool pool) {
  if (Active()) ForgetPool(pool);
  return CallReal<kHook>(pool);
}

template <Hook kHook>
CUresult CUDAAPI MemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const CUresult result = CallReal<kHook>(free_bytes, total_bytes);
  if (result == CUDA_SUCCESS && free_bytes != nullptr && Active())
    *free_bytes += CachedBytes();
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemGetAddressRange(CUdeviceptr* base, size_t* bytes,
                                    CUdeviceptr pointer) {
  if (!Active() || !InArena(pointer))
    return CallReal<kHook>(base, bytes, pointer);
  Allocation found;
  if (!FindAllocation(pointer, &found)) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = found.address;
  if (bytes != nullptr) *bytes = found.bytes;
  return CUDA_SUCCESS;
}

// What the driver would say of an allocation of its own; false where it knows
// best.
inline bool AnswerAttribute(const Allocation& found,
                            CUpointer_attribute attribute, void* value) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(value) =
          reinterpret_cast<CUcontext>(found.owner);
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<uint64_t*>(value) = found.address;
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(value) = found.bytes;
      return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<uint64_t*>(value) = (uint64_t{1} << 40) + found.id;
      return true;
    default:
      return false;
  }
}

// An address that is nobody's memory.
inline constexpr CUdeviceptr kNoAddress = 4096;

template <Hook kHook>
CUresult CUDAAPI PointerGetAttribute(void* value, CUpointer_attribute attribute,
                                     CUdeviceptr pointer) {
  if (!Active() || !InArena(pointer) || value == nullptr)
    return CallReal<kHook>(value, attribute, pointer);
  Allocation found;
  if (!FindAllocation(pointer, &found))
    return CallReal<kHook>(value, attribute, kNoAddress);
  if (AnswerAttribute(found, attribute, value)) return CUDA_SUCCESS;
  return CallReal<kHook>(value, attribute, pointer);
}

template <Hook kHook>
CUresult CUDAAPI PointerGetAttributes(unsigned int count,
                                      CUpointer_attribute* attributes,
                                      void** values, CUdeviceptr pointer) {
  if (!Active() || !InArena(pointer))
    return CallReal<kHook>(count, attributes, values, pointer);
  Allocation found;
  if (!FindAllocation(pointer, &found))
    return CallReal<kHook>(count, attributes, values, kNoAddress);
  const CUresult result = CallReal<kHook>(count, attributes, values, pointer);
  if (result != CUDA_SUCCESS) return result;
  for (unsigned int i = 0; i < count; ++i)
    if (values[i] != nullptr) AnswerAttribute(found, attributes[i], values[i]);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemAllocManaged(CUdeviceptr* pointer, size_t bytes,
                                 unsigned int flags) {
  if (!Active()) return CallReal<kHook>(pointer, bytes, flags);
  SharedGate gate;
  const CUresult result =
      WithTrim([&] { return CallReal<kHook>(pointer, bytes, flags); });
  if (result == CUDA_SUCCESS)
    Track(*pointer, bytes, driver_wire::kOriginManaged);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemHostAlloc(void** pointer, size_t bytes,
                              unsigned int flags) {
  if (!Active()) return CallReal<kHook>(pointer, bytes, flags);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(pointer, bytes, flags);
  if (result == CUDA_SUCCESS)
    Track(AddressOf(*pointer), bytes, driver_wire::kOriginPinned);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemAllocHost(void** pointer, size_t bytes) {
  if (!Active()) return CallReal<kHook>(pointer, bytes);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(pointer, bytes);
  if (result == CUDA_SUCCESS)
    Track(AddressOf(*pointer), bytes, driver_wire::kOriginPinned);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemFreeHost(void* pointer) {
  if (!Active()) return CallReal<kHook>(pointer);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(pointer);
  if (result == CUDA_SUCCESS) Untrack(AddressOf(pointer));
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemHostRegister(void* pointer, size_t bytes,
                                 unsigned int flags) {
  if (!Active()) return CallReal<kHook>(pointer, bytes, flags);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(pointer, bytes, flags);
  // Device registers are not memory to keep.
  if (result == CUDA_SUCCESS && (flags & CU_MEMHOSTREGISTER_IOMEMORY) == 0)
    Track(AddressOf(pointer), bytes, driver_wire::kOriginPinned);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemHostUnregister(void* pointer) {
  if (!Active()) return CallReal<kHook>(pointer);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(pointer);
  if (result == CUDA_SUCCESS) Untrack(AddressOf(pointer));
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                        CUmemGenericAllocationHandle handle,
                        unsigned long long flags) {
  if (!Active()) return CallReal<kHook>(pointer, bytes, offset, handle, flags);
  SharedGate gate;
  const CUresult result =
      CallReal<kHook>(pointer, bytes, offset, handle, flags);
  if (result == CUDA_SUCCESS) TrackMapping(pointer, bytes);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemSetAccess(CUdeviceptr pointer, size_t bytes,
                              const CUmemAccessDesc* access, size_t count) {
  if (!Active()) return CallReal<kHook>(pointer, bytes, access, count);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(pointer, bytes, access, count);
  for (size_t i = 0; result == CUDA_SUCCESS && i < count; ++i) {
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) continue;
    SetMappingAccess(pointer, bytes, access[i].location.id,
                     access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
  }
  return result;
}

template <Hook kHook>
CUresult CUDAAPI MemUnmap(CUdeviceptr pointer, size_t bytes) {
  if (!Active()) return CallReal<kHook>(pointer, bytes);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(pointer, bytes);
  if (result == CUDA_SUCCESS) UntrackInside(pointer, bytes);
  return result;
}

// Any other call that takes device memory.
template <Hook kHook, typename Function = typename HookType<kHook>::type>
struct TrimmingCall;
template <Hook kHook, typename... Arguments>
struct TrimmingCall<kHook, CUresult(CUDAAPI*)(Arguments...)> {
  static CUresult CUDAAPI Call(Arguments... arguments) {
    if (!Active()) return CallReal<kHook>(arguments...);
    SharedGate gate;
    return WithTrim([&] { return CallReal<kHook>(arguments...); });
  }
};
template <Hook kHook>
constexpr typename HookType<kHook>::type Trimming = &TrimmingCall<kHook>::Call;

// Memory of another process or interface that is mapped here.
template <Hook kHook>
CUresult CUDAAPI IpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle,
                                  unsigned int flags) {
  if (!Active()) return CallReal<kHook>(pointer, handle, flags);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(pointer, handle, flags);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (result == CUDA_SUCCESS && CUDA_CALL(cuMemGetAddressRange_v2, &base,
                                          &bytes, *pointer) == CUDA_SUCCESS)
    Track(base, bytes, driver_wire::kOriginDevice);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI IpcCloseMemHandle(CUdeviceptr pointer) {
  if (!Active()) return CallReal<kHook>(pointer);
  SharedGate gate;
  CUdeviceptr base = pointer;
  CUDA_CALL(cuMemGetAddressRange_v2, &base, static_cast<size_t*>(nullptr),
            pointer);
  const CUresult result = CallReal<kHook>(pointer);
  if (result == CUDA_SUCCESS) Untrack(base);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI
ExternalMemoryGetMappedBuffer(CUdeviceptr* pointer, CUexternalMemory memory,
                              const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* buffer) {
  if (!Active()) return CallReal<kHook>(pointer, memory, buffer);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(pointer, memory, buffer);
  if (result == CUDA_SUCCESS)
    Track(*pointer, buffer->size, driver_wire::kOriginDevice);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI TexObjectCreate(CUtexObject* object,
                                 const CUDA_RESOURCE_DESC* resource,
                                 const CUDA_TEXTURE_DESC* texture,
                                 const CUDA_RESOURCE_VIEW_DESC* view) {
  const CUresult result = CallReal<kHook>(object, resource, texture, view);
  if (result == CUDA_SUCCESS && Active()) AddTexture(*object);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI SurfObjectCreate(CUsurfObject* object,
                                  const CUDA_RESOURCE_DESC* resource) {
  const CUresult result = CallReal<kHook>(object, resource);
  if (result == CUDA_SUCCESS && Active()) AddTexture(*object);
  return result;
}

// cuTexObjectDestroy, cuSurfObjectDestroy.
template <Hook kHook>
CUresult CUDAAPI TexObjectDestroy(CUtexObject object) {
  if (Active()) ForgetTexture(object);
  return CallReal<kHook>(object);
}

inline void RefuseSharing(CUdeviceptr pointer) {
  if (!Active() || !InArena(pointer)) return;
  Problem(
      "the application shares device memory with other processes, which the "
      "recorder's allocations do not allow: record it with --allocator native");
}

template <Hook kHook>
CUresult CUDAAPI IpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  RefuseSharing(pointer);
  return CallReal<kHook>(handle, pointer);
}

template <Hook kHook>
CUresult CUDAAPI MemPoolExportPointer(CUmemPoolPtrExportData* data,
                                      CUdeviceptr pointer) {
  RefuseSharing(pointer);
  return CallReal<kHook>(data, pointer);
}

// The driver gives no handle for memory of cuMemAlloc.
template <Hook kHook>
CUresult CUDAAPI MemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                           void* pointer) {
  if (Active() && InArena(AddressOf(pointer))) return CUDA_ERROR_INVALID_VALUE;
  return CallReal<kHook>(handle, pointer);
}

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_MEMORY_HOOKS_H_
