// A unit's memory on the device: what kernels work on, and the golden copies
// they are judged by.
//
// Working memory lies at the recorded addresses, mapped in granules of 2 MiB
// while the unit is active. Granules that hold nothing the recorded launch was
// seen to write are mapped read-only, so that a write there is a fault at once
// and they need no copies. The others ("writable segments") have two shadows
// each, the prologue ("golden") and the reference, at equal offsets; bytes of
// them that belong to no range hold a canary in all three.
//
// Restoring copies what the recorded launch wrote. Whether a launch wrote
// elsewhere in the writable segments is Verify's to find; until it has looked,
// and after it has found something, Restore copies the whole segments.
//
// Ranges that are device variables have shadows too, but live where each module
// has them; Bind says which module that is. Words that hold an address inside a
// variable are set to the bound module's address.
//
// A unit that is loaded to run once has no shadows but those of variables, and
// is neither restored nor verified.
//
// Shadows and tables are out of a kernel's reach between Hide and the next call
// that needs them.
//
// Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_UNIT_MEMORY_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_UNIT_MEMORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/device/cuda/executor/gpu.h"
#include "replay/device/cuda/executor/module.h"
#include "replay/device/cuda/executor/tiles.h"
#include "replay/device/cuda/executor/virtual_memory.h"
#include "replay/unit/interval_set.h"
#include "reprise/v1/cuda_executor.pb.h"

namespace reprise::cuda {

class UnitMemory {
 public:
  // Without contents: Fill brings those, and nothing else may be asked for
  // before. No other unit may be active from here to the last Fill, which makes
  // this one active. RESOURCE_EXHAUSTED, ALREADY_EXISTS, FAILED_PRECONDITION as
  // Map and ReserveAt say.
  static absl::StatusOr<std::unique_ptr<UnitMemory>> Create(
      Gpu& gpu, const v1::LoadCudaUnitRequest& request);
  ~UnitMemory();
  UnitMemory(const UnitMemory&) = delete;
  UnitMemory& operator=(const UnitMemory&) = delete;

  // Needs `window` during the call only.
  absl::Status Fill(const v1::FillCudaUnitRequest& request, const char* window);

  absl::Status Activate();
  absl::Status Deactivate();

  // Sets every word that holds an address of a variable, and knows from then on
  // where variables are. Null: no module.
  absl::Status Bind(Module* module);
  void Unbind(const Module& module);

  // Restores and poisons ranges that are no variables.
  absl::Status Prepare(const v1::PrepareCuda& prepare);
  // The same for the bound module's variables.
  absl::Status PrepareVariables(const v1::PrepareCuda& prepare);

  // To be said before a kernel of the unit runs: anything may be written.
  void NoteLaunch();
  absl::Status Hide();
  absl::Status Show();

  absl::StatusOr<v1::CudaVerdict> Verify(const v1::Tolerance& tolerance);

  // Adds what of the ranges can differ from the prologue.
  absl::Status AdoptReference(
      google::protobuf::RepeatedPtrField<v1::CudaPiece>* adopted);
  absl::Status ReadReference(const v1::ReadCudaReferenceRequest& request,
                             char* window);

  const std::vector<v1::CudaUnitRange>& ranges() const { return ranges_; }
  // Where a range is now; nothing for a variable that no bound module has.
  std::optional<uint64_t> AddressOf(size_t range) const;

  struct Work {
    uint64_t restored_bytes = 0, poisoned_bytes = 0, verified_bytes = 0;
  };
  Work work() const;

 private:
  // A run of granules, all writable or none.
  struct Segment {
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool writable = false;
    uint64_t shadow = 0;  // offset of its shadows
    std::unique_ptr<PhysicalMemory> memory;
    bool mapped = false;
  };
  struct Reservation {
    uint64_t address = 0;
    uint64_t bytes = 0;
    std::unique_ptr<AddressRange> range;  // while active
  };
  // What UnitMemory knows of a range beside the request.
  struct RangeState {
    bool is_variable = false;
    IntervalSet writes;  // all of it without a write set
    uint64_t written_bytes = 0;
    IntervalSet poisoned;
    IntervalSet spans;    // bytes that have shadows
    uint64_t shadow = 0;  // of a variable: offset of its shadows
    std::optional<Module::Variable> variable;  // in the bound module
  };
  // A comparison of (part of) a range, its odd tail, or slack.
  struct Check {
    enum Kind { kRange, kTail, kSlack } kind = kRange;
    size_t range = 0;
    uint64_t address = 0;  // of slack
    uint64_t bytes = 0;
    uint64_t intervals = 0;  // offset of its table
  };

