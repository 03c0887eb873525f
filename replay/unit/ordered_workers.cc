#include "replay/unit/ordered_workers.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "replay/base/check.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

class Run {
 public:
  Run(int threads, size_t window, const OrderedWork& work)
      : max_workers_(static_cast<size_t>(threads - 1)),
        work_(work),
        slots_(window) {}

  ~Run() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    work_ready_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  absl::Status Execute() {
    size_t consumed = 0;
    bool ended = false;
    for (;;) {
      while (!ended && produced_ - consumed < slots_.size()) {
        ASSIGN_OR_RETURN(const bool more,
                         work_.produce(produced_, produced_ % slots_.size()));
        if (!more) {
          ended = true;
          break;
        }
        Enqueue();
      }
      if (consumed == produced_) return absl::OkStatus();
      RETURN_IF_ERROR(AwaitItem(consumed));
      if (work_.consume != nullptr)
        RETURN_IF_ERROR(work_.consume(consumed, consumed % slots_.size()));
      ++consumed;
    }
  }

 private:
  struct Slot {
    bool done = false;
    absl::Status status;
  };

  void Enqueue() {
    size_t waiting;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      slots_[produced_ % slots_.size()].done = false;
      ++produced_;
      waiting = produced_ - claimed_;
    }
    work_ready_.notify_one();
    if (waiting > 1 && workers_.size() < max_workers_) StartWorker();
  }

  void StartWorker() {
    try {
      workers_.emplace_back([this] { WorkerLoop(); });
    } catch (const std::system_error&) {
      // No more threads to be had; the caller's own does the work.
      max_workers_ = workers_.size();
    }
  }

  // Waits for an item, working on others (or on it) while it is not done.
  absl::Status AwaitItem(size_t index) {
    Slot& slot = slots_[index % slots_.size()];
    std::unique_lock<std::mutex> lock(mutex_);
    while (!slot.done) {
      if (claimed_ < produced_) {
        WorkOnOne(&lock);
      } else {
        item_done_.wait(lock);
      }
    }
    return slot.status;
  }

  void WorkerLoop() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      work_ready_.wait(lock,
                       [this] { return stopping_ || claimed_ < produced_; });
      if (stopping_) return;
      WorkOnOne(&lock);
    }
  }

  void WorkOnOne(std::unique_lock<std::mutex>* lock) {
    const size_t index = claimed_++;
    lock->unlock();
    absl::Status status = work_.work(index, index % slots_.size());
    lock->lock();
    Slot& slot = slots_[index % slots_.size()];
    slot.status = std::move(status);
    slot.done = true;
    item_done_.notify_one();
  }

  size_t max_workers_;
  const OrderedWork& work_;
  std::vector<std::thread> workers_;

  std::mutex mutex_;
  std::condition_variable work_ready_;
  std::condition_variable item_done_;  // only the caller waits on it
  std::vector<Slot> slots_;
  size_t produced_ = 0;  // written by the caller only
  size_t claimed_ = 0;
  bool stopping_ = false;
};

}  // namespace

absl::Status RunOrdered(int threads, size_t window, const OrderedWork& work) {
  CHECK(threads > 0 && window > 0);
  Run run(threads, window, work);
  return run.Execute();
}

}  // namespace reprise
