// What inline PTX does to memory, for who notes accesses. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_INLINE_PTX_H_
#define REPRISE_REPLAY_COMPILER_INLINE_PTX_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/v1/types.pb.h"

namespace reprise {

// An operand of the asm statement, "$3" in its text, plus a constant; or the
// constant alone.
struct PtxValue {
  std::optional<unsigned> operand;
  uint64_t constant = 0;
};

// An access to global memory, or to memory of unknown kind.
struct PtxAccess {
  bool reads = false;
  bool writes = false;
  PtxValue address;
  PtxValue bytes;
  v1::ElementType type = v1::ELEMENT_TYPE_UNTYPED;
  // Happens where this is not 0 (or where it is). Unset: always.
  std::optional<PtxValue> guard;
  bool guard_is_zero = false;
};

struct InlinePtx {
  std::vector<PtxAccess> accesses;
  // Instructions that access memory in a way that is not understood.
  std::vector<std::string> not_understood;
  uint64_t flops = 0;  // of one thread; fma counts 2
  bool exits = false;  // may end the thread
};

// `text` is the string of an LLVM inline asm call.
InlinePtx ReadInlinePtx(const std::string& text);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_INLINE_PTX_H_
