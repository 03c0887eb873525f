// Of a UnitMemory: comparing what a launch left with the reference.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/resident/compare.h"
#include "replay/device/cuda/executor/unit_memory.h"

namespace reprise::cuda {
namespace {

double FromBits(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

absl::Status UnitMemory::RefreshJobs(const v1::Tolerance& tolerance) {
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const Check& check = checks_[i];
    if (check.kind == Check::kSlack) continue;
    const v1::Tolerance own = ToleranceOf(check.range, tolerance);
    jobs_[i].absolute = own.absolute();
    jobs_[i].relative = own.relative();
    // A variable that the code does not have keeps what it had.
    if (states_[check.range].is_variable)
      jobs_[i].got = AddressOf(check.range)
                         .value_or(golden() + states_[check.range].shadow);
  }
  // The counts lie behind the jobs.
  std::string rows(counts_at_ - jobs_at_ + jobs_.size() * sizeof(CompareCounts),
                   '\0');
  std::memcpy(rows.data(), jobs_.data(), jobs_.size() * sizeof(jobs_[0]));
  return gpu_.Upload(device_tables() + jobs_at_, rows.data(), rows.size());
}

absl::StatusOr<std::string> UnitMemory::TextAt(v1::ElementType type,
                                               uint64_t address) {
  char bytes[8] = {};
  RETURN_IF_ERROR(gpu_.Download(bytes, address, cpu::ElementBytes(type)));
  return cpu::ReadElement(type, bytes).text;
}

absl::Status UnitMemory::AddErrors(const Check& check, const CompareJob& job,
                                   const CompareCounts& counts,
                                   const v1::Tolerance& tolerance,
                                   v1::CudaVerdict* verdict) {
  const auto type = static_cast<v1::ElementType>(job.element_type);
  const uint64_t size = cpu::ElementBytes(type);
  if (check.kind == Check::kSlack && counts.wrong == 0) return absl::OkStatus();
  const bool tail = check.kind == Check::kTail;
  if (tail && counts.wrong == 0) return absl::OkStatus();
  const bool joins =
      check.kind != Check::kSlack && verdict->ranges_size() > 0 &&
      verdict->ranges().rbegin()->address() == ranges_[check.range].address();
  v1::RangeErrors& errors =
      joins ? *verdict->mutable_ranges()->rbegin() : *verdict->add_ranges();
  if (check.kind == Check::kSlack) {
    const uint64_t at = check.address + (~uint64_t{0} - counts.first_wrong);
    errors.set_address(at);
    errors.set_name(
        absl::StrFormat("memory at 0x%x, which belongs to no allocation", at));
    errors.set_compared_elements(check.bytes);
  } else if (!joins) {
    const v1::CudaUnitRange& range = ranges_[check.range];
    errors.set_address(range.address());
    errors.set_name(range.name());
    errors.set_element_type(type);
    errors.set_compared_elements(states_[check.range].written_bytes / size);
  }
  // rms holds the sum of squares until Verify has seen all of the range.
  errors.set_rms(errors.rms() + counts.squares);
  errors.set_max_absolute(
      std::max(errors.max_absolute(), FromBits(counts.max_absolute)));
  errors.set_max_relative(
      std::max(errors.max_relative(), FromBits(counts.max_relative)));
  const uint64_t wrong = tail ? 1 : counts.wrong;
  if (wrong > 0 && errors.wrong_elements() == 0) {
    const uint64_t first = ~uint64_t{0} - counts.first_wrong;
    errors.set_first_wrong_element(
        tail ? first / cpu::ElementBytes(errors.element_type()) : first);
    ASSIGN_OR_RETURN(*errors.mutable_got(),
                     TextAt(type, job.got + first * size));
    ASSIGN_OR_RETURN(*errors.mutable_expected(),
                     TextAt(type, job.expected + first * size));
    if (check.kind == Check::kSlack) errors.set_expected("no write");
  }
  errors.set_wrong_elements(errors.wrong_elements() + wrong);
  if (counts.outside > 0) errors.set_outside_write_set(true);
  // What is behind the last whole element is compared by bits.
  const double allowed =
      check.kind == Check::kSlack || tail
          ? 0
          : ToleranceOf(check.range, tolerance).outlier_share() *
                static_cast<double>(errors.compared_elements());
  if (counts.outside > 0 ||
      static_cast<double>(errors.wrong_elements()) > allowed)
    verdict->set_equal(false);
  return absl::OkStatus();
}

absl::Status UnitMemory::HasShadows() const {
  if (!run_once_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the unit was loaded to run once: there is nothing to compare it with");
}

absl::StatusOr<v1::CudaVerdict> UnitMemory::Verify(
    const v1::Tolerance& tolerance) {
  RETURN_IF_ERROR(HasShadows());
  RETURN_IF_ERROR(Show());
  RETURN_IF_ERROR(RefreshJobs(tolerance));
  const uint64_t tables = device_tables();
  RETURN_IF_ERROR(gpu_.CompareTiles(tables + compare_at_, compare_.size(),
                                    tables + jobs_at_, tables + counts_at_));
  std::vector<CompareCounts> counts(jobs_.size());
  RETURN_IF_ERROR(gpu_.Download(counts.data(), tables + counts_at_,
                                counts.size() * sizeof(counts[0])));
  v1::CudaVerdict verdict;
  verdict.set_equal(true);
  bool outside = false;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    outside = outside || counts[i].outside > 0;
    RETURN_IF_ERROR(
        AddErrors(checks_[i], jobs_[i], counts[i], tolerance, &verdict));
  }
  for (v1::RangeErrors& errors : *verdict.mutable_ranges()) {
    const double compared = static_cast<double>(errors.compared_elements());
    errors.set_rms(compared == 0 ? 0 : std::sqrt(errors.rms() / compared));
  }
  if (!outside) {
    may_be_dirty_ = false;
    if (bound_ != nullptr) bound_->may_be_dirty = false;
  }
  return verdict;
}

absl::Status UnitMemory::AdoptReference(
    google::protobuf::RepeatedPtrField<v1::CudaPiece>* adopted) {
  RETURN_IF_ERROR(HasShadows());
  RETURN_IF_ERROR(Show());
  for (const Segment& segment : segments_) {
    if (!segment.writable) continue;
    RETURN_IF_ERROR(gpu_.Copy(reference() + segment.shadow, segment.address,
                              segment.bytes));
  }
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const RangeState& state = states_[i];
    if (state.is_variable && state.variable.has_value()) {
      RETURN_IF_ERROR(gpu_.Copy(reference() + state.shadow,
                                state.variable->address, ranges_[i].bytes()));
    }
    for (const Interval& span : state.spans.intervals()) {
      v1::CudaPiece* piece = adopted->Add();
      piece->set_range(static_cast<uint32_t>(i));
      piece->set_offset(span.begin);
      piece->set_bytes(span.end - span.begin);
    }
  }
  return gpu_.Synchronize();
}

absl::Status UnitMemory::ReadReference(
    const v1::ReadCudaReferenceRequest& request, char* window) {
  RETURN_IF_ERROR(Show());
  for (const v1::CudaPiece& piece : request.pieces()) {
    RETURN_IF_ERROR(CheckPiece(piece));
    RETURN_IF_ERROR(gpu_.Download(
        window + piece.window_offset(),
        reference() + ShadowOf(piece.range(), piece.offset()), piece.bytes()));
  }
  return absl::OkStatus();
}

UnitMemory::Work UnitMemory::work() const {
  Work work;
  work.restored_bytes = restore_.bytes;
  work.poisoned_bytes = poison_.bytes;
  for (const CompareTile& tile : compare_)
    work.verified_bytes += tile.end - tile.begin;
  return work;
}

}  // namespace reprise::cuda
