// Of a UnitMemory: what lies where, and the tables of the support kernels.
#include <algorithm>

#include "replay/base/status_macros.h"
#include "replay/device/cpu/resident/compare.h"
#include "replay/device/cuda/executor/unit_memory.h"

namespace reprise::cuda {
namespace {

// Where segments would be more, all granules of the unit are writable.
constexpr size_t kMaximumSegments = 2048;
constexpr uint64_t kShadowAlignment = 256;
// Addresses are kept for so many.
constexpr uint64_t kMostTableBytes = uint64_t{16} << 30;

uint64_t AlignShadow(uint64_t value) {
  return (value + kShadowAlignment - 1) / kShadowAlignment * kShadowAlignment;
}

IntervalSet FromPairs(const google::protobuf::RepeatedField<uint64_t>& pairs) {
  IntervalSet set;
  for (int i = 0; i + 1 < pairs.size(); i += 2) set.Add(pairs[i], pairs[i + 1]);
  return set;
}

IntervalSet Whole(uint64_t bytes) {
  IntervalSet set;
  if (bytes != 0) set.Add(0, bytes);
  return set;
}

// A range that begins between elements is compared by bytes.
v1::ElementType ComparedType(const v1::CudaUnitRange& range) {
  return range.address() % cpu::ElementBytes(range.element_type()) == 0
             ? range.element_type()
             : v1::ELEMENT_TYPE_UNTYPED;
}

}  // namespace

absl::Status UnitMemory::ReadRequest(const v1::LoadCudaUnitRequest& request) {
  ranges_.assign(request.ranges().begin(), request.ranges().end());
  all_writable_ = request.all_writable();
  run_once_ = request.run_once();
  words_.assign(request.address_words().begin(), request.address_words().end());
  for (const v1::CudaUnitRange& range : ranges_) {
    RangeState state;
    state.is_variable = !range.symbol().empty();
    state.writes = range.has_write_set() ? FromPairs(range.writes())
                                         : Whole(range.bytes());
    state.written_bytes = state.writes.bytes();
    state.poisoned = FromPairs(range.poisoned());
    states_.push_back(std::move(state));
  }
  for (const v1::CudaAddressWord& word : words_) {
    if (word.range() >= ranges_.size() ||
        word.target_range() >= ranges_.size() ||
        word.offset() + sizeof(uint64_t) > ranges_[word.range()].bytes())
      return absl::InvalidArgumentError("an address word lies in no range");
  }
  return absl::OkStatus();
}

void UnitMemory::LayOutSegments() {
  IntervalSet mapped, writable, reserved;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (states_[i].is_variable) continue;
    const uint64_t address = ranges_[i].address();
    const uint64_t end = address + ranges_[i].bytes();
    mapped.Add(GranuleDown(address), GranuleUp(end));
    if (all_writable_ || !ranges_[i].observed())
      writable.Add(GranuleDown(address), GranuleUp(end));
    for (const Interval& interval : states_[i].writes.intervals())
      writable.Add(GranuleDown(address + interval.begin),
                   GranuleUp(address + interval.end));
  }
  // Address words change with the module.
  for (const v1::CudaAddressWord& word : words_) {
    if (states_[word.range()].is_variable) continue;
    const uint64_t at = ranges_[word.range()].address() + word.offset();
    writable.Add(GranuleDown(at), GranuleUp(at + sizeof(uint64_t)));
  }
  if (2 * writable.intervals().size() > kMaximumSegments) writable = mapped;
  for (const Interval& run : mapped.intervals()) {
    reserved.Add(run.begin / kReservationBytes * kReservationBytes,
                 (run.end + kReservationBytes - 1) / kReservationBytes *
                     kReservationBytes);
    IntervalSet here;
    here.Add(run.begin, run.end);
    AddSegments(run.begin, run.end, writable.Intersect(here));
  }
  for (const Interval& run : reserved.intervals())
    reservations_.push_back({run.begin, run.end - run.begin, nullptr});
}

