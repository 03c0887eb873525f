// The application's memory: device allocations served from one arena for each
// device, and everything else that kernels can reach, tracked. Thread-safe; an
// allocation or a free of less than 1 MiB makes no driver call but one that
// names the current context, unless new memory is needed.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_ALLOCATOR_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_ALLOCATOR_H_

#include <cuda.h>
#include <stdint.h>

#include "replay/recorder/driver/arena.h"
#include "replay/recorder/driver/contexts.h"
#include "replay/recorder/driver/protocol.h"
#include "replay/recorder/preload/support.h"

namespace reprise::driver {

// What an allocation call came to: answer with `result`, or call the driver's
// own function and, when it gives memory, track it.
struct Served {
  bool by_us = false;
  CUresult result = CUDA_SUCCESS;
};

// `address` and bytes as the application passed them. Requires Active() and the
// gate.
Served Allocate(uint64_t* address, uint64_t bytes);
Served AllocatePitch(uint64_t* address, size_t* pitch, size_t width,
                     size_t height, unsigned int element_bytes);
Served AllocateAsync(uint64_t* address, uint64_t bytes, CUstream stream,
                     bool per_thread);
// From a pool that is not shared with other processes.
Served AllocateFromPool(uint64_t* address, uint64_t bytes, CUmemoryPool pool,
                        CUstream stream, bool per_thread);
// Waits for the memory's context first; must not hold the gate.
Served Free(uint64_t address);
Served FreeAsync(uint64_t address, CUstream stream, bool per_thread);

// Whether an address lies in a device's arena, allocated or not.
bool InArena(uint64_t address);
// Whether it lies in an arena or in memory that is tracked.
bool IsTracked(uint64_t address);
// The live arena allocation that an address lies in.
bool FindAllocation(uint64_t address, Allocation* found);
// Memory that is backed and free, of the current context's device.
uint64_t CachedBytes();
// Gives what is not used back to the driver. True: something was.
bool TrimDevice();

// Makes a call of the driver's that takes memory; where the memory went to our
// cache, gives it back and tries again.
template <typename Call>
CUresult WithTrim(Call call) {
  CUresult result = call();
  if (result == CUDA_ERROR_OUT_OF_MEMORY && TrimDevice()) result = call();
  return result;
}

// The application works on a device: it reaches the arenas of others, where the
// hardware allows.
void NoteAccessor(int device);
// Kernels of `device` may use what `peer` has.
void NotePeer(int device, int peer);

// Pools whose memory other processes or devices share stay the driver's.
void NotePool(CUmemoryPool pool, const CUmemPoolProps& properties);
void ForgetPool(CUmemoryPool pool);

// Memory that the driver keeps, for the current context's device; for managed
// and host memory, all devices.
void Track(uint64_t address, uint64_t bytes, uint32_t origin);
// Memory that the application maps itself; devices reach it once they have
// access.
void TrackMapping(uint64_t address, uint64_t bytes);
void SetMappingAccess(uint64_t address, uint64_t bytes, int device,
                      bool readable);
void Untrack(uint64_t address);
// Every tracked range inside.
void UntrackInside(uint64_t address, uint64_t bytes);

// Work that frees were waiting for is done. Mark before waiting, settle after.
uint64_t MarkFrees();
void SettleContext(CUcontext context, uint64_t mark);
void SettleStream(CUstream stream, bool per_thread, uint64_t mark);
// Before the driver destroys it.
void RetireStream(CUstream stream);

// The context's memory is gone.
void ForgetContextMemory(CUcontext context);

// Everything that kernels of a device can reach, ascending and disjoint, with
// no symbols. False: memory is exhausted.
bool LiveRanges(int device, standin::Array<driver_wire::LiveRange>* ranges);

// Streams that are being captured into graphs, anywhere in the process.
void NoteCapture(int difference);
bool Capturing();
// Whether this explicit stream is, or must be taken for one.
bool IsCapturing(CUstream stream);

// The stream as an explicit handle: CU_STREAM_LEGACY for 0, or
// CU_STREAM_PER_THREAD where 0 means the thread's own.
CUstream Explicit(CUstream stream, bool per_thread);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_ALLOCATOR_H_
