#include "replay/recorder/preload/stream.h"

#include "replay/recorder/preload/context.h"
#include "replay/recorder/preload/modules.h"

namespace reprise::standin {
namespace {

constexpr int kGreatestPriority = -5;  // as an H200 answers
constexpr size_t kAttributes = 17;

struct Stream {
  static constexpr uint64_t kMagic = 0x7265707269737374;
  uint64_t magic;
  uint64_t id;
  unsigned flags;
  int priority;
  cudaLaunchAttributeValue attributes[kAttributes];
};

struct Event {
  static constexpr uint64_t kMagic = 0x7265707269736576;
  uint64_t magic;
  unsigned flags;
  bool recorded;
  int64_t clock_ns;
};

// Objects behind handles. Their memory is never given back, so that a stale
// handle is seen to be one.
template <typename T>
class Handles {
 public:
  constexpr Handles() = default;

  T* Make() {
    T* object = nullptr;
    if (unused_.empty()) {
      object = static_cast<T*>(calloc(1, sizeof(T)));
      if (object == nullptr || !all_.Append(object)) return nullptr;
    } else {
      object = unused_[unused_.size() - 1];
      unused_.Remove(unused_.size() - 1);
      memset(static_cast<void*>(object), 0, sizeof(T));
    }
    object->magic = T::kMagic;
    return object;
  }

  static T* From(const void* handle) {
    if (reinterpret_cast<uintptr_t>(handle) < kPageBytes) return nullptr;
    T* object = static_cast<T*>(const_cast<void*>(handle));
    return object->magic == T::kMagic ? object : nullptr;
  }

  void Drop(T* object) {
    object->magic = 0;
    unused_.Append(object);
  }

  void DropAll() {
    for (T* object : all_)
      if (object->magic == T::kMagic) Drop(object);
  }

