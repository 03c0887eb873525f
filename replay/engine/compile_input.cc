#include "replay/engine/compile_input.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

// 90 of "sm_90a"; 0 where it is no such name.
int ArchitectureNumber(const std::string& architecture) {
  return architecture.rfind("sm_", 0) == 0 ? std::atoi(architecture.c_str() + 3)
                                           : 0;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const v1::CompileInput>> LoadCompileInput(
    const UnitReader& unit, const Device& device) {
  ASSIGN_OR_RETURN(std::shared_ptr<const v1::CompileInput> input,
                   LoadCompileInput(unit));
  const int recorded = ArchitectureNumber(input->architecture());
  const int present = ArchitectureNumber(device.facts().architecture);
  if (recorded == 0 || present / 10 <= recorded / 10) return input;
  auto adapted = std::make_shared<v1::CompileInput>(*input);
  adapted->set_architecture(device.facts().architecture);
  adapted->set_key(
      absl::StrCat(input->key(), "-", device.facts().architecture));
  return std::shared_ptr<const v1::CompileInput>(std::move(adapted));
}

absl::StatusOr<std::shared_ptr<const v1::CompileInput>> LoadCompileInput(
    const UnitReader& unit) {
  const v1::Unit& manifest = unit.manifest();
  if (manifest.translation_units().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("unit ", unit.id(),
                     " holds machine code only: it cannot be rebuilt; record "
                     "an application that was "
                     "compiled through 'reprise cc' to get its source"));
  }
  auto input = std::make_shared<v1::CompileInput>();
  input->set_architecture(manifest.architecture());
  input->add_kernels(manifest.kernel().symbol());
  // The launch touched some: maybe through addresses in memory alone.
  for (const v1::MemoryRange& range : manifest.memory())
    if (!range.symbol().empty()) input->set_keep_variables(true);
  *input->mutable_launch() = manifest.launch();
  FieldHasher key;
  key.Bytes(unit.id()).Bytes(manifest.instance_sha256());
  for (const v1::TranslationUnit& tu : manifest.translation_units()) {
    v1::CompileTranslationUnit* out = input->add_translation_units();
    out->set_main_file(tu.main_file());
    out->set_directory(tu.directory());
    *out->mutable_clang_args() = tu.clang_args();
    for (const v1::SourceFile& file : tu.files()) {
      v1::CompileFile* copy = out->add_files();
      copy->set_path(file.path());
      ASSIGN_OR_RETURN(*copy->mutable_content(),
                       unit.chunks().GetString(file.content()));
      key.Bytes(file.path()).Bytes(Sha256(copy->content()));
    }
    // Without IR, Clang refuses the source; another front end may not.
    if (tu.has_ir()) {
      ASSIGN_OR_RETURN(*out->mutable_ir(), unit.chunks().GetString(tu.ir()));
    }
    key.Bytes(Sha256(out->ir()));
  }
  input->set_key(HexEncode(key.Finish()));
  return std::shared_ptr<const v1::CompileInput>(std::move(input));
}

}  // namespace reprise
