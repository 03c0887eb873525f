#include "replay/compiler/codegen.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "replay/compiler/clang_driver.h"
#include "replay/compiler/code_hash.h"

namespace reprise {
namespace {

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> Create(
    const llvm::Triple& triple, const std::string& cpu,
    const std::string& features, std::optional<llvm::Reloc::Model> relocation,
    llvm::FPOpFusion::FPOpFusionMode fusion) {
  InitializeLlvm();
  std::string error;
  const llvm::Target* target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return absl::InternalError(error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = fusion;
  // Code that runs off an end stops instead of running into what follows.
  options.TrapUnreachable = triple.isX86();
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu, features, options, relocation, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
  if (machine == nullptr) {
    return absl::InternalError(
        absl::StrCat("LLVM makes no target machine for ", triple.str()));
  }
  return machine;
}

// "+ptx88,+sm_90" of the first function that states it, with the newest PTX.
std::string GpuFeatures(const llvm::Module& module, int newest_ptx) {
  for (const llvm::Function& function : module) {
    const llvm::StringRef features =
        function.getFnAttribute("target-features").getValueAsString();
    const auto [before, ptx] = features.split("+ptx");
    int version = 0;
    if (!ptx.take_while(llvm::isDigit).getAsInteger(10, version))
      return absl::StrCat(before.str(), "+ptx", std::min(version, newest_ptx),
                          ptx.drop_while(llvm::isDigit).str());
  }
  return absl::StrCat("+ptx", std::min(88, newest_ptx));
}

}  // namespace

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> CreateGpuTargetMachine(
    const std::string& architecture, const llvm::Module& module, bool fuse,
    int newest_ptx) {
  return Create(llvm::Triple("nvptx64-nvidia-cuda"), architecture,
                GpuFeatures(module, newest_ptx), std::nullopt,
                fuse ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Strict);
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> CreateHostTargetMachine(
    bool fuse) {
  llvm::SubtargetFeatures features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    features.AddFeature(feature.first(), feature.second);
  return Create(llvm::Triple(llvm::sys::getProcessTriple()),
                llvm::sys::getHostCPUName().str(), features.getString(),
                llvm::Reloc::PIC_,
                // Only what Clang marks: __fmul_rn and the like must round.
                fuse ? llvm::FPOpFusion::Standard : llvm::FPOpFusion::Strict);
}

void AdoptHost(const llvm::TargetMachine& target,
               const v1::CodegenOptions& options, llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) {
      function.setDSOLocal(false);
      continue;
    }
    function.removeFnAttr("target-features");
    function.addFnAttr("target-cpu", target.getTargetCPU());
    function.addFnAttr("target-features", target.getTargetFeatureString());
    // Clang's CUDA default is to keep them; nothing walks these stacks.
    function.addFnAttr("frame-pointer", "none");
    if (options.has_prefer_vector_bits())
      function.addFnAttr("prefer-vector-width",
                         absl::StrCat(options.prefer_vector_bits()));
  }
  for (llvm::GlobalVariable& global : module.globals()) {
    if (global.isDeclaration()) global.setDSOLocal(false);
    // Names of source places, by the lowering: equal code may differ in them.
    if (global.getName().starts_with("__reprise_site"))
      global.setSection(kSourcePlaceSection);
  }
}

absl::StatusOr<std::string> EmitCode(llvm::TargetMachine& target,
                                     llvm::CodeGenFileType type,
                                     llvm::Module& module) {
  llvm::SmallVector<char, 0> code;
  llvm::raw_svector_ostream stream(code);
  llvm::legacy::PassManager passes;
  passes.add(new llvm::TargetLibraryInfoWrapperPass(module.getTargetTriple()));
  if (target.addPassesToEmitFile(passes, stream, nullptr, type)) {
    return absl::InternalError(
        absl::StrCat("LLVM's ", target.getTargetTriple().str(),
                     " back end cannot write this kind of file"));
  }
  passes.run(module);
  return std::string(code.data(), code.size());
}

}  // namespace reprise
