// Contents: loading them, mapping them, making them ready for a launch.
#include "replay/device/cuda/executor/unit_memory.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"

namespace reprise::cuda {
namespace {

constexpr uint8_t kCanary = 0xc5;

}  // namespace

absl::StatusOr<std::unique_ptr<UnitMemory>> UnitMemory::Create(
    Gpu& gpu, const v1::LoadCudaUnitRequest& request) {
  auto memory = std::unique_ptr<UnitMemory>(new UnitMemory(gpu));
  RETURN_IF_ERROR(memory->ReadRequest(request));
  memory->LayOutSegments();
  memory->LayOutShadows();
  RETURN_IF_ERROR(memory->Allocate());
  RETURN_IF_ERROR(memory->BuildTables());
  RETURN_IF_ERROR(memory->MapSegments(/*all_writable=*/true));
  RETURN_IF_ERROR(memory->ClearContents());
  return memory;
}

UnitMemory::~UnitMemory() { UnmapSegments().IgnoreError(); }

// --- Contents

absl::Status UnitMemory::ClearContents() {
  for (const Segment& segment : segments_)
    RETURN_IF_ERROR(gpu_.Fill(segment.address, kCanary, segment.bytes));
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const uint64_t at = states_[i].is_variable ? golden() + states_[i].shadow
                                               : ranges_[i].address();
    RETURN_IF_ERROR(gpu_.Fill(at, 0, ranges_[i].bytes()));
  }
  return absl::OkStatus();
}

absl::Status UnitMemory::Fill(const v1::FillCudaUnitRequest& request,
                              const char* window) {
  for (const v1::CudaPiece& piece : request.pieces())
    RETURN_IF_ERROR(FillPiece(piece, window));
  return request.last() ? FinishContents() : gpu_.Synchronize();
}

absl::Status UnitMemory::CheckPiece(const v1::CudaPiece& piece) const {
  if (piece.range() < ranges_.size() &&
      piece.offset() <= ranges_[piece.range()].bytes() &&
      piece.bytes() <= ranges_[piece.range()].bytes() - piece.offset())
    return absl::OkStatus();
  return absl::InvalidArgumentError("a piece of a unit lies in no range");
}

absl::Status UnitMemory::FillPiece(const v1::CudaPiece& piece,
                                   const char* window) {
  RETURN_IF_ERROR(CheckPiece(piece));
  const size_t range = piece.range();
  const Interval all = {piece.offset(), piece.offset() + piece.bytes()};
  if (!piece.reference()) {
    const uint64_t begin = states_[range].is_variable
                               ? golden() + states_[range].shadow
                               : ranges_[range].address();
    return UploadPiece(begin + all.begin, piece, all, window);
  }
  RETURN_IF_ERROR(CopyPrologue());
  IntervalSet here;
  here.Add(all.begin, all.end);
  const IntervalSet parts = here.Intersect(states_[range].spans);
  for (const Interval& part : parts.intervals()) {
    RETURN_IF_ERROR(UploadPiece(reference() + ShadowOf(range, part.begin),
                                piece, part, window));
  }
  return absl::OkStatus();
}

absl::Status UnitMemory::UploadPiece(uint64_t to, const v1::CudaPiece& piece,
                                     const Interval& part, const char* window) {
  const uint64_t bytes = part.end - part.begin;
  if (piece.zero()) return gpu_.Fill(to, 0, bytes);
  return gpu_.Upload(
      to, window + piece.window_offset() + (part.begin - piece.offset()),
      bytes);
}

// The reference is the prologue where nothing else comes.
absl::Status UnitMemory::CopyPrologue() {
  if (has_prologue_) return absl::OkStatus();
  has_prologue_ = true;
  for (const Segment& segment : segments_) {
    if (!segment.writable || run_once_) continue;
    RETURN_IF_ERROR(
        gpu_.Copy(golden() + segment.shadow, segment.address, segment.bytes));
  }
  return gpu_.Copy(reference(), golden(), shadow_bytes_);
}

absl::Status UnitMemory::FinishContents() {
  RETURN_IF_ERROR(CopyPrologue());
  RETURN_IF_ERROR(gpu_.Synchronize());
  for (Segment& segment : segments_) {
    if (segment.writable) continue;
    segment.mapped = false;
    RETURN_IF_ERROR(Unmap(gpu_, segment.address, segment.bytes));
  }
  RETURN_IF_ERROR(MapSegments(/*all_writable=*/false));
  may_be_dirty_ = false;
  active_ = true;
  return absl::OkStatus();
}

absl::Status UnitMemory::MapSegments(bool all_writable) {
  for (Segment& segment : segments_) {
    if (segment.mapped) continue;
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

absl::Status UnitMemory::Hide() { return hidden_->Hide(); }

absl::Status UnitMemory::Show() { return hidden_->Show(); }

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
    const bool is_variable = states_[word.range()].is_variable;
    if (word.in_prologue() && !is_variable) {
      table.push_back({ranges_[word.range()].address() + word.offset(), value});
    }
    if (run_once_ && !is_variable) continue;
    const uint64_t shadow = ShadowOf(word.range(), word.offset());
    if (word.in_prologue()) table.push_back({golden() + shadow, value});
    if (word.in_reference()) table.push_back({reference() + shadow, value});
  }
  if (table.empty()) return absl::OkStatus();
  const uint64_t at = device_tables() + words_at_;
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
  if (run_once_ && may_be_dirty_) {
    return absl::FailedPreconditionError(
        "the unit was loaded to run once, and has run");
  }
  if (prepare.restore()) {
    RETURN_IF_ERROR(may_be_dirty_ ? RestoreAll()
                    : prepare.poison()
                        ? RunCopies(device_tables(), restore_unpoisoned_at_)
                        : RunCopies(device_tables(), restore_at_));
  }
  return prepare.poison()
             ? RunFills(device_tables(), poison_at_, prepare.poison_seed())
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
  if (tables.bytes().size() > variable_tables_bytes_)
    return absl::InternalError("tables of variables grew");
  const uint64_t at = variable_tables();
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

}  // namespace reprise::cuda
