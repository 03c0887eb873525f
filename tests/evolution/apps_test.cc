// Rewrites of the test applications, against the toolkit's own headers: every
// move of a kernel takes part in a combination that still compiles, stays
// within the evolvable source and keeps the kernel's symbol.
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "evolution/ast/analyze.h"
#include "evolution/move.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

struct App {
  std::string file;
  std::string symbol;
  std::vector<std::string> kinds;  // that must be there, among others
};

class AppsTest : public ::testing::TestWithParam<App> {};

// Greedy: moves not used yet first, then whatever still fits.
std::vector<const Move*> Combination(const std::vector<Move>& moves,
                                     std::vector<bool>& used) {
  std::vector<const Move*> chosen;
  for (const bool fresh : {true, false}) {
    for (size_t i = 0; i < moves.size(); ++i) {
      if (used[i] == fresh) continue;
      const bool fits = std::all_of(
          chosen.begin(), chosen.end(),
          [&](const Move* other) { return Compatible(*other, moves[i]); });
      if (!fits) continue;
      chosen.push_back(&moves[i]);
      used[i] = true;
    }
  }
  return chosen;
}

TEST_P(AppsTest, EveryMoveCompilesTogetherWithOthers) {
  const char* root = getenv("REPRISE_SOURCE_DIR");  // set by CTest
  if (root == nullptr) GTEST_SKIP() << "REPRISE_SOURCE_DIR is not set";
  SourceContext context;
  context.main_file = std::string(root) + "/tests/apps/" + GetParam().file;
  context.directory = root;
  context.clang_args = {"-std=c++17"};
  context.kernel_symbol = GetParam().symbol;
  context.architecture = "sm_90";
  context.device_kind = "cuda";
  context.threads_per_block = 256;
  const auto analysis = AnalyzeSource(context);
  ASSERT_TRUE(analysis.ok()) << analysis.status();
  std::vector<std::string> kinds;
  for (const Move& move : analysis->moves) kinds.push_back(move.kind);
  for (const std::string& kind : GetParam().kinds) {
    EXPECT_THAT(kinds, ::testing::Contains(kind));
  }
  std::vector<bool> used(analysis->moves.size(), false);
  while (std::find(used.begin(), used.end(), false) != used.end()) {
    const auto moves = Combination(analysis->moves, used);
    const auto files = ApplyMoves(analysis->source, moves);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_TRUE(analysis->source.CheckConfined(*files).ok());
    const absl::Status compiles = CheckSource(context, *files);
    EXPECT_TRUE(compiles.ok()) << compiles;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, AppsTest,
    ::testing::Values(
        App{"layer_norm/layer_norm.cu",
            "_Z15LayerNormKernelPKfS0_S0_Pfif",
            {"rsqrt", "partial_sums", "restrict", "unroll", "ldg"}},
        App{"lattice_qcd/lattice_qcd.cu",
            "_Z12DslashKernelPK12ColourMatrixPK12ColourVectorPKfPS2_i",
            {"rsqrt", "unroll", "launch_bounds"}},
        App{"templates_lambdas/templates_lambdas.cu",
            "_Z15TransformKernelIfLi2EZ4mainEUlfE_EvPKT_PS1_iT1_",
            {"restrict", "unroll"}}),
    [](const auto& info) {
      return info.param.file.substr(0, info.param.file.find('/'));
    });

}  // namespace
}  // namespace reprise::evolution
