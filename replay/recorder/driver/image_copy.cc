#include "replay/recorder/driver/image_copy.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/threads.h"

namespace reprise::driver {
namespace {

namespace wire = driver_wire;

constexpr uint64_t kImageAlignment = 4096;
// Copies that the device works on while the parent takes earlier ones.
constexpr uint64_t kCopiesAhead = 3;
constexpr int64_t kLookForParentMs = 100;

uint64_t RoundUp(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

uint64_t Smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
uint64_t Larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

bool IsHostMemory(const wire::LiveRange& range) {
  return range.origin == wire::kOriginPinned;
}

// Reads memory that the application registered and may have unmapped since.
CUresult CopyHost(uint64_t from, uint64_t bytes, char* to) {
  while (bytes > 0) {
    iovec here{to, bytes};
    iovec there{reinterpret_cast<void*>(from), bytes};
    const long got =
        syscall(SYS_process_vm_readv, getpid(), &here, 1ul, &there, 1ul, 0ul);
    if (got <= 0 && errno == EFAULT) return CUDA_ERROR_INVALID_VALUE;
    if (got <= 0) {  // not allowed here: read it plainly
      memcpy(to, reinterpret_cast<const void*>(from), bytes);
      return CUDA_SUCCESS;
    }
    from += static_cast<uint64_t>(got);
    to += got;
    bytes -= static_cast<uint64_t>(got);
  }
  return CUDA_SUCCESS;
}

// The window of the recording that is going on.
struct Window {
  char* mapping = nullptr;
  uint64_t bytes = 0;
  uint32_t slots = 0;
  CUcontext owner = nullptr;  // null: the driver does not know the memory

  wire::WindowControl& control() const {
    return *reinterpret_cast<wire::WindowControl*>(mapping);
  }
  char* slot(uint64_t chunk) const {
    return mapping + wire::kWindowControlBytes +
           chunk % slots * wire::kSlotBytes;
  }
};
Window g_window;

// Page-locked memory is what the device copies to at full speed.
CUresult RegisterWindow() {
  if (g_window.owner != nullptr) return CUDA_SUCCESS;
  const CUresult result =
      CUDA_CALL(cuMemHostRegister_v2, static_cast<void*>(g_window.slot(0)),
                static_cast<size_t>(g_window.slots * wire::kSlotBytes),
                CU_MEMHOSTREGISTER_PORTABLE);
  if (result == CUDA_SUCCESS) CUDA_CALL(cuCtxGetCurrent, &g_window.owner);
  return result;
}

void UnmapWindow() {
  if (g_window.mapping == nullptr) return;
  if (g_window.owner != nullptr)
    CUDA_CALL(cuMemHostUnregister, static_cast<void*>(g_window.slot(0)));
  munmap(g_window.mapping, g_window.bytes);
  g_window = {};
}

}  // namespace

bool MapWindow(int fd, uint32_t slots) {
  UnmapWindow();
  const uint64_t bytes = wire::kWindowControlBytes + slots * wire::kSlotBytes;
  if (slots == 0 || slots > wire::kMaxSlots ||
      lseek(fd, 0, SEEK_END) < static_cast<off_t>(bytes))
    return false;
  void* mapping =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapping == MAP_FAILED) return false;
  g_window = {static_cast<char*>(mapping), bytes, slots, nullptr};
  return true;
}

void ForgetWindow(CUcontext context) {
  if (g_window.owner == context) g_window.owner = nullptr;
}

CUresult ImageCopy::Open(const standin::Array<wire::LiveRange>& ranges,
                         uint64_t image_bytes) {
  ranges_ = &ranges;
  image_bytes_ = image_bytes;
  chunks_ = (image_bytes_ + wire::kSlotBytes - 1) / wire::kSlotBytes;
  if (chunks_ == 0) return CUDA_SUCCESS;
  if (g_window.mapping == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  CUresult result = RegisterWindow();
  if (result == CUDA_SUCCESS)
    result = CUDA_CALL(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
  for (uint64_t i = 0; i < Smaller(chunks_, g_window.slots); ++i) {
    if (result != CUDA_SUCCESS) return result;
    result = CUDA_CALL(cuEventCreate, &events_[i], CU_EVENT_DISABLE_TIMING);
  }
  return result;
}

ImageCopy::~ImageCopy() {
  for (CUevent event : events_)
    if (event != nullptr) CUDA_CALL(cuEventDestroy_v2, event);
  if (stream_ != nullptr) CUDA_CALL(cuStreamDestroy_v2, stream_);
}

uint64_t ImageCopy::ChunkBytes(uint64_t chunk) const {
  return Smaller(wire::kSlotBytes, image_bytes_ - chunk * wire::kSlotBytes);
}

CUresult ImageCopy::CopyRange(const wire::LiveRange& range, uint64_t offset,
                              uint64_t bytes, char* to) {
  if (IsHostMemory(range)) return CopyHost(range.address + offset, bytes, to);
  return CUDA_CALL(cuMemcpyDtoHAsync_v2, static_cast<void*>(to),
                   static_cast<CUdeviceptr>(range.address + offset),
                   static_cast<size_t>(bytes), stream_);
}

// Begins to copy a chunk into its slot; chunks come in order.
CUresult ImageCopy::Issue(uint64_t chunk) {
  const uint64_t begin = chunk * wire::kSlotBytes;
  const uint64_t end = begin + ChunkBytes(chunk);
  char* buffer = g_window.slot(chunk);
  while (next_range_ < ranges_->size() && next_range_offset_ < end) {
    const wire::LiveRange& range = (*ranges_)[next_range_];
    const uint64_t range_end = next_range_offset_ + range.bytes;
    const uint64_t from = Larger(begin, next_range_offset_);
    const uint64_t to = Smaller(end, range_end);
    if (from < to) {
      const CUresult result = CopyRange(range, from - next_range_offset_,
                                        to - from, buffer + (from - begin));
      if (result != CUDA_SUCCESS) return result;
    }
    // Zeros up to where the next range begins.
    const uint64_t padded = RoundUp(range_end, kImageAlignment);
    const uint64_t gap = Larger(range_end, begin);
    const uint64_t gap_end = Smaller(padded, end);
    if (gap < gap_end) memset(buffer + (gap - begin), 0, gap_end - gap);
    if (padded > end) break;
    next_range_offset_ = padded;
    ++next_range_;
  }
  return CUDA_CALL(cuEventRecord, events_[chunk % g_window.slots], stream_);
}

// Waits for a chunk's copy and shows it to the parent.
CUresult ImageCopy::Publish(uint64_t chunk) {
  const CUresult result =
      CUDA_CALL(cuEventSynchronize, events_[chunk % g_window.slots]);
  if (result != CUDA_SUCCESS) return result;
  std::atomic<uint32_t>& ready = g_window.control().ready;
  ready.store(static_cast<uint32_t>(chunk + 1), std::memory_order_release);
  WakeAllShared(&ready);
  return CUDA_SUCCESS;
}

// Waits until the parent has taken a chunk and all before it in its slot.
bool ImageCopy::AwaitTaken(ParentLock& parent, uint64_t chunk) {
  std::atomic<uint32_t>& taken =
      g_window.control().taken[chunk % g_window.slots];
  const uint64_t expected =
      chunk / g_window.slots * (wire::kSlotBytes / wire::kPieceBytes) +
      (ChunkBytes(chunk) + wire::kPieceBytes - 1) / wire::kPieceBytes;
  for (;;) {
    const uint32_t now = taken.load(std::memory_order_acquire);
    if (now >= expected) return true;
    if (!parent.ok()) return false;
    WaitWhileShared(&taken, now, kLookForParentMs);
    if (taken.load() == now && !parent->PeerListens())
      parent.Lost("copying memory out");
  }
}

CUresult ImageCopy::CopyChunks(ParentLock& parent) {
  next_range_ = 0;
  next_range_offset_ = 0;
  uint64_t published = 0;
  for (uint64_t chunk = 0; chunk < chunks_; ++chunk) {
    if (chunk >= g_window.slots && !AwaitTaken(parent, chunk - g_window.slots))
      return CUDA_ERROR_OPERATING_SYSTEM;
    CUresult result = Issue(chunk);
    const uint64_t ahead = Smaller(kCopiesAhead, g_window.slots - 1);
    if (result == CUDA_SUCCESS && chunk >= published + ahead)
      result = Publish(published++);
    if (result != CUDA_SUCCESS) return result;
  }
  while (published < chunks_) {
    const CUresult result = Publish(published++);
    if (result != CUDA_SUCCESS) return result;
  }
  const uint64_t last = Smaller(chunks_, g_window.slots);
  for (uint64_t chunk = chunks_ - last; chunk < chunks_; ++chunk)
    if (!AwaitTaken(parent, chunk)) return CUDA_ERROR_OPERATING_SYSTEM;
  return CUDA_SUCCESS;
}

CUresult ImageCopy::CopyOut(ParentLock& parent) {
  if (chunks_ == 0) return CUDA_SUCCESS;
  const CUresult result = CopyChunks(parent);
  // Nothing may still write into the window when another pass begins.
  if (result != CUDA_SUCCESS) CUDA_CALL(cuStreamSynchronize, stream_);
  return result;
}

void ImageCopy::Leak() {
  for (CUevent& event : events_) event = nullptr;
  stream_ = nullptr;
}

void ImageCopy::Delay(CUstream stream) {
  if (chunks_ == 0) return;
  constexpr size_t kBytes = 4 << 20;
  CUDA_CALL(cuMemsetD8Async, reinterpret_cast<CUdeviceptr>(g_window.slot(0)),
            static_cast<unsigned char>(0), kBytes, stream);
}

}  // namespace reprise::driver
