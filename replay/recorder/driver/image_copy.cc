#include "replay/recorder/driver/image_copy.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/threads.h"

namespace reprise::driver {
namespace {

namespace wire = driver_wire;

constexpr uint64_t kImageAlignment = 4096;

uint64_t RoundUp(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

uint64_t Smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
uint64_t Larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

bool IsHostMemory(const wire::LiveRange& range) {
  return range.origin == wire::kOriginPinned;
}

bool IsZero(const char* data, uint64_t bytes) {
  return data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0;
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

// Pinned memory, taken once: taking it costs more than a small recording.
struct Staging {
  char* buffer = nullptr;
  uint64_t bytes = 0;
  CUcontext owner = nullptr;
};
constexpr int kStagingBuffers = 4;
Staging g_staging[kStagingBuffers];  // of the recording that is going on

CUresult StagingBuffer(int index, uint64_t bytes, char** buffer) {
  Staging& staging = g_staging[index];
  if (staging.bytes < bytes) {
    if (staging.buffer != nullptr)
      CUDA_CALL(cuMemFreeHost, static_cast<void*>(staging.buffer));
    staging = {};
    void* memory = nullptr;
    const CUresult result =
        CUDA_CALL(cuMemHostAlloc, &memory, static_cast<size_t>(bytes),
                  CU_MEMHOSTALLOC_PORTABLE);
    if (result != CUDA_SUCCESS) return result;
    staging = {static_cast<char*>(memory), bytes, nullptr};
    CUDA_CALL(cuCtxGetCurrent, &staging.owner);
  }
  *buffer = staging.buffer;
  return CUDA_SUCCESS;
}

// Makes room for a run of the image at once, which costs less than a fault for
// each page. Nothing is lost where the system does not know this.
void Populate(char* at, uint64_t bytes) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE
  madvise(at, bytes, kPopulateWrite);
}

int WorkerCount(int most) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) return 1;
  const int count = CPU_COUNT(&cpus) - 1;
  if (count < 1) return 1;
  return count < most ? count : most;
}

}  // namespace

// One walk over the image. Workers take one slice of every chunk.
struct ImageCopy::Pass {
  const char* image = nullptr;
  char* to = nullptr;
  unsigned char* bits = nullptr;  // null: fill all of `to`
  uint32_t workers = 0;
  std::atomic<uint32_t> ready{0};             // chunks in their buffers
  std::atomic<uint32_t> done[kBuffers] = {};  // slices, since the beginning
  std::atomic<bool> stopped{false};
};

struct ImageCopy::Worker {
  ImageCopy* copy;
  Pass* pass;
  uint32_t slice;
  pthread_t thread;
};

