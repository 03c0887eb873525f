#include "replay/recorder/session/image_window.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <utility>

#include "replay/base/file_util.h"
#include "replay/base/parallel_for.h"
#include "replay/base/shared_memory.h"
#include "replay/base/status_macros.h"
#include "replay/recorder/session/host_memory.h"

namespace reprise {
namespace {

namespace wire = driver_wire;

constexpr uint64_t kPiecesPerSlot = wire::kSlotBytes / wire::kPieceBytes;
constexpr uint64_t kMaxWorkers = 16;
// How long a worker that waits may overlook that it is to stop.
constexpr long kLookAroundNs = 20 * 1000 * 1000;

void WaitWhile(std::atomic<uint32_t>* word, uint32_t value) {
  const timespec timeout{0, kLookAroundNs};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT, value,
          &timeout, nullptr, 0);
}

void WakeAll(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE, INT_MAX,
          nullptr, nullptr, 0);
}

uint64_t Divide(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

}  // namespace

uint32_t ImageWindow::SlotsFor(uint64_t image_bytes) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(
      Divide(image_bytes, wire::kSlotBytes), 1, wire::kMaxSlots));
}

absl::StatusOr<std::unique_ptr<ImageWindow>> ImageWindow::Create(
    uint64_t image_bytes) {
  std::unique_ptr<ImageWindow> window(new ImageWindow(SlotsFor(image_bytes)));
  ASSIGN_OR_RETURN(window->fd_,
                   CreateSharedMemory("reprise-window", window->bytes()));
  void* mapping = mmap(nullptr, window->bytes(), PROT_READ | PROT_WRITE,
                       MAP_SHARED, window->fd_, 0);
  if (mapping == MAP_FAILED) return ErrnoToStatus(errno, "cannot map a memfd");
  window->mapping_ = static_cast<char*>(mapping);
  // Its pages at once and by several threads: the application waits.
  ParallelFor(window->bytes(), [&](uint64_t begin, uint64_t end) {
    PopulatePages(window->mapping_ + begin, end - begin);
  });
  return window;
}

ImageWindow::~ImageWindow() {
  if (mapping_ != nullptr) munmap(mapping_, bytes());
  if (fd_ >= 0) close(fd_);
}

ImageIntake::ImageIntake(ImageWindow* window, uint64_t image_bytes, Take take)
    : window_(window),
      image_bytes_(image_bytes),
      pieces_(Divide(image_bytes, wire::kPieceBytes)),
      take_(std::move(take)) {
  wire::WindowControl& control = window_->control();
  control.ready = 0;
  for (std::atomic<uint32_t>& taken : control.taken) taken = 0;
  const uint64_t cpus = std::max(1u, std::thread::hardware_concurrency());
  for (uint64_t i = 0; i < std::min({pieces_, cpus, kMaxWorkers}); ++i)
    workers_.emplace_back([this] { Work(); });
}

ImageIntake::~ImageIntake() { Stop(); }

bool ImageIntake::Finish() {
  Stop();
  return taken_ == pieces_;
}

void ImageIntake::Stop() {
  stopped_ = true;
  WakeAll(&window_->control().ready);
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

bool ImageIntake::AwaitChunk(uint64_t chunk) {
  std::atomic<uint32_t>& ready = window_->control().ready;
  for (;;) {
    const uint32_t now = ready.load(std::memory_order_acquire);
    if (now > chunk) return true;
    if (stopped_) return false;
    WaitWhile(&ready, now);
  }
}

void ImageIntake::Work() {
  for (;;) {
    const uint64_t piece = next_++;
    if (piece >= pieces_) return;
    const uint64_t chunk = piece / kPiecesPerSlot;
    if (!AwaitChunk(chunk)) return;
    const uint64_t offset = piece * wire::kPieceBytes;
    take_(offset,
          {window_->slot(chunk) + piece % kPiecesPerSlot * wire::kPieceBytes,
           std::min(wire::kPieceBytes, image_bytes_ - offset)});
    ++taken_;
    std::atomic<uint32_t>& taken =
        window_->control().taken[chunk % window_->slots()];
    taken.fetch_add(1, std::memory_order_release);
    WakeAll(&taken);
  }
}

}  // namespace reprise
