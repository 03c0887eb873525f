// Reads a kernel's translation unit with Clang, once, and gives back plain
// data: where the source may change, and the rewrites that apply to it. Only
// this library needs Clang; what works on its results does not.
//
// A rewrite's precondition is checked on the syntax tree, in every
// instantiation when it lies in a template. Sites inside macro definitions are
// left alone.
//
// Thread-safety: calls are independent. A call parses the translation unit:
// some hundred milliseconds, some hundred megabytes while it runs.
#ifndef REPRISE_EVOLUTION_AST_ANALYZE_H_
#define REPRISE_EVOLUTION_AST_ANALYZE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "evolution/move.h"
#include "evolution/source.h"

namespace reprise::evolution {

struct AnalyzeOptions {
  // Toolkit for the compile; empty: what clang_args say, else $CUDA_HOME, else
  // Clang's own search.
  std::string cuda_home;
  // Clang's own headers; empty: those of the Clang this was built with.
  std::string resource_dir;
};

struct SourceAnalysis {
  EvolvableSource source;
  std::vector<Move> moves;  // by file, place and parameter
};

// INVALID_ARGUMENT: the source does not compile (diagnostics in the message).
// NOT_FOUND: no kernel of that symbol is defined in it.
absl::StatusOr<SourceAnalysis> AnalyzeSource(
    const SourceContext& context, const AnalyzeOptions& options = {});

// Whether the source with `overlay` still compiles for the device, and still
// defines the kernel by its symbol. INVALID_ARGUMENT carries the diagnostics.
absl::Status CheckSource(const SourceContext& context,
                         const FileContents& overlay,
                         const AnalyzeOptions& options = {});

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_AST_ANALYZE_H_
