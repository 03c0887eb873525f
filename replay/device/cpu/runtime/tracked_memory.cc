#include "replay/device/cpu/runtime/tracked_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "replay/base/check.h"

namespace reprise::cpu {
namespace {

constexpr uint64_t kPageBytes = 4096;

// A range with one bit a page: set once the page was written.
struct Table {
  struct Range {
    uint64_t begin;
    uint64_t end;
    std::unique_ptr<std::atomic<uint64_t>[]> written;
  };
  std::vector<Range> ranges;  // sorted
  std::atomic<bool> any{false};
};

std::atomic<Table*> current{nullptr};

uint64_t WordCount(const Table::Range& range) {
  return ((range.end - range.begin) / kPageBytes + 63) / 64;
}

}  // namespace

void SetTrackedMemory(std::vector<TrackedRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  auto table = std::make_unique<Table>();
  for (const TrackedRange& range : ranges) {
    Table::Range entry{range.begin, range.end, nullptr};
    entry.written =
        std::make_unique<std::atomic<uint64_t>[]>(WordCount(entry));
    table->ranges.push_back(std::move(entry));
  }
  delete current.exchange(table.release());
}

bool NoteTrackedWrite(uint64_t address) {
  Table* table = current.load();
  if (table == nullptr) return false;
  auto next = std::upper_bound(
      table->ranges.begin(), table->ranges.end(), address,
      [](uint64_t a, const Table::Range& range) { return a < range.begin; });
  if (next == table->ranges.begin() || address >= (--next)->end) return false;
  const uint64_t page = (address - next->begin) / kPageBytes;
  void* start =
      reinterpret_cast<void*>(next->begin + page * kPageBytes);
  if (mprotect(start, kPageBytes, PROT_READ | PROT_WRITE) != 0) return false;
  next->written[page / 64].fetch_or(uint64_t{1} << (page % 64));
  table->any = true;
  return true;
}

std::vector<uint64_t> CollectAndProtect() {
  std::vector<uint64_t> pages;
  Table* table = current.load();
  if (table == nullptr || !table->any.exchange(false)) return pages;
  for (const Table::Range& range : table->ranges) {
    for (uint64_t word = 0; word < WordCount(range); ++word) {
      for (uint64_t bits = range.written[word].exchange(0); bits != 0;
           bits &= bits - 1) {
        const uint64_t page = word * 64 + __builtin_ctzll(bits);
        pages.push_back(range.begin + page * kPageBytes);
        CHECK(mprotect(reinterpret_cast<void*>(pages.back()), kPageBytes,
                       PROT_READ) == 0);
      }
    }
  }
  return pages;
}

}  // namespace reprise::cpu
