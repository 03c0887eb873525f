#include "tests/benchmarks/app_units.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/command_line.h"

namespace reprise {
namespace {

struct App {
  std::string name;
  std::vector<std::string> sources;
  std::vector<std::string> flags;
};

absl::StatusOr<std::vector<App>> ReadTable(const AppUnitOptions& options) {
  const std::vector<std::string>& only = options.only;
  ASSIGN_OR_RETURN(const std::string table,
                   ReadFile(options.apps_directory + "/" + options.table));
  std::vector<App> apps;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(table, '\n'))) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    if (fields.size() < 3 || line[0] == '#') continue;
    if (!only.empty() &&
        std::find(only.begin(), only.end(), fields[0]) == only.end())
      continue;
    App app{fields[0], absl::StrSplit(fields[1], ','), {}};
    if (fields[2] != "-") app.flags = absl::StrSplit(fields[2], ' ');
    apps.push_back(std::move(app));
  }
  if (apps.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no application to compile in ", options.table));
  }
  return apps;
}

// As `reprise cc` would see the application's build by nvcc.
absl::StatusOr<v1::CompileTranslationUnit> UnitFor(const std::string& directory,
                                                   const App& app,
                                                   const std::string& source) {
  CommandContext context = CommandContext::FromEnvironment();
  context.directory = absl::StrCat(directory, "/", app.name);
  std::vector<std::string> argv = {"nvcc", "-arch=sm_90", "-I" + directory,
                                   "-c", source};
  argv.insert(argv.end(), app.flags.begin(), app.flags.end());
  ASSIGN_OR_RETURN(const CompilerCommand command,
                   ParseCompilerCommand(argv, context));
  v1::CompileTranslationUnit unit;
  unit.set_directory(context.directory);
  unit.set_main_file(absl::StrCat(context.directory, "/", source));
  for (const std::string& arg : command.clang_args) unit.add_clang_args(arg);
  return unit;
}

struct CompiledUnit {
  v1::CompileTranslationUnit unit;
  std::vector<std::string> kernels;
  std::string clang_refused;
};

absl::StatusOr<CompiledUnit> CompileUnit(CompilePool& pool,
                                         v1::CompileTranslationUnit unit,
                                         bool without_ir) {
  auto input = std::make_shared<v1::CompileInput>();
  input->set_key("ir of " + unit.main_file());
  input->set_architecture("sm_90");
  *input->add_translation_units() = unit;
  ASSIGN_OR_RETURN(
      v1::CompileReply reply,
      pool.Compile(input, v1::Variant(), v1::COMPILE_TARGET_DEVICE_IR));
  CompiledUnit compiled{std::move(unit), {}, ""};
  if (reply.kind() != v1::OUTCOME_KIND_OK && without_ir) {
    compiled.clang_refused = reply.diagnostics();
    v1::Variant nvrtc;
    nvrtc.set_frontend("nvrtc");
    ASSIGN_OR_RETURN(reply, pool.Compile(input, nvrtc, v1::COMPILE_TARGET_PTX));
  }
  if (reply.kind() != v1::OUTCOME_KIND_OK) {
    return absl::InternalError(
        absl::StrCat(compiled.unit.main_file(), ": ", reply.diagnostics()));
  }
  if (compiled.clang_refused.empty()) compiled.unit.set_ir(reply.code());
  for (const v1::CompiledKernelInfo& kernel : reply.kernels())
    compiled.kernels.push_back(kernel.symbol());
  return compiled;
}

}  // namespace

absl::StatusOr<std::vector<AppKernel>> LoadAppKernels(
    CompilePool& pool, const AppUnitOptions& given) {
  AppUnitOptions options = given;
  // Compilers run in directories of their own.
  options.apps_directory =
      std::filesystem::absolute(given.apps_directory).lexically_normal();
  ASSIGN_OR_RETURN(const std::vector<App> apps, ReadTable(options));
  std::vector<AppKernel> all;
  for (const App& app : apps) {
    std::vector<CompiledUnit> units;
    for (const std::string& source : app.sources) {
      if (source.rfind(".cc") == source.size() - 3) continue;
      ASSIGN_OR_RETURN(v1::CompileTranslationUnit unit,
                       UnitFor(options.apps_directory, app, source));
      ASSIGN_OR_RETURN(CompiledUnit compiled,
                       CompileUnit(pool, std::move(unit), options.without_ir));
      units.push_back(std::move(compiled));
    }
    const bool links = std::find(app.flags.begin(), app.flags.end(),
                                 "-rdc=true") != app.flags.end();
    for (size_t i = 0; i < units.size(); ++i) {
      for (const std::string& kernel : units[i].kernels) {
        auto input = std::make_shared<v1::CompileInput>();
        input->set_key(absl::StrCat(units[i].unit.main_file(), " ", kernel));
        input->set_architecture("sm_90");
        input->add_kernels(kernel);
        *input->add_translation_units() = units[i].unit;
        for (size_t j = 0; links && j < units.size(); ++j) {
          if (j != i) *input->add_translation_units() = units[j].unit;
        }
        all.push_back({app.name, units[i].unit.main_file(), std::move(input),
                       units[i].clang_refused});
      }
    }
  }
  return all;
}

absl::StatusOr<std::vector<AppKernel>> LoadAppKernels(
    CompilePool& pool, const std::string& apps_directory,
    const std::vector<std::string>& only) {
  AppUnitOptions options;
  options.apps_directory = apps_directory;
  options.only = only;
  return LoadAppKernels(pool, options);
}

std::string DefaultAppsDirectory() {
  const char* source = std::getenv("REPRISE_SOURCE_DIR");
  return std::string(source == nullptr ? "." : source) + "/tests/apps";
}

}  // namespace reprise
