// Sources that compile to the machine code of another one.
#ifndef REPRISE_TESTS_BENCHMARKS_EQUIVALENT_SOURCE_H_
#define REPRISE_TESTS_BENCHMARKS_EQUIVALENT_SOURCE_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace reprise {

// `text` with a function more that nothing calls; another one for each number.
inline std::string WithUnusedFunction(const std::string& text, int number) {
  return absl::StrCat(text, "\n__device__ int reprise_unused_", number,
                      "(int x) { return x + ", number, "; }\n");
}

}  // namespace reprise

#endif  // REPRISE_TESTS_BENCHMARKS_EQUIVALENT_SOURCE_H_
