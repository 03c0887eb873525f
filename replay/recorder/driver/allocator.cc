#include "replay/recorder/driver/allocator.h"

#include <stdlib.h>

#include <atomic>

#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/gate.h"
#include "replay/recorder/driver/process.h"

namespace reprise::driver {
namespace {

namespace wire = driver_wire;

constexpr size_t kPitchAlignment = 512;

// Physical memory of one device.
class DeviceBacking final : public Backing {
 public:
  void set_device(int device) { device_ = device; }
  bool Map(uint64_t address, uint64_t bytes, uint64_t* handle) override;
  void Unmap(uint64_t address, uint64_t bytes, uint64_t handle) override;

 private:
  void Release(uint64_t address, uint64_t bytes, uint64_t handle);

  int device_ = 0;
};

struct Device {
  bool tried = false;
  bool open = false;
  Arena arena;
  DeviceBacking backing;
};

// A stream that memory was freed on. What was freed since the last event is in
// `lane`; what was freed before it, in lane + 1.
struct Stream {
  CUstream handle = nullptr;  // explicit; null: destroyed
  CUcontext context = nullptr;
  uint64_t thread = 0;  // of CU_STREAM_PER_THREAD
  int device = 0;
  uint32_t lane = 0;
  uint64_t freed = 0;  // number of the last free
  CUevent event = nullptr;
  bool event_pending = false;
  bool used = true;
};

struct Tracked {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t origin = 0;
  uint64_t devices = 0;  // bits of those that can reach it
  CUcontext context = nullptr;
};

struct Pool {
  CUmemoryPool handle = nullptr;
  int device = 0;
  bool shared = false;
};

Mutex g_mutex;
Device g_devices[kMaxDevices];
Array<Stream> g_streams;
Array<Tracked> g_tracked;  // by address
Array<Pool> g_pools;
uint64_t g_frees = 0;
uint64_t g_accessors = 0;  // bits of devices that the application works on
uint64_t g_peers[kMaxDevices] = {};  // bits of devices, by who may use theirs
std::atomic<int> g_captures{0};
std::atomic<uint64_t> g_threads{0};
thread_local uint64_t t_thread = 0;

uint64_t ThisThread() {
  if (t_thread == 0) t_thread = ++g_threads;
  return t_thread;
}

CUmemAllocationProp PropertiesOf(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  int rdma = 0;
  CUDA_CALL(cuDeviceGetAttribute, &rdma,
            CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
            device);
  properties.allocFlags.gpuDirectRDMACapable = rdma != 0 ? 1 : 0;
  return properties;
}

uint64_t BitOf(int device) { return uint64_t{1} << device; }

bool CanReach(int from, int device) {
  int can = 0;
  return CUDA_CALL(cuDeviceCanAccessPeer, &can, from, device) == CUDA_SUCCESS &&
         can != 0;
}

CUresult GrantAccess(uint64_t address, uint64_t bytes, int device) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_CALL(cuMemSetAccess, static_cast<CUdeviceptr>(address),
                   static_cast<size_t>(bytes), &access, static_cast<size_t>(1));
}

bool DeviceBacking::Map(uint64_t address, uint64_t bytes, uint64_t* handle) {
  RelaxedCapture relaxed;
  const CUmemAllocationProp properties = PropertiesOf(device_);
  CUmemGenericAllocationHandle memory = 0;
  if (CUDA_CALL(cuMemCreate, &memory, static_cast<size_t>(bytes), &properties,
                0ull) != CUDA_SUCCESS)
    return false;
  if (CUDA_CALL(cuMemMap, static_cast<CUdeviceptr>(address),
                static_cast<size_t>(bytes), static_cast<size_t>(0), memory,
                0ull) != CUDA_SUCCESS) {
    CUDA_CALL(cuMemRelease, memory);
    return false;
  }
  if (GrantAccess(address, bytes, device_) != CUDA_SUCCESS) {
    Release(address, bytes, memory);
    return false;
  }
  // The driver copies between its own allocations on any two devices; between
  // ours only where one can reach the other.
  for (int peer = 0; peer < kMaxDevices; ++peer) {
    if (peer != device_ && (g_accessors & BitOf(peer)) != 0 &&
        CanReach(peer, device_))
      GrantAccess(address, bytes, peer);
  }
  *handle = memory;
  NoteDeviceMemory(static_cast<int64_t>(bytes));
  return true;
}

void DeviceBacking::Unmap(uint64_t address, uint64_t bytes, uint64_t handle) {
  NoteDeviceMemory(-static_cast<int64_t>(bytes));
  Release(address, bytes, handle);
}

void DeviceBacking::Release(uint64_t address, uint64_t bytes, uint64_t handle) {
  RelaxedCapture relaxed;
  CUDA_CALL(cuMemUnmap, static_cast<CUdeviceptr>(address),
            static_cast<size_t>(bytes));
  CUDA_CALL(cuMemRelease, static_cast<CUmemGenericAllocationHandle>(handle));
}

uint64_t RoundUp(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

// Reserves the device's addresses: four times its memory, so that holes between
// allocations do not matter, or less where the driver gives less. Requires
// g_mutex.
bool Reserve(int device, Device* d, uint64_t total_bytes) {
  const wire::HelloReply& hello = Hello();
  const uint64_t base =
      hello.arena_base + static_cast<uint64_t>(device) * hello.arena_stride;
  uint64_t bytes = RoundUp(4 * total_bytes, uint64_t{1} << 30);
  if (bytes > hello.arena_stride)
    bytes = hello.arena_stride / kPageBytes * kPageBytes;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (; bytes >= kPageBytes && bytes >= total_bytes / 2; bytes /= 2) {
    bytes = bytes / kPageBytes * kPageBytes;
    CUdeviceptr got = 0;
    result =
        CUDA_CALL(cuMemAddressReserve, &got, static_cast<size_t>(bytes),
                  static_cast<size_t>(0), static_cast<CUdeviceptr>(base), 0ull);
    if (result == CUDA_SUCCESS && got == base) {
      d->backing.set_device(device);
      return d->arena.Open(base, bytes, &d->backing);
    }
    if (result == CUDA_SUCCESS)
      CUDA_CALL(cuMemAddressFree, got, static_cast<size_t>(bytes));
  }
  Problem(
      "device %d: the driver does not give the addresses at 0x%llx (%s); its "
      "allocations stay the driver's, and units recorded here may not replay: "
      "choose others with --arena-base",
      device, static_cast<unsigned long long>(base),
      result == CUDA_SUCCESS ? "it gave others" : "it refused");
  return false;
}

// The application works on a device: what others hold is in its reach. Requires
// g_mutex.
void AddAccessor(int device) {
  if (device < 0 || device >= kMaxDevices || (g_accessors & BitOf(device)) != 0)
    return;
  g_accessors |= BitOf(device);
  for (int other = 0; other < kMaxDevices; ++other) {
    const Device& d = g_devices[other];
    if (other == device || !d.open || !CanReach(device, other)) continue;
    RelaxedCapture relaxed;
    d.arena.ForEachChunk([&](uint64_t address, uint64_t bytes, uint64_t) {
      GrantAccess(address, bytes, device);
    });
  }
}

// The device where it is opened already.
Device* Opened(int device) {
  return device >= 0 && device < kMaxDevices && g_devices[device].open
             ? &g_devices[device]
             : nullptr;
}

// The device, opened; null where its allocations stay the driver's. Requires
// g_mutex.
Device* Open(int device) {
  if (device < 0 || device >= kMaxDevices ||
      (Hello().flags & wire::kFlagNativeAllocator) != 0)
    return nullptr;
  Device* d = &g_devices[device];
  if (!d->tried) {
    d->tried = true;
    AddAccessor(device);
    size_t total = 0;
    CUDA_CALL(cuDeviceTotalMem_v2, &total, device);
    d->open = Reserve(device, d, total);
    if (d->open) d->arena.SetCacheBound(total / 16);
  }
  return d->open ? d : nullptr;
}

Device* DeviceOf(uint64_t address) {
  const wire::HelloReply& hello = Hello();
  if (address < hello.arena_base || hello.arena_stride == 0) return nullptr;
  const uint64_t index = (address - hello.arena_base) / hello.arena_stride;
  if (index >= kMaxDevices) return nullptr;
  Device& device = g_devices[index];
  return device.open && device.arena.Contains(address) ? &device : nullptr;
}

// The stream's entry; null with *result set where the driver does not know it.
// Requires g_mutex.
Stream* StreamOf(CUstream handle, bool per_thread, CUresult* result) {
  handle = Explicit(handle, per_thread);
  const bool implicit =
      handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  const uint64_t thread = handle == CU_STREAM_PER_THREAD ? ThisThread() : 0;
  CUcontext context = nullptr;
  if (implicit) {
    *result = CUDA_CALL(cuCtxGetCurrent, &context);
    if (*result == CUDA_SUCCESS && context == nullptr)
      *result = CUDA_ERROR_INVALID_CONTEXT;
    if (*result != CUDA_SUCCESS) return nullptr;
  }
  Stream* unused = nullptr;
  for (Stream& stream : g_streams) {
    if (!stream.used) unused = &stream;
    if (stream.used && stream.handle == handle && stream.thread == thread &&
        (!implicit || stream.context == context))
      return &stream;
  }
  if (!implicit) {
    *result = CUDA_CALL(cuStreamGetCtx, handle, &context);
    if (*result != CUDA_SUCCESS) return nullptr;
  }
  const Context* known = FindContext(context);
  Stream fresh;
  fresh.handle = handle;
  fresh.context = context;
  fresh.thread = thread;
  fresh.device = known != nullptr ? known->device : 0;
  if (unused != nullptr) {
    fresh.lane = unused->lane;
    *unused = fresh;
    return unused;
  }
  fresh.lane = static_cast<uint32_t>(1 + 2 * g_streams.size());
  if (!g_streams.Append(fresh)) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
    return nullptr;
  }
  return &g_streams[g_streams.size() - 1];
}

bool HasPending(const Stream& stream, uint32_t lane_offset) {
  for (const Device& device : g_devices) {
    if (device.open && device.arena.HasPending(stream.lane + lane_offset))
      return true;
  }
  return false;
}

void MoveLane(uint32_t from, uint32_t to) {
  for (Device& device : g_devices)
    if (device.open) device.arena.Move(from, to);
}

void SettleAll(Stream* stream) {
  MoveLane(stream->lane, kSettledLane);
  MoveLane(stream->lane + 1, kSettledLane);
  stream->event_pending = false;
  if (stream->handle == nullptr) {
    if (stream->event != nullptr) CUDA_CALL(cuEventDestroy_v2, stream->event);
    stream->event = nullptr;
    stream->used = false;
  }
}

// Puts an event behind what was freed so far. Requires g_mutex.
bool MarkStream(Stream* stream) {
  WithContext with(stream->context);
  if (!with.ok()) return false;
  if (stream->event == nullptr &&
      CUDA_CALL(cuEventCreate, &stream->event, CU_EVENT_DISABLE_TIMING) !=
          CUDA_SUCCESS) {
    stream->event = nullptr;
    return false;
  }
  if (CUDA_CALL(cuEventRecord, stream->event, stream->handle) != CUDA_SUCCESS)
    return false;
  stream->event_pending = true;
  MoveLane(stream->lane, stream->lane + 1);
  return true;
}

// Looks which streams have passed their frees. Requires g_mutex.
void Reclaim() {
  if (Capturing()) return;
  for (Stream& stream : g_streams) {
    if (!stream.used) continue;
    if (stream.event_pending &&
        CUDA_CALL(cuEventQuery, stream.event) == CUDA_SUCCESS) {
      stream.event_pending = false;
      MoveLane(stream.lane + 1, kSettledLane);
      if (stream.handle == nullptr) SettleAll(&stream);
    }
    // Another thread's own stream cannot be named from here.
    const bool reachable =
        stream.handle != nullptr &&
        (stream.thread == 0 || stream.thread == ThisThread());
    if (reachable && !stream.event_pending && HasPending(stream, 0))
      MarkStream(&stream);
  }
}

// Waits for the device and gives back all that is free. Requires g_mutex.
void ReclaimEverything(int device) {
  if (Capturing()) return;
  CUcontext contexts[kMaxContexts];
  const int count = ContextsOf(device, contexts, kMaxContexts);
  for (int i = 0; i < count; ++i) {
    WithContext with(contexts[i]);
    if (!with.ok() || CUDA_CALL(cuCtxSynchronize) != CUDA_SUCCESS) continue;
    for (Stream& stream : g_streams)
      if (stream.used && stream.context == contexts[i]) SettleAll(&stream);
  }
  g_devices[device].arena.Trim();
}

Served ServeFrom(Device* device, int ordinal, CUcontext owner,
                 uint64_t* address, uint64_t bytes, uint32_t origin,
                 uint32_t lane) {
  Arena& arena = device->arena;
  const uint64_t tag = reinterpret_cast<uint64_t>(owner);
  uint64_t got = arena.Allocate(bytes, tag, origin, lane, /*may_grow=*/false);
  if (got == 0) {
    Reclaim();
    got = arena.Allocate(bytes, tag, origin, lane, /*may_grow=*/true);
  }
  if (got == 0) {
    ReclaimEverything(ordinal);
    got = arena.Allocate(bytes, tag, origin, lane, /*may_grow=*/true);
  }
  if (got == 0) return {true, CUDA_ERROR_OUT_OF_MEMORY};
  *address = got;
  return {true, CUDA_SUCCESS};
}

Served ServeAsync(uint64_t* address, uint64_t bytes, CUstream handle,
                  bool per_thread) {
  if (address == nullptr || bytes == 0 || Capturing()) return {};
  CUresult result = CUDA_SUCCESS;
  MutexLock lock(g_mutex);
  const Stream* stream = StreamOf(handle, per_thread, &result);
  if (stream == nullptr) return {};  // the driver says what is wrong
  Device* device = Open(stream->device);
  if (device == nullptr) return {};
  return ServeFrom(device, stream->device, stream->context, address, bytes,
                   wire::kOriginPool, stream->lane);
}

// The pool; null: one that came from another process. Requires g_mutex.
const Pool* PoolOf(CUmemoryPool handle) {
  for (const Pool& pool : g_pools)
    if (pool.handle == handle) return &pool;
  for (int device = 0; device < kMaxDevices; ++device) {
    CUmemoryPool own = nullptr;
    if (CUDA_CALL(cuDeviceGetDefaultMemPool, &own, device) != CUDA_SUCCESS)
      break;
    if (own != handle) continue;
    if (!g_pools.Append(Pool{handle, device, false})) break;
    return &g_pools[g_pools.size() - 1];
  }
  return nullptr;
}

// Requires g_mutex.
void AddTracked(const Tracked& tracked) {
  size_t at = g_tracked.size();
  while (at > 0 && g_tracked[at - 1].address >= tracked.address) --at;
  if (at < g_tracked.size() && g_tracked[at].address == tracked.address)
    g_tracked[at] = tracked;
  else
    g_tracked.Insert(at, tracked);
}

}  // namespace