void UnitMemory::AddSegments(uint64_t begin, uint64_t end,
                             const IntervalSet& writable) {
  const auto add = [this](uint64_t from, uint64_t to, bool is_writable) {
    if (from == to) return;
    Segment segment;
    segment.address = from;
    segment.bytes = to - from;
    segment.writable = is_writable;
    segments_.push_back(std::move(segment));
  };
  for (const Interval& interval : writable.intervals()) {
    add(begin, interval.begin, false);
    add(interval.begin, interval.end, true);
    begin = interval.end;
  }
  add(begin, end, false);
}

void UnitMemory::LayOutShadows() {
  for (Segment& segment : segments_) {
    if (!segment.writable || run_once_) continue;
    segment.shadow = shadow_bytes_;
    shadow_bytes_ += segment.bytes;
  }
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (states_[i].is_variable) {
      states_[i].shadow = shadow_bytes_;
      shadow_bytes_ = AlignShadow(shadow_bytes_ + ranges_[i].bytes());
      states_[i].spans = Whole(ranges_[i].bytes());
    } else if (!run_once_) {
      FindSpans(i);
    }
  }
}

void UnitMemory::FindSpans(size_t range) {
  const uint64_t begin = ranges_[range].address();
  const uint64_t end = begin + ranges_[range].bytes();
  auto segment = std::upper_bound(
      segments_.begin(), segments_.end(), begin,
      [](uint64_t at, const Segment& s) { return at < s.address + s.bytes; });
  for (; segment != segments_.end() && segment->address < end; ++segment) {
    if (!segment->writable) continue;
    states_[range].spans.Add(
        std::max(begin, segment->address) - begin,
        std::min(end, segment->address + segment->bytes) - begin);
  }
}

const UnitMemory::Segment* UnitMemory::SegmentAt(uint64_t address) const {
  auto segment = std::upper_bound(
      segments_.begin(), segments_.end(), address,
      [](uint64_t at, const Segment& s) { return at < s.address + s.bytes; });
  return segment == segments_.end() ? nullptr : &*segment;
}

// Offset of the shadows of a byte that has some.
uint64_t UnitMemory::ShadowOf(size_t range, uint64_t offset) const {
  if (states_[range].is_variable) return states_[range].shadow + offset;
  const uint64_t address = ranges_[range].address() + offset;
  const Segment& segment = *SegmentAt(address);
  return segment.shadow + (address - segment.address);
}

absl::Status UnitMemory::Allocate() {
  // The recorded addresses first, so that nothing of ours takes them.
  for (Reservation& reservation : reservations_) {
    ASSIGN_OR_RETURN(
        reservation.range,
        AddressRange::ReserveAt(gpu_, reservation.address, reservation.bytes));
  }
  for (Segment& segment : segments_) {
    ASSIGN_OR_RETURN(segment.memory,
                     PhysicalMemory::Create(gpu_, segment.bytes));
  }
  ASSIGN_OR_RETURN(hidden_, HiddenMemory::Reserve(
                                gpu_, 2 * shadow_bytes_ + kMostTableBytes));
  return absl::OkStatus();
}

// --- Tables

void UnitMemory::AddRangeTiles(size_t range) {
  const RangeState& state = states_[range];
  if (state.is_variable) return;
  const uint64_t address = ranges_[range].address();
  const auto add = [&](const IntervalSet& set, CopyTiles* tiles) {
    const IntervalSet pieces = Coalesced(set).Intersect(state.spans);
    for (const Interval& interval : pieces.intervals()) {
      AddCopy(address + interval.begin,
              golden() + ShadowOf(range, interval.begin),
              interval.end - interval.begin, tiles);
    }
  };
  add(state.writes, &restore_);
  add(state.writes.Subtract(state.poisoned), &restore_unpoisoned_);
  for (const Interval& interval : state.poisoned.intervals())
    AddFill(address + interval.begin, interval.end - interval.begin, &poison_);
}