  explicit UnitMemory(Gpu& gpu) : gpu_(gpu) {}
  absl::Status ReadRequest(const v1::LoadCudaUnitRequest& request);
  void LayOutSegments();
  void AddSegments(uint64_t begin, uint64_t end, const IntervalSet& writable);
  void LayOutShadows();
  void FindSpans(size_t range);
  absl::Status Allocate();
  absl::Status BuildTables();
  uint64_t MostVariableTableBytes() const;
  void AddRangeTiles(size_t range);
  void AddChecks();
  void AddRangeCheck(size_t range, const Interval& span);
  absl::Status FillPiece(const v1::CudaPiece& piece, const char* window);
  absl::Status CheckPiece(const v1::CudaPiece& piece) const;
  absl::Status UploadPiece(uint64_t to, const v1::CudaPiece& piece,
                           const Interval& part, const char* window);
  absl::Status ClearContents();
  absl::Status CopyPrologue();
  absl::Status FinishContents();
  absl::Status MapSegments(bool all_writable);
  absl::Status UnmapSegments();
  const Segment* SegmentAt(uint64_t address) const;
  uint64_t ShadowOf(size_t range, uint64_t offset) const;
  absl::Status HasShadows() const;
  absl::Status RestoreAll();
  absl::Status RunCopies(uint64_t tables, const CopyTiles::Placed& placed);
  absl::Status RunFills(uint64_t tables, const FillTiles::Placed& placed,
                        uint64_t seed);
  absl::Status RunVariableTiles(const CopyTiles& restore,
                                const FillTiles& poison, uint64_t seed);
  absl::Status StoreAddressWords();
  absl::Status RefreshJobs(const v1::Tolerance& tolerance);
  absl::StatusOr<std::string> TextAt(v1::ElementType type, uint64_t address);
  absl::Status AddErrors(const Check& check, const CompareJob& job,
                         const CompareCounts& counts,
                         const v1::Tolerance& tolerance,
                         v1::CudaVerdict* verdict);
  v1::Tolerance ToleranceOf(size_t range, const v1::Tolerance& fallback) const {
    return ranges_[range].has_tolerance() ? ranges_[range].tolerance()
                                          : fallback;
  }

  Gpu& gpu_;
  std::vector<v1::CudaUnitRange> ranges_;
  std::vector<v1::CudaAddressWord> words_;
  bool all_writable_ = false;
  bool run_once_ = false;
  bool has_prologue_ = false;  // and golden copies of it
  std::vector<RangeState> states_;
  std::vector<Segment> segments_;  // by address
  std::vector<Reservation> reservations_;
  bool active_ = false;
  // A launch may have written anywhere in the writable segments.
  bool may_be_dirty_ = true;
  Module* bound_ = nullptr;

  // One piece of memory, as each takes time to hide and show: golden,
  // reference, tables, and the tables of the bound module's variables, which
  // are written anew before every launch.
  std::unique_ptr<HiddenMemory> hidden_;
  uint64_t shadow_bytes_ = 0;
  uint64_t golden() const { return hidden_->address(); }
  uint64_t reference() const { return golden() + shadow_bytes_; }
  uint64_t device_tables() const { return reference() + shadow_bytes_; }
  uint64_t variable_tables() const {
    return device_tables() + variable_tables_at_;
  }

  Tables tables_;
  uint64_t variable_tables_at_ = 0, variable_tables_bytes_ = 0;
  CopyTiles restore_, restore_unpoisoned_;
  FillTiles poison_;
  CopyTiles::Placed restore_at_, restore_unpoisoned_at_;
  FillTiles::Placed poison_at_;
  std::vector<Check> checks_;
  std::vector<CompareJob> jobs_;
  std::vector<CompareTile> compare_;
  uint64_t jobs_at_ = 0, compare_at_ = 0, counts_at_ = 0, words_at_ = 0;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_UNIT_MEMORY_H_