CUstream Explicit(CUstream stream, bool per_thread) {
  if (stream != nullptr) return stream;
  return per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

Served Allocate(uint64_t* address, uint64_t bytes) {
  if (address == nullptr || bytes == 0) return {};
  const Context* context = CurrentContext();
  if (context == nullptr) return {};
  const int broken = context->broken.load(std::memory_order_relaxed);
  if (broken != CUDA_SUCCESS) return {true, static_cast<CUresult>(broken)};
  MutexLock lock(g_mutex);
  Device* device = Open(context->device);
  if (device == nullptr) return {};
  return ServeFrom(device, context->device, context->handle.load(), address,
                   bytes, wire::kOriginDevice, kSettledLane);
}

Served AllocatePitch(uint64_t* address, size_t* pitch, size_t width,
                     size_t height, unsigned int element_bytes) {
  const bool elements =
      element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
  if (address == nullptr || pitch == nullptr || width == 0 || height == 0 ||
      !elements)
    return {};  // the driver says what is wrong
  const size_t row = RoundUp(width, kPitchAlignment);
  size_t bytes = 0;
  if (__builtin_mul_overflow(row, height, &bytes)) return {};
  const Served served = Allocate(address, bytes);
  if (served.by_us && served.result == CUDA_SUCCESS) *pitch = row;
  return served;
}

Served AllocateAsync(uint64_t* address, uint64_t bytes, CUstream stream,
                     bool per_thread) {
  return ServeAsync(address, bytes, stream, per_thread);
}

Served AllocateFromPool(uint64_t* address, uint64_t bytes, CUmemoryPool pool,
                        CUstream stream, bool per_thread) {
  if (address == nullptr || bytes == 0 || Capturing()) return {};
  CUresult result = CUDA_SUCCESS;
  MutexLock lock(g_mutex);
  const Stream* entry = StreamOf(stream, per_thread, &result);
  if (entry == nullptr) return {};
  const Pool* known = PoolOf(pool);
  if (known == nullptr || known->shared) return {};
  const int ordinal = known->device;
  Device* device = Open(ordinal);
  if (device == nullptr) return {};
  return ServeFrom(device, ordinal, entry->context, address, bytes,
                   wire::kOriginPool, entry->lane);
}

Served Free(uint64_t address) {
  Allocation found;
  if (!InArena(address)) return {};
  if (!FindAllocation(address, &found) || found.address != address)
    return {true, CUDA_ERROR_INVALID_VALUE};
  // As the driver's own: work that may use the memory ends first.
  const CUcontext owner = reinterpret_cast<CUcontext>(found.owner);
  const uint64_t mark = MarkFrees();
  {
    WithContext with(owner);
    const CUresult result =
        with.ok() ? CUDA_CALL(cuCtxSynchronize) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) return {true, result};
  }
  SettleContext(owner, mark);
  SharedGate gate;
  MutexLock lock(g_mutex);
  Device* device = DeviceOf(address);
  const bool freed =
      device != nullptr && device->arena.Free(address, kSettledLane);
  return {true, freed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE};
}

