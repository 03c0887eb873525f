#include "replay/recorder/session/image_window.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

namespace reprise {
namespace {

namespace wire = driver_wire;

// The application's end: puts an image through as the protocol says.
class Application {
 public:
  explicit Application(const ImageWindow& window)
      : slots_(window.slots()),
        bytes_(wire::kWindowControlBytes + slots_ * wire::kSlotBytes),
        mapping_(
            static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                    MAP_SHARED, window.fd(), 0))) {}
  ~Application() { munmap(mapping_, bytes_); }

  void Put(const std::string& image) {
    uint32_t chunk = 0;
    for (uint64_t at = 0; at < image.size(); at += wire::kSlotBytes) {
      if (chunk >= slots_) AwaitTaken(chunk - slots_);
      std::memcpy(mapping_ + wire::kWindowControlBytes +
                      chunk % slots_ * wire::kSlotBytes,
                  image.data() + at,
                  std::min<size_t>(wire::kSlotBytes, image.size() - at));
      control().ready = ++chunk;
    }
  }

 private:
  wire::WindowControl& control() {
    return *reinterpret_cast<wire::WindowControl*>(mapping_);
  }
  void AwaitTaken(uint32_t chunk) {
    const uint32_t expected =
        (chunk / slots_ + 1) * uint32_t{wire::kSlotBytes / wire::kPieceBytes};
    while (control().taken[chunk % slots_] < expected)
      std::this_thread::yield();
  }

  const uint32_t slots_;
  const uint64_t bytes_;
  char* const mapping_;
};

std::string Image(uint64_t bytes, uint32_t seed) {
  std::string image(bytes, '\0');
  for (char& c : image) {
    seed = seed * 1664525 + 1013904223;
    c = static_cast<char>(seed >> 24);
  }
  return image;
}

ImageIntake::Take Into(std::string* taken) {
  return [taken](uint64_t offset, std::string_view piece) {
    std::memcpy(taken->data() + offset, piece.data(), piece.size());
  };
}

TEST(ImageWindowTest, HasAsManySlotsAsAnImageUses) {
  EXPECT_EQ(ImageWindow::SlotsFor(0), 1u);
  EXPECT_EQ(ImageWindow::SlotsFor(1), 1u);
  EXPECT_EQ(ImageWindow::SlotsFor(wire::kSlotBytes), 1u);
  EXPECT_EQ(ImageWindow::SlotsFor(wire::kSlotBytes + 1), 2u);
  EXPECT_EQ(ImageWindow::SlotsFor(uint64_t{1} << 40), wire::kMaxSlots);
}

TEST(ImageIntakeTest, TakesAnImageThatIsLargerThanTheWindowTwice) {
  const uint64_t bytes =
      (wire::kMaxSlots + 3) * wire::kSlotBytes + wire::kPieceBytes + 4096;
  const auto window = *ImageWindow::Create(bytes);
  Application application(*window);
  for (uint32_t seed : {1u, 2u}) {
    const std::string image = Image(bytes, seed);
    std::string taken(bytes, '\0');
    ImageIntake intake(window.get(), bytes, Into(&taken));
    application.Put(image);
    EXPECT_TRUE(intake.Finish());
    EXPECT_TRUE(taken == image);
  }
}

TEST(ImageIntakeTest, AnImageThatEndsEarlyIsNotWhole) {
  const uint64_t bytes = 3 * wire::kSlotBytes;
  const auto window = *ImageWindow::Create(bytes);
  Application application(*window);
  std::string taken(bytes, '\0');
  ImageIntake intake(window.get(), bytes, Into(&taken));
  application.Put(Image(2 * wire::kSlotBytes, 1));
  EXPECT_FALSE(intake.Finish());
}

TEST(ImageIntakeTest, StopsWhileTheApplicationSaysNothing) {
  const auto window = *ImageWindow::Create(wire::kSlotBytes);
  std::string taken(wire::kSlotBytes, '\0');
  {
    ImageIntake intake(window.get(), wire::kSlotBytes, Into(&taken));
  }
  EXPECT_EQ(window->control().taken[0], 0u);
}

TEST(ImageIntakeTest, NothingIsWholeAtOnce) {
  const auto window = *ImageWindow::Create(0);
  ImageIntake intake(window.get(), 0, nullptr);
  EXPECT_TRUE(intake.Finish());
}

}  // namespace
}  // namespace reprise