void UnitMemory::AddRangeCheck(size_t range, const Interval& span) {
  const v1::CudaUnitRange& info = ranges_[range];
  const v1::ElementType type = ComparedType(info);
  const uint64_t size = cpu::ElementBytes(type);
  const uint64_t whole = info.bytes() / size * size;
  CompareJob job;
  job.got = info.address();
  job.expected = reference() + ShadowOf(range, span.begin) - span.begin;
  job.all_may_differ = info.has_write_set() ? 0 : 1;
  job.element_type = static_cast<uint32_t>(type);
  Check check;
  check.range = range;
  check.bytes = span.end - span.begin;
  const auto add = [&](uint64_t begin, uint64_t end) {
    AddCompare(jobs_.size(), begin, end, job.got, &compare_);
    jobs_.push_back(job);
    checks_.push_back(check);
  };
  if (span.begin < whole) add(span.begin, std::min(span.end, whole));
  if (span.end <= whole) return;
  check.kind = Check::kTail;
  job.element_type = v1::ELEMENT_TYPE_UNTYPED;
  job.all_may_differ = 1;
  add(std::max(whole, span.begin), span.end);
}

void UnitMemory::AddChecks() {
  IntervalSet owned;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    for (const Interval& span : states_[i].spans.intervals())
      AddRangeCheck(i, span);
    if (!states_[i].is_variable)
      owned.Add(ranges_[i].address(),
                ranges_[i].address() + ranges_[i].bytes());
  }
  for (const Segment& segment : segments_) {
    if (!segment.writable || run_once_) continue;
    IntervalSet all;
    all.Add(segment.address, segment.address + segment.bytes);
    const IntervalSet slack_set = all.Subtract(owned);
    for (const Interval& slack : slack_set.intervals()) {
      Check check;
      check.kind = Check::kSlack;
      check.address = slack.begin;
      check.bytes = slack.end - slack.begin;
      CompareJob job;
      job.got = slack.begin;
      job.expected =
          reference() + segment.shadow + (slack.begin - segment.address);
      AddCompare(jobs_.size(), 0, check.bytes, job.got, &compare_);
      jobs_.push_back(job);
      checks_.push_back(check);
    }
  }
}

absl::Status UnitMemory::BuildTables() {
  for (size_t i = 0; i < ranges_.size(); ++i) AddRangeTiles(i);
  AddChecks();
  restore_at_ = restore_.PlaceIn(tables_);
  restore_unpoisoned_at_ = restore_unpoisoned_.PlaceIn(tables_);
  poison_at_ = poison_.PlaceIn(tables_);
  compare_at_ = tables_.Add(compare_);
  std::vector<uint64_t> intervals_of(ranges_.size());
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (ranges_[i].has_write_set())
      intervals_of[i] = tables_.Add(states_[i].writes.intervals());
  }
  jobs_at_ = tables_.Add(jobs_);
  counts_at_ = tables_.Add(std::vector<CompareCounts>(jobs_.size()));
  words_at_ = tables_.Add(std::vector<Word>(3 * words_.size()));
  variable_tables_at_ = AlignShadow(tables_.bytes().size());
  variable_tables_bytes_ = MostVariableTableBytes();
  RETURN_IF_ERROR(hidden_->Fill(2 * shadow_bytes_ + variable_tables_at_ +
                                variable_tables_bytes_));
  for (size_t i = 0; i < jobs_.size(); ++i) {
    if (checks_[i].kind != Check::kRange || jobs_[i].all_may_differ != 0)
      continue;
    const size_t range = checks_[i].range;
    jobs_[i].intervals = device_tables() + intervals_of[range];
    jobs_[i].interval_count = states_[range].writes.intervals().size();
  }
  return gpu_.Upload(device_tables(), tables_.bytes().data(),
                     tables_.bytes().size());
}

// Wherever a module has the variables.
uint64_t UnitMemory::MostVariableTableBytes() const {
  constexpr uint64_t kWorstAddress = 15;
  CopyTiles copies;
  FillTiles fills;
  for (const RangeState& state : states_) {
    if (!state.is_variable) continue;
    for (const IntervalSet& set : {state.spans, Coalesced(state.writes)}) {
      for (const Interval& piece : set.intervals())
        AddCopy(kWorstAddress, 0, piece.end - piece.begin, &copies);
    }
    for (const Interval& piece : state.poisoned.intervals())
      AddFill(kWorstAddress, piece.end - piece.begin, &fills);
  }
  Tables tables;
  copies.PlaceIn(tables);
  fills.PlaceIn(tables);
  return tables.bytes().size() + kShadowAlignment;
}

}  // namespace reprise::cuda