Served FreeAsync(uint64_t address, CUstream handle, bool per_thread) {
  CUresult result = CUDA_SUCCESS;
  MutexLock lock(g_mutex);
  Device* device = DeviceOf(address);
  if (device == nullptr) return {};
  Stream* stream = StreamOf(handle, per_thread, &result);
  if (stream == nullptr) return {true, result};
  stream->freed = ++g_frees;
  const bool freed = device->arena.Free(address, stream->lane);
  return {true, freed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE};
}

bool InArena(uint64_t address) {
  MutexLock lock(g_mutex);
  return DeviceOf(address) != nullptr;
}

bool IsTracked(uint64_t address) {
  MutexLock lock(g_mutex);
  if (DeviceOf(address) != nullptr) return true;
  for (const Tracked& one : g_tracked)
    if (address - one.address < one.bytes) return true;
  return false;
}

bool FindAllocation(uint64_t address, Allocation* found) {
  MutexLock lock(g_mutex);
  const Device* device = DeviceOf(address);
  return device != nullptr && device->arena.Find(address, found);
}

uint64_t CachedBytes() {
  const Context* context = CurrentContext();
  if (context == nullptr) return 0;
  MutexLock lock(g_mutex);
  const Device* device = Opened(context->device);
  return device != nullptr ? device->arena.cached_bytes() : 0;
}

