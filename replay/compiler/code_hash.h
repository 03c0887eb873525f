// Digests of what was built that are equal for equal code: paths, comments,
// compile ids and symbol tables do not count. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_CODE_HASH_H_
#define REPRISE_REPLAY_COMPILER_CODE_HASH_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "llvm/IR/Module.h"

namespace reprise {

// Where names of source places lie in objects for the host.
inline constexpr char kSourcePlaceSection[] = ".rodata.reprise.places";

struct CodeDigest {
  std::string sha256;       // 32 bytes
  uint64_t code_bytes = 0;  // of executable sections
};

// Over code, constants, relocations (by target symbol) and, of a cubin,
// register counts; for an x86-64 object or a cubin. Texts do not count: those
// of string sections and of kSourcePlaceSection. INTERNAL: not an ELF file.
absl::StatusOr<CodeDigest> DigestElf(const std::string& elf);

// Over the text without comments and blank lines.
CodeDigest DigestPtx(const std::string& ptx);

// Over the module without its name, identification and kernel descriptions.
CodeDigest DigestIr(const llvm::Module& module);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_CODE_HASH_H_
