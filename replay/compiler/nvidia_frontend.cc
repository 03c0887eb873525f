#include "replay/compiler/nvidia_frontend.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/device_slice.h"
#include "replay/compiler/kernel_symbols.h"
#include "replay/compiler/nvcc_child.h"
#include "replay/compiler/nvidia_options.h"
#include "replay/compiler/nvrtc_headers.h"
#include "replay/compiler/ptx_text.h"
#include "replay/compiler/source_files.h"
#include "replay/compiler/source_tree.h"
#include "replay/compiler/unit_options.h"

namespace reprise {
namespace {

using Overlays = NvidiaFrontend::Overlays;

class NvidiaFrontendImpl : public NvidiaFrontend {
 public:
  NvidiaFrontendImpl(const v1::CompileTranslationUnit& unit, Options options,
                     Nvrtc* nvrtc, SourceTree whole, SourceTree sliced)
      : unit_(unit),
        options_(std::move(options)),
        nvrtc_(nvrtc),
        whole_(std::move(whole)),
        sliced_(std::move(sliced)) {}

  absl::StatusOr<Result> Compile(const Overlays& overlays,
                                 const v1::CodegenOptions& codegen) override {
    const absl::StatusOr<std::string> ptx = CompileByNvrtc(overlays, codegen);
    if (ptx.ok()) return Result{*ptx, ""};
    if (options_.tools.nvcc.empty()) {
      return absl::Status(
          ptx.status().code(),
          absl::StrCat(ptx.status().message(),
                       "\nand this toolkit has no nvcc to try instead"));
    }
    ASSIGN_OR_RETURN(std::string whole, CompileByNvcc(overlays, codegen));
    return Result{std::move(whole), std::string(ptx.status().message())};
  }

 private:
  // --- NVRTC.

  absl::StatusOr<std::string> CompileByNvrtc(
      const Overlays& overlays, const v1::CodegenOptions& codegen) {
    if (nvrtc_ == nullptr)
      return absl::FailedPreconditionError("NVRTC was not found");
    if (!never_sliced_.ok()) return never_sliced_;
    const NvidiaOptions options = TranslateForNvidia(unit_, codegen);
    if (!slice_.has_value()) {
      absl::StatusOr<DeviceSlice> slice = Slice({});
      if (!slice.ok()) return never_sliced_ = slice.status();
      slice_ = *std::move(slice);
    }
    absl::StatusOr<std::string> ptx = CompileSlice(*slice_, overlays, options);
    if (ptx.ok() || overlays.empty()) {
      // What it cannot take as it is, it will not take edited.
      if (!ptx.ok()) never_sliced_ = ptx.status();
      return ptx;
    }
    // The edit may have touched what is cut, or use it.
    ASSIGN_OR_RETURN(const DeviceSlice fresh, Slice(overlays));
    return CompileSlice(fresh, overlays, options);
  }

  absl::StatusOr<DeviceSlice> Slice(const Overlays& overlays) const {
    // Other units may name any function or variable of relocatable code.
    const bool relocatable = ParseUnitOptions(unit_).relocatable_device_code;
    return SliceForDevice(
        unit_, options_.architecture,
        {options_.kernels, options_.keep_variables || relocatable, relocatable},
        overlays, options_.tools);
  }

  absl::StatusOr<std::string> CompileSlice(const DeviceSlice& slice,
                                           const Overlays& overlays,
                                           const NvidiaOptions& options) {
    ASSIGN_OR_RETURN(const Overlays cut, Cut(slice, overlays));
    RETURN_IF_ERROR(sliced_.Apply(cut));
    const std::string main = CleanPath(unit_.main_file(), unit_.directory());
    NvrtcSource source;
    source.name = sliced_.PathOf(main);
    for (const v1::SourceOverlay& file : cut)
      if (file.path() == main) source.text = file.content();
    source.headers = NvrtcHeaders(slice.uses_std);
    source.options = NvrtcWords(options, slice, HasEditedHeader(overlays));
    for (const std::string& kernel : options_.kernels) {
      const std::string expression = KernelExpression(kernel);
      if (expression != QualifiedKernelName(kernel) ||
          absl::StrContains(DemangledName(kernel), "(anonymous namespace)") ||
          NormalizedSymbol(kernel) != DemangledName(kernel))
        source.name_expressions.push_back(expression);
    }
    ASSIGN_OR_RETURN(std::string ptx, nvrtc_->CompileToPtx(source));
    const std::vector<std::string> made = PtxKernelNames(ptx);
    for (const std::string& kernel : options_.kernels) {
      if (FindKernelSymbol(made, kernel) < 0)
        return absl::NotFoundError("NVRTC made no kernel " + kernel);
    }
    return ptx;
  }

