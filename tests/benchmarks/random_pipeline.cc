#include "tests/benchmarks/random_pipeline.h"

#include <iterator>
#include <string_view>

namespace reprise {
namespace {

// What opt --print-passes lists, without analyses, passes that need profiles or
// sanitizer runtimes, and those that draw graphs.
constexpr std::string_view kFunctionPasses[] = {
    "adce",
    "aggressive-instcombine",
    "alignment-from-assumptions",
    "assume-builder",
    "assume-simplify",
    "atomic-expand",
    "bdce",
    "break-crit-edges",
    "callsite-splitting",
    "chr",
    "codegenprepare",
    "consthoist",
    "constraint-elimination",
    "correlated-propagation",
    "dce",
    "dfa-jump-threading",
    "div-rem-pairs",
    "dse",
    "early-cse",
    "early-cse<memssa>",
    "expand-memcmp",
    "expand-reductions",
    "fix-irreducible",
    "flatten-cfg",
    "float2int",
    "guard-widening",
    "gvn",
    "gvn<no-pre>",
    "gvn-hoist",
    "gvn-sink",
    "infer-address-spaces",
    "infer-alignment",
    "inject-tli-mappings",
    "instcombine",
    "instcombine<max-iterations=3>",
    "instnamer",
    "instsimplify",
    "interleaved-load-combine",
    "irce",
    "jump-threading",
    "lcssa",
    "libcalls-shrinkwrap",
    "load-store-vectorizer",
    "loop-data-prefetch",
    "loop-distribute",
    "loop-fusion",
    "loop-load-elim",
    "loop-simplify",
    "loop-sink",
    "loop-unroll",
    "loop-unroll<full-unroll-max=64;runtime>",
    "loop-unroll<O1>",
    "loop-vectorize",
    "loop-versioning",
    "lower-constant-intrinsics",
    "lower-expect",
    "lower-guard-intrinsic",
    "lower-invoke",
    "lower-matrix-intrinsics",
    "lower-switch",
    "lower-widenable-condition",
    "make-guards-explicit",
    "mem2reg",
    "memcpyopt",
    "mergeicmps",
    "mergereturn",
    "mldst-motion",
    "move-auto-init",
    "nary-reassociate",
    "newgvn",
    "partially-inline-libcalls",
    "reassociate",
    "reg2mem",
    "sandbox-vectorizer",
    "scalarize-masked-mem-intrin",
    "scalarizer",
    "sccp",
    "select-optimize",
    "separate-const-offset-from-gep",
    "separate-const-offset-from-gep<lower-gep>",
    "simplifycfg",
    "simplifycfg<bonus-inst-threshold=4;hoist-common-insts;sink-common-insts>",
    "sink",
    "slp-vectorizer",
    "slsr",
    "speculative-execution",
    "sroa",
    "sroa<preserve-cfg>",
    "structurizecfg",
    "tailcallelim",
    "typepromotion",
    "unify-loop-exits",
    "unreachableblockelim",
    "vector-combine"};

constexpr std::string_view kLoopPasses[] = {
    "canon-freeze",
    "extra-simple-loop-unswitch-passes",
    "indvars",

    "loop-bound-split",
    "loop-deletion",
    "loop-flatten",
    "loop-idiom",
    "loop-instsimplify",
    "loop-interchange",
    "loop-predication",
    "loop-reduce",
    "loop-rotate",
    "loop-rotate<no-header-duplication>",
    "loop-simplifycfg",
    "loop-term-fold",
    "loop-unroll-and-jam",
    "loop-unroll-full",
    "loop-versioning-licm",
    "simple-loop-unswitch",
    "simple-loop-unswitch<nontrivial>"};

// Fatal outside of loop-mssa: LLVM exits.
constexpr std::string_view kMemorySsaLoopPasses[] = {
    "licm", "licm<no-allowspeculation>", "lnicm"};

constexpr std::string_view kModulePasses[] = {"always-inline",
                                              "attributor",
                                              "attributor-light",
                                              "called-value-propagation",
                                              "constmerge",
                                              "deadargelim",
                                              "elim-avail-extern",
                                              "expand-variadics",
                                              "globaldce",
                                              "global-merge",
                                              "globalopt",
                                              "globalsplit",
                                              "hotcoldsplit",
                                              "inferattrs",
                                              "internalize",
                                              "ipsccp",
                                              "iroutliner",
                                              "loop-extract",
                                              "mergefunc",
                                              "metarenamer",
                                              "module-inline",
                                              "name-anon-globals",
                                              "openmp-opt",
                                              "partial-inliner",
                                              "pre-isel-intrinsic-lowering",
                                              "recompute-globalsaa",
                                              "rel-lookup-table-converter",
                                              "rpo-function-attrs",
                                              "strip",
                                              "strip-dead-prototypes",
                                              "cgscc(inline)",
                                              "cgscc(argpromotion)",
                                              "cgscc(function-attrs)",
                                              "cgscc(attributor-cgscc)"};

constexpr std::string_view kWholes[] = {
    "default<O1>", "default<O2>",          "default<O3>",      "default<Os>",
    "default<Oz>", "thinlto-pre-link<O3>", "lto-pre-link<O2>", "lto<O3>"};

template <size_t N>
std::string Pick(const std::string_view (&list)[N], std::mt19937_64& random) {
  return std::string(list[random() % N]);
}

// One to a few passes of a kind inside its adaptor.
std::string Nest(const char* open, std::string (*pick)(std::mt19937_64&),
                 int& left, std::mt19937_64& random) {
  std::string text = open;
  const int count = 1 + static_cast<int>(random() % 8);
  for (int i = 0; i < count && left > 0; ++i, --left) {
    if (i > 0) text += ",";
    text += pick(random);
  }
  return text + ")";
}

std::string PickFunctionPass(std::mt19937_64& random) {
  return Pick(kFunctionPasses, random);
}
std::string PickLoopPass(std::mt19937_64& random) {
  return Pick(kLoopPasses, random);
}
std::string PickMemorySsaLoopPass(std::mt19937_64& random) {
  return random() % 4 == 0 ? Pick(kMemorySsaLoopPasses, random)
                           : Pick(kLoopPasses, random);
}

}  // namespace

std::string RandomPipeline(std::mt19937_64& random, int max_passes) {
  int left = 1 + static_cast<int>(random() % static_cast<uint64_t>(max_passes));
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (!text.empty()) text += ",";
    text += part;
  };
  while (left > 0) {
    const uint64_t kind = random() % 100;
    if (kind < 60) {
      add(Nest("function(", PickFunctionPass, left, random));
    } else if (kind < 72) {
      add(Nest("function(loop(", PickLoopPass, left, random) + ")");
    } else if (kind < 82) {
      add(Nest("function(loop-mssa(", PickMemorySsaLoopPass, left, random) +
          ")");
    } else if (kind < 97) {
      add(Pick(kModulePasses, random));
      --left;
    } else {
      add(Pick(kWholes, random));
      --left;
    }
  }
  return text;
}

}  // namespace reprise
