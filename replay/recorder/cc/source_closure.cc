#include "replay/recorder/cc/source_closure.h"

#include "replay/base/status_macros.h"
#include "replay/compiler/source_closure.h"
#include "replay/compiler/toolchain.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

absl::Status KeepSourceClosure(const std::string& architecture,
                               const std::string& cuda_home, ChunkStore& store,
                               v1::TranslationUnit* unit) {
  v1::CompileTranslationUnit compile;
  compile.set_main_file(unit->main_file());
  compile.set_directory(unit->directory());
  *compile.mutable_clang_args() = unit->clang_args();
  ASSIGN_OR_RETURN(
      const std::vector<ClosureFile> files,
      ComputeSourceClosure(compile, architecture, FindToolchain(cuda_home)));
  for (const ClosureFile& file : files) {
    v1::SourceFile* kept = unit->add_files();
    kept->set_path(file.path);
    kept->set_system(file.system);
    ASSIGN_OR_RETURN(*kept->mutable_content(), store.Put(file.content));
  }
  return absl::OkStatus();
}

}  // namespace reprise
