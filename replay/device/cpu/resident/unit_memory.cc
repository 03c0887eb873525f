#include "replay/device/cpu/resident/unit_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/file_util.h"
#include "replay/base/parallel_for.h"
#include "replay/base/shared_memory.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/resident/compare.h"
#include "replay/unit/blob.h"
#include "replay/unit/describe.h"

namespace reprise::cpu {
namespace {

constexpr uint64_t kPageBytes = 4096;
// Below every arena base, above where programs and libraries are loaded without
// an arena: 0x1f0000000000.
constexpr uint64_t kSpareAddress = 0x1f0000000000;
constexpr uint64_t kSpareBytes = 16 << 20;
constexpr unsigned char kCanary = 0xc5;
// Runs of writable pages closer than this are joined when there are very many.
constexpr size_t kMaximumRuns = 4096;

uint64_t PageDown(uint64_t value) { return value & ~(kPageBytes - 1); }
uint64_t PageUp(uint64_t value) { return PageDown(value + kPageBytes - 1); }

absl::StatusOr<char*> MapMemory(uint64_t bytes, int fd, const char* what) {
  const int flags =
      fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED) {
    return ErrnoToStatus(
        errno, absl::StrFormat("cannot map %d bytes for %s", bytes, what));
  }
  return static_cast<char*>(memory);
}

// Eight bytes that poison: not a number for every floating-point type, or
// random ones that are a number.
uint64_t PoisonPattern(uint64_t seed) {
  if ((seed & 1) != 0) return 0xffffffffffffffff;
  uint64_t mixed = seed + 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  // Exponents stay in the middle of both float's and double's range.
  return (mixed & 0x0fffffff0fffffff) | 0x4000000040000000;
}

void Fill(char* at, uint64_t bytes, uint64_t pattern, uint64_t phase) {
  char tile[512 + 8];
  for (size_t i = 0; i < sizeof(tile); i += 8)
    std::memcpy(tile + i, &pattern, 8);
  const char* source = tile + phase % 8;
  for (uint64_t done = 0; done < bytes; done += 512)
    std::memcpy(at + done, source, std::min<uint64_t>(512, bytes - done));
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnitMemory>> UnitMemory::Create(
    const UnitReader& unit, const LoadOptions& options) {
  auto memory = std::unique_ptr<UnitMemory>(new UnitMemory());
  RETURN_IF_ERROR(memory->ReadRanges(unit, options));
  RETURN_IF_ERROR(memory->LayOut());
  RETURN_IF_ERROR(memory->Allocate());
  RETURN_IF_ERROR(memory->ReadContents(unit));
  return memory;
}

UnitMemory::~UnitMemory() {
  for (char* memory : {work_, golden_, reference_}) {
    if (memory != nullptr) munmap(memory, bytes_);
  }
  if (fd_ >= 0) close(fd_);
}

absl::Status UnitMemory::ReadRanges(const UnitReader& unit,
                                    const LoadOptions& options) {
  for (const v1::MemoryRange& stored : unit.manifest().memory()) {
    Range range;
    range.address = stored.address();
    range.bytes = stored.bytes();
    range.name = RangeName(unit.manifest(), stored);
    range.type = stored.element_type();
    range.has_tolerance = stored.has_tolerance();
    range.tolerance = stored.tolerance();
    if (stored.has_write_set()) {
      ASSIGN_OR_RETURN(
          range.writes,
          LoadIntervals(unit.chunks(), stored.write_set(), range.bytes));
      // Where nobody saw what is read first, nothing may be poisoned.
      if (stored.has_read_before_write_set()) {
        ASSIGN_OR_RETURN(
            const IntervalSet read_first,
            LoadIntervals(unit.chunks(), stored.read_before_write_set(),
                          range.bytes));
        range.poisoned = range.writes.Subtract(read_first);
      }
      // Other inputs may write elsewhere: then the recorded set binds nobody.
      range.has_write_set = !options.inputs_differ;
    }
    ranges_.push_back(std::move(range));
  }
  return absl::OkStatus();
}

void UnitMemory::SplitByWritability(const Run& pages) {
  IntervalSet writable;
  for (const Range& range : ranges_) {
    if (range.address + range.bytes <= pages.address ||
        range.address >= pages.address + pages.bytes)
      continue;
    if (!range.has_write_set)
      writable.Add(PageDown(range.address),
                   PageUp(range.address + range.bytes));
    for (const Interval& interval : range.writes.intervals()) {
      if (!range.has_write_set) break;
      writable.Add(PageDown(range.address + interval.begin),
                   PageUp(range.address + interval.end));
    }
  }
  if (writable.intervals().size() > kMaximumRuns) {
    const Interval all = {writable.intervals().front().begin,
                          writable.intervals().back().end};
    writable = IntervalSet();
    writable.Add(all.begin, all.end);
  }
  uint64_t at = pages.address;
  const auto add = [&](uint64_t end, bool is_writable) {
    if (end > at)
      runs_.push_back(
          {at, end - at, pages.offset + (at - pages.address), is_writable});
    at = std::max(at, end);
  };
  for (const Interval& interval : writable.intervals()) {
    add(interval.begin, false);
    add(interval.end, true);
  }
  add(pages.address + pages.bytes, false);
}

absl::Status UnitMemory::LayOut() {
  std::vector<Run> pages;
  for (Range& range : ranges_) {
    const uint64_t begin = PageDown(range.address),
                   end = PageUp(range.address + range.bytes);
    if (!pages.empty() && begin < pages.back().address + pages.back().bytes) {
      pages.back().bytes =
          std::max(pages.back().bytes, end - pages.back().address);
    } else {
      const uint64_t offset =
          pages.empty() ? 0 : pages.back().offset + pages.back().bytes;
      pages.push_back({begin, end - begin, offset, false});
    }
    range.offset = pages.back().offset + (range.address - pages.back().address);
  }
  for (const Run& run : pages) SplitByWritability(run);
  spare_offset_ = pages.empty() ? 0 : pages.back().offset + pages.back().bytes;
  bytes_ = spare_offset_ + kSpareBytes;
  for (const Run& run : runs_) {
    v1::MemoryMapping mapping;
    mapping.set_address(run.address);
    mapping.set_bytes(run.bytes);
    mapping.set_file_offset(run.offset);
    mapping.set_writable(run.writable);
    mappings_.push_back(mapping);
  }
  v1::MemoryMapping spare;
  spare.set_address(kSpareAddress);
  spare.set_bytes(kSpareBytes);
  spare.set_file_offset(spare_offset_);
  spare.set_writable(true);
  mappings_.push_back(spare);
  FindSpans();
  return absl::OkStatus();
}

// What of each range lies in writable pages. Runs and ranges are both sorted by
// address.
void UnitMemory::FindSpans() {
  size_t first = 0;
  for (Range& range : ranges_) {
    const uint64_t end = range.address + range.bytes;
    while (first < runs_.size() &&
           runs_[first].address + runs_[first].bytes <= range.address)
      ++first;
    for (size_t i = first; i < runs_.size() && runs_[i].address < end; ++i) {
      if (!runs_[i].writable) continue;
      const uint64_t begin = std::max(runs_[i].address, range.address);
      range.spans.Add(
          begin - range.address,
          std::min(runs_[i].address + runs_[i].bytes, end) - range.address);
    }
  }
}

absl::Status UnitMemory::Allocate() {
  ASSIGN_OR_RETURN(fd_, CreateSharedMemory("reprise-unit", bytes_));
  ASSIGN_OR_RETURN(work_, MapMemory(bytes_, fd_, "working memory"));
  ASSIGN_OR_RETURN(golden_, MapMemory(bytes_, -1, "the prologue"));
  ASSIGN_OR_RETURN(reference_, MapMemory(bytes_, -1, "the reference"));
  return absl::OkStatus();
}

absl::Status UnitMemory::ReadContents(const UnitReader& unit) {
  for (const Range& range : ranges_) {
    const uint64_t before = range.address - PageDown(range.address);
    const uint64_t after =
        PageUp(range.address + range.bytes) - (range.address + range.bytes);
    std::memset(work_ + range.offset - before, kCanary, before);
    std::memset(work_ + range.offset + range.bytes, kCanary, after);
  }
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const v1::MemoryRange& stored = unit.manifest().memory(static_cast<int>(i));
    RETURN_IF_ERROR(
        unit.chunks().GetInto(stored.prologue(), work_ + ranges_[i].offset));
  }
  for (const Run& run : runs_) {
    if (!run.writable) continue;
    std::memcpy(golden_ + run.offset, work_ + run.offset, run.bytes);
    std::memcpy(reference_ + run.offset, work_ + run.offset, run.bytes);
  }
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const v1::MemoryRange& stored = unit.manifest().memory(static_cast<int>(i));
    const Range& range = ranges_[i];
    if (range.spans.empty() || !stored.has_epilogue()) continue;
    RETURN_IF_ERROR(unit.chunks().GetInto(
        stored.epilogue(), reference_ + range.offset, [&range](size_t chunk) {
          IntervalSet bytes;
          bytes.Add(chunk * kChunkBytes, (chunk + 1) * kChunkBytes);
          return !range.spans.Intersect(bytes).empty();
        }));
  }
  return absl::OkStatus();
}