 private:
  Array<T*> all_;
  Array<T*> unused_;
};

constinit Handles<Stream> streams;
constinit Handles<Event> events;
constinit uint64_t next_stream_id = 3;  // after the two default streams

bool IsDefault(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy ||
         stream == cudaStreamPerThread;
}

cudaError_t MakeStream(cudaStream_t* stream, unsigned flags, int priority) {
  if (stream == nullptr || flags > cudaStreamNonBlocking)
    return cudaErrorInvalidValue;
  ContextLock context;
  if (!context.ok()) return context.error();
  Stream* made = streams.Make();
  if (made == nullptr) return cudaErrorMemoryAllocation;
  made->id = next_stream_id++;
  made->flags = flags;
  made->priority = priority < kGreatestPriority ? kGreatestPriority
                   : priority > 0               ? 0
                                                : priority;
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}

// Calls `use` with the stream (null: a default one) under the mutex.
template <typename Use>
cudaError_t WithStream(cudaStream_t stream, const void* result,
                       const Use& use) {
  if (result == nullptr) return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  Stream* found = nullptr;
  if (!IsDefault(stream)) {
    found = Handles<Stream>::From(stream);
    if (found == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  }
  use(found);
  return cudaSuccess;
}

cudaError_t Synchronize(cudaStream_t stream) {
  if (!IsStream(stream)) return Finish(cudaErrorInvalidResourceHandle);
  return Finish(SynchronizeContext());
}

}  // namespace

bool IsStream(cudaStream_t stream) {
  return IsDefault(stream) || Handles<Stream>::From(stream) != nullptr;
}

bool RecordEvent(cudaEvent_t event) {
  Event* found = Handles<Event>::From(event);
  if (found == nullptr) return false;
  found->recorded = true;
  found->clock_ns = TheContext().DeviceClockNs();
  return true;
}

void ForgetStreamsAndEvents() {
  streams.DropAll();
  events.DropAll();
}

}  // namespace reprise::standin

using namespace reprise::standin;  // NOLINT: this file is its C face

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return Finish(MakeStream(stream, 0, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return Finish(MakeStream(stream, flags, 0));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags,
                                         int priority) {
  return Finish(MakeStream(stream, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  ContextLock context;
  if (!context.ok()) return context.Fail();
  Stream* found = Handles<Stream>::From(stream);
  if (found == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  streams.Drop(found);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Synchronize(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return WithStream(stream, &stream, [](Stream*) {});
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return WithStream(stream, flags, [&](Stream* found) {
    *flags = found != nullptr ? found->flags : 0;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return WithStream(stream, priority, [&](Stream* found) {
    *priority = found != nullptr ? found->priority : 0;
  });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return WithStream(stream, id, [&](Stream* found) {
    *id = found != nullptr ? found->id : stream == cudaStreamPerThread ? 2 : 1;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return WithStream(stream, device, [&](Stream*) { *device = 0; });
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream,
                                   cudaLaunchAttributeID id,
                                   const cudaLaunchAttributeValue* value) {
  if (static_cast<size_t>(id) >= kAttributes)
    return Finish(cudaErrorInvalidValue);
  return WithStream(stream, value, [&](Stream* found) {
    if (found != nullptr) found->attributes[id] = *value;
  });
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream,
                                   cudaLaunchAttributeID id,
                                   cudaLaunchAttributeValue* value) {
  if (static_cast<size_t>(id) >= kAttributes)
    return Finish(cudaErrorInvalidValue);
  return WithStream(stream, value, [&](Stream* found) {
    *value =
        found != nullptr ? found->attributes[id] : cudaLaunchAttributeValue{};
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  cudaStreamCaptureStatus* status) {
  return WithStream(stream, status,
                    [&](Stream*) { *status = cudaStreamCaptureStatusNone; });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  if (mode == nullptr) return Finish(cudaErrorInvalidValue);
  const cudaStreamCaptureMode before = current;
  current = *mode;
  *mode = before;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags) {
  if (flags > cudaEventWaitExternal) return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  return IsStream(stream) && Handles<Event>::From(event) != nullptr
             ? cudaSuccess
             : Finish(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t,
                                     unsigned) {
  ContextLock context;
  if (!context.ok()) return context.Fail();
  if (!IsStream(stream)) return Finish(cudaErrorInvalidResourceHandle);
  const Allocation* found =
      context->arena.Find(reinterpret_cast<uint64_t>(pointer));
  return found != nullptr && found->origin == reprise::wire::kOriginManaged
             ? cudaSuccess
             : Finish(cudaErrorInvalidValue);
}

// Host functions run before the call returns: the stream is empty then.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                               void* data) {
  if (function == nullptr) return Finish(cudaErrorInvalidValue);
  {
    ContextLock context;
    if (!context.ok()) return context.Fail();
    if (!IsStream(stream)) return Finish(cudaErrorInvalidResourceHandle);
  }
  function(data);
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                  cudaStreamCallback_t callback, void* data,
                                  unsigned flags) {
  if (callback == nullptr || flags != 0) return Finish(cudaErrorInvalidValue);
  cudaError_t status = cudaSuccess;
  {
    ContextLock context;
    if (!IsStream(stream)) return Finish(cudaErrorInvalidResourceHandle);
    status = context.error();
  }
  callback(stream, status, data);
  return Finish(status);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  constexpr unsigned kKnown =
      cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  const bool shared_and_timed = (flags & cudaEventInterprocess) != 0 &&
                                (flags & cudaEventDisableTiming) == 0;
  if (event == nullptr || (flags & ~kKnown) != 0 || shared_and_timed)
    return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  Event* made = events.Make();
  if (made == nullptr) return Finish(cudaErrorMemoryAllocation);
  made->flags = flags;
  *event = reinterpret_cast<cudaEvent_t>(made);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  ContextLock context;
  if (!context.ok()) return context.Fail();
  Event* found = Handles<Event>::From(event);
  if (found == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  events.Drop(found);
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned flags) {
  if (flags > cudaEventRecordExternal) return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  return IsStream(stream) && RecordEvent(event)
             ? cudaSuccess
             : Finish(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (Handles<Event>::From(event) == nullptr)
    return Finish(cudaErrorInvalidResourceHandle);
  return Finish(SynchronizeContext());
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  ContextLock context;
  if (!context.ok()) return context.Fail();
  return Handles<Event>::From(event) != nullptr
             ? cudaSuccess
             : Finish(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start,
                                 cudaEvent_t stop) {
  if (ms == nullptr) return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  const Event* pair[] = {Handles<Event>::From(start),
                         Handles<Event>::From(stop)};
  for (const Event* event : pair) {
    if (event == nullptr || !event->recorded ||
        (event->flags & cudaEventDisableTiming) != 0)
      return Finish(cudaErrorInvalidResourceHandle);
  }
  *ms = static_cast<float>(
      static_cast<double>(pair[1]->clock_ns - pair[0]->clock_ns) * 1e-6);
  return cudaSuccess;
}

REPRISE_PTSZ(cudaStreamSynchronize)
REPRISE_PTSZ(cudaStreamQuery)
REPRISE_PTSZ(cudaStreamGetFlags)
REPRISE_PTSZ(cudaStreamGetPriority)
REPRISE_PTSZ(cudaStreamGetId)
REPRISE_PTSZ(cudaStreamGetDevice)
REPRISE_PTSZ(cudaStreamSetAttribute)
REPRISE_PTSZ(cudaStreamGetAttribute)
REPRISE_PTSZ(cudaStreamIsCapturing)
REPRISE_PTSZ(cudaStreamWaitEvent)
REPRISE_PTSZ(cudaStreamAttachMemAsync)
REPRISE_PTSZ(cudaLaunchHostFunc)
REPRISE_PTSZ(cudaStreamAddCallback)
REPRISE_PTSZ(cudaEventRecord)
REPRISE_PTSZ(cudaEventRecordWithFlags)

}  // extern "C"
