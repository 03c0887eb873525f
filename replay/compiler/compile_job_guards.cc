// What a variant may not do, as far as it can be seen before it runs. For
// edited sources it is a difference against the unmodified unit
// (docs/guards.md).
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/compile_job.h"
#include "replay/compiler/ir_inventory.h"
#include "replay/compiler/kernel_selection.h"
#include "replay/compiler/source_files.h"

namespace reprise {
namespace {

// The content that the closure has under a path, however it is spelled; null:
// it has none.
const std::string* RecordedContent(const v1::CompileInput& input,
                                   const std::string& path) {
  for (const v1::CompileTranslationUnit& unit : input.translation_units()) {
    const std::string clean = CleanPath(path, unit.directory());
    for (const v1::CompileFile& file : unit.files()) {
      if (CleanPath(file.path(), unit.directory()) == clean)
        return &file.content();
    }
  }
  return nullptr;
}

// Without one, sources are read from the disk, and nobody knows which.
bool HasClosure(const v1::CompileInput& input) {
  for (const v1::CompileTranslationUnit& unit : input.translation_units())
    if (unit.files().empty()) return false;
  return true;
}

// LLVM's passes that write or read files, start programs, print, or make code
// that counts for a profile.
bool LeavesTheModule(const std::string& pass) {
  for (const char* family :
       {"dot-", "view-", "print", "pgo-", "sample-profile", "memprof",
        "instrprof", "insert-gcov", "gcov", "embed-bitcode", "pseudo-probe",
        "ctx-instr", "ctx-prof"}) {
    if (absl::StartsWith(pass, family)) return true;
  }
  return false;
}

}  // namespace

absl::Status CompileJob::Reject(const std::vector<std::string>& reasons) {
  reply_.set_kind(v1::OUTCOME_KIND_REJECTED);
  return absl::FailedPreconditionError(absl::StrJoin(reasons, "\n"));
}

absl::Status CompileJob::CheckPipeline() {
  std::vector<std::string> reasons;
  for (const absl::string_view word :
       absl::StrSplit(variant_.pipeline(), absl::ByAnyChar(",()<>; "))) {
    if (!LeavesTheModule(std::string(word))) continue;
    reasons.push_back(absl::StrCat(
        "pipeline: pass ", word,
        " does more than change the module, which no variant may"));
  }
  return reasons.empty() ? absl::OkStatus() : Reject(reasons);
}

absl::Status CompileJob::CheckEditedFiles() {
  const bool closed = HasClosure(known_.input);
  std::vector<std::string> reasons;
  for (const v1::SourceOverlay& overlay : variant_.sources()) {
    const v1::CompileTranslationUnit& first = known_.input.translation_units(0);
    const std::string clean = CleanPath(overlay.path(), first.directory());
    const std::string* recorded = RecordedContent(known_.input, overlay.path());
    if (IsSystemFile(clean, first, options_.tools)) {
      reasons.push_back(
          absl::StrCat(clean,
                       ": the variant edits a file of the toolchain; "
                       "only the user's own may be edited"));
    } else if (closed && recorded == nullptr) {
      reasons.push_back(
          absl::StrCat(clean,
                       ": the variant edits a file that is none of the "
                       "unit's"));
    } else if (closed && variant_.frontend() == "nvrtc") {
      for (std::string& suspect :
           SuspectIncludes(clean, *recorded, overlay.content()))
        reasons.push_back(std::move(suspect));
    }
  }
  return reasons.empty() ? absl::OkStatus() : Reject(reasons);
}

absl::Status CompileJob::WantRecordedInventory() {
  if (known_.recorded.has_value()) return absl::OkStatus();
  Note("what the unmodified code does");
  std::vector<std::string> kernels(known_.input.kernels().begin(),
                                   known_.input.kernels().end());
  ASSIGN_OR_RETURN(const std::unique_ptr<llvm::Module> module,
                   JoinUnits({}, kernels));
  RETURN_IF_ERROR(
      SelectKernels(kernels, known_.input.keep_variables(), *module));
  known_.recorded = TakeInventory(*module);
  return absl::OkStatus();
}

absl::Status CompileJob::CheckCode(const llvm::Module& module) {
  RETURN_IF_ERROR(WantRecordedInventory());
  const std::vector<std::string> reasons =
      TakeInventory(module).BeyondOf(*known_.recorded);
  return reasons.empty() ? absl::OkStatus() : Reject(reasons);
}

absl::Status CompileJob::WantRecordedPtxInventory() {
  if (known_.recorded_ptx.has_value()) return absl::OkStatus();
  // What the reply says is of the variant.
  const std::string diagnostics = reply_.diagnostics();
  const double frontend_ms = reply_.frontend_ms();
  ASSIGN_OR_RETURN(std::vector<std::string> ptx, CompileByNvidia({}, {}));
  RETURN_IF_ERROR(NameKernels(ptx));
  reply_.set_diagnostics(diagnostics);
  reply_.set_frontend_ms(frontend_ms);
  CodeInventory inventory;
  for (const std::string& text : ptx) AddPtxText(text, inventory);
  known_.recorded_ptx = std::move(inventory);
  return absl::OkStatus();
}

absl::Status CompileJob::CheckPtx(const std::vector<std::string>& ptx) {
  RETURN_IF_ERROR(WantRecordedPtxInventory());
  CodeInventory inventory;
  for (const std::string& text : ptx) AddPtxText(text, inventory);
  const std::vector<std::string> reasons =
      inventory.BeyondOf(*known_.recorded_ptx);
  return reasons.empty() ? absl::OkStatus() : Reject(reasons);
}

}  // namespace reprise
