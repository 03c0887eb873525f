// Data: which passes a tuner may use on device code, with which parameters, and
// LLVM 22's own -O3 list. Checked against opt-22 by the tests.
#include <string>
#include <string_view>
#include <vector>

#include "bayesopt/pipeline_space.h"

namespace reprise::bayesopt {
namespace {

// instcombine stops the compiler when it finds no fixpoint, unless told not to.
#define INSTCOMBINE "instcombine<no-verify-fixpoint>"
#define SIMPLIFYCFG_MID "simplifycfg<switch-range-to-icmp>"

// Equal to what `opt -passes='default<O3>' -print-pipeline-passes` prints,
// parameters at their defaults left out, minus: coroutines, OpenMP, memory
// profiling, entry-exit instrumentation, alloc tokens, automatic variable
// initialisation, call-graph profiles, remarks, library-call shrink-wrapping
// (errno), relative lookup tables, dropping of available-externally bodies.
#define O3_START(target_passes)                                              \
  target_passes                                                              \
      "inferattrs,"                                                          \
      "function<eager-inv>(lower-expect,simplifycfg,sroa<modify-cfg>,early-" \
      "cse,"                                                                 \
      "callsite-splitting),ipsccp,called-value-propagation,globalopt,"       \
      "function<eager-inv>(mem2reg," INSTCOMBINE "," SIMPLIFYCFG_MID         \
      "),"                                                                   \
      "always-inline,require<globals-aa>,function(invalidate<aa>),"          \
      "require<profile-summary>,"

constexpr std::string_view kSimplification =
    "cgscc(devirt<4>(inline,function-attrs<skip-non-recursive-function-attrs>,"
    "argpromotion,function<eager-inv;no-rerun>(sroa<modify-cfg>,"
    "early-cse<memssa>,speculative-execution<only-if-divergent-target>,"
    "jump-threading,correlated-propagation," SIMPLIFYCFG_MID "," INSTCOMBINE
    ",aggressive-instcombine,tailcallelim," SIMPLIFYCFG_MID
    ",reassociate,constraint-elimination,loop-mssa(loop-instsimplify,"
    "loop-simplifycfg,licm<no-allowspeculation>,loop-rotate,"
    "licm<allowspeculation>,simple-loop-unswitch<nontrivial;trivial>)"
    "," SIMPLIFYCFG_MID "," INSTCOMBINE
    ",loop(loop-idiom,indvars,extra-simple-loop-unswitch-passes,loop-deletion,"
    "loop-unroll-full),sroa<modify-cfg>,vector-combine,mldst-motion,gvn,sccp,"
    "bdce," INSTCOMBINE
    ",jump-threading,correlated-propagation,adce,memcpyopt,"
    "dse,loop-mssa(licm<allowspeculation>),simplifycfg<switch-range-to-icmp;"
    "switch-to-arithmetic;hoist-common-insts;sink-common-insts>," INSTCOMBINE
    "),function-attrs,function(require<should-not-run-function-passes>))),"
    "deadargelim,globalopt,globaldce,rpo-function-attrs,recompute-globalsaa,";

constexpr std::string_view kOptimization =
    "function<eager-inv>(drop-unnecessary-assumes,float2int,"
    "lower-constant-intrinsics,chr,loop(loop-rotate,loop-deletion),"
    "loop-distribute,inject-tli-mappings,loop-vectorize,"
    "drop-unnecessary-assumes,infer-alignment,loop-load-elim," INSTCOMBINE
    ",simplifycfg<forward-switch-cond;switch-range-to-icmp;"
    "switch-to-arithmetic;switch-to-lookup;no-keep-loops;hoist-common-insts;"
    "sink-common-insts>,slp-vectorizer,vector-combine," INSTCOMBINE
    ",loop-unroll<O3>,sroa<preserve-cfg>,infer-alignment," INSTCOMBINE
    ",loop-mssa(licm<allowspeculation>),alignment-from-assumptions,loop-sink,"
    "instsimplify,div-rem-pairs,tailcallelim,simplifycfg<switch-range-to-icmp;"
    "switch-to-arithmetic;hoist-loads-stores-with-cond-faulting;"
    "speculate-unpredictables>),globaldce,constmerge";

constexpr std::string_view kHostStart = O3_START("");
constexpr std::string_view kNvptxStart =
    O3_START("nvvm-reflect,function(nvvm-intr-range),");

std::string Join(std::string_view start) {
  std::string text(start);
  text += kSimplification;
  text += kOptimization;
  return text;
}

std::vector<AllowedPass> ModulePasses() {
  const PassLevel level = PassLevel::kModule;
  return {
      {"always-inline", level, {}},
      {"called-value-propagation", level, {}},
      {"constmerge", level, {}},
      {"deadargelim", level, {}},
      {"globaldce", level, {}},
      {"globalopt", level, {}},
      {"inferattrs", level, {}},
      {"ipsccp", level, {"", "no-func-spec"}},
      {"nvvm-reflect", level, {}, /*only_nvptx=*/true},
      {"recompute-globalsaa", level, {}},
      {"rpo-function-attrs", level, {}},
  };
}

std::vector<AllowedPass> CgsccPasses() {
  const PassLevel level = PassLevel::kCgscc;
  return {
      {"argpromotion", level, {}},
      {"function-attrs", level, {"", "skip-non-recursive-function-attrs"}},
      {"inline", level, {}},
  };
}

std::vector<AllowedPass> FunctionPasses() {
  const PassLevel level = PassLevel::kFunction;
  return {
      {"adce", level, {}},
      {"aggressive-instcombine", level, {}},
      {"alignment-from-assumptions", level, {}},
      {"bdce", level, {}},
      {"callsite-splitting", level, {}},
      {"chr", level, {}},
      {"constraint-elimination", level, {}},
      {"correlated-propagation", level, {}},
      {"dce", level, {}},
      {"div-rem-pairs", level, {}},
      {"drop-unnecessary-assumes", level, {}},
      {"dse", level, {}},
      {"early-cse", level, {"memssa", ""}},
      {"float2int", level, {}},
      {"gvn", level, {"", "no-pre", "no-load-pre"}},
      {"infer-address-spaces", level, {}, /*only_nvptx=*/true},
      {"infer-alignment", level, {}},
      {"inject-tli-mappings", level, {}},
      {"instcombine",
       level,
       {"no-verify-fixpoint", "max-iterations=2;no-verify-fixpoint"}},
      {"instsimplify", level, {}},
      {"jump-threading", level, {}},
      {"load-store-vectorizer", level, {}},
      {"loop-data-prefetch", level, {}, false, /*only_host=*/true},
      {"loop-distribute", level, {}},
      {"loop-fusion", level, {}},
      {"loop-load-elim", level, {}},
      {"loop-simplify", level, {}},
      {"loop-sink", level, {}},
      {"loop-unroll",
       level,
       {"O3", "O2", "O3;full-unroll-max=4", "O3;full-unroll-max=64",
        "O3;no-runtime", "O3;partial;runtime", "O3;no-partial;no-runtime",
        "O3;no-upperbound", "O3;no-peeling", "O3;peeling"}},
      {"loop-vectorize",
       level,
       {"", "interleave-forced-only",
        "interleave-forced-only;vectorize-forced-only"}},
      {"lower-constant-intrinsics", level, {}},
      {"lower-expect", level, {}},
      {"mem2reg", level, {}},
      {"memcpyopt", level, {}},
      {"mldst-motion", level, {"", "split-footer-bb"}},
      {"nary-reassociate", level, {}},
      {"newgvn", level, {}},
      {"nvvm-intr-range", level, {}, /*only_nvptx=*/true},
      {"reassociate", level, {}},
      {"sccp", level, {}},
      {"separate-const-offset-from-gep", level, {"", "lower-gep"}},
      {"simplifycfg",
       level,
       {"switch-range-to-icmp", "", "bonus-inst-threshold=2",
        "bonus-inst-threshold=4;hoist-common-insts;sink-common-insts",
        "forward-switch-cond;switch-range-to-icmp;switch-to-arithmetic;"
        "switch-to-lookup;no-keep-loops;hoist-common-insts;sink-common-insts",
        "switch-range-to-icmp;switch-to-arithmetic;hoist-common-insts;"
        "sink-common-insts",
        "switch-range-to-icmp;switch-to-arithmetic;"
        "hoist-loads-stores-with-cond-faulting;speculate-unpredictables",
        "no-speculate-blocks", "speculate-unpredictables"}},
      {"sink", level, {}},
      {"slp-vectorizer", level, {}},
      {"slsr", level, {}},
      {"speculative-execution", level, {"", "only-if-divergent-target"}},
      {"sroa", level, {"modify-cfg", "preserve-cfg"}},
      {"tailcallelim", level, {}},
      {"vector-combine", level, {}},
  };
}

std::vector<AllowedPass> LoopPasses() {
  const PassLevel loop = PassLevel::kLoop;
  const PassLevel mssa = PassLevel::kLoopMssa;
  return {
      {"canon-freeze", loop, {}},
      {"extra-simple-loop-unswitch-passes", loop, {}},
      {"indvars", loop, {}},
      {"loop-bound-split", loop, {}},
      {"loop-deletion", loop, {}},
      {"loop-flatten", loop, {}},
      {"loop-idiom", loop, {}},
      {"loop-interchange", loop, {}},
      {"loop-reduce", loop, {}},
      {"loop-term-fold", loop, {}},
      {"loop-unroll-and-jam", loop, {}},
      {"loop-unroll-full", loop, {}},
      {"licm", mssa, {"allowspeculation", "no-allowspeculation"}},
      {"lnicm", mssa, {"allowspeculation", "no-allowspeculation"}},
      {"loop-instsimplify", mssa, {}},
      {"loop-rotate",
       mssa,
       {"", "no-header-duplication", "header-duplication"}},
      {"loop-simplifycfg", mssa, {}},
      {"simple-loop-unswitch",
       mssa,
       {"nontrivial;trivial", "no-nontrivial;trivial"}},
  };
}

}  // namespace

std::string_view ExplicitO3(PipelineTarget target) {
  static const std::string* const host = new std::string(Join(kHostStart));
  static const std::string* const nvptx = new std::string(Join(kNvptxStart));
  return target == PipelineTarget::kNvptx ? *nvptx : *host;
}

const std::vector<AllowedPass>& AllowedPasses() {
  static const std::vector<AllowedPass>* const passes = [] {
    auto* all = new std::vector<AllowedPass>(ModulePasses());
    for (const auto& some : {CgsccPasses(), FunctionPasses(), LoopPasses()}) {
      all->insert(all->end(), some.begin(), some.end());
    }
    return all;
  }();
  return *passes;
}

const std::vector<BannedPass>& BannedPasses() {
  static const std::vector<BannedPass>* const passes =
      new std::vector<BannedPass>{
          {"structurizecfg",
           "rewrites divergent branches; miscompiles in "
           "random sequences (CompilerGym 101, 103 to 106)"},
          {"reg2mem", "undoes mem2reg; crashes later passes on device code"},
          {"loop-extract", "moves loops of a kernel into functions"},
          {"extract-blocks", "moves blocks of a kernel into functions"},
          {"hotcoldsplit", "moves cold code, barriers with it, into functions"},
          {"iroutliner", "moves code into functions"},
          {"partial-inliner", "moves code into functions"},
          {"mergeicmps", "calls memcmp, which a device does not have"},
          {"dfa-jump-threading",
           "duplicates blocks without asking whether the "
           "target's threads diverge"},
          {"gvn-hoist", "off in LLVM for known miscompiles"},
          {"gvn-sink", "off in LLVM for known miscompiles"},
          {"guard-widening", "for managed runtimes' guards"},
          {"loop-predication", "for managed runtimes' guards"},
          {"irce", "for managed runtimes' range checks"},
          {"internalize", "hides the kernel's symbol"},
          {"strip*", "removes symbols or kernel metadata"},
          {"metarenamer", "renames the kernel"},
          {"mergefunc", "may merge the kernel with another function"},
          {"attributor*", "deduces from all callers; a kernel's are unknown"},
          {"openmp-opt*", "for OpenMP runtimes"},
          {"coro-*", "coroutines"},
          {"objc-arc*", "Objective-C"},
          {"lower-atomic", "makes atomic operations plain"},
          {"lower-switch", "lowering is the target's business, in its order"},
          {"lower-invoke", "lowering is the target's business, in its order"},
          {"expand-*", "lowering is the target's business, in its order"},
          {"asan", "instrumentation"},
          {"msan", "instrumentation"},
          {"tsan*", "instrumentation"},
          {"hwasan", "instrumentation"},
          {"memprof*", "instrumentation"},
          {"pgo-*", "instrumentation"},
          {"sample-profile", "instrumentation"},
          {"sancov-module", "instrumentation"},
          {"trigger-*", "made to crash"},
          {"verify", "the compiler runs it after every pipeline anyway"},
      };
  return *passes;
}

}  // namespace reprise::bayesopt
