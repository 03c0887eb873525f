#include "replay/device/cpu/runtime/grid.h"

#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "replay/base/check.h"
#include "replay/device/cpu/runtime/block_threads.h"
#include "replay/device/cpu/runtime/device_printf.h"
#include "replay/device/cpu/runtime/fault.h"
#include "replay/device/cpu/runtime/fiber.h"
#include "replay/device/cpu/runtime/host_thread.h"
#include "replay/device/cpu/runtime/stack_scrub.h"

namespace reprise::cpu {
namespace {

constexpr uint64_t kPageBytes = 4096;
// Waiting briefly before sleeping saves the wake-up between launches that
// follow each other.
constexpr int kSpins = 2000;
// Guard pages of fiber stacks take two mappings each, of which a process may
// have 65530.
constexpr int kMaxFiberMappings = 50000;
constexpr int kHelperBits = 16;
static_assert(2 * kMaxResidentThreads <= kMaxFiberMappings);

uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

double NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e9 + now.tv_nsec;
}

int AvailableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return std::max(1u, std::thread::hardware_concurrency());
}

// Shared memory of one block, between two guard pages; its end lies against
// the second. What lies before it is cleared for each launch, so that no launch
// finds there what another one left.
class SharedBuffer {
 public:
  ~SharedBuffer() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  char* Reserve(uint64_t static_bytes, uint64_t dynamic_bytes) {
    const uint64_t used = RoundUp(static_bytes, kSharedAlignment) +
                          RoundUp(dynamic_bytes, kSharedAlignment);
    const uint64_t inner = RoundUp(used + kReservedSharedBytes, kPageBytes);
    if (inner + 2 * kPageBytes != bytes_) Map(inner);
    std::memset(memory_ + kPageBytes, 0, inner - used);
    return memory_ + bytes_ - kPageBytes - used;
  }
  uint64_t begin() const { return reinterpret_cast<uint64_t>(memory_); }
  uint64_t end() const { return begin() + bytes_; }

 private:
  void Map(uint64_t inner) {
    if (memory_ != nullptr) munmap(memory_, bytes_);
    bytes_ = inner + 2 * kPageBytes;
    void* memory = mmap(nullptr, bytes_, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    memory_ = static_cast<char*>(memory);
    CHECK(mprotect(memory_ + kPageBytes, inner, PROT_READ | PROT_WRITE) == 0);
  }
  char* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

// A block of a cooperative launch.
struct ResidentBlock {
  explicit ResidentBlock(HostThread& host) : threads(host) {}
  SharedBuffer shared;
  BlockThreads threads;
  BlockContext context;
  uint64_t linear = 0;
};

class GridRunnerImpl : public GridRunner {
 public:
  explicit GridRunnerImpl(int threads);
  ~GridRunnerImpl() override;
  int threads() const override { return static_cast<int>(workers_.size()); }
  GridResult Run(const GridLaunch& launch) override;
  void Scrub() override { ScrubWorker(0); }

 private:
  // What one host thread keeps between launches.
  struct Worker {
    SharedBuffer shared;
    PrintfBuffer printf_buffer;
    std::unique_ptr<BlockThreads> fibers;
    std::vector<std::unique_ptr<ResidentBlock>> residents;
  };

  void WorkerMain(int index);
  void ScrubWorker(int index);
  void RunBlocks(int index);
  void RunInOrder(Worker& worker, HostThread& host);
  void RunInTurns(int index, HostThread& host);
  BlockContext ContextIn(SharedBuffer& shared) const;
  void SetBlock(uint64_t linear, BlockContext* context) const;
  static void Occupy(HostThread& host, const BlockContext& context,
                     const SharedBuffer& shared, uint64_t linear);
  void Start(const BlockContext& context) const;
  void DropOtherStacks();
  void WaitForLaunch(uint64_t seen);
  static void WaitForZero(const std::atomic<int>& count);

  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> pool_;  // workers 1..; worker 0 is the caller
  std::mutex mutex_;
  std::condition_variable wake_;
  // Number of the launch, shifted by kHelperBits, and how many helpers it
  // wants: read together, so that a late waker never mixes two launches.
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> helpers_running_{0};
  std::atomic<int> helpers_scrubbing_{0};  // after that
  std::atomic<bool> stop_{false};

  const GridLaunch* launch_ = nullptr;
  uint64_t block_count_ = 0;
  uint64_t chunk_ = 1;
  int used_ = 1;                   // host threads of the launch
  uint32_t resident_threads_ = 0;  // of each block of the last cooperative one
  std::atomic<uint64_t> next_block_{0};
  GridWorkspace workspace_;  // of a cooperative launch
};

GridRunnerImpl::GridRunnerImpl(int threads) {
  for (int i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<Worker>());
  }
  UseFaultStack();
  for (int i = 1; i < threads; ++i) {
    pool_.emplace_back([this, i] { WorkerMain(i); });
  }
}

GridRunnerImpl::~GridRunnerImpl() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    generation_ += uint64_t{1} << kHelperBits;
  }
  wake_.notify_all();
  for (std::thread& thread : pool_) thread.join();
}

