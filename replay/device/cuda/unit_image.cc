#include "replay/device/cuda/unit_image.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"
#include "replay/device/cuda/transfer_window.h"
#include "replay/unit/blob.h"
#include "replay/unit/describe.h"

namespace reprise::cuda {
namespace {

constexpr uint64_t kPieceAlignment = 16;

void AddPairs(const IntervalSet& set,
              google::protobuf::RepeatedField<uint64_t>* pairs) {
  pairs->Reserve(static_cast<int>(2 * set.intervals().size()));
  for (const Interval& interval : set.intervals()) {
    pairs->Add(interval.begin);
    pairs->Add(interval.end);
  }
}

// Rooms for chunks are made by the range's size.
absl::Status CheckContents(const v1::Blob& blob, const v1::MemoryRange& range) {
  RETURN_IF_ERROR(CheckBlob(blob));
  if (blob.bytes() <= range.bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a range of ", range.bytes(),
                                                 " bytes has contents of ",
                                                 blob.bytes(), " bytes"));
}

// Whether `next` goes on where `last` ends, here and there.
bool Continues(const v1::CudaPiece& last, const v1::CudaPiece& next) {
  return last.range() == next.range() && last.reference() == next.reference() &&
         last.zero() == next.zero() &&
         last.offset() + last.bytes() == next.offset() &&
         (next.zero() ||
          last.window_offset() + last.bytes() == next.window_offset());
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnitImage>> UnitImage::Create(
    const UnitReader& unit, const LoadOptions& options) {
  auto image = std::unique_ptr<UnitImage>(new UnitImage(unit));
  image->request_.set_run_once(options.run_once);
  RETURN_IF_ERROR(image->ReadRanges(options));
  RETURN_IF_ERROR(image->CutIntoCells());
  return image;
}

absl::Status UnitImage::ReadRanges(const LoadOptions& options) {
  for (const v1::MemoryRange& stored : unit_.manifest().memory()) {
    if (!stored.symbol().empty()) variables_.push_back(request_.ranges_size());
    v1::CudaUnitRange* range = request_.add_ranges();
    range->set_address(stored.address());
    range->set_bytes(stored.bytes());
    range->set_element_type(stored.element_type());
    range->set_origin(stored.origin());
    range->set_symbol(stored.symbol());
    range->set_name(RangeName(unit_.manifest(), stored));
    if (stored.has_tolerance())
      *range->mutable_tolerance() = stored.tolerance();
    if (!stored.has_write_set()) continue;
    ASSIGN_OR_RETURN(
        const IntervalSet writes,
        LoadIntervals(unit_.chunks(), stored.write_set(), stored.bytes()));
    // Where nobody saw what is read first, nothing may be poisoned.
    if (stored.has_read_before_write_set()) {
      ASSIGN_OR_RETURN(
          const IntervalSet read_first,
          LoadIntervals(unit_.chunks(), stored.read_before_write_set(),
                        stored.bytes()));
      AddPairs(writes.Subtract(read_first), range->mutable_poisoned());
      range->set_observed(true);
    }
    // Other inputs may write elsewhere: then the recorded set binds nobody.
    if (options.inputs_differ) continue;
    range->set_has_write_set(true);
    AddPairs(writes, range->mutable_writes());
  }
  knows_address_words_ = variables_.empty();
  return absl::OkStatus();
}

// --- Cells

absl::Status UnitImage::CutIntoCells() {
  pieces_.clear();
  cells_.clear();
  const auto ranges = static_cast<uint32_t>(request_.ranges_size());
  for (uint32_t i = 0; i < ranges; ++i) RETURN_IF_ERROR(AddPrologue(i));
  for (const AdoptedPiece& adopted : adopted_) {
    for (uint64_t at = 0; at < adopted.bytes.size(); at += kCellBytes) {
      Piece piece;
      piece.range = adopted.range;
      piece.reference = true;
      piece.offset = adopted.offset + at;
      piece.bytes = std::min<uint64_t>(kCellBytes, adopted.bytes.size() - at);
      piece.adopted = adopted.bytes.data() + at;
      AddPiece(piece);
    }
  }
  if (has_adopted_ || request_.run_once()) return absl::OkStatus();
  for (uint32_t i = 0; i < ranges; ++i) RETURN_IF_ERROR(AddEpilogue(i));
  return absl::OkStatus();
}

// Memory is zero where nothing comes.
absl::Status UnitImage::AddPrologue(uint32_t range) {
  const v1::MemoryRange& stored =
      unit_.manifest().memory(static_cast<int>(range));
  RETURN_IF_ERROR(CheckContents(stored.prologue(), stored));
  uint64_t offset = 0;
  for (const v1::Chunk& chunk : stored.prologue().chunks()) {
    Piece piece;
    piece.range = range;
    piece.offset = offset;
    piece.bytes = chunk.bytes();
    piece.stored = &chunk;
    if (!chunk.sha256().empty()) AddPiece(piece);
    offset += chunk.bytes();
  }
  return absl::OkStatus();
}

absl::Status UnitImage::AddEpilogue(uint32_t range) {
  const v1::MemoryRange& stored =
      unit_.manifest().memory(static_cast<int>(range));
  RETURN_IF_ERROR(CheckContents(stored.epilogue(), stored));
  const auto chunks = static_cast<uint64_t>(stored.epilogue().chunks_size());
  for (uint64_t i = 0; i < chunks; ++i) {
    if (!EpilogueDiffers(range, i)) continue;
    const v1::Chunk& chunk = stored.epilogue().chunks(static_cast<int>(i));
    Piece piece;
    piece.range = range;
    piece.reference = true;
    piece.offset = i * kChunkBytes;
    piece.bytes = chunk.bytes();
    if (!chunk.sha256().empty()) piece.stored = &chunk;
    AddPiece(piece);
  }
  return absl::OkStatus();
}

bool UnitImage::EpilogueDiffers(uint32_t range, uint64_t chunk) const {
  const v1::MemoryRange& stored =
      unit_.manifest().memory(static_cast<int>(range));
  const auto i = static_cast<int>(chunk);
  if (i >= stored.epilogue().chunks_size()) return false;
  return i >= stored.prologue().chunks_size() ||
         stored.prologue().chunks(i).sha256() !=
             stored.epilogue().chunks(i).sha256();
}

void UnitImage::AddPiece(Piece piece) {
  const uint64_t room = piece.is_zero() ? 0
                                        : (piece.bytes + kPieceAlignment - 1) /
                                              kPieceAlignment * kPieceAlignment;
  if (cells_.empty() || used_ + room > kCellBytes) {
    cells_.emplace_back(pieces_.size(), pieces_.size());
    used_ = 0;
  }
  piece.at = used_;
  used_ += room;
  pieces_.push_back(piece);
  ++cells_.back().second;
}

absl::Status UnitImage::ReadCell(
    size_t cell, char* to, std::vector<v1::CudaAddressWord>* words) const {
  for (size_t i = cells_[cell].first; i < cells_[cell].second; ++i) {
    const Piece& piece = pieces_[i];
    char* place = to + piece.at;
    if (piece.stored != nullptr) {
      RETURN_IF_ERROR(unit_.chunks().GetChunk(*piece.stored, place));
    } else if (piece.adopted != nullptr) {
      std::memcpy(place, piece.adopted, piece.bytes);
    }
    if (!knows_address_words_ && !piece.is_zero())
      ScanPiece(piece, place, words);
  }
  return absl::OkStatus();
}

void UnitImage::AddPieces(size_t cell, uint64_t window_offset,
                          v1::FillCudaUnitRequest* request) const {
  for (size_t i = cells_[cell].first; i < cells_[cell].second; ++i) {
    const Piece& piece = pieces_[i];
    v1::CudaPiece next;
    next.set_range(piece.range);
    next.set_offset(piece.offset);
    next.set_bytes(piece.bytes);
    next.set_reference(piece.reference);
    next.set_zero(piece.is_zero());
    if (!piece.is_zero()) next.set_window_offset(window_offset + piece.at);
    if (request->pieces_size() > 0 &&
        Continues(*request->pieces().rbegin(), next)) {
      v1::CudaPiece& last = *request->mutable_pieces()->rbegin();
      last.set_bytes(last.bytes() + next.bytes());
    } else {
      *request->add_pieces() = next;
    }
  }
}

bool UnitImage::HoldsReference(size_t cell) const {
  return pieces_[cells_[cell].second - 1].reference;
}

absl::Status UnitImage::Adopt(std::vector<AdoptedPiece> pieces) {
  adopted_ = std::move(pieces);
  has_adopted_ = true;
  return CutIntoCells();
}

// --- Addresses of variables

bool UnitImage::AddAddressWords(std::vector<v1::CudaAddressWord> words) {
  knows_address_words_ = true;
  for (v1::CudaAddressWord& word : words)
    *request_.add_address_words() = std::move(word);
  return !words.empty();
}

// Words at addresses that are multiples of 8.
void UnitImage::ScanPiece(const Piece& piece, const char* bytes,
                          std::vector<v1::CudaAddressWord>* words) const {
  const v1::CudaUnitRange& range =
      request_.ranges(static_cast<int>(piece.range));
  // One test throws out nearly every word.
  const v1::CudaUnitRange& last = request_.ranges(variables_.back());
  const uint64_t low = request_.ranges(variables_.front()).address();
  const uint64_t span = last.address() + last.bytes() - low;
  const uint64_t first = (8 - (range.address() + piece.offset) % 8) % 8;
  for (uint64_t at = first; at + 8 <= piece.bytes; at += 8) {
    uint64_t value;
    std::memcpy(&value, bytes + at, sizeof(value));
    if (value - low >= span) continue;
    const int target = VariableAt(value);
    if (target < 0) continue;
    const uint64_t offset = piece.offset + at;
    v1::CudaAddressWord& word = words->emplace_back();
    word.set_range(piece.range);
    word.set_offset(offset);
    word.set_target_range(static_cast<uint32_t>(target));
    word.set_target_offset(value - request_.ranges(target).address());
    word.set_in_prologue(!piece.reference);
    word.set_in_reference(piece.reference ||
                          !EpilogueDiffers(piece.range, offset / kChunkBytes));
  }
}

// Which of the variables holds this address; -1: none.
int UnitImage::VariableAt(uint64_t address) const {
  for (const int i : variables_) {
    const v1::CudaUnitRange& variable = request_.ranges(i);
    if (address >= variable.address() &&
        address < variable.address() + variable.bytes())
      return i;
  }
  return -1;
}

}  // namespace reprise::cuda
