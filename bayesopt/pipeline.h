// LLVM 22's textual pass pipelines as trees, without LLVM.
//
//   module list := element (',' element)*
//   element     := name ['<' parameters '>'] ['(' list ')']
//
// Thread-safety: plain values and pure functions.
#ifndef REPRISE_BAYESOPT_PIPELINE_H_
#define REPRISE_BAYESOPT_PIPELINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise::bayesopt {

// What a pass runs on. A list of one level is nested in that of an earlier one
// by an adaptor: cgscc(...), function(...), loop(...), loop-mssa(...).
enum class PassLevel { kModule, kCgscc, kFunction, kLoop, kLoopMssa };

std::string_view PassLevelName(PassLevel level);

struct PassNode {
  std::string name;        // "licm", "function", "default"
  std::string parameters;  // between < and >, without them
  bool adaptor = false;    // has a list in parentheses
  std::vector<PassNode> children;
  friend bool operator==(const PassNode&, const PassNode&) = default;
};

struct Pipeline {
  std::vector<PassNode> elements;  // a module's
  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

// INVALID_ARGUMENT with the place: unbalanced brackets, an empty element, or
// nesting deeper than 16.
absl::StatusOr<Pipeline> ParsePipeline(std::string_view text);

// The canonical text: no white space, "name<>" as "name".
std::string PrintPipeline(const Pipeline& pipeline);

// Leaves in order, each with the adaptors around it:
// "cgscc/devirt/function/licm<allowspeculation>". What edit distances are
// counted over.
std::vector<std::string> FlattenPipeline(const Pipeline& pipeline);

// Least number of leaf insertions and removals that make one of the other;
// `limit` + 1 when that is more than `limit`.
int PipelineDistance(const std::vector<std::string>& a,
                     const std::vector<std::string>& b, int limit);

// What makes `to` of `from`, in order; as few as there can be.
struct PipelineEdits {
  std::vector<std::string> added;
  std::vector<std::string> removed;
};
PipelineEdits EditsBetween(const std::vector<std::string>& from,
                           const std::vector<std::string>& to);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_PIPELINE_H_
