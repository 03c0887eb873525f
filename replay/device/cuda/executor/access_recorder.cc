#include "replay/device/cuda/executor/access_recorder.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"

namespace reprise::cuda {
namespace {

using Intervals = google::protobuf::RepeatedPtrField<v1::AccessInterval>;

uint64_t Align(uint64_t value) { return (value + 255) / 256 * 256; }

uint64_t TypePages(const NotedRange& range) {
  return (range.end - range.begin + kTypePageBytes - 1) / kTypePageBytes;
}

void AddInterval(uint64_t address, uint64_t bytes, Intervals* intervals) {
  v1::AccessInterval* interval = intervals->Add();
  interval->set_address(address);
  interval->set_bytes(bytes);
}

// Bits that are downloaded and looked at together.
constexpr uint64_t kBlockWords = 4 << 20;

// Makes intervals of runs of ones in bits that come word by word. Bit `skipped`
// is the byte at `address`; those before it are zero.
class RunCollector {
 public:
  RunCollector(uint64_t address, uint64_t skipped, Intervals* intervals)
      : address_(address - skipped), intervals_(intervals) {}

  void Add(const std::vector<uint32_t>& words) {
    for (const uint32_t word : words) {
      if (word != (inside_ ? ~0u : 0u)) AddMixed(word);
      at_ += kPlaneWordBits;
    }
  }
  void Finish() {
    if (inside_) End(at_);
  }

 private:
  void AddMixed(uint32_t word) {
    for (uint64_t i = 0; i < kPlaneWordBits; ++i) {
      if (((word >> i & 1) != 0) == inside_) continue;
      if (inside_)
        End(at_ + i);
      else
        begin_ = at_ + i;
      inside_ = !inside_;
    }
  }
  void End(uint64_t end) {
    AddInterval(address_ + begin_, end - begin_, intervals_);
  }

  const uint64_t address_;  // of bit 0
  Intervals* const intervals_;
  uint64_t at_ = 0;  // the next bit
  uint64_t begin_ = 0;
  bool inside_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AccessRecorder>> AccessRecorder::Create(
    Gpu& gpu, const UnitMemory& memory, const Module& module) {
  auto recorder = std::unique_ptr<AccessRecorder>(new AccessRecorder(gpu));
  const std::optional<Module::Variable> notes =
      module.FindVariable(kAccessNotesSymbol);
  if (!notes.has_value() || notes->bytes < sizeof(AccessNotes)) {
    return absl::FailedPreconditionError(
        "an instrumented launch needs instrumented code");
  }
  recorder->notes_ = notes->address;
  for (size_t i = 0; i < memory.ranges().size(); ++i) {
    const std::optional<uint64_t> address = memory.AddressOf(i);
    if (!address.has_value()) continue;
    Range range;
    range.recorded = memory.ranges()[i].address();
    range.noted.begin = *address;
    range.noted.end = *address + memory.ranges()[i].bytes();
    recorder->ranges_.push_back(range);
  }
  std::sort(recorder->ranges_.begin(), recorder->ranges_.end(),
            [](const Range& a, const Range& b) {
              return a.noted.begin < b.noted.begin;
            });
  RETURN_IF_ERROR(recorder->Allocate());
  return recorder;
}

AccessRecorder::~AccessRecorder() {
  if (memory_ != 0) gpu_.driver().MemFree(memory_);
}

absl::Status AccessRecorder::Allocate() {
  uint64_t bytes = 0;
  for (Range& range : ranges_) {
    for (uint64_t* plane : {&range.noted.read, &range.noted.written}) {
      *plane = bytes;
      bytes += Align(PlaneWords(range.noted) * sizeof(uint32_t));
    }
    range.noted.types = bytes;
    bytes += Align(TypePages(range.noted));
  }
  const uint64_t table = bytes;
  bytes += Align(ranges_.size() * sizeof(NotedRange));
  const CUresult result = gpu_.driver().MemAlloc(&memory_, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the device has not the %.2f GiB left that watching the kernel's "
        "accesses takes, a quarter of the memory that may be accessed",
        static_cast<double>(bytes) / 0x1p30));
  }
  RETURN_IF_ERROR(gpu_.driver().Check(result, "cuMemAlloc"));
  std::vector<NotedRange> noted;
  for (Range& range : ranges_) {
    for (uint64_t* plane :
         {&range.noted.read, &range.noted.written, &range.noted.types})
      *plane += memory_;
    noted.push_back(range.noted);
  }
  AccessNotes notes;
  notes.range_count = noted.size();
  notes.ranges = memory_ + table;
  RETURN_IF_ERROR(gpu_.Fill(memory_, 0, table));
  RETURN_IF_ERROR(
      gpu_.Upload(notes.ranges, noted.data(), noted.size() * sizeof(noted[0])));
  RETURN_IF_ERROR(gpu_.Upload(notes_, &notes, sizeof(notes)));
  return gpu_.Synchronize();
}

absl::Status AccessRecorder::ReportPlane(const Range& range, uint64_t plane,
                                         Intervals* intervals) {
  const uint64_t words = PlaneWords(range.noted);
  RunCollector runs(range.recorded, range.noted.begin % kPlaneWordBits,
                    intervals);
  std::vector<uint32_t> block;
  for (uint64_t at = 0; at < words; at += block.size()) {
    block.resize(std::min(kBlockWords, words - at));
    RETURN_IF_ERROR(gpu_.Download(block.data(), plane + at * sizeof(uint32_t),
                                  block.size() * sizeof(uint32_t)));
    runs.Add(block);
  }
  runs.Finish();
  return absl::OkStatus();
}

absl::Status AccessRecorder::ReportTypes(const Range& range,
                                         v1::AccessReport* report) {
  std::vector<uint8_t> types(TypePages(range.noted));
  RETURN_IF_ERROR(gpu_.Download(types.data(), range.noted.types, types.size()));
  const uint64_t size = range.noted.end - range.noted.begin;
  for (uint64_t page = 0; page < types.size();) {
    uint64_t end = page + 1;
    while (end < types.size() && types[end] == types[page]) ++end;
    // 1: untyped.
    if (types[page] > 1 && types[page] != kMixedTypes) {
      v1::TypedInterval* interval = report->add_types();
      interval->set_address(range.recorded + page * kTypePageBytes);
      interval->set_bytes(std::min(end * kTypePageBytes, size) -
                          page * kTypePageBytes);
      interval->set_element_type(static_cast<v1::ElementType>(types[page] - 1));
    }
    page = end;
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::AccessReport> AccessRecorder::Report(std::string* remark) {
  AccessNotes notes;
  RETURN_IF_ERROR(gpu_.Download(&notes, notes_, sizeof(notes)));
  v1::AccessReport report;
  report.set_flops(notes.flops);
  report.set_bytes_read(notes.bytes_read);
  report.set_bytes_written(notes.bytes_written);
  // Intervals ascend by recorded address.
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return a.recorded < b.recorded;
  });
  for (const Range& range : ranges_) {
    RETURN_IF_ERROR(
        ReportPlane(range, range.noted.read, report.mutable_reads()));
    RETURN_IF_ERROR(
        ReportPlane(range, range.noted.written, report.mutable_writes()));
    RETURN_IF_ERROR(ReportTypes(range, &report));
  }
  if (notes.outside_count != 0) {
    *remark = absl::StrFormat(
        "%d accesses touch memory that the unit does not hold, one of them at "
        "0x%x",
        notes.outside_count, notes.first_outside);
  }
  return report;
}

}  // namespace reprise::cuda