CUresult ImageCopy::Open(const standin::Array<wire::LiveRange>& ranges,
                         uint64_t image_bytes) {
  static_assert(kStagingBuffers == kBuffers);
  ranges_ = &ranges;
  image_bytes_ = image_bytes;
  chunks_ = (image_bytes_ + kBufferBytes - 1) / kBufferBytes;
  CUresult result = CUDA_CALL(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  const uint64_t buffer_bytes =
      Larger(kMinBufferBytes, Smaller(image_bytes_, kBufferBytes));
  for (uint64_t i = 0; i < Smaller(chunks_, kBuffers); ++i) {
    result = StagingBuffer(static_cast<int>(i), buffer_bytes, &buffers_[i]);
    if (result != CUDA_SUCCESS) return result;
    result = CUDA_CALL(cuEventCreate, &events_[i], CU_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

ImageCopy::~ImageCopy() {
  for (CUevent event : events_)
    if (event != nullptr) CUDA_CALL(cuEventDestroy_v2, event);
  if (stream_ != nullptr) CUDA_CALL(cuStreamDestroy_v2, stream_);
}

uint64_t ImageCopy::ChunkBytes(uint64_t chunk) const {
  return Smaller(kBufferBytes, image_bytes_ - chunk * kBufferBytes);
}

CUresult ImageCopy::CopyRange(const wire::LiveRange& range, uint64_t offset,
                              uint64_t bytes, char* to) {
  if (IsHostMemory(range)) return CopyHost(range.address + offset, bytes, to);
  return CUDA_CALL(cuMemcpyDtoHAsync_v2, static_cast<void*>(to),
                   static_cast<CUdeviceptr>(range.address + offset),
                   static_cast<size_t>(bytes), stream_);
}

// Begins to copy a chunk into its buffer; chunks come in order.
CUresult ImageCopy::Issue(uint64_t chunk) {
  const uint64_t begin = chunk * kBufferBytes;
  const uint64_t end = begin + ChunkBytes(chunk);
  char* buffer = buffers_[chunk % kBuffers];
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
  return CUDA_CALL(cuEventRecord, events_[chunk % kBuffers], stream_);
}

void ImageCopy::Process(Pass* pass, uint64_t chunk, uint64_t slice,
                        uint64_t slices) {
  const uint64_t bytes = ChunkBytes(chunk);
  const uint64_t step =
      RoundUp((bytes + slices - 1) / slices, wire::kBlockBytes);
  const uint64_t begin = slice * step;
  const uint64_t end = Smaller(bytes, begin + step);
  if (begin >= end) return;
  const uint64_t base = chunk * kBufferBytes + begin;
  const char* buffer = buffers_[chunk % kBuffers] + begin;
  if (pass->bits == nullptr)
    Fill(pass->to + base, buffer, end - begin);
  else
    FillChanged(pass, base, buffer, end - begin);
}

// Copies all blocks but those of zeros, which need no memory in the image.
void ImageCopy::Fill(char* to, const char* from, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes;) {
    uint64_t run = 0;
    while (at + run < bytes) {
      const uint64_t block = Smaller(wire::kBlockBytes, bytes - at - run);
      if (IsZero(from + at + run, block)) break;
      run += block;
    }
    if (run > 0) {
      Populate(to + at, run);
      memcpy(to + at, from + at, run);
    }
    at += run + wire::kBlockBytes;
  }
}

void ImageCopy::FillChanged(Pass* pass, uint64_t base, const char* from,
                            uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += wire::kBlockBytes) {
    const uint64_t size = Smaller(wire::kBlockBytes, bytes - at);
    if (memcmp(from + at, pass->image + base + at, size) == 0) continue;
    Populate(pass->to + base + at, size);
    memcpy(pass->to + base + at, from + at, size);
    const uint64_t block = (base + at) / wire::kBlockBytes;
    __atomic_fetch_or(&pass->bits[block / 8],
                      static_cast<unsigned char>(1u << (block % 8)),
                      __ATOMIC_RELAXED);
  }
}

void* ImageCopy::RunWorker(void* argument) {
  Worker* worker = static_cast<Worker*>(argument);
  Pass* pass = worker->pass;
  for (uint64_t chunk = 0; chunk < worker->copy->chunks_; ++chunk) {
    for (;;) {
      const uint32_t ready = pass->ready.load(std::memory_order_acquire);
      if (pass->stopped.load()) return nullptr;
      if (ready > chunk) break;
      WaitWhile(&pass->ready, ready);
    }
    worker->copy->Process(pass, chunk, worker->slice, pass->workers);
    std::atomic<uint32_t>& done = pass->done[chunk % kBuffers];
    done.fetch_add(1, std::memory_order_release);
    WakeAll(&done);
  }
  return nullptr;
}

CUresult ImageCopy::Run(Pass* pass) {
  next_range_ = 0;
  next_range_offset_ = 0;
  Worker workers[kMaxWorkers];
  // Workers read the count of all before any begins.
  pass->workers = static_cast<uint32_t>(WorkerCount(kMaxWorkers));
  uint32_t started = 0;
  for (; started < pass->workers; ++started) {
    workers[started] = {this, pass, started, {}};
    if (!StartThread(RunWorker, &workers[started], &workers[started].thread))
      break;
  }

  const uint32_t here = pass->workers - started;
  const auto finish = [&](uint64_t chunk) {
    CUresult result = CUDA_CALL(cuEventSynchronize, events_[chunk % kBuffers]);
    if (result != CUDA_SUCCESS) return result;
    pass->ready.store(static_cast<uint32_t>(chunk + 1),
                      std::memory_order_release);
    WakeAll(&pass->ready);
    // Slices of workers that could not be started.
    for (uint32_t i = 0; i < here; ++i) {
      Process(pass, chunk, started + i, pass->workers);
      pass->done[chunk % kBuffers].fetch_add(1);
    }
    return result;
  };
  CUresult result = CUDA_SUCCESS;
  uint64_t finished = 0;
  for (uint64_t chunk = 0; chunk < chunks_ && result == CUDA_SUCCESS; ++chunk) {
    std::atomic<uint32_t>& done = pass->done[chunk % kBuffers];
    const uint32_t free_at =
        static_cast<uint32_t>(chunk / kBuffers) * pass->workers;
    if (chunk >= kBuffers && finished <= chunk - kBuffers)
      result = finish(finished++);
    for (uint32_t seen = done.load(std::memory_order_acquire); seen < free_at;
         seen = done.load(std::memory_order_acquire))
      WaitWhile(&done, seen);
    if (result == CUDA_SUCCESS) result = Issue(chunk);
    if (result == CUDA_SUCCESS && chunk > finished) result = finish(finished++);
  }
  while (result == CUDA_SUCCESS && finished < chunks_)
    result = finish(finished++);
  if (result != CUDA_SUCCESS) {
    pass->stopped = true;
    pass->ready.store(~uint32_t{0});
    WakeAll(&pass->ready);
    // Nothing may still write into the buffers when they are freed.
    CUDA_CALL(cuStreamSynchronize, stream_);
  }
  for (uint32_t i = 0; i < started; ++i) JoinThread(workers[i].thread);
  return result;
}

CUresult ImageCopy::CopyAll(char* image) {
  Pass pass;
  pass.to = image;
  return Run(&pass);
}

void ImageCopy::Leak() {
  for (Staging& staging : g_staging) staging = {};
  for (CUevent& event : events_) event = nullptr;
  stream_ = nullptr;
}

void ImageCopy::Delay(CUstream stream) {
  if (buffers_[0] == nullptr) return;
  CUDA_CALL(cuMemsetD8Async, reinterpret_cast<CUdeviceptr>(buffers_[0]),
            static_cast<unsigned char>(0), static_cast<size_t>(kMinBufferBytes),
            stream);
}

CUresult ImageCopy::CopyChanged(const char* image, char* changed,
                                unsigned char* bits) {
  Pass pass;
  pass.image = image;
  pass.to = changed;
  pass.bits = bits;
  return Run(&pass);
}

void ForgetStaging(CUcontext context) {
  for (Staging& staging : g_staging)
    if (staging.owner == context) staging = {};
}

}  // namespace reprise::driver
