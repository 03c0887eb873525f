#include "replay/recorder/session/unit_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "replay/base/file_util.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/command_line.h"
#include "replay/recorder/cc/bookkeeping.h"
#include "replay/recorder/cc/source_closure.h"

namespace reprise {

SourceUnit::SourceUnit(UnitUse use, v1::TranslationUnit unit,
                       const ChunkStore* files, std::string cuda_home)
    : use_(std::move(use)),
      unit_(std::move(unit)),
      files_(files),
      cuda_home_(std::move(cuda_home)) {}

bool SourceUnit::IsNamedIn(const std::string& symbol) const {
  return !use_.tag.empty() && symbol.find(use_.tag) != std::string::npos;
}

bool SourceUnit::relocatable() const {
  const auto& arguments = unit_.clang_args();
  return std::find(arguments.begin(), arguments.end(), "-fgpu-rdc") !=
         arguments.end();
}

absl::StatusOr<v1::CompileTranslationUnit> SourceUnit::WithFiles() const {
  v1::CompileTranslationUnit compile;
  compile.set_main_file(unit_.main_file());
  compile.set_directory(unit_.directory());
  *compile.mutable_clang_args() = unit_.clang_args();
  for (const v1::SourceFile& file : unit_.files()) {
    v1::CompileFile* copy = compile.add_files();
    copy->set_path(file.path());
    ASSIGN_OR_RETURN(*copy->mutable_content(),
                     files_->GetString(file.content()));
  }
  return compile;
}

absl::StatusOr<const v1::CompileReply*> SourceUnit::Ir(
    CompilePool& pool) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!compiled_) {
    auto input = std::make_shared<v1::CompileInput>();
    input->set_key(absl::StrCat("ir of ", id(), " for ", architecture()));
    input->set_architecture(architecture());
    ASSIGN_OR_RETURN(*input->add_translation_units(), WithFiles());
    ASSIGN_OR_RETURN(
        ir_, pool.Compile(input, v1::Variant(), v1::COMPILE_TARGET_DEVICE_IR));
    compiled_ = true;
    if (ir_.kind() != v1::OUTCOME_KIND_OK) {
      error_ = absl::FailedPreconditionError(
          absl::StrCat("Clang cannot compile ", unit_.main_file(),
                       " for the device:\n", ir_.diagnostics()));
    }
  }
  RETURN_IF_ERROR(error_);
  return &ir_;
}

absl::StatusOr<v1::TranslationUnit> SourceUnit::CopyTo(
    ChunkStore& store) const {
  v1::TranslationUnit copy = unit_;
  if (files_ == nullptr) {
    RETURN_IF_ERROR(
        KeepSourceClosure(architecture(), cuda_home_, store, &copy));
  } else {
    for (v1::SourceFile& file : *copy.mutable_files()) {
      ASSIGN_OR_RETURN(const std::string content,
                       files_->GetString(file.content()));
      ASSIGN_OR_RETURN(*file.mutable_content(), store.Put(content));
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!ir_.code().empty()) {
    ASSIGN_OR_RETURN(*copy.mutable_ir(), store.Put(ir_.code()));
  }
  return copy;
}

absl::StatusOr<std::string> SourceUnit::MainText() const {
  for (const v1::SourceFile& file : unit_.files())
    if (file.path() == unit_.main_file())
      return files_->GetString(file.content());
  return ReadFile(unit_.main_file());
}

namespace {

// One entry's command; empty where the entry has none.
std::vector<std::string> Words(const nlohmann::json& entry) {
  std::vector<std::string> words;
  if (entry.contains("arguments")) {
    for (const nlohmann::json& argument : entry["arguments"])
      if (argument.is_string()) words.push_back(argument);
  } else if (entry.contains("command") && entry["command"].is_string()) {
    words = SplitArguments(entry["command"]);
  }
  return words;
}

void AppendUnits(const nlohmann::json& entry, CommandContext context,
                 std::vector<std::shared_ptr<const SourceUnit>>* units) {
  if (!entry.is_object()) return;
  const std::vector<std::string> words = Words(entry);
  if (words.empty()) return;
  if (entry.contains("directory") && entry["directory"].is_string())
    context.directory = entry["directory"];
  const absl::StatusOr<CompilerCommand> command =
      ParseCompilerCommand(words, context);
  if (!command.ok()) return;
  for (const CommandSource& source : command->sources) {
    if (!source.cuda) continue;
    v1::TranslationUnit unit =
        DescribeUnit(*command, source, words, context.directory);
    std::string id = HexEncode(Sha256(unit.SerializeAsString()));
    units->push_back(std::make_shared<SourceUnit>(
        UnitUse{std::move(id), ChooseArchitecture(command->architectures), ""},
        std::move(unit), nullptr, context.cuda_home));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<const SourceUnit>>>
ReadCompileCommands(const std::string& path, const std::string& cuda_home) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const nlohmann::json entries =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!entries.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " is no compilation database: expected a JSON "
                     "array of commands"));
  }
  CommandContext context = CommandContext::FromEnvironment();
  if (!cuda_home.empty()) context.cuda_home = cuda_home;
  std::vector<std::shared_ptr<const SourceUnit>> units;
  for (const nlohmann::json& entry : entries)
    AppendUnits(entry, context, &units);
  if (units.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " names no CUDA source"));
  }
  return units;
}

}  // namespace reprise
