// Comparison of a memory range with its reference, element by element.
// Pure functions over memory that the caller keeps still; thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CPU_RESIDENT_COMPARE_H_
#define REPRISE_REPLAY_DEVICE_CPU_RESIDENT_COMPARE_H_

#include <cstdint>
#include <string>

#include "replay/unit/interval_set.h"
#include "reprise/v1/types.pb.h"

namespace reprise::cpu {

// One element as a number and as text. Elements of UNTYPED are single bytes.
struct Element {
  double value = 0;  // exact for floating-point types and up to 2^53
  std::string text;
};

uint32_t ElementBytes(v1::ElementType type);
bool IsFloatingPoint(v1::ElementType type);
Element ReadElement(v1::ElementType type, const char* at);

// |got - expected| <= absolute + relative * |expected|; NaN equals only NaN, an
// infinity only itself. With both bounds 0: equal, the sign of zero included.
bool WithinTolerance(double got, double expected,
                     const v1::Tolerance& tolerance);

struct CompareInput {
  const char* got = nullptr;
  const char* expected = nullptr;
  uint64_t bytes = 0;
  v1::ElementType type = v1::ELEMENT_TYPE_UNTYPED;
  v1::Tolerance tolerance;
  // Bytes that may differ within tolerance; others must be equal. Null: all.
  const IntervalSet* writable = nullptr;
  // Bytes to look at at all, in whole elements. Null: all.
  const IntervalSet* spans = nullptr;
};

// Error statistics; `passes` says whether the range as a whole is acceptable
// (outlier share included). Fills everything of RangeErrors but address and
// name. Costs one pass at memory speed where the bits are equal.
struct CompareResult {
  v1::RangeErrors errors;
  bool passes = true;
};
CompareResult CompareRange(const CompareInput& input);

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RESIDENT_COMPARE_H_
