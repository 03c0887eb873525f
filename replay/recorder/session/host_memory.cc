#include "replay/recorder/session/host_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "replay/base/bytes.h"
#include "replay/base/file_util.h"

namespace reprise {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kLargePageBytes = 2 << 20;
constexpr std::chrono::milliseconds kPause(5);
// Where there is no more to be had: finding that out takes 0.1 ms.
constexpr std::chrono::milliseconds kPauseWhenFull(200);
// What is made ready at once, and by how many threads: applications want the
// host for themselves.
constexpr uint64_t kStepBytes = 128 << 20;
constexpr uint64_t kThreads = 4;

void PopulateTogether(char* begin, uint64_t bytes) {
  const uint64_t piece =
      RoundUp((bytes + kThreads - 1) / kThreads, kLargePageBytes);
  std::vector<std::thread> threads;
  for (uint64_t at = piece; at < bytes; at += piece) {
    threads.emplace_back(PopulatePages, begin + at,
                         std::min(piece, bytes - at));
  }
  PopulatePages(begin, std::min(piece, bytes));
  for (std::thread& thread : threads) thread.join();
}

// The number behind a word of a file; none where it has no such word.
std::optional<uint64_t> NumberAfter(const std::string& path,
                                    const std::string& wanted) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  while (file >> word)
    if (word == wanted && file >> number) return number;
  return std::nullopt;
}

// The number that a file is; none where it is a word.
std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// What the files of a version of control groups are called.
struct GroupFiles {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* cache;  // word in memory.stat: what is given up at need
};
constexpr GroupFiles kVersion1 = {
    "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
    "total_inactive_file"};
constexpr GroupFiles kVersion2 = {"/sys/fs/cgroup", "/memory.max",
                                  "/memory.current", "inactive_file"};

uint64_t RoomInGroup(const std::string& directory, const GroupFiles& files) {
  const auto limit = NumberIn(directory + files.limit);
  const auto usage = NumberIn(directory + files.usage);
  if (!limit.has_value() || !usage.has_value()) return kUnlimited;
  const uint64_t cache =
      NumberAfter(directory + "/memory.stat", files.cache).value_or(0);
  const uint64_t used = *usage - std::min(*usage, cache);
  return *limit - std::min(*limit, used);
}

}  // namespace

uint64_t RoomInControlGroups(const std::string& root) {
  uint64_t room = kUnlimited;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "number:controllers:path", without controllers in version 2.
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool has_memory = std::count(controllers.begin(), controllers.end(),
                                       std::string("memory")) > 0;
    if (!parts[1].empty() && !has_memory) continue;
    const GroupFiles& files = has_memory ? kVersion1 : kVersion2;
    // The groups around it count too. A container may see only the outermost.
    for (std::string path = parts[2];; path.resize(path.rfind('/'))) {
      room = std::min(room, RoomInGroup(root + files.mount + path, files));
      if (path.find('/') == std::string::npos) break;
    }
  }
  return room;
}

uint64_t AvailableHostMemory() {
  const auto kib = NumberAfter("/proc/meminfo", "MemAvailable:");
  return std::min(kib.has_value() ? *kib << 10 : kUnlimited,
                  RoomInControlGroups());
}

void PopulatePages(char* begin, uint64_t bytes) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14
  madvise(begin, bytes, kPopulateWrite);
}

