// Where the evolvable regions are in a file that was changed within them, and
// what may be put there. The regions of the recorded files themselves come from
// AnalyzeSource (evolution/ast/analyze.h). Pure functions; thread-safe.
#ifndef REPRISE_EVOLUTION_REGIONS_H_
#define REPRISE_EVOLUTION_REGIONS_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "evolution/source.h"

namespace reprise::evolution {

// 1-based; an offset beyond the text counts as its end.
size_t LineOf(std::string_view text, size_t offset);

// `regions`, all of one file, by place and disjoint, as they are in `after`,
// which is `before` with each region replaced by any text: the fixed pieces
// between them follow each other, the first at the start and the last at the
// end. Where that holds in several ways, the one whose regions have most in
// common with those of `before` at their starts and ends (the first of equal
// ones). PERMISSION_DENIED names file and line in `before` of the first fixed
// text that is not there. Time grows with the square of the places where a
// fixed piece could be, of which 1,000 at most are looked at.
absl::StatusOr<std::vector<Region>> LocateRegions(
    std::string_view before, const std::vector<Region>& regions,
    std::string_view after);

// The region that has all of bytes [begin, end) of the file; nullptr: none.
const Region* RegionAround(const EvolvableSource& source, std::string_view path,
                           size_t begin, size_t end);

// A region's text.
std::string_view TextOf(const EvolvableSource& source, const Region& region);

// Whether every region of `after`, a state of `before` (EvolvableSource::At),
// ends what it begins: text that opens a comment, a literal, a bracket or an
// #if and leaves it open would change what stands outside. A region that
// already was like that is let through. INVALID_ARGUMENT names file, line and
// what is open.
absl::Status CheckSelfContained(const EvolvableSource& before,
                                const EvolvableSource& after);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_REGIONS_H_
