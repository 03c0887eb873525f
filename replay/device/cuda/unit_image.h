// A unit as the executor takes it: what there is to know of it, and its bytes
// in cells of at most kCellBytes, which are read from the unit's store when
// they are asked for. Of the bytes, only an adopted reference is held in
// memory.
//
// Cells come in order: all of the prologue, then what of the reference differs
// from it. Zeros take no room in them.
//
// Const methods may be called from several threads at once.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_UNIT_IMAGE_H_
#define REPRISE_REPLAY_DEVICE_CUDA_UNIT_IMAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/device/device.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/cuda_executor.pb.h"

namespace reprise::cuda {

// Bytes of a reference that is not the recorded one.
struct AdoptedPiece {
  uint32_t range = 0;
  uint64_t offset = 0;
  std::string bytes;
};

class UnitImage {
 public:
  // Keeps a copy of the reader: the store's files must outlive the image.
  static absl::StatusOr<std::unique_ptr<UnitImage>> Create(
      const UnitReader& unit, const LoadOptions& options);
  UnitImage(const UnitImage&) = delete;
  UnitImage& operator=(const UnitImage&) = delete;

  const v1::LoadCudaUnitRequest& request() const { return request_; }
  void set_unit(uint64_t unit) { request_.set_unit(unit); }
  void MakeAllWritable() { request_.set_all_writable(true); }
  // In place of the recorded reference.
  absl::Status Adopt(std::vector<AdoptedPiece> pieces);

  size_t cell_count() const { return cells_.size(); }
  // Reads the cell, verified, to memory of kCellBytes. Appends the words in it
  // that hold an address of a variable, unless they are known. Not found are
  // words over two chunks, in ranges that do not begin at a multiple of 8.
  absl::Status ReadCell(size_t cell, char* to,
                        std::vector<v1::CudaAddressWord>* words) const;
  // Appends what the cell holds, when it lies in the window at `window_offset`.
  void AddPieces(size_t cell, uint64_t window_offset,
                 v1::FillCudaUnitRequest* request) const;
  bool HoldsReference(size_t cell) const;

  // What ReadCell found in all cells becomes part of the request, and is not
  // looked for again. Returns whether there is any.
  bool AddAddressWords(std::vector<v1::CudaAddressWord> words);

 private:
  struct Piece {
    uint32_t range = 0;
    bool reference = false;
    uint64_t offset = 0;  // in the range
    uint64_t bytes = 0;
    uint64_t at = 0;  // in the cell
    // One of the two; neither: zeros.
    const v1::Chunk* stored = nullptr;
    const char* adopted = nullptr;
    bool is_zero() const { return stored == nullptr && adopted == nullptr; }
  };

  explicit UnitImage(const UnitReader& unit) : unit_(unit) {}
  absl::Status ReadRanges(const LoadOptions& options);
  absl::Status CutIntoCells();
  absl::Status AddPrologue(uint32_t range);
  absl::Status AddEpilogue(uint32_t range);
  void AddPiece(Piece piece);
  bool EpilogueDiffers(uint32_t range, uint64_t chunk) const;
  void ScanPiece(const Piece& piece, const char* bytes,
                 std::vector<v1::CudaAddressWord>* words) const;
  int VariableAt(uint64_t address) const;

  const UnitReader unit_;
  v1::LoadCudaUnitRequest request_;
  std::vector<int> variables_;  // ranges, ascending
  bool knows_address_words_ = false;
  std::vector<AdoptedPiece> adopted_;
  bool has_adopted_ = false;
  std::vector<Piece> pieces_;
  std::vector<std::pair<size_t, size_t>> cells_;  // begin and end in pieces_
  uint64_t used_ = 0;                             // of the last cell
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_UNIT_IMAGE_H_
