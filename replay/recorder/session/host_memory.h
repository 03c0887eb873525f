// Memory of this host that images of applications' memory are kept in: pages
// that come from the system as zeros, and a reserve of them that is made ready
// while the application runs, since a page fault costs more than copying the
// page.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_HOST_MEMORY_H_
#define REPRISE_REPLAY_RECORDER_SESSION_HOST_MEMORY_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace reprise {

// Bytes that this host can give this process without swapping; the largest
// number where it does not say.
uint64_t AvailableHostMemory();

// Bytes that the control groups of this process have left, as jobs and
// containers have them; the largest number where none has a limit. `root` has
// proc and sys in it.
uint64_t RoomInControlGroups(const std::string& root = "");

// Makes a mapping's pages present at once. Nothing is lost where the system
// does not know how.
void PopulatePages(char* begin, uint64_t bytes);

// What images will take of this host's memory and have not touched yet, so that
// several at once do not count on the same bytes. Thread-safe; outlives its
// promises.
class HostBudget {
 public:
  // Gives back what is left of it when it goes.
  class Promise {
   public:
    Promise() = default;
    Promise(Promise&& other) noexcept;
    Promise& operator=(Promise&& other) noexcept;
    ~Promise();
    uint64_t bytes() const { return bytes_; }

   private:
    friend class HostBudget;
    Promise(HostBudget* budget, uint64_t bytes)
        : budget_(budget), bytes_(bytes) {}
    HostBudget* budget_ = nullptr;
    uint64_t bytes_ = 0;
  };

  // `available` tells what the system has.
  explicit HostBudget(
      std::function<uint64_t()> available = AvailableHostMemory);
  HostBudget(const HostBudget&) = delete;
  HostBudget& operator=(const HostBudget&) = delete;

  // RESOURCE_EXHAUSTED: so much is not there. A sixteenth of what the system
  // has stays the application's.
  absl::StatusOr<Promise> Take(uint64_t bytes);
  // As much as there is, at most `bytes`.
  Promise TakeUpTo(uint64_t bytes);

 private:
  uint64_t Room() const;  // requires the mutex

  const std::function<uint64_t()> available_;
  std::mutex mutex_;
  uint64_t promised_ = 0;
};

// An anonymous mapping of zeros; pages that nobody touches take no memory.
class HostPages {
 public:
  HostPages() = default;
  // With large pages, where `large` and the system has them.
  static absl::StatusOr<HostPages> Map(uint64_t bytes, bool large);
  HostPages(HostPages&& other) noexcept;
  HostPages& operator=(HostPages&& other) noexcept;
  ~HostPages();

  char* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  // Of them, from the beginning, those that are known to be present.
  uint64_t ready() const { return ready_; }
  // Makes more present.
  void Populate(uint64_t bytes);
  // Gives back what lies behind that many bytes, rounded up to large pages.
  void Shrink(uint64_t bytes);

 private:
  char* data_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t ready_ = 0;
};

// Thread-safe.
class HostReserve {
 public:
  // Asks now and then how many bytes to have ready, and how many reserves there
  // are: one for each process of the application. All together have at most
  // about a quarter of what this host has available.
  HostReserve(std::function<uint64_t()> wanted, std::function<int()> reserves);
  ~HostReserve();
  HostReserve(const HostReserve&) = delete;
  HostReserve& operator=(const HostReserve&) = delete;

  // Pages for an image, ready as far as the reserve goes, which begins anew.
  absl::StatusOr<HostPages> Take(uint64_t bytes);

 private:
  void Grow();
  // False: there is no more to be had.
  bool GrowTowards(uint64_t goal);

  const std::function<uint64_t()> wanted_;
  const std::function<int()> reserves_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  HostPages pages_;
  std::thread thread_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_HOST_MEMORY_H_
