// What archives tell variants apart by (evolution/cells.h), computed from a
// variant's source and from what its outcome says of the code.
//
//   tokens        C++ tokens of the evolvable code: comments, blanks and the
//                 length of names say nothing of its complexity
//   registers     of a thread
//   occupancy     0 to 1
//   shared_bytes  static shared memory of a block
//   intensity     floating-point instructions for each access to memory, in the
//                 IR after the pipeline
//   ir_distance   how unlike the recorded code's IR its own is, 0 to 1: one
//                 less the cosine of the angle between their counts of
//                 instructions by opcode, log(1 + count)
//
// Thread-safe: pure functions.
#ifndef REPRISE_EVOLUTION_MEASURES_H_
#define REPRISE_EVOLUTION_MEASURES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "evolution/cells.h"
#include "evolution/source.h"
#include "reprise/v1/types.pb.h"

namespace reprise::evolution {

// A measure by name with the range and cells that suit most kernels.
// INVALID_ARGUMENT lists those there are.
absl::StatusOr<Dimension> StandardDimension(const std::string& name);

// Cells as users write them: "kinds"; "grid:tokens,registers"; "cvt:64:tokens,
// registers,ir_distance" with the number of cells. INVALID_ARGUMENT says what
// there is.
absl::StatusOr<std::shared_ptr<const Cells>> ParseCells(const std::string& text,
                                                        uint64_t seed);

// Of text that need not be whole or right: an unfinished comment or literal
// ends with it. Linear time.
size_t CountTokens(std::string_view code);

// Tokens in the regions of `source` with these files changed, which are
// confined to them (EvolvableSource::CheckConfined).
size_t EvolvableTokens(const EvolvableSource& source,
                       const FileContents& changed);

struct MeasuredVariant {
  size_t tokens = 0;
  v1::CodeFacts code;
  v1::CodeFacts recorded;  // of the unmodified source, built the same way
};

// One number per dimension. INVALID_ARGUMENT: no such measure.
absl::StatusOr<std::vector<double>> MeasuresOf(
    const std::vector<Dimension>& dimensions, const MeasuredVariant& variant);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_MEASURES_H_
