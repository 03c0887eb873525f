#include "services/coordinator/rewrite_sources.h"

#include <utility>

#include "evolution/ast/analyze.h"
#include "evolution/move_emitter.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/toolchain.h"

namespace reprise {
namespace {

evolution::SourceContext ContextOf(const v1::Unit& unit,
                                   const v1::CompileInput& input) {
  evolution::SourceContext context;
  const v1::CompileTranslationUnit& tu = input.translation_units(0);
  context.main_file = tu.main_file();
  context.directory = tu.directory();
  context.clang_args.assign(tu.clang_args().begin(), tu.clang_args().end());
  for (int i = 0; i < tu.files_size(); ++i) {
    context.files.push_back({tu.files(i).path(), tu.files(i).content(),
                             unit.translation_units(0).files(i).system()});
  }
  context.kernel_symbol = unit.kernel().symbol();
  context.architecture = unit.architecture();
  const v1::Dim3& block = unit.launch().block();
  context.threads_per_block = block.x() * block.y() * block.z();
  return context;
}

absl::StatusOr<ProposedSources> Propose(const UnitReader& unit,
                                        const v1::CompileInput& input,
                                        const SourceOptions& wanted,
                                        const std::string& cuda_home) {
  const Toolchain tools = FindToolchain(cuda_home);
  absl::StatusOr<evolution::SourceAnalysis> analysis = evolution::AnalyzeSource(
      ContextOf(unit.manifest(), input),
      {.cuda_home = tools.cuda_home, .resource_dir = tools.clang_resources});
  ProposedSources proposed;
  if (!analysis.ok()) {
    LOG_WARNING("source rewrites are off for {}: {}", unit.id(),
                std::string(analysis.status().message()));
    return proposed;
  }
  proposed.evolvable = analysis->source;
  evolution::MoveEmitterOptions options;
  options.seed = wanted.seed;
  options.allow_inexact = wanted.allow_inexact;
  ASSIGN_OR_RETURN(proposed.emitter, evolution::NewMoveEmitter(
                                         proposed.evolvable,
                                         std::move(analysis->moves), options));
  return proposed;
}

}  // namespace

SourceProposer RewriteSources(std::string cuda_home) {
  return [cuda_home = std::move(cuda_home)](const UnitReader& unit,
                                            const v1::CompileInput& input,
                                            const SourceOptions& options) {
    return Propose(unit, input, options, cuda_home);
  };
}

}  // namespace reprise
