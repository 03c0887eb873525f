// The parent's end of the window that images leave an application through
// (driver/protocol.h), and the threads that take them out of it.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_IMAGE_WINDOW_H_
#define REPRISE_REPLAY_RECORDER_SESSION_IMAGE_WINDOW_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/recorder/driver/protocol.h"

namespace reprise {

// A memfd, mapped here. Immutable but for its contents.
class ImageWindow {
 public:
  // As many slots as an image of this size can use. RESOURCE_EXHAUSTED and the
  // like: this host gives no memory.
  static absl::StatusOr<std::unique_ptr<ImageWindow>> Create(
      uint64_t image_bytes);
  static uint32_t SlotsFor(uint64_t image_bytes);
  ~ImageWindow();
  ImageWindow(const ImageWindow&) = delete;
  ImageWindow& operator=(const ImageWindow&) = delete;

  int fd() const { return fd_; }
  uint32_t slots() const { return slots_; }
  driver_wire::WindowControl& control() const {
    return *reinterpret_cast<driver_wire::WindowControl*>(mapping_);
  }
  const char* slot(uint64_t chunk) const {
    return mapping_ + driver_wire::kWindowControlBytes +
           chunk % slots_ * driver_wire::kSlotBytes;
  }

 private:
  explicit ImageWindow(uint32_t slots) : slots_(slots) {}
  uint64_t bytes() const {
    return driver_wire::kWindowControlBytes + slots_ * driver_wire::kSlotBytes;
  }

  const uint32_t slots_;
  int fd_ = -1;
  char* mapping_ = nullptr;
};

// One pass of an image through a window. From one thread at a time.
class ImageIntake {
 public:
  // Gets every piece of the image once, in any order, from several threads at
  // once. The bytes are the application's: they may change while one looks.
  using Take = std::function<void(uint64_t offset, std::string_view piece)>;

  // Zeroes the window's control and begins. The window outlives this.
  ImageIntake(ImageWindow* window, uint64_t image_bytes, Take take);
  // Stops, wherever it is.
  ~ImageIntake();
  ImageIntake(const ImageIntake&) = delete;
  ImageIntake& operator=(const ImageIntake&) = delete;

  // The application says that it is through: whether every piece was taken.
  bool Finish();

 private:
  void Work();
  // False: stopped.
  bool AwaitChunk(uint64_t chunk);
  void Stop();

  ImageWindow* const window_;
  const uint64_t image_bytes_;
  const uint64_t pieces_;
  const Take take_;
  std::atomic<bool> stopped_ = false;
  std::atomic<uint64_t> next_ = 0;
  std::atomic<uint64_t> taken_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_IMAGE_WINDOW_H_
