// The pipelines a tuner may choose from: LLVM 22's own -O pipelines, and
// bounded edits of them over an allow-list, valid by construction.
//
// A pipeline is text. Edits of `default<O3>` put passes before or after it;
// edits inside need the explicit list that LLVM prints for it
// (-print-pipeline-passes), which is a base of its own. An edit inserts an
// allowed pass, drops one, moves one, or changes a pass's parameters; nesting
// is kept by inserting only where the level fits, with adaptors added as
// needed.
//
// Verify the results, and run them with the target's TargetMachine set: some
// passes ask it whether threads may diverge.
//
// Thread-safety: const and shareable.
#ifndef REPRISE_BAYESOPT_PIPELINE_SPACE_H_
#define REPRISE_BAYESOPT_PIPELINE_SPACE_H_

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bayesopt/pipeline.h"
#include "bayesopt/random.h"

namespace reprise::bayesopt {

enum class PipelineTarget { kHost, kNvptx };

struct AllowedPass {
  std::string name;
  PassLevel level;
  // Parameter texts to choose from; the first is what insertion starts from.
  // Empty: the pass takes none.
  std::vector<std::string> parameters;
  bool only_nvptx = false;  // registered by the NVPTX target alone
  bool only_host = false;   // of use where vectors exist
};

struct BannedPass {
  std::string name;  // a prefix when it ends in '*'
  std::string why;
};

const std::vector<AllowedPass>& AllowedPasses();
const std::vector<BannedPass>& BannedPasses();

// The explicit list behind default<O3> for a target, without what a device
// kernel never needs (coroutines, OpenMP, profiling instrumentation).
std::string_view ExplicitO3(PipelineTarget target);

// In one line for people: a short one as it is, a long one by what makes it of
// the list behind default<O3>: "O3 with slsr, without globalopt, sccp".
std::string DescribePipeline(std::string_view text);

class PipelineSpace {
 public:
  struct Options {
    PipelineTarget target = PipelineTarget::kHost;
    int max_edits = 8;
  };
  explicit PipelineSpace(Options options);

  // "default<O3>".
  const std::string& initial() const { return bases_.front(); }
  // The unedited pipelines: default<O3>, default<O2>, default<O1>, ExplicitO3.
  const std::vector<std::string>& bases() const { return bases_; }
  const Options& options() const { return options_; }

  // Canonical text within max_edits of a base, allowed passes only.
  // INVALID_ARGUMENT says what is wrong.
  absl::StatusOr<std::string> Check(std::string_view text) const;
  bool Contains(std::string_view text) const;

  // A base with 0 to max_edits edits; few edits are likelier.
  std::string Sample(Random& random) const;

  // One edit away from `text`, or another base; never `text` itself.
  // `text` must be of this space.
  std::string Neighbor(std::string_view text, Random& random) const;

  // `length` allowed passes in random order, properly nested, after a prologue
  // that makes device code analysable (inlining, SROA). Not of this space: for
  // soak tests of the compiler.
  std::string RandomSequence(int length, Random& random) const;

 private:
  struct Base {
    std::string text;
    std::vector<std::string> leaves;
  };
  bool WithinEdits(const Pipeline& pipeline) const;
  bool Edit(Pipeline& pipeline, Random& random) const;
  const AllowedPass* FindPass(std::string_view name) const;

  Options options_;
  std::vector<std::string> bases_;
  std::vector<Base> flat_bases_;
  std::vector<const AllowedPass*> passes_;
  // "function:licm<...>" of the bases' leaves, by the level they stand at.
  std::set<std::string> base_leaves_;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_PIPELINE_SPACE_H_
