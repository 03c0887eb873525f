#include "replay/device/cpu/runtime/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::cpu {
namespace {

// Marks of one byte of memory; the type stands in the upper half.
constexpr uint8_t kRead = 1;
constexpr uint8_t kWritten = 2;
constexpr uint8_t kReadBeforeWritten = 4;
constexpr int kTypeShift = 4;
// Seen as two types.
constexpr uint8_t kMixed = 15;
constexpr uint64_t kPageBytes = 4096;

uint8_t MergeType(uint8_t marks, AccessType type) {
  const uint8_t old = marks >> kTypeShift;
  const auto now = static_cast<uint8_t>(type);
  if (now == 0 || old == now) return marks;
  const uint8_t merged = old == 0 ? now : kMixed;
  return static_cast<uint8_t>((marks & 15) | (merged << kTypeShift));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shadow>> Shadow::Create(
    std::vector<AddressRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::unique_ptr<Shadow> shadow(new Shadow);
  for (const AddressRange& range : ranges) {
    const uint64_t bytes = range.end - range.begin;
    void* marks = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (marks == MAP_FAILED) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no address space for ", bytes, " bytes of access marks"));
    }
    shadow->ranges_.push_back(
        {range.begin, range.end, static_cast<uint8_t*>(marks),
         std::vector<bool>((bytes + kPageBytes - 1) / kPageBytes)});
  }
  return shadow;
}

Shadow::~Shadow() {
  for (Range& range : ranges_) munmap(range.marks, range.end - range.begin);
}

Shadow::Range* Shadow::Find(uint64_t address, uint64_t bytes) {
  Range* range = last_;
  if (range == nullptr || address < range->begin || address >= range->end) {
    auto next = std::upper_bound(
        ranges_.begin(), ranges_.end(), address,
        [](uint64_t a, const Range& r) { return a < r.begin; });
    if (next == ranges_.begin() || address >= (--next)->end) return nullptr;
    range = last_ = &*next;
  }
  const uint64_t first = (address - range->begin) / kPageBytes;
  const uint64_t end = std::min(address + bytes, range->end);
  const uint64_t last = (end - 1 - range->begin) / kPageBytes;
  for (uint64_t page = first; page <= last; ++page) range->touched[page] = true;
  return range;
}

void Shadow::Read(uint64_t address, uint64_t bytes, AccessType type) {
  if (bytes == 0) return;
  Range* range = Find(address, bytes);
  if (range == nullptr) return;
  bytes = std::min(bytes, range->end - address);
  bytes_read_ += bytes;
  uint8_t* marks = range->marks + (address - range->begin);
  for (uint64_t i = 0; i < bytes; ++i) {
    const uint8_t before =
        (marks[i] & kWritten) != 0 ? kRead : kRead | kReadBeforeWritten;
    marks[i] = MergeType(marks[i] | before, type);
  }
}

void Shadow::Write(uint64_t address, uint64_t bytes, AccessType type) {
  if (bytes == 0) return;
  Range* range = Find(address, bytes);
  if (range == nullptr) return;
  bytes = std::min(bytes, range->end - address);
  bytes_written_ += bytes;
  uint8_t* marks = range->marks + (address - range->begin);
  for (uint64_t i = 0; i < bytes; ++i) {
    marks[i] = MergeType(marks[i] | kWritten, type);
  }
}

namespace {

using Intervals = google::protobuf::RepeatedPtrField<v1::AccessInterval>;

// Adds one byte to the last interval or begins a new one.
void AddByte(Intervals* intervals, uint64_t address) {
  if (!intervals->empty()) {
    v1::AccessInterval& last = *intervals->rbegin();
    if (last.address() + last.bytes() == address) {
      last.set_bytes(last.bytes() + 1);
      return;
    }
  }
  v1::AccessInterval* interval = intervals->Add();
  interval->set_address(address);
  interval->set_bytes(1);
}

// The type of a page if all its touched bytes agree.
v1::ElementType PageType(const uint8_t* marks, uint64_t bytes) {
  uint8_t type = 0;
  for (uint64_t i = 0; i < bytes; ++i) {
    const uint8_t here = marks[i] >> kTypeShift;
    if (here == 0) continue;
    if (here == kMixed || (type != 0 && type != here)) {
      return v1::ELEMENT_TYPE_UNTYPED;
    }
    type = here;
  }
  return static_cast<v1::ElementType>(type);
}

void AddType(v1::AccessReport* report, uint64_t address, uint64_t bytes,
             v1::ElementType type) {
  if (type == v1::ELEMENT_TYPE_UNTYPED) return;
  if (report->types_size() > 0) {
    v1::TypedInterval* last = report->mutable_types(report->types_size() - 1);
    if (last->element_type() == type &&
        last->address() + last->bytes() == address) {
      last->set_bytes(last->bytes() + bytes);
      return;
    }
  }
  v1::TypedInterval* interval = report->add_types();
  interval->set_address(address);
  interval->set_bytes(bytes);
  interval->set_element_type(type);
}

}  // namespace

void Shadow::ReportRange(const Range& range, v1::AccessReport* report) const {
  const uint64_t size = range.end - range.begin;
  for (uint64_t page = 0; page < range.touched.size(); ++page) {
    if (!range.touched[page]) continue;
    const uint64_t first = page * kPageBytes;
    const uint64_t bytes = std::min(kPageBytes, size - first);
    const uint8_t* marks = range.marks + first;
    const uint64_t address = range.begin + first;
    for (uint64_t i = 0; i < bytes; ++i) {
      if (marks[i] == 0) continue;
      if (marks[i] & kRead) AddByte(report->mutable_reads(), address + i);
      if (marks[i] & kWritten) AddByte(report->mutable_writes(), address + i);
      if (marks[i] & kReadBeforeWritten) {
        AddByte(report->mutable_reads_before_write(), address + i);
      }
    }
    AddType(report, address, bytes, PageType(marks, bytes));
  }
}

v1::AccessReport Shadow::Report() const {
  v1::AccessReport report;
  report.set_flops(flops_);
  report.set_bytes_read(bytes_read_);
  report.set_bytes_written(bytes_written_);
  for (const Range& range : ranges_) ReportRange(range, &report);
  return report;
}

}  // namespace reprise::cpu
