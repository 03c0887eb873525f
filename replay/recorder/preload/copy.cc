// The memcpy and memset families. All are done when they return, which streams
// allow; the ones without a stream also bring device printf to stdout.
#include "replay/recorder/preload/copy.h"

#include <cuda_runtime_api.h>

#include "replay/recorder/preload/context.h"
#include "replay/recorder/preload/memory.h"
#include "replay/recorder/preload/stream.h"

namespace reprise::standin {
namespace {

// A box of bytes in memory: `depth` slices of `height` rows of `width` bytes.
struct Box {
  size_t width = 0;
  size_t height = 1;
  size_t depth = 1;

  bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

struct Side {
  const void* pointer = nullptr;
  size_t pitch = 0;  // from row to row
  size_t slice = 0;  // from slice to slice
};

// Bytes from the first to one past the last that the box takes on this side;
// false when they do not fit into 64 bits.
bool Extent(const Side& side, const Box& box, uint64_t* bytes) {
  uint64_t rows = 0;
  uint64_t slices = 0;
  return !__builtin_mul_overflow(side.pitch, box.height - 1, &rows) &&
         !__builtin_mul_overflow(side.slice, box.depth - 1, &slices) &&
         !__builtin_add_overflow(rows, slices, &rows) &&
         !__builtin_add_overflow(rows, box.width, bytes);
}

// Where the bytes of a side can be reached, or null when they are not memory
// of the kind that the call names. Requires the mutex.
char* Reach(Context& context, const Side& side, const Box& box,
            bool must_be_device) {
  uint64_t bytes = 0;
  if (side.pointer == nullptr || !Extent(side, box, &bytes)) return nullptr;
  const auto address = reinterpret_cast<uint64_t>(side.pointer);
  if (context.arena.Contains(address)) {
    return context.arena.IsLive(address, bytes) ? context.arena.Alias(address)
                                                : nullptr;
  }
  if (must_be_device && !IsRegisteredHost(address, bytes)) return nullptr;
  return reinterpret_cast<char*>(address);
}

cudaError_t CopyBox(const Side& to, const Side& from, const Box& box,
                    cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  char* target = nullptr;
  const char* source = nullptr;
  {
    ContextLock context;
    if (!context.ok()) return context.error();
    if (box.empty()) return cudaSuccess;
    const bool device_to =
        kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool device_from =
        kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    target = Reach(*context, to, box, device_to);
    source = Reach(*context, from, box, device_from);
  }
  if (target == nullptr || source == nullptr) return cudaErrorInvalidValue;
  if (box.height == 1 && box.depth == 1) {
    memmove(target, source, box.width);
    return cudaSuccess;
  }
  for (size_t z = 0; z < box.depth; ++z) {
    for (size_t y = 0; y < box.height; ++y) {
      memmove(target + z * to.slice + y * to.pitch,
              source + z * from.slice + y * from.pitch, box.width);
    }
  }
  return cudaSuccess;
}

cudaError_t Fill(const Side& side, const Box& box, int value) {
  char* target = nullptr;
  {
    ContextLock context;
    if (!context.ok()) return context.error();
    if (box.empty()) return cudaSuccess;
    target = Reach(*context, side, box, true);
  }
  if (target == nullptr) return cudaErrorInvalidValue;
  for (size_t z = 0; z < box.depth; ++z) {
    for (size_t y = 0; y < box.height; ++y)
      memset(target + z * side.slice + y * side.pitch, value, box.width);
  }
  return cudaSuccess;
}

// Runs a copy or fill that has no stream: whatever ran before it is over.
template <typename Work>
cudaError_t Blocking(const Work& work) {
  const cudaError_t error = SynchronizeContext();
  return Finish(error != cudaSuccess ? error : work());
}

template <typename Work>
cudaError_t Streamed(cudaStream_t stream, const Work& work) {
  if (!IsStream(stream)) return Finish(cudaErrorInvalidResourceHandle);
  return Finish(work());
}

cudaError_t Copy2D(void* to, size_t to_pitch, const void* from,
                   size_t from_pitch, size_t width, size_t height,
                   cudaMemcpyKind kind) {
  if (height > 0 && (width > to_pitch || width > from_pitch))
    return cudaErrorInvalidPitchValue;
  return CopyBox(Side{to, to_pitch, 0}, Side{from, from_pitch, 0},
                 Box{width, height, 1}, kind);
}

cudaError_t Fill2D(void* to, size_t pitch, int value, size_t width,
                   size_t height) {
  if (height > 1 && width > pitch) return cudaErrorInvalidValue;
  return Fill(Side{to, pitch, 0}, Box{width, height, 1}, value);
}

cudaError_t Fill3D(const cudaPitchedPtr& to, int value,
                   const cudaExtent& extent) {
  if (extent.width > to.pitch && extent.height > 1)
    return cudaErrorInvalidValue;
  if (extent.depth > 1 && extent.height > to.ysize)
    return cudaErrorInvalidValue;
  return Fill(Side{to.ptr, to.pitch, to.pitch * to.ysize},
              Box{extent.width, extent.height, extent.depth}, value);
}

bool Locate(const cudaPitchedPtr& memory, const cudaPos& position, Side* side) {
  side->pitch = memory.pitch;
  side->slice = memory.pitch * memory.ysize;
  if (memory.ptr == nullptr) return false;
  side->pointer = static_cast<const char*>(memory.ptr) + position.x +
                  position.y * side->pitch + position.z * side->slice;
  return true;
}

cudaError_t Copy3D(const cudaMemcpy3DParms* parms) {
  if (parms == nullptr) return cudaErrorInvalidValue;
  if (parms->srcArray != nullptr || parms->dstArray != nullptr) {
    Say("cudaMemcpy3D: the stand-in has no CUDA arrays; copy between pitched "
        "pointers");
    return cudaErrorNotSupported;
  }
  const cudaExtent& extent = parms->extent;
  Side to;
  Side from;
  if (!Locate(parms->srcPtr, parms->srcPos, &from) ||
      !Locate(parms->dstPtr, parms->dstPos, &to))
    return cudaErrorInvalidValue;
  if (extent.width + parms->srcPos.x > from.pitch ||
      extent.width + parms->dstPos.x > to.pitch)
    return cudaErrorInvalidPitchValue;
  if (extent.depth > 1 && (extent.height > parms->srcPtr.ysize ||
                           extent.height > parms->dstPtr.ysize))
    return cudaErrorInvalidValue;
  return CopyBox(to, from, Box{extent.width, extent.height, extent.depth},
                 parms->kind);
}

// The only device there is.
bool IsDevice(int device) { return device == 0; }

}  // namespace

cudaError_t Copy(void* to, const void* from, size_t bytes,
                 cudaMemcpyKind kind) {
  return CopyBox(Side{to, 0, 0}, Side{from, 0, 0}, Box{bytes, 1, 1}, kind);
}

}  // namespace reprise::standin

using namespace reprise::standin;  // NOLINT: this file is its C face

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                       cudaMemcpyKind kind) {
  return Blocking([&] { return Copy(to, from, bytes, kind); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  return Streamed(stream, [&] { return Copy(to, from, bytes, kind); });
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from,
                           int from_device, size_t bytes) {
  if (!IsDevice(to_device) || !IsDevice(from_device))
    return Finish(cudaErrorInvalidDevice);
  return Blocking(
      [&] { return Copy(to, from, bytes, cudaMemcpyDeviceToDevice); });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from,
                                int from_device, size_t bytes,
                                cudaStream_t stream) {
  if (!IsDevice(to_device) || !IsDevice(from_device))
    return Finish(cudaErrorInvalidDevice);
  return Streamed(
      stream, [&] { return Copy(to, from, bytes, cudaMemcpyDeviceToDevice); });
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from,
                         size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return Blocking([&] {
    return Copy2D(to, to_pitch, from, from_pitch, width, height, kind);
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                              size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return Streamed(stream, [&] {
    return Copy2D(to, to_pitch, from, from_pitch, width, height, kind);
  });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parms) {
  return Blocking([&] { return Copy3D(parms); });
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parms,
                              cudaStream_t stream) {
  return Streamed(stream, [&] { return Copy3D(parms); });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return Blocking([&] { return Fill(Side{to, 0, 0}, Box{bytes}, value); });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes,
                            cudaStream_t stream) {
  return Streamed(stream,
                  [&] { return Fill(Side{to, 0, 0}, Box{bytes}, value); });
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width,
                         size_t height) {
  return Blocking([&] { return Fill2D(to, pitch, value, width, height); });
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width,
                              size_t height, cudaStream_t stream) {
  return Streamed(stream,
                  [&] { return Fill2D(to, pitch, value, width, height); });
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return Blocking([&] { return Fill3D(to, value, extent); });
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent,
                              cudaStream_t stream) {
  return Streamed(stream, [&] { return Fill3D(to, value, extent); });
}

REPRISE_PTDS(cudaMemcpy)
REPRISE_PTSZ(cudaMemcpyAsync)
REPRISE_PTDS(cudaMemcpy2D)
REPRISE_PTSZ(cudaMemcpy2DAsync)
REPRISE_PTDS(cudaMemcpy3D)
REPRISE_PTSZ(cudaMemcpy3DAsync)
REPRISE_PTDS(cudaMemset)
REPRISE_PTSZ(cudaMemsetAsync)
REPRISE_PTDS(cudaMemset2D)
REPRISE_PTSZ(cudaMemset2DAsync)
REPRISE_PTDS(cudaMemset3D)
REPRISE_PTSZ(cudaMemset3DAsync)

}  // extern "C"
