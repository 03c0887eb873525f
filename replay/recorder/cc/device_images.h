// The device code inside host object files: what nvcc and Clang put into
// sections of objects, archives, programs and shared libraries.
//
//   .nv_fatbin         fatbins that the CUDA runtime registers
//   __nv_relfatbin     fatbins of relocatable device code (nvcc -rdc=true)
//   .llvm.offloading   the same from Clang (-fgpu-rdc), in LLVM's wrapping
//
// A digest names an image wherever it turns up: an object's non-relocatable
// fatbin is found again, byte for byte, in the program and in the memory that
// the program registers.
//
// Thread-safe. Input is untrusted: malformed files give INVALID_ARGUMENT.
#ifndef REPRISE_REPLAY_RECORDER_CC_DEVICE_IMAGES_H_
#define REPRISE_REPLAY_RECORDER_CC_DEVICE_IMAGES_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

enum class ImageKind {
  kFatbin,             // registered with the CUDA runtime as it is
  kRelocatableFatbin,  // input of nvcc's device linker
  kOffloadBinary,      // input of Clang's device linker
};

struct DeviceImage {
  ImageKind kind = ImageKind::kFatbin;
  std::string_view bytes;      // into the file that was parsed
  std::string Digest() const;  // 64 hexadecimal digits of SHA-256
};

// All device images of an ELF file or of an archive of ELF files, in order.
// Members of a thin archive are read from disk; `path` says where they lie and
// `storage` keeps them.
absl::StatusOr<std::vector<DeviceImage>> FindDeviceImages(
    std::string_view file, const std::string& path,
    std::deque<std::string>* storage);

// What makes the names of a translation unit's static kernels and variables
// unique in a program of relocatable device code, as they are registered:
// nvcc's module id ("a98b07c9_4_a_cu_main"), or the hash that Clang appends.
// Empty: the object has no such names.
std::string FindUnitTag(std::string_view object);

// The whole fatbin at the start of `bytes`, cut to its length.
absl::StatusOr<std::string_view> FatbinAt(std::string_view bytes);

// The same digest that DeviceImage::Digest gives.
std::string ImageDigest(std::string_view bytes);

enum class FatbinCompression { kNone, kLz4, kZstd };

// One architecture's code in a fatbin. cubin.h takes machine code out.
struct FatbinEntry {
  bool ptx = false;
  std::string architecture;  // "sm_90", "sm_90a", "sm_100f"
  FatbinCompression compression = FatbinCompression::kNone;
  std::string_view bytes;    // into the fatbin, compressed as said
  uint64_t plain_bytes = 0;  // as the fatbin says
};
absl::StatusOr<std::vector<FatbinEntry>> FatbinEntries(std::string_view fatbin);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_CC_DEVICE_IMAGES_H_
