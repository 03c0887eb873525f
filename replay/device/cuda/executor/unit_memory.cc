#include "replay/device/cuda/executor/unit_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/resident/compare.h"

namespace reprise::cuda {
namespace {

constexpr uint8_t kCanary = 0xc5;
// Where segments would be more, all granules of the unit are writable.
constexpr size_t kMaximumSegments = 2048;
constexpr uint64_t kShadowAlignment = 256;

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

bool HasChunk(const std::string& bits, uint64_t chunk) {
  return chunk / 8 < bits.size() &&
         (static_cast<uint8_t>(bits[chunk / 8]) >> (chunk % 8) & 1) != 0;
}

// A range that begins between elements is compared by bytes.
v1::ElementType ComparedType(const v1::CudaUnitRange& range) {
  return range.address() % cpu::ElementBytes(range.element_type()) == 0
             ? range.element_type()
             : v1::ELEMENT_TYPE_UNTYPED;
}

double FromBits(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnitMemory>> UnitMemory::Create(
    Gpu& gpu, const v1::LoadCudaUnitRequest& request, const char* image,
    int fd) {
  auto memory = std::unique_ptr<UnitMemory>(new UnitMemory(gpu));
  RETURN_IF_ERROR(memory->ReadRequest(request));
  memory->LayOutSegments();
  memory->LayOutShadows();
  RETURN_IF_ERROR(memory->Allocate());
  RETURN_IF_ERROR(memory->BuildTables());
  RETURN_IF_ERROR(
      memory->FillFromImage(image, fd, request.reference_chunk_bytes()));
  return memory;
}

UnitMemory::~UnitMemory() { UnmapSegments().IgnoreError(); }

absl::Status UnitMemory::ReadRequest(const v1::LoadCudaUnitRequest& request) {
  ranges_.assign(request.ranges().begin(), request.ranges().end());
  all_writable_ = request.all_writable();
  words_.assign(request.address_words().begin(), request.address_words().end());
  for (const v1::CudaUnitRange& range : ranges_) {
    RangeState state;
    state.is_variable = !range.symbol().empty();
    state.writes = range.has_write_set() ? FromPairs(range.writes())
                                         : Whole(range.bytes());
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
    if (!segment.writable) continue;
    segment.shadow = shadow_bytes_;
    shadow_bytes_ += segment.bytes;
  }
  for (size_t i = 0; i < ranges_.size(); ++i) {
    if (states_[i].is_variable) {
      states_[i].shadow = shadow_bytes_;
      shadow_bytes_ = AlignShadow(shadow_bytes_ + ranges_[i].bytes());
      states_[i].spans = Whole(ranges_[i].bytes());
    } else {
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
  ASSIGN_OR_RETURN(shadows_, HiddenMemory::Create(gpu_, 2 * shadow_bytes_));
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
    if (!segment.writable) continue;
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
  ASSIGN_OR_RETURN(device_tables_,
                   HiddenMemory::Create(gpu_, tables_.bytes().size()));
  for (size_t i = 0; i < jobs_.size(); ++i) {
    if (checks_[i].kind != Check::kRange || jobs_[i].all_may_differ != 0)
      continue;
    const size_t range = checks_[i].range;
    jobs_[i].intervals = device_tables_->address() + intervals_of[range];
    jobs_[i].interval_count = states_[range].writes.intervals().size();
  }
  return gpu_.Upload(device_tables_->address(), tables_.bytes().data(),
                     tables_.bytes().size());
}

// --- Contents

// Holes of the file are zeros, and read no memory.
absl::Status UnitMemory::UploadPiece(uint64_t to, const char* image, int fd,
                                     uint64_t offset, uint64_t bytes) {
  const uint64_t end = offset + bytes;
  for (uint64_t at = offset; at < end;) {
    const off_t found = lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    const uint64_t data =
        found < 0 ? end : std::min(end, static_cast<uint64_t>(found));
    RETURN_IF_ERROR(gpu_.Fill(to + (at - offset), 0, data - at));
    if (data == end) break;
    const off_t hole = lseek(fd, static_cast<off_t>(data), SEEK_HOLE);
    at = hole < 0 ? end : std::min(end, static_cast<uint64_t>(hole));
    RETURN_IF_ERROR(
        gpu_.UploadMany(to + (data - offset), image + data, at - data));
  }
  return absl::OkStatus();
}

absl::Status UnitMemory::UploadReference(size_t range, const char* image,
                                         int fd, uint64_t chunk_bytes) {
  const v1::CudaUnitRange& info = ranges_[range];
  IntervalSet present;
  for (uint64_t at = 0; at < info.bytes(); at += chunk_bytes) {
    if (HasChunk(info.reference_chunks(), at / chunk_bytes))
      present.Add(at, std::min(at + chunk_bytes, info.bytes()));
  }
  const IntervalSet pieces = present.Intersect(states_[range].spans);
  for (const Interval& piece : pieces.intervals()) {
    RETURN_IF_ERROR(UploadPiece(
        reference() + ShadowOf(range, piece.begin), image, fd,
        info.reference_offset() + piece.begin, piece.end - piece.begin));
  }
  return absl::OkStatus();
}

absl::Status UnitMemory::FillFromImage(const char* image, int fd,
                                       uint64_t chunk_bytes) {
  RETURN_IF_ERROR(MapSegments(/*all_writable=*/true));
  for (const Segment& segment : segments_)
    RETURN_IF_ERROR(gpu_.Fill(segment.address, kCanary, segment.bytes));
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const uint64_t to = states_[i].is_variable ? golden() + states_[i].shadow
                                               : ranges_[i].address();
    RETURN_IF_ERROR(UploadPiece(to, image, fd, ranges_[i].prologue_offset(),
                                ranges_[i].bytes()));
  }
  for (const Segment& segment : segments_) {
    if (!segment.writable) continue;
    RETURN_IF_ERROR(
        gpu_.Copy(golden() + segment.shadow, segment.address, segment.bytes));
  }
  RETURN_IF_ERROR(gpu_.Copy(reference(), golden(), shadow_bytes_));
  for (size_t i = 0; i < ranges_.size(); ++i)
    RETURN_IF_ERROR(UploadReference(i, image, fd, chunk_bytes));
  RETURN_IF_ERROR(gpu_.Synchronize());
  RETURN_IF_ERROR(UnmapSegments());
  RETURN_IF_ERROR(MapSegments(/*all_writable=*/false));
  may_be_dirty_ = false;
  active_ = true;
  return absl::OkStatus();
}

absl::Status UnitMemory::MapSegments(bool all_writable) {
  for (Segment& segment : segments_) {
    RETURN_IF_ERROR(Map(gpu_, segment.address, *segment.memory,
                        segment.writable || all_writable));
    segment.mapped = true;
  }
  return absl::OkStatus();
}

absl::Status UnitMemory::UnmapSegments() {
  for (Segment& segment : segments_) {
    if (!segment.mapped) continue;
    segment.mapped = false;
    RETURN_IF_ERROR(Unmap(gpu_, segment.address, segment.bytes));
  }
  return absl::OkStatus();
}

absl::Status UnitMemory::Activate() {
  if (active_) return absl::OkStatus();
  for (Reservation& reservation : reservations_) {
    ASSIGN_OR_RETURN(
        reservation.range,
        AddressRange::ReserveAt(gpu_, reservation.address, reservation.bytes));
  }
  RETURN_IF_ERROR(MapSegments(/*all_writable=*/false));
  active_ = true;
  return absl::OkStatus();
}

absl::Status UnitMemory::Deactivate() {
  if (!active_) return absl::OkStatus();
  active_ = false;
  RETURN_IF_ERROR(UnmapSegments());
  for (Reservation& reservation : reservations_) reservation.range.reset();
  return Hide();
}

absl::Status UnitMemory::Hide() {
  RETURN_IF_ERROR(shadows_->Hide());
  if (variable_tables_ != nullptr) RETURN_IF_ERROR(variable_tables_->Hide());
  return device_tables_->Hide();
}

absl::Status UnitMemory::Show() {
  RETURN_IF_ERROR(shadows_->Show());
  if (variable_tables_ != nullptr) RETURN_IF_ERROR(variable_tables_->Show());
  return device_tables_->Show();
}

// --- Modules

std::optional<uint64_t> UnitMemory::AddressOf(size_t range) const {
  if (!states_[range].is_variable) return ranges_[range].address();
  if (!states_[range].variable.has_value()) return std::nullopt;
  return states_[range].variable->address;
}

absl::Status UnitMemory::StoreAddressWords() {
  std::vector<Word> table;
  for (const v1::CudaAddressWord& word : words_) {
    const uint64_t target =
        AddressOf(word.target_range())
            .value_or(ranges_[word.target_range()].address());
    const uint64_t value = target + word.target_offset();
    const uint64_t shadow = ShadowOf(word.range(), word.offset());
    if (word.in_prologue()) {
      table.push_back({golden() + shadow, value});
      if (!states_[word.range()].is_variable)
        table.push_back(
            {ranges_[word.range()].address() + word.offset(), value});
    }
    if (word.in_reference()) table.push_back({reference() + shadow, value});
  }
  if (table.empty()) return absl::OkStatus();
  const uint64_t at = device_tables_->address() + words_at_;
  RETURN_IF_ERROR(
      gpu_.Upload(at, table.data(), table.size() * sizeof(table[0])));
  return gpu_.StoreWords(at, table.size());
}

absl::Status UnitMemory::Bind(Module* module) {
  if (bound_ == module) return absl::OkStatus();
  bound_ = module;
  RETURN_IF_ERROR(Show());
  bool any = false;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    RangeState& state = states_[i];
    if (!state.is_variable) continue;
    any = true;
    state.variable = module == nullptr
                         ? std::nullopt
                         : module->FindVariable(ranges_[i].symbol());
    if (!state.variable.has_value()) continue;
    if (state.variable->bytes < ranges_[i].bytes()) {
      bound_ = nullptr;
      return absl::FailedPreconditionError(absl::StrFormat(
          "the code's variable %s has %d bytes, the recorded one %d",
          ranges_[i].symbol(), state.variable->bytes, ranges_[i].bytes()));
    }
  }
  return any ? StoreAddressWords() : absl::OkStatus();
}

void UnitMemory::Unbind(const Module& module) {
  if (bound_ != &module) return;
  bound_ = nullptr;
  for (RangeState& state : states_) state.variable.reset();
}

// --- Before a launch

absl::Status UnitMemory::RunCopies(uint64_t tables,
                                   const CopyTiles::Placed& placed) {
  for (int i = 0; i < 3; ++i) {
    RETURN_IF_ERROR(gpu_.CopyTiles(tables + placed.offsets[i], placed.counts[i],
                                   kTileLanes[i]));
  }
  return absl::OkStatus();
}

absl::Status UnitMemory::RunFills(uint64_t tables,
                                  const FillTiles::Placed& placed,
                                  uint64_t seed) {
  for (int i = 0; i < 3; ++i) {
    RETURN_IF_ERROR(gpu_.PoisonTiles(tables + placed.offsets[i],
                                     placed.counts[i], kTileLanes[i], seed));
  }
  return absl::OkStatus();
}

absl::Status UnitMemory::RestoreAll() {
  for (const Segment& segment : segments_) {
    if (!segment.writable) continue;
    RETURN_IF_ERROR(
        gpu_.Copy(segment.address, golden() + segment.shadow, segment.bytes));
  }
  may_be_dirty_ = false;
  return absl::OkStatus();
}

absl::Status UnitMemory::Prepare(const v1::PrepareCuda& prepare) {
  RETURN_IF_ERROR(Show());
  if (prepare.restore()) {
    RETURN_IF_ERROR(
        may_be_dirty_ ? RestoreAll()
        : prepare.poison()
            ? RunCopies(device_tables_->address(), restore_unpoisoned_at_)
            : RunCopies(device_tables_->address(), restore_at_));
  }
  return prepare.poison() ? RunFills(device_tables_->address(), poison_at_,
                                     prepare.poison_seed())
                          : absl::OkStatus();
}

absl::Status UnitMemory::PrepareVariables(const v1::PrepareCuda& prepare) {
  if (bound_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(Show());
  CopyTiles restore;
  FillTiles poison;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const RangeState& state = states_[i];
    if (!state.is_variable || !state.variable.has_value()) continue;
    const uint64_t address = state.variable->address;
    const uint64_t from = golden() + state.shadow;
    if (ranges_[i].origin() == v1::MEMORY_ORIGIN_CONSTANT) {
      // Not by a kernel: it may not see the constant bank as memory.
      if (!bound_->constants_set)
        RETURN_IF_ERROR(gpu_.Copy(address, from, ranges_[i].bytes()));
      continue;
    }
    const IntervalSet pieces =
        bound_->may_be_dirty ? state.spans : Coalesced(state.writes);
    for (const Interval& piece : pieces.intervals())
      AddCopy(address + piece.begin, from + piece.begin,
              piece.end - piece.begin, &restore);
    for (const Interval& piece : state.poisoned.intervals())
      AddFill(address + piece.begin, piece.end - piece.begin, &poison);
  }
  bound_->constants_set = true;
  if (prepare.restore()) {
    RETURN_IF_ERROR(bound_->RestoreVariables());
    bound_->may_be_dirty = false;
  }
  return RunVariableTiles(prepare.restore() ? restore : CopyTiles(),
                          prepare.poison() ? poison : FillTiles(),
                          prepare.poison_seed());
}

absl::Status UnitMemory::RunVariableTiles(const CopyTiles& restore,
                                          const FillTiles& poison,
                                          uint64_t seed) {
  if (restore.bytes == 0 && poison.bytes == 0) return absl::OkStatus();
  Tables tables;
  const CopyTiles::Placed copies = restore.PlaceIn(tables);
  const FillTiles::Placed fills = poison.PlaceIn(tables);
  if (variable_tables_ == nullptr ||
      variable_tables_bytes_ < tables.bytes().size()) {
    // Tables of another module may need a few more tiles.
    variable_tables_bytes_ = 2 * tables.bytes().size();
    variable_tables_ = nullptr;
    ASSIGN_OR_RETURN(variable_tables_,
                     HiddenMemory::Create(gpu_, variable_tables_bytes_));
  }
  const uint64_t at = variable_tables_->address();
  RETURN_IF_ERROR(
      gpu_.Upload(at, tables.bytes().data(), tables.bytes().size()));
  RETURN_IF_ERROR(RunCopies(at, copies));
  RETURN_IF_ERROR(RunFills(at, fills, seed));
  return gpu_.Synchronize();
}

void UnitMemory::NoteLaunch() {
  may_be_dirty_ = true;
  if (bound_ != nullptr) bound_->may_be_dirty = bound_->was_launched = true;
}

// --- After a launch

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
  RETURN_IF_ERROR(gpu_.Upload(device_tables_->address() + jobs_at_,
                              jobs_.data(), jobs_.size() * sizeof(jobs_[0])));
  return gpu_.Fill(device_tables_->address() + counts_at_, 0,
                   jobs_.size() * sizeof(CompareCounts));
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
    const uint64_t compared = range.has_write_set()
                                  ? states_[check.range].writes.bytes()
                                  : range.bytes();
    errors.set_address(range.address());
    errors.set_name(range.name());
    errors.set_element_type(type);
    errors.set_compared_elements(compared / size);
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

absl::StatusOr<v1::CudaVerdict> UnitMemory::Verify(
    const v1::Tolerance& tolerance) {
  RETURN_IF_ERROR(Show());
  RETURN_IF_ERROR(RefreshJobs(tolerance));
  const uint64_t tables = device_tables_->address();
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

absl::Status UnitMemory::AdoptReference(char* image) {
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
      RETURN_IF_ERROR(gpu_.Download(
          image + ranges_[i].reference_offset() + span.begin,
          reference() + ShadowOf(i, span.begin), span.end - span.begin));
    }
  }
  return gpu_.Synchronize();
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
