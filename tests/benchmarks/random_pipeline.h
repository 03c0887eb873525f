// Random pipelines in LLVM's textual form: anything that parses, whether or not
// it makes sense. Deterministic for a generator's state.
#ifndef REPRISE_TESTS_BENCHMARKS_RANDOM_PIPELINE_H_
#define REPRISE_TESTS_BENCHMARKS_RANDOM_PIPELINE_H_

#include <random>
#include <string>

namespace reprise {

// 1 to `max_passes` passes of all kinds, now and then around a whole
// default<O...>.
std::string RandomPipeline(std::mt19937_64& random, int max_passes);

}  // namespace reprise

#endif  // REPRISE_TESTS_BENCHMARKS_RANDOM_PIPELINE_H_