bool TrimDevice() {
  const Context* context = CurrentContext();
  if (context == nullptr) return false;
  MutexLock lock(g_mutex);
  const Device* device = Opened(context->device);
  if (device == nullptr) return false;
  const uint64_t before = device->arena.mapped_bytes();
  ReclaimEverything(context->device);
  return device->arena.mapped_bytes() < before;
}

void NoteAccessor(int device) {
  MutexLock lock(g_mutex);
  AddAccessor(device);
}

void NotePeer(int device, int peer) {
  if (device < 0 || device >= kMaxDevices || peer < 0 || peer >= kMaxDevices)
    return;
  MutexLock lock(g_mutex);
  g_peers[device] |= BitOf(peer);
}

void NotePool(CUmemoryPool pool, const CUmemPoolProps& properties) {
  const bool shared = properties.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
                      properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
  MutexLock lock(g_mutex);
  g_pools.Append(Pool{pool, properties.location.id, shared});
}

void ForgetPool(CUmemoryPool pool) {
  MutexLock lock(g_mutex);
  for (size_t i = g_pools.size(); i > 0; --i)
    if (g_pools[i - 1].handle == pool) g_pools.Remove(i - 1);
}

void Track(uint64_t address, uint64_t bytes, uint32_t origin) {
  const Context* context = CurrentContext();
  Tracked tracked{address, bytes, origin, ~uint64_t{0}, nullptr};
  const bool everywhere =
      origin == wire::kOriginManaged || origin == wire::kOriginPinned;
  if (context != nullptr) {
    tracked.context = context->handle.load();
    if (!everywhere) tracked.devices = BitOf(context->device);
  }
  MutexLock lock(g_mutex);
  AddTracked(tracked);
}