void UnitMemory::Restore() {
  for (const Run& run : runs_) {
    if (!run.writable) continue;
    ParallelFor(run.bytes, [&](uint64_t begin, uint64_t end) {
      std::memcpy(work_ + run.offset + begin, golden_ + run.offset + begin,
                  end - begin);
    });
  }
  ClearUnusedSpare();
  std::memcpy(work_ + spare_offset_, golden_ + spare_offset_, spare_used_);
}

// Pages that nobody touched take no memory, so that a look at them costs
// nothing.
void UnitMemory::ClearUnusedSpare() {
  const auto first = static_cast<off_t>(spare_offset_ + PageUp(spare_used_));
  if (lseek(fd_, first, SEEK_DATA) >= 0) {
    fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first,
              static_cast<off_t>(bytes_) - first);
  }
  std::memset(work_ + spare_offset_ + spare_used_, 0,
              PageUp(spare_used_) - spare_used_);
}

void UnitMemory::VerifySpare(Verdict* verdict) const {
  const auto check = [&](uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end; ++at) {
      if (work_[at] == 0) continue;
      v1::RangeErrors errors;
      errors.set_address(kSpareAddress + (at - spare_offset_));
      errors.set_name(absl::StrFormat(
          "memory at 0x%x, which belongs to no variable", errors.address()));
      errors.set_compared_elements(end - begin);
      errors.set_wrong_elements(1);
      errors.set_outside_write_set(true);
      errors.set_got(
          absl::StrFormat("0x%02x", static_cast<unsigned char>(work_[at])));
      errors.set_expected("no write");
      verdict->ranges.push_back(errors);
      verdict->equal = false;
      return true;
    }
    return false;
  };
  const uint64_t pages = spare_offset_ + PageUp(spare_used_);
  if (check(spare_offset_ + spare_used_, pages)) return;
  off_t begin = static_cast<off_t>(pages);
  while ((begin = lseek(fd_, begin, SEEK_DATA)) >= 0) {
    const off_t end = lseek(fd_, begin, SEEK_HOLE);
    if (end < 0 ||
        check(static_cast<uint64_t>(begin), static_cast<uint64_t>(end)))
      return;
    begin = end;
  }
}

