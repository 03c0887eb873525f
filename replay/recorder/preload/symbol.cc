// Device variables by the host's name for them.
#include <cuda_runtime_api.h>

#include "replay/recorder/preload/context.h"
#include "replay/recorder/preload/copy.h"
#include "replay/recorder/preload/modules.h"
#include "replay/recorder/preload/stream.h"

namespace reprise::standin {
namespace {

struct Place {
  void* pointer = nullptr;
  uint64_t bytes = 0;
};

cudaError_t Locate(const void* symbol, Place* place) {
  ContextLock context;
  if (!context.ok()) return context.error();
  Variable* variable = FindVariable(symbol);
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  const cudaError_t error = Resolve(*context, *variable);
  if (error != cudaSuccess) return error;
  *place = Place{reinterpret_cast<void*>(variable->address), variable->bytes};
  return cudaSuccess;
}

// The address of `bytes` bytes at `offset` in the variable.
cudaError_t LocatePart(const void* symbol, size_t bytes, size_t offset,
                       void** part) {
  Place place;
  const cudaError_t error = Locate(symbol, &place);
  if (error != cudaSuccess) return error;
  if (offset > place.bytes || bytes > place.bytes - offset)
    return cudaErrorInvalidValue;
  *part = static_cast<char*>(place.pointer) + offset;
  return cudaSuccess;
}

bool GoesToDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
         kind == cudaMemcpyDefault;
}

bool ComesFromDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
         kind == cudaMemcpyDefault;
}

cudaError_t CopyTo(const void* symbol, const void* from, size_t bytes,
                   size_t offset, cudaMemcpyKind kind) {
  if (!GoesToDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  void* part = nullptr;
  const cudaError_t error = LocatePart(symbol, bytes, offset, &part);
  return error != cudaSuccess ? error : Copy(part, from, bytes, kind);
}

cudaError_t CopyFrom(void* to, const void* symbol, size_t bytes, size_t offset,
                     cudaMemcpyKind kind) {
  if (!ComesFromDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  void* part = nullptr;
  const cudaError_t error = LocatePart(symbol, bytes, offset, &part);
  return error != cudaSuccess ? error : Copy(to, part, bytes, kind);
}

}  // namespace
}  // namespace reprise::standin

using namespace reprise::standin;  // NOLINT: this file is its C face

extern "C" {

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  if (pointer == nullptr) return Finish(cudaErrorInvalidValue);
  Place place;
  const cudaError_t error = Locate(symbol, &place);
  if (error == cudaSuccess) *pointer = place.pointer;
  return Finish(error);
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  if (bytes == nullptr) return Finish(cudaErrorInvalidValue);
  Place place;
  const cudaError_t error = Locate(symbol, &place);
  if (error == cudaSuccess) *bytes = place.bytes;
  return Finish(error);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from,
                               size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  const cudaError_t error = SynchronizeContext();
  return Finish(
      error != cudaSuccess ? error : CopyTo(symbol, from, bytes, offset, kind));
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from,
                                    size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  if (!IsStream(stream)) return Finish(cudaErrorInvalidResourceHandle);
  return Finish(CopyTo(symbol, from, bytes, offset, kind));
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes,
                                 size_t offset, cudaMemcpyKind kind) {
  const cudaError_t error = SynchronizeContext();
  return Finish(
      error != cudaSuccess ? error : CopyFrom(to, symbol, bytes, offset, kind));
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol,
                                      size_t bytes, size_t offset,
                                      cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  if (!IsStream(stream)) return Finish(cudaErrorInvalidResourceHandle);
  return Finish(CopyFrom(to, symbol, bytes, offset, kind));
}

REPRISE_PTDS(cudaMemcpyToSymbol)
REPRISE_PTSZ(cudaMemcpyToSymbolAsync)
REPRISE_PTDS(cudaMemcpyFromSymbol)
REPRISE_PTSZ(cudaMemcpyFromSymbolAsync)

}  // extern "C"