  // The user's files without what is for the host.
  absl::StatusOr<Overlays> Cut(const DeviceSlice& slice,
                               const Overlays& overlays) const {
    Overlays cut;
    const std::string main = CleanPath(unit_.main_file(), unit_.directory());
    bool has_main = false;
    for (const auto& [path, pieces] : slice.cuts) {
      ASSIGN_OR_RETURN(const std::string text, TextOf(path, overlays));
      std::optional<std::string> left = CutPieces(text, pieces);
      if (!left.has_value())
        return absl::NotFoundError("an edit touches host code of " + path);
      v1::SourceOverlay* file = cut.Add();
      file->set_path(path);
      file->set_content(*std::move(left));
      has_main = has_main || path == main;
    }
    for (const v1::SourceOverlay& overlay : overlays) {
      const std::string path = CleanPath(overlay.path(), unit_.directory());
      if (slice.cuts.count(path) == 0) *cut.Add() = overlay;
    }
    if (!has_main) {
      ASSIGN_OR_RETURN(const std::string text, TextOf(main, overlays));
      v1::SourceOverlay* file = cut.Add();
      file->set_path(main);
      file->set_content(text);
    }
    return cut;
  }

  absl::StatusOr<std::string> TextOf(const std::string& path,
                                     const Overlays& overlays) const {
    for (const v1::SourceOverlay& overlay : overlays)
      if (CleanPath(overlay.path(), unit_.directory()) == path)
        return overlay.content();
    for (const v1::CompileFile& file : unit_.files())
      if (CleanPath(file.path(), unit_.directory()) == path)
        return file.content();
    return ReadFile(path);
  }

  bool HasEditedHeader(const Overlays& overlays) const {
    const std::string main = CleanPath(unit_.main_file(), unit_.directory());
    for (const v1::SourceOverlay& overlay : overlays)
      if (CleanPath(overlay.path(), unit_.directory()) != main) return true;
    return false;
  }

  std::vector<std::string> NvrtcWords(const NvidiaOptions& options,
                                      const DeviceSlice& slice,
                                      bool edited_header) const {
    std::vector<std::string> words = options.language;
    words.push_back("-arch=" + VirtualArchitecture(options_.architecture));
    for (const char* word : {"-default-device", "-w"}) words.push_back(word);
    if (options.relocatable) words.push_back("-rdc=true");
    AddDirectories(sliced_, options, words);
    for (const char* directory : {"/include", "/include/cccl"})
      words.push_back("-I" + options_.tools.cuda_home + directory);
    for (const std::string& file : options.pre_includes)
      words.push_back("-include=" + sliced_.PathOf(file));
    // Headers of the toolkit take seconds; without them it costs.
    if ((slice.includes_toolkit || slice.uses_std) && !edited_header) {
      words.push_back("-pch");
      words.push_back("-pch-dir=" + options_.scratch_directory);
    }
    return words;
  }

  void AddDirectories(const SourceTree& tree, const NvidiaOptions& options,
                      std::vector<std::string>& words) const {
    const std::string main = CleanPath(unit_.main_file(), unit_.directory());
    for (const std::string& place :
         tree.DirectoriesOf(main.substr(0, main.rfind('/'))))
      words.push_back("-I" + place);
    for (const auto& [directory, system] : options.include_directories) {
      if (IsToolchainHeader(directory + "/")) continue;
      for (const std::string& place : tree.DirectoriesOf(directory))
        words.push_back("-I" + place);
    }
  }

  // --- nvcc.

  absl::StatusOr<std::string> CompileByNvcc(const Overlays& overlays,
                                            const v1::CodegenOptions& codegen) {
    RETURN_IF_ERROR(whole_.Apply(overlays));
    const NvidiaOptions options = TranslateForNvidia(unit_, codegen);
    NvccCommand command;
    command.nvcc = options_.tools.nvcc;
    command.architecture = VirtualArchitecture(options_.architecture);
    command.arguments = options.language;
    AddDirectories(whole_, options, command.arguments);
    for (const std::string& file : options.pre_includes) {
      command.arguments.push_back("-include");
      command.arguments.push_back(whole_.PathOf(file));
    }
    if (options.relocatable) command.arguments.push_back("-rdc=true");
    command.source = whole_.PathOf(unit_.main_file());
    command.scratch = options_.scratch_directory;
    return RunNvccToPtx(command);
  }

  const v1::CompileTranslationUnit& unit_;
  const Options options_;
  Nvrtc* const nvrtc_;
  SourceTree whole_;
  SourceTree sliced_;
  std::optional<DeviceSlice> slice_;  // of the unmodified source
  absl::Status never_sliced_;         // why NVRTC cannot take this unit
};

}  // namespace

absl::StatusOr<std::unique_ptr<NvidiaFrontend>> NvidiaFrontend::Create(
    const v1::CompileTranslationUnit& unit, Options options, Nvrtc* nvrtc) {
  const std::string& scratch = options.scratch_directory;
  for (const char* tree : {"/whole", "/sliced"})
    RETURN_IF_ERROR(MakeDirectories(scratch + tree, 0700));
  ASSIGN_OR_RETURN(SourceTree whole,
                   SourceTree::Create(scratch + "/whole", unit));
  ASSIGN_OR_RETURN(SourceTree sliced,
                   SourceTree::Create(scratch + "/sliced", unit));
  return std::make_unique<NvidiaFrontendImpl>(
      unit, std::move(options), nvrtc, std::move(whole), std::move(sliced));
}

}  // namespace reprise