void GridRunnerImpl::WaitForLaunch(uint64_t seen) {
  for (int i = 0; i < kSpins; ++i) {
    if (generation_.load(std::memory_order_acquire) != seen) return;
    __builtin_ia32_pause();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  wake_.wait(lock, [&] { return generation_.load() != seen; });
}

void GridRunnerImpl::WorkerMain(int index) {
  UseFaultStack();
  uint64_t seen = 0;
  while (true) {
    WaitForLaunch(seen);
    if (stop_) return;
    seen = generation_.load();
    if (static_cast<uint64_t>(index) <= (seen & ((1 << kHelperBits) - 1))) {
      RunBlocks(index);
      helpers_running_.fetch_sub(1, std::memory_order_acq_rel);
      ScrubWorker(index);
      helpers_scrubbing_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }
}

// On the worker's own thread.
void GridRunnerImpl::ScrubWorker(int index) {
  Worker& worker = *workers_[index];
  ScrubStack();
  if (worker.fibers != nullptr) worker.fibers->Scrub();
  for (const std::unique_ptr<ResidentBlock>& resident : worker.residents)
    resident->threads.Scrub();
}

void GridRunnerImpl::RunBlocks(int index) {
  // Local memory lies below what ScrubStack spares.
  void* spared = __builtin_alloca(2 * kSparedStackBytes);
  asm volatile("" : : "r"(spared) : "memory");
  const GridLaunch& launch = *launch_;
  Worker& worker = *workers_[index];
  HostThread& host = CurrentHostThread();
  host.printf_buffer = &worker.printf_buffer;
  host.shadow = launch.shadow;
  host.grid_workspace = launch.cooperative ? &workspace_ : nullptr;
  host.current = nullptr;
  if (launch.cooperative && launch.uses_fibers) {
    RunInTurns(index, host);
  } else {
    RunInOrder(worker, host);
  }
  host.block = nullptr;
  host.current = nullptr;
}

BlockContext GridRunnerImpl::ContextIn(SharedBuffer& shared) const {
  const GridLaunch& launch = *launch_;
  BlockContext context = {};
  std::memcpy(context.grid, launch.grid, sizeof(context.grid));
  std::memcpy(context.block_dim, launch.block, sizeof(context.block_dim));
  context.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  context.shared =
      shared.Reserve(launch.static_shared_bytes, launch.dynamic_shared_bytes);
  context.dynamic_shared =
      context.shared + RoundUp(launch.static_shared_bytes, kSharedAlignment);
  return context;
}

void GridRunnerImpl::SetBlock(uint64_t linear, BlockContext* context) const {
  const uint32_t* grid = launch_->grid;
  context->block[0] = linear % grid[0];
  context->block[1] = linear / grid[0] % grid[1];
  context->block[2] = linear / grid[0] / grid[1];
}

// The host thread is about to run that block.
void GridRunnerImpl::Occupy(HostThread& host, const BlockContext& context,
                            const SharedBuffer& shared, uint64_t linear) {
  host.block = &context;
  host.linear_block = linear;
  host.shared_begin = shared.begin();
  host.shared_end = shared.end();
}

void GridRunnerImpl::Start(const BlockContext& context) const {
  if (launch_->poison_shared) {
    std::memset(context.shared, launch_->poison_byte,
                context.dynamic_shared - context.shared +
                    launch_->dynamic_shared_bytes);
  }
  launch_->entry(&context, launch_->arguments);
}

void GridRunnerImpl::RunInOrder(Worker& worker, HostThread& host) {
  if (launch_->uses_fibers && worker.fibers == nullptr) {
    worker.fibers = std::make_unique<BlockThreads>(host);
  }
  host.threads = worker.fibers.get();
  BlockContext context = ContextIn(worker.shared);
  while (true) {
    const uint64_t first = next_block_.fetch_add(chunk_);
    if (first >= block_count_) break;
    const uint64_t last = std::min(first + chunk_, block_count_);
    SetBlock(first, &context);
    for (uint64_t block = first; block < last; ++block) {
      Occupy(host, context, worker.shared, block);
      Start(context);
      if (++context.block[0] < launch_->grid[0]) continue;
      context.block[0] = 0;
      if (++context.block[1] < launch_->grid[1]) continue;
      context.block[1] = 0;
      ++context.block[2];
    }
  }
}

// All blocks of this host thread, an equal part of the grid's, are started,
// then resumed in turns until the last one ends.
void GridRunnerImpl::RunInTurns(int index, HostThread& host) {
  Worker& worker = *workers_[index];
  std::vector<ResidentBlock*> running;
  for (uint64_t block = index; block < block_count_; block += used_) {
    if (running.size() == worker.residents.size())
      worker.residents.push_back(std::make_unique<ResidentBlock>(host));
    ResidentBlock& resident = *worker.residents[running.size()];
    resident.linear = block;
    resident.context = ContextIn(resident.shared);
    SetBlock(block, &resident.context);
    resident.threads.set_may_suspend(true);
    Occupy(host, resident.context, resident.shared, block);
    host.threads = &resident.threads;
    Start(resident.context);
    running.push_back(&resident);
  }
  worker.residents.resize(running.size());
  while (true) {
    std::erase_if(running, [](const ResidentBlock* resident) {
      return resident->threads.finished();
    });
    if (running.empty()) break;
    for (ResidentBlock* resident : running) {
      Occupy(host, resident->context, resident->shared, resident->linear);
      resident->threads.Resume();
    }
    // What they wait for may be another host thread's to do.
    sched_yield();
  }
}

// A process has not enough mappings for the stacks of launches of both kinds,
// or of cooperative ones with other blocks.
void GridRunnerImpl::DropOtherStacks() {
  const uint32_t* block = launch_->block;
  const uint32_t threads = block[0] * block[1] * block[2];
  const bool keep = launch_->cooperative && threads == resident_threads_;
  resident_threads_ = launch_->cooperative ? threads : 0;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (!keep || static_cast<int>(i) >= used_) workers_[i]->residents.clear();
    if (launch_->cooperative) workers_[i]->fibers.reset();
  }
}

void GridRunnerImpl::WaitForZero(const std::atomic<int>& count) {
  for (int spins = 0; count.load(std::memory_order_acquire) > 0;) {
    if (++spins < kSpins) {
      __builtin_ia32_pause();
    } else {
      sched_yield();
    }
  }
}

GridResult GridRunnerImpl::Run(const GridLaunch& launch) {
  WaitForZero(helpers_scrubbing_);
  launch_ = &launch;
  block_count_ = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  int used = launch.shadow != nullptr ? 1 : threads();
  if (launch.uses_fibers && !launch.cooperative) {
    const int per_worker =
        2 * launch.block[0] * launch.block[1] * launch.block[2];
    used = std::clamp(kMaxFiberMappings / per_worker, 1, used);
  }
  used = static_cast<int>(std::min<uint64_t>(used, block_count_));
  // Small enough to even out, large enough not to fight over the counter.
  chunk_ = std::clamp<uint64_t>(block_count_ / (uint64_t(used) * 16), 1, 1024);
  next_block_ = 0;
  used_ = used;
  workspace_ = GridWorkspace();
  if (launch.uses_fibers) DropOtherStacks();
  std::vector<PrintfBuffer*> buffers;
  for (auto& worker : workers_) {
    worker->printf_buffer.Clear();
    buffers.push_back(&worker->printf_buffer);
  }
  helpers_running_ = helpers_scrubbing_ = used - 1;
  GridResult result;
  const double start = NowNs();
  if (used > 1) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const uint64_t number = (generation_ >> kHelperBits) + 1;
      generation_ = (number << kHelperBits) | (used - 1);
    }
    wake_.notify_all();
  }
  RunBlocks(0);
  WaitForZero(helpers_running_);
  result.duration_ns = NowNs() - start;
  result.printf_output = PrintfBuffer::Merge(buffers, kPrintfLimitBytes);
  return result;
}

}  // namespace

std::unique_ptr<GridRunner> GridRunner::Create(int threads) {
  if (threads <= 0) threads = AvailableProcessors();
  return std::make_unique<GridRunnerImpl>(threads);
}

}  // namespace reprise::cpu