void TrackMapping(uint64_t address, uint64_t bytes) {
  MutexLock lock(g_mutex);
  AddTracked({address, bytes, wire::kOriginDevice, 0, nullptr});
}

void SetMappingAccess(uint64_t address, uint64_t bytes, int device,
                      bool readable) {
  if (device < 0 || device >= kMaxDevices) return;
  MutexLock lock(g_mutex);
  for (Tracked& one : g_tracked) {
    if (one.address - address >= bytes) continue;
    if (readable)
      one.devices |= BitOf(device);
    else
      one.devices &= ~BitOf(device);
  }
}

void Untrack(uint64_t address) { UntrackInside(address, 1); }

void UntrackInside(uint64_t address, uint64_t bytes) {
  MutexLock lock(g_mutex);
  for (size_t i = g_tracked.size(); i > 0; --i)
    if (g_tracked[i - 1].address - address < bytes) g_tracked.Remove(i - 1);
}

uint64_t MarkFrees() {
  MutexLock lock(g_mutex);
  return g_frees;
}

void SettleContext(CUcontext context, uint64_t mark) {
  MutexLock lock(g_mutex);
  for (Stream& stream : g_streams) {
    if (stream.used && stream.context == context && stream.freed <= mark)
      SettleAll(&stream);
  }
}

