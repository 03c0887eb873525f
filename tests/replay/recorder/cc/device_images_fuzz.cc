// Object files come from anywhere: no bytes may crash the parser.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "replay/recorder/cc/cubin.h"
#include "replay/recorder/cc/device_images.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::deque<std::string> storage;
  // Thin archives name files to read; a fuzzer must not.
  if (bytes.substr(0, 8) != "!<thin>\n") {
    const auto images =
        reprise::FindDeviceImages(bytes, "/nonexistent", &storage);
    if (images.ok()) {
      for (const reprise::DeviceImage& image : *images)
        if (image.kind != reprise::ImageKind::kOffloadBinary)
          (void)reprise::FatbinEntries(image.bytes);
    }
  }
  (void)reprise::FatbinEntries(bytes);
  (void)reprise::CubinFor(bytes, "sm_90");
  (void)reprise::CubinVariables(bytes);
  return 0;
}