HostBudget::Promise::Promise(Promise&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

HostBudget::Promise& HostBudget::Promise::operator=(Promise&& other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostBudget::Promise::~Promise() {
  if (budget_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(budget_->mutex_);
  budget_->promised_ -= bytes_;
}

HostBudget::HostBudget(std::function<uint64_t()> available)
    : available_(std::move(available)) {}

uint64_t HostBudget::Room() const {
  const uint64_t available = available_();
  const uint64_t usable = available - available / 16;
  return usable > promised_ ? usable - promised_ : 0;
}

absl::StatusOr<HostBudget::Promise> HostBudget::Take(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t room = Room();
  if (bytes > room) {
    return absl::ResourceExhaustedError(
        absl::StrCat("recording it takes ", bytes,
                     " more bytes of host memory, ", room, " are available"));
  }
  promised_ += bytes;
  return Promise(this, bytes);
}

HostBudget::Promise HostBudget::TakeUpTo(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bytes = std::min(bytes, Room());
  promised_ += bytes;
  return {this, bytes};
}

absl::StatusOr<HostPages> HostPages::Map(uint64_t bytes, bool large) {
  HostPages pages;
  if (bytes == 0) return pages;
  bytes = RoundUp(bytes, kLargePageBytes);
  // Room to begin at a large page.
  const uint64_t mapped = bytes + (large ? kLargePageBytes : 0);
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return ErrnoToStatus(errno, "cannot map memory for an image");
  char* const begin = static_cast<char*>(mapping);
  pages.data_ = begin;
  pages.bytes_ = mapped;
  if (!large) return pages;
  pages.data_ = reinterpret_cast<char*>(
      RoundUp(reinterpret_cast<uint64_t>(begin), kLargePageBytes));
  pages.bytes_ = bytes;
  if (pages.data_ > begin)
    munmap(begin, static_cast<size_t>(pages.data_ - begin));
  char* const end = pages.data_ + bytes;
  if (end < begin + mapped)
    munmap(end, static_cast<size_t>(begin + mapped - end));
  madvise(pages.data_, bytes, MADV_HUGEPAGE);
  return pages;
}

HostPages::HostPages(HostPages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      ready_(std::exchange(other.ready_, 0)) {}

HostPages& HostPages::operator=(HostPages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(ready_, other.ready_);
  return *this;
}

HostPages::~HostPages() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void HostPages::Shrink(uint64_t bytes) {
  bytes = RoundUp(bytes, kLargePageBytes);
  if (bytes >= bytes_) return;
  munmap(data_ + bytes, bytes_ - bytes);
  bytes_ = bytes;
  ready_ = std::min(ready_, bytes);
  if (bytes == 0) data_ = nullptr;
}

void HostPages::Populate(uint64_t bytes) {
  bytes = std::min(bytes, bytes_ - ready_) / kLargePageBytes * kLargePageBytes;
  if (bytes == 0) return;
  PopulateTogether(data_ + ready_, bytes);
  ready_ += bytes;
}

HostReserve::HostReserve(std::function<uint64_t()> wanted,
                         std::function<int()> reserves)
    : wanted_(std::move(wanted)),
      reserves_(std::move(reserves)),
      thread_([this] { Grow(); }) {}

HostReserve::~HostReserve() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

absl::StatusOr<HostPages> HostReserve::Take(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (pages_.bytes() < bytes) return HostPages::Map(bytes, /*large=*/true);
  HostPages taken = std::exchange(pages_, HostPages());
  taken.Shrink(bytes);
  return taken;
}

void HostReserve::Grow() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
  std::unique_lock<std::mutex> lock(mutex_);
  std::chrono::milliseconds pause = kPause;
  while (!changed_.wait_for(lock, pause, [this] { return stopped_; })) {
    const uint64_t goal = RoundUp(wanted_(), kLargePageBytes);
    const bool full = pages_.ready() < goal && !GrowTowards(goal);
    pause = full ? kPauseWhenFull : kPause;
  }
}

// One step, so that who takes the reserve does not wait for all of it.
bool HostReserve::GrowTowards(uint64_t goal) {
  const uint64_t available = AvailableHostMemory();
  if (pages_.data() == nullptr) {
    // More address space than any image has that could be held.
    absl::StatusOr<HostPages> pages =
        HostPages::Map(std::min(available, uint64_t{1} << 44), /*large=*/true);
    if (!pages.ok()) return false;
    pages_ = *std::move(pages);
  }
  const uint64_t share = 4 * static_cast<uint64_t>(std::max(1, reserves_()));
  const uint64_t limit = std::min(goal, (available + pages_.ready()) / share);
  const uint64_t before = pages_.ready();
  if (before < limit) pages_.Populate(std::min(kStepBytes, limit - before));
  return pages_.ready() > before;
}

}  // namespace reprise