void SettleStream(CUstream handle, bool per_thread, uint64_t mark) {
  MutexLock lock(g_mutex);
  if (g_streams.empty()) return;
  handle = Explicit(handle, per_thread);
  const uint64_t thread = handle == CU_STREAM_PER_THREAD ? ThisThread() : 0;
  CUcontext context = nullptr;
  CUDA_CALL(cuCtxGetCurrent, &context);
  const bool implicit =
      handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  for (Stream& stream : g_streams) {
    if (stream.used && stream.handle == handle && stream.thread == thread &&
        (!implicit || stream.context == context) && stream.freed <= mark)
      SettleAll(&stream);
  }
}

void RetireStream(CUstream handle) {
  if (handle == nullptr) return;
  MutexLock lock(g_mutex);
  for (Stream& stream : g_streams) {
    if (!stream.used || stream.handle != handle) continue;
    const bool pending = HasPending(stream, 0) || HasPending(stream, 1);
    if (pending && !MarkStream(&stream)) {
      CUDA_CALL(cuStreamSynchronize, handle);
      SettleAll(&stream);
    }
    stream.handle = nullptr;
    if (!stream.event_pending) SettleAll(&stream);
    return;
  }
}

void ForgetContextMemory(CUcontext context) {
  MutexLock lock(g_mutex);
  for (Stream& stream : g_streams) {
    if (!stream.used || stream.context != context) continue;
    stream.event = nullptr;  // gone with its context
    stream.handle = nullptr;
    SettleAll(&stream);
  }
  for (Device& device : g_devices) {
    if (!device.open) continue;
    device.arena.FreeOwner(reinterpret_cast<uint64_t>(context));
    device.arena.Trim();
  }
  for (size_t i = g_tracked.size(); i > 0; --i)
    if (g_tracked[i - 1].context == context) g_tracked.Remove(i - 1);
}

bool LiveRanges(int device, Array<wire::LiveRange>* ranges) {
  MutexLock lock(g_mutex);
  bool ok = true;
  if (device < 0 || device >= kMaxDevices) return false;
  const uint64_t reached = BitOf(device) | g_peers[device];
  for (int i = 0; i < kMaxDevices; ++i) {
    if ((reached & BitOf(i)) == 0 || !g_devices[i].open) continue;
    g_devices[i].arena.ForEachLive([&](const Allocation& one) {
      ok = ok && ranges->Append({one.address, one.bytes, one.origin, ~0u});
    });
  }
  for (const Tracked& one : g_tracked) {
    if ((one.devices & reached) == 0) continue;
    size_t at = ranges->size();
    while (at > 0 && (*ranges)[at - 1].address > one.address) --at;
    ok = ok && ranges->Insert(at, {one.address, one.bytes, one.origin, ~0u});
  }
  return ok;
}

void NoteCapture(int difference) { g_captures += difference; }
bool Capturing() { return g_captures.load(std::memory_order_relaxed) > 0; }

bool IsCapturing(CUstream stream) {
  if (!Capturing()) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = CUDA_CALL(cuStreamIsCapturing, stream, &status);
  return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace reprise::driver