void UnitMemory::Poison(uint64_t seed) {
  const uint64_t pattern = PoisonPattern(seed);
  for (const Range& range : ranges_) {
    for (const Interval& interval : range.poisoned.intervals()) {
      ParallelFor(interval.end - interval.begin,
                  [&](uint64_t begin, uint64_t end) {
                    const uint64_t at = interval.begin + begin;
                    Fill(work_ + range.offset + at, end - begin, pattern,
                         range.address + at);
                  });
    }
  }
}

void UnitMemory::VerifySlack(Verdict* verdict) const {
  IntervalSet owned;
  for (const Range& range : ranges_)
    owned.Add(range.offset, range.offset + range.bytes);
  for (const Run& run : runs_) {
    if (!run.writable) continue;
    IntervalSet pages;
    pages.Add(run.offset, run.offset + run.bytes);
    const IntervalSet slack = pages.Subtract(owned);
    for (const Interval& interval : slack.intervals()) {
      for (uint64_t at = interval.begin; at < interval.end; ++at) {
        if (static_cast<unsigned char>(work_[at]) == kCanary) continue;
        v1::RangeErrors errors;
        errors.set_address(run.address + (at - run.offset));
        errors.set_name(
            absl::StrFormat("memory at 0x%x, which belongs to no allocation",
                            errors.address()));
        errors.set_compared_elements(interval.end - interval.begin);
        errors.set_wrong_elements(1);
        errors.set_outside_write_set(true);
        errors.set_got(
            absl::StrFormat("0x%02x", static_cast<unsigned char>(work_[at])));
        errors.set_expected("no write");
        verdict->ranges.push_back(errors);
        verdict->equal = false;
        break;
      }
    }
  }
}

