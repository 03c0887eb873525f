#include "replay/device/cuda/unit_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <thread>

#include "replay/base/parallel_for.h"
#include "replay/base/status_macros.h"
#include "replay/unit/ordered_workers.h"

namespace reprise::cuda {
namespace {

constexpr int kMaxThreads = 16;
// Cells that are being read or wait for their turn. The rest of the window,
// more than a slot, is under way.
constexpr size_t kReadAheadCells = 5 * kSlotCells;
static_assert(kReadAheadCells + kSlotCells < kWindowCells);

class UnitStream {
 public:
  UnitStream(const UnitImage& image, TransferWindow& window,
             const UnitStreamChannel& channel)
      : image_(image),
        window_(window),
        channel_(channel),
        words_(kReadAheadCells) {}

  absl::Status Run(std::vector<v1::CudaAddressWord>* words) {
    absl::Status status = Send(words);
    while (!under_way_.empty()) status.Update(Collect());
    WipeReference();
    return status;
  }

 private:
  absl::Status Send(std::vector<v1::CudaAddressWord>* words) {
    v1::CudaExecutorRequest load;
    *load.mutable_load_unit() = image_.request();
    RETURN_IF_ERROR(channel_.post(std::move(load)));
    under_way_.push_back(0);
    OrderedWork work;
    work.produce = [this](size_t cell, size_t) -> absl::StatusOr<bool> {
      if (cell >= image_.cell_count()) return false;
      while (cell >= copied_ + kWindowCells) RETURN_IF_ERROR(Collect());
      holds_reference_[cell % kWindowCells] = image_.HoldsReference(cell);
      return true;
    };
    work.work = [this](size_t cell, size_t slot) {
      words_[slot].clear();
      return image_.ReadCell(cell, window_.bytes() + PlaceOf(cell),
                             &words_[slot]);
    };
    work.consume = [&](size_t cell, size_t slot) {
      words->insert(words->end(), words_[slot].begin(), words_[slot].end());
      image_.AddPieces(cell, PlaceOf(cell), &fill_);
      ++read_;
      const bool slot_is_full = read_ % kSlotCells == 0;
      return slot_is_full && read_ < image_.cell_count() ? Flush(false)
                                                         : absl::OkStatus();
    };
    const int threads = std::clamp(
        static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
    RETURN_IF_ERROR(RunOrdered(threads, kReadAheadCells, work));
    return Flush(true);
  }

  static uint64_t PlaceOf(size_t cell) {
    return cell % kWindowCells * kCellBytes;
  }

  absl::Status Flush(bool last) {
    // Room on the device first; cells are read meanwhile.
    if (!has_room_) RETURN_IF_ERROR(Collect());
    has_room_ = true;
    fill_.set_unit(image_.request().unit());
    fill_.set_last(last);
    v1::CudaExecutorRequest request;
    *request.mutable_fill_unit() = std::move(fill_);
    fill_.Clear();
    RETURN_IF_ERROR(channel_.post(std::move(request)));
    under_way_.push_back(read_);
    return absl::OkStatus();
  }

  absl::Status Collect() {
    copied_ = under_way_.front();
    under_way_.pop_front();
    return channel_.collect();
  }

  // A kernel that found the window would know what it has to compute.
  void WipeReference() {
    const auto end =
        std::find(holds_reference_.rbegin(), holds_reference_.rend(), true)
            .base();
    const auto begin = std::find(holds_reference_.begin(), end, true);
    const auto first = static_cast<uint64_t>(begin - holds_reference_.begin());
    const auto cells = static_cast<uint64_t>(end - begin);
    ParallelFor(cells * kCellBytes, [&](uint64_t from, uint64_t to) {
      for (uint64_t at = from; at < to;) {
        const uint64_t next = std::min((at / kCellBytes + 1) * kCellBytes, to);
        if (begin[at / kCellBytes])
          std::memset(window_.bytes() + first * kCellBytes + at, 0, next - at);
        at = next;
      }
    });
  }

  const UnitImage& image_;
  TransferWindow& window_;
  const UnitStreamChannel& channel_;
  std::vector<std::vector<v1::CudaAddressWord>> words_;  // by read-ahead slot
  v1::FillCudaUnitRequest fill_;
  bool has_room_ = false;
  std::array<bool, kWindowCells> holds_reference_ = {};  // by place
  // Cells from the first on that are read, and that the window holds no more.
  size_t read_ = 0;
  size_t copied_ = 0;
  // Of each request without a reply: the cells sent up to it.
  std::deque<size_t> under_way_;
};

}  // namespace

absl::Status StreamUnit(const UnitImage& image, TransferWindow& window,
                        const UnitStreamChannel& channel,
                        std::vector<v1::CudaAddressWord>* words) {
  return UnitStream(image, window, channel).Run(words);
}

}  // namespace reprise::cuda
