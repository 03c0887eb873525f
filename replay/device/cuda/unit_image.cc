#include "replay/device/cuda/unit_image.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/file_util.h"
#include "replay/base/parallel_for.h"
#include "replay/base/status_macros.h"
#include "replay/unit/blob.h"
#include "replay/unit/describe.h"

namespace reprise::cuda {
namespace {

constexpr uint64_t kPageBytes = 4096;

uint64_t PageUp(uint64_t value) {
  return (value + kPageBytes - 1) / kPageBytes * kPageBytes;
}

void AddPairs(const IntervalSet& set,
              google::protobuf::RepeatedField<uint64_t>* pairs) {
  pairs->Reserve(static_cast<int>(2 * set.intervals().size()));
  for (const Interval& interval : set.intervals()) {
    pairs->Add(interval.begin);
    pairs->Add(interval.end);
  }
}

bool HasChunk(const std::string& bits, size_t chunk) {
  return (static_cast<uint8_t>(bits[chunk / 8]) >> (chunk % 8) & 1) != 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnitImage>> UnitImage::Create(
    const UnitReader& unit, const LoadOptions& options) {
  auto image = std::unique_ptr<UnitImage>(new UnitImage);
  RETURN_IF_ERROR(image->ReadRanges(unit, options));
  image->ChooseReferenceChunks(unit);
  RETURN_IF_ERROR(image->Allocate());
  RETURN_IF_ERROR(image->ReadContents(unit));
  image->FindAddressWords();
  return image;
}

UnitImage::~UnitImage() {
  if (bytes_ != nullptr) munmap(bytes_, request_.image_bytes());
  if (fd_ >= 0) close(fd_);
}

absl::Status UnitImage::ReadRanges(const UnitReader& unit,
                                   const LoadOptions& options) {
  uint64_t offset = 0;
  for (const v1::MemoryRange& stored : unit.manifest().memory()) {
    v1::CudaUnitRange* range = request_.add_ranges();
    range->set_address(stored.address());
    range->set_bytes(stored.bytes());
    range->set_element_type(stored.element_type());
    range->set_origin(stored.origin());
    range->set_symbol(stored.symbol());
    range->set_name(RangeName(unit.manifest(), stored));
    if (stored.has_tolerance())
      *range->mutable_tolerance() = stored.tolerance();
    range->set_prologue_offset(offset);
    offset += PageUp(stored.bytes());
    range->set_reference_offset(offset);
    offset += PageUp(stored.bytes());
    if (!stored.has_write_set()) continue;
    ASSIGN_OR_RETURN(
        const IntervalSet writes,
        LoadIntervals(unit.chunks(), stored.write_set(), stored.bytes()));
    // Where nobody saw what is read first, nothing may be poisoned.
    if (stored.has_read_before_write_set()) {
      ASSIGN_OR_RETURN(
          const IntervalSet read_first,
          LoadIntervals(unit.chunks(), stored.read_before_write_set(),
                        stored.bytes()));
      AddPairs(writes.Subtract(read_first), range->mutable_poisoned());
      range->set_observed(true);
    }
    // Other inputs may write elsewhere: then the recorded set binds nobody.
    if (options.inputs_differ) continue;
    range->set_has_write_set(true);
    AddPairs(writes, range->mutable_writes());
  }
  request_.set_image_bytes(std::max(offset, kPageBytes));
  request_.set_reference_chunk_bytes(kChunkBytes);
  return absl::OkStatus();
}

// Of epilogues, only what differs from the prologue is read.
void UnitImage::ChooseReferenceChunks(const UnitReader& unit) {
  for (int i = 0; i < request_.ranges_size(); ++i) {
    const v1::MemoryRange& stored = unit.manifest().memory(i);
    if (!stored.has_epilogue()) continue;
    const int chunks = stored.epilogue().chunks_size();
    std::string bits((static_cast<size_t>(chunks) + 7) / 8, '\0');
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const bool same = chunk < stored.prologue().chunks_size() &&
                        stored.prologue().chunks(chunk).sha256() ==
                            stored.epilogue().chunks(chunk).sha256();
      if (!same)
        bits[static_cast<size_t>(chunk) / 8] |=
            static_cast<char>(1 << (chunk % 8));
    }
    request_.mutable_ranges(i)->set_reference_chunks(bits);
  }
}

absl::Status UnitImage::Allocate() {
  fd_ = memfd_create("reprise-unit", MFD_CLOEXEC);
  if (fd_ < 0) return ErrnoToStatus(errno, "cannot create shared memory");
  if (ftruncate(fd_, static_cast<off_t>(request_.image_bytes())) != 0) {
    return ErrnoToStatus(
        errno, absl::StrFormat("cannot size shared memory to %d bytes",
                               request_.image_bytes()));
  }
  void* bytes = mmap(nullptr, request_.image_bytes(), PROT_READ | PROT_WRITE,
                     MAP_SHARED, fd_, 0);
  if (bytes == MAP_FAILED) return ErrnoToStatus(errno, "cannot map the unit");
  bytes_ = static_cast<char*>(bytes);
  return absl::OkStatus();
}

absl::Status UnitImage::ReadContents(const UnitReader& unit) {
  for (int i = 0; i < request_.ranges_size(); ++i) {
    const v1::MemoryRange& stored = unit.manifest().memory(i);
    const v1::CudaUnitRange& range = request_.ranges(i);
    // Chunks of zeros stay holes in the file.
    const auto is_stored = [](const v1::Blob& blob, size_t chunk) {
      return !blob.chunks(static_cast<int>(chunk)).sha256().empty();
    };
    RETURN_IF_ERROR(unit.chunks().GetInto(
        stored.prologue(), bytes_ + range.prologue_offset(),
        [&](size_t chunk) { return is_stored(stored.prologue(), chunk); }));
    if (!stored.has_epilogue()) continue;
    RETURN_IF_ERROR(unit.chunks().GetInto(
        stored.epilogue(), bytes_ + range.reference_offset(),
        [&](size_t chunk) {
          return HasChunk(range.reference_chunks(), chunk) &&
                 is_stored(stored.epilogue(), chunk);
        }));
  }
  return absl::OkStatus();
}

void UnitImage::FindAddressWords() {
  std::vector<int> variables;
  for (int i = 0; i < request_.ranges_size(); ++i) {
    if (!request_.ranges(i).symbol().empty()) variables.push_back(i);
  }
  if (variables.empty()) return;
  std::mutex mutex;
  std::vector<v1::CudaAddressWord> found;
  for (int i = 0; i < request_.ranges_size(); ++i) {
    const v1::CudaUnitRange& range = request_.ranges(i);
    ParallelFor(range.bytes(), [&](uint64_t begin, uint64_t end) {
      std::vector<v1::CudaAddressWord> here;
      ScanRange(i, variables, begin, end, &here);
      const std::lock_guard<std::mutex> lock(mutex);
      found.insert(found.end(), here.begin(), here.end());
    });
  }
  for (v1::CudaAddressWord& word : found)
    *request_.add_address_words() = std::move(word);
}

// Words at addresses that are multiples of 8, in the prologue and where the
// reference has bytes of its own in that too.
void UnitImage::ScanRange(int i, const std::vector<int>& variables,
                          uint64_t begin, uint64_t end,
                          std::vector<v1::CudaAddressWord>* found) const {
  const v1::CudaUnitRange& range = request_.ranges(i);
  const uint64_t skew = range.address() % 8;
  const auto scan = [&](uint64_t from, uint64_t to, bool reference,
                        bool in_prologue, bool in_reference) {
    const char* bytes = bytes_ + (reference ? range.reference_offset()
                                            : range.prologue_offset());
    for (uint64_t at = from + (8 - (from + skew) % 8) % 8;
         at + 8 <= range.bytes() && at < to; at += 8) {
      uint64_t value;
      std::memcpy(&value, bytes + at, sizeof(value));
      const int target = VariableAt(variables, value);
      if (target < 0) continue;
      v1::CudaAddressWord word;
      word.set_range(static_cast<uint32_t>(i));
      word.set_offset(at);
      word.set_target_range(static_cast<uint32_t>(target));
      word.set_target_offset(value - request_.ranges(target).address());
      word.set_in_prologue(in_prologue);
      word.set_in_reference(in_reference);
      found->push_back(std::move(word));
    }
  };
  for (uint64_t at = begin; at < end;) {
    const uint64_t chunk = at / kChunkBytes;
    const uint64_t next = std::min((chunk + 1) * kChunkBytes, end);
    const bool stored = chunk / 8 < range.reference_chunks().size() &&
                        HasChunk(range.reference_chunks(), chunk);
    scan(at, next, false, true, !stored);
    if (stored) scan(at, next, true, false, true);
    at = next;
  }
}

// Which of the variables holds this address; -1: none.
int UnitImage::VariableAt(const std::vector<int>& variables,
                          uint64_t address) const {
  // Ascending; one test throws out nearly every word.
  const v1::CudaUnitRange& last = request_.ranges(variables.back());
  if (address < request_.ranges(variables.front()).address() ||
      address >= last.address() + last.bytes())
    return -1;
  for (const int i : variables) {
    const v1::CudaUnitRange& variable = request_.ranges(i);
    if (address >= variable.address() &&
        address < variable.address() + variable.bytes())
      return i;
  }
  return -1;
}

}  // namespace reprise::cuda
