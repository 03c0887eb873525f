// Sections of 64-bit little-endian ELF files: host objects and CUDA machine
// code. Input is untrusted: what lies outside the file gives INVALID_ARGUMENT.
// Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_CC_ELF_FILE_H_
#define REPRISE_REPLAY_RECORDER_CC_ELF_FILE_H_

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

// False where it would reach outside of `bytes`.
template <typename T>
bool LoadValue(std::string_view bytes, uint64_t offset, T* value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(value, bytes.data() + offset, sizeof(T));
  return true;
}
bool SliceBytes(std::string_view bytes, uint64_t offset, uint64_t size,
                std::string_view* part);

struct ElfSection {
  Elf64_Shdr header{};
  std::string_view name;   // empty: not known
  std::string_view bytes;  // into the file; empty for SHT_NOBITS
};

// By index, as symbols name them. Empty for a file stripped of its section
// names.
absl::StatusOr<std::vector<ElfSection>> ElfSections(std::string_view file);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_CC_ELF_FILE_H_