Verdict UnitMemory::Verify(const v1::Tolerance& default_tolerance) const {
  Verdict verdict;
  verdict.equal = true;
  for (const Range& range : ranges_) {
    if (range.spans.empty()) continue;
    CompareInput input;
    input.got = work_ + range.offset;
    input.expected = reference_ + range.offset;
    input.bytes = range.bytes;
    input.type = range.type;
    input.tolerance = range.has_tolerance ? range.tolerance : default_tolerance;
    input.writable = range.has_write_set ? &range.writes : nullptr;
    input.spans = &range.spans;
    CompareResult result = CompareRange(input);
    result.errors.set_address(range.address);
    result.errors.set_name(range.name);
    verdict.equal = verdict.equal && result.passes;
    verdict.ranges.push_back(std::move(result.errors));
  }
  VerifySlack(&verdict);
  VerifySpare(&verdict);
  return verdict;
}

void UnitMemory::AdoptReference() {
  for (const Run& run : runs_) {
    if (run.writable)
      std::memcpy(reference_ + run.offset, work_ + run.offset, run.bytes);
  }
}

absl::StatusOr<uint64_t> UnitMemory::AllocateSpare(uint64_t bytes,
                                                   uint32_t alignment) {
  const uint64_t mask = std::max<uint64_t>(alignment, 16) - 1;
  uint64_t begin = 0;  // of the first gap that is large enough
  for (const auto& [offset, taken] : spare_) {
    if (begin + bytes <= offset) break;
    begin = (offset + taken + mask) & ~mask;
  }
  if (begin + bytes > kSpareBytes) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("module globals beside the recorded ones take more "
                        "than %d bytes; record a unit that touches them",
                        kSpareBytes));
  }
  spare_[begin] = bytes;
  spare_used_ = std::max(spare_used_, begin + bytes);
  return kSpareAddress + begin;
}

void UnitMemory::FreeSpare(uint64_t address) {
  spare_.erase(address - kSpareAddress);
  spare_used_ =
      spare_.empty() ? 0 : spare_.rbegin()->first + spare_.rbegin()->second;
}

void UnitMemory::CaptureSpare(uint64_t address) {
  const auto block = spare_.find(address - kSpareAddress);
  if (block == spare_.end()) return;
  const uint64_t at = spare_offset_ + block->first;
  std::memcpy(golden_ + at, work_ + at, block->second);
}

}  // namespace reprise::cpu
