// Of a text that is in no file: what comes nearest to it. Pure functions;
// thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_NEAR_MISS_H_
#define REPRISE_EVOLUTION_LLM_NEAR_MISS_H_

#include <string>
#include <string_view>

#include "evolution/source.h"

namespace reprise::evolution {

// The lines of the regions of `state` that are most like those of `search`, as
// a report of some lines: file, lines, and the difference, with - before what
// the file has and + before what was searched for. "" when nothing is like it.
//
// Likeness of two lines: Dice's coefficient over their pairs of neighbouring
// characters, blanks left out, weighted by length. The first 40 lines of
// `search` are looked at.
std::string NearestMiss(const EvolvableSource& state, std::string_view search);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_NEAR_MISS_H_
