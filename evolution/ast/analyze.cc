#include "evolution/ast/analyze.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "evolution/ast/code.h"
#include "evolution/ast/facts.h"
#include "evolution/ast/frontend.h"
#include "evolution/ast/reach.h"
#include "evolution/ast/rewrite.h"

namespace reprise::evolution {
namespace {

MoveSet MovesOfBody(const Code& code, const SourceContext& context,
                    const ReachedFunction& reached,
                    const clang::FunctionDecl* function) {
  MoveSet moves;
  const Facts facts(code.ast(), function);
  const Body body{code, context, function, reached.kernel, facts};
  for (const auto find :
       {FindUnrolls, FindInterchanges, FindHoistedLoads,
        FindRegisterAccumulators, FindPartialSums, FindReciprocalSquareRoots,
        FindReciprocals, FindIntegerPowersOfTwo, FindPowers, FindFloatLiterals,
        FindFastFunctions, FindRestrict, FindReadOnlyLoads, FindLaunchBounds,
        FindSharedPadding, FindAlignment}) {
    find(body, moves);
  }
  return moves;
}

bool SameRewrite(const Move& a, const Move& b) {
  return a.edits == b.edits && a.inexact == b.inexact && a.claim == b.claim;
}

// What holds in every instantiation.
MoveSet MovesOfFunction(const Code& code, const SourceContext& context,
                        const ReachedFunction& reached) {
  MoveSet common;
  bool first = true;
  for (const clang::FunctionDecl* function : reached.bodies) {
    MoveSet moves = MovesOfBody(code, context, reached, function);
    if (first) {
      common = std::move(moves);
      first = false;
      continue;
    }
    std::erase_if(common, [&](const auto& entry) {
      const auto other = moves.find(entry.first);
      return other == moves.end() || !SameRewrite(entry.second, other->second);
    });
  }
  return common;
}

// Within regions, each key once, in the order of places.
std::vector<Move> Ordered(std::vector<Move> moves,
                          const EvolvableSource& source) {
  std::erase_if(moves, [&](const Move& move) {
    return move.edits.empty() || !ApplyMoves(source, {&move}).ok();
  });
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Move& a, const Move& b) {
                     const TextEdit& x = a.edits.front();
                     const TextEdit& y = b.edits.front();
                     if (x.path != y.path) return x.path < y.path;
                     return x.offset < y.offset;
                   });
  std::map<std::string, int> seen;  // files of one name in two directories
  for (Move& move : moves) {
    const int count = ++seen[move.key];
    if (count > 1) absl::StrAppend(&move.key, "#", count);
  }
  return moves;
}

absl::StatusOr<SourceAnalysis> Analyze(const Parsed& parsed,
                                       const SourceContext& context) {
  const Code code(parsed.ast, context);
  auto reach = FindReach(parsed, code, context.kernel_symbol);
  if (!reach.ok()) return reach.status();
  std::vector<Move> moves;
  for (const ReachedFunction& reached : reach->functions) {
    for (auto& [key, move] : MovesOfFunction(code, context, reached)) {
      moves.push_back(std::move(move));
    }
  }
  std::vector<SourceFile> files;
  for (const auto& [path, content] : code.files()) {
    files.push_back({path, content, false});
  }
  SourceAnalysis analysis;
  analysis.source =
      EvolvableSource(std::move(files), std::move(reach->regions));
  analysis.moves = Ordered(std::move(moves), analysis.source);
  return analysis;
}

}  // namespace

absl::StatusOr<SourceAnalysis> AnalyzeSource(const SourceContext& context,
                                             const AnalyzeOptions& options) {
  absl::StatusOr<SourceAnalysis> analysis =
      absl::InternalError("the source was not analyzed");
  const absl::Status parsed =
      ParseUnit(context, {}, options, [&](const Parsed& unit) {
        analysis = Analyze(unit, context);
        return analysis.status();
      });
  if (!parsed.ok()) return parsed;
  return analysis;
}

absl::Status CheckSource(const SourceContext& context,
                         const FileContents& overlay,
                         const AnalyzeOptions& options) {
  return ParseUnit(context, overlay, options, [&](const Parsed& unit) {
    const Code code(unit.ast, context);
    return FindReach(unit, code, context.kernel_symbol).status();
  });
}

}  // namespace reprise::evolution
