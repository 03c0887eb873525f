// Compiles every application of tests/apps with Reprise's own compiler to
// cubins, for load_cubins and a GPU to try.
//
//   emit_cubins [--instrumented] APPS_DIRECTORY OUTPUT_DIRECTORY [ARCHITECTURE]
//
// With --instrumented the cubins note their accesses
// (replay/device/cuda/access_notes.h), and lines compare them with plain ones
// and say what they do not note.
//
// An application of one translation unit, or of several that are linked
// (-rdc=true), becomes OUTPUT/NAME.cubin; otherwise every translation unit with
// kernels becomes OUTPUT/NAME-SOURCE.cubin, as kernels of different ones may
// share a name. Command lines are those of tests/apps/build.sh with nvcc, read
// as `reprise cc` reads them. ARCHITECTURE defaults to sm_90. Needs a CUDA
// toolkit and no GPU.
//
// Prints one line per cubin and a count line; exits 0 when all are written.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/command_line.h"
#include "replay/compiler/compiler.h"

namespace reprise {
namespace {

struct Application {
  std::string name;
  std::vector<std::string> sources;
  std::vector<std::string> flags;
};

absl::StatusOr<std::vector<Application>> ReadApplications(
    const std::string& table) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(table));
  std::vector<Application> applications;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    const std::vector<std::string> columns = absl::StrSplit(line, '\t');
    if (columns.size() != 6) {
      return absl::InvalidArgumentError(absl::StrCat(
          table, ": got ", columns.size(), " columns, expected 6, in: ", line));
    }
    Application application{columns[0], absl::StrSplit(columns[1], ','), {}};
    if (columns[2] != "-") application.flags = absl::StrSplit(columns[2], ' ');
    applications.push_back(std::move(application));
  }
  if (applications.empty())
    return absl::InvalidArgumentError(table + " lists no application");
  return applications;
}

// Each source is compiled once: a precompiled header would not pay.
Compiler::Options WithoutPch() {
  Compiler::Options options;
  options.tools = FindToolchain("");
  options.use_pch = false;
  return options;
}

class Emitter {
 public:
  Emitter(std::string apps, std::string output, std::string architecture,
          bool instrumented)
      : apps_(std::move(apps)),
        output_(std::move(output)),
        architecture_(std::move(architecture)),
        instrumented_(instrumented),
        compiler_(Compiler::Create(WithoutPch())) {}

  absl::Status Emit(const Application& application);
  int cubins() const { return cubins_; }

 private:
  absl::StatusOr<v1::CompileInput> Describe(const Application& application,
                                            const std::string& source);
  absl::StatusOr<v1::CompileReply> Compile(const v1::CompileInput& input,
                                           v1::CompileTarget target);
  absl::Status EmitOne(const v1::CompileInput& input);
  absl::Status Write(const v1::CompileInput& input,
                     const v1::CompileReply& reply);

  const std::string apps_;
  const std::string output_;
  const std::string architecture_;
  const bool instrumented_;
  std::unique_ptr<Compiler> compiler_;
  bool relocatable_ = false;  // of the command that Describe read last
  int cubins_ = 0;
};

// The translation unit of one source, from an nvcc command.
absl::StatusOr<v1::CompileInput> Emitter::Describe(
    const Application& application, const std::string& source) {
  CommandContext context = CommandContext::FromEnvironment();
  context.directory = absl::StrCat(apps_, "/", application.name);
  std::vector<std::string> argv = {"nvcc", "-O3", "-arch=" + architecture_,
                                   "-cudart=shared", "-I" + apps_};
  argv.insert(argv.end(), application.flags.begin(), application.flags.end());
  argv.insert(argv.end(), {"-c", source, "-o", source + ".o"});
  ASSIGN_OR_RETURN(const CompilerCommand command,
                   ParseCompilerCommand(argv, context));
  if (command.sources.size() != 1 || !command.unknown_flags.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got a command with ", command.sources.size(), " sources and ",
        command.unknown_flags.size(), " unknown flags, expected 1 and 0"));
  }
  relocatable_ = command.relocatable_device_code;
  v1::CompileInput input;
  input.set_key(absl::StrCat(application.name, "-",
                             std::filesystem::path(source).stem().string()));
  input.set_architecture(architecture_);
  v1::CompileTranslationUnit& unit = *input.add_translation_units();
  unit.set_main_file(context.directory + "/" + source);
  unit.set_directory(context.directory);
  for (const std::string& argument : command.clang_args)
    unit.add_clang_args(argument);
  return input;
}

absl::StatusOr<v1::CompileReply> Emitter::Compile(const v1::CompileInput& input,
                                                  v1::CompileTarget target) {
  compiler_->Remember(input);
  v1::CompileReply reply =
      compiler_->Compile(input.key(), v1::Variant(), target);
  if (reply.kind() != v1::OUTCOME_KIND_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.key(), ": ", reply.diagnostics()));
  }
  return reply;
}

absl::Status Emitter::Write(const v1::CompileInput& input,
                            const v1::CompileReply& reply) {
  ++cubins_;
  return WriteFileAtomically(absl::StrCat(output_, "/", input.key(), ".cubin"),
                             reply.code());
}

void PrintFacts(const std::string& key, const v1::CompileReply& reply) {
  std::printf(
      "%-24s %2d kernels %3u registers %4llu spilled %6llu bytes  "
      "%.0f ms\n",
      key.c_str(), reply.kernels_size(), reply.facts().registers(),
      static_cast<unsigned long long>(reply.facts().spill_bytes()),
      static_cast<unsigned long long>(reply.facts().code_bytes()),
      reply.frontend_ms() + reply.pipeline_ms() + reply.codegen_ms() +
          reply.link_ms());
}

absl::Status Emitter::EmitOne(const v1::CompileInput& input) {
  ASSIGN_OR_RETURN(const v1::CompileReply reply,
                   Compile(input, v1::COMPILE_TARGET_CUBIN));
  PrintFacts(input.key(), reply);
  if (!instrumented_) return Write(input, reply);
  ASSIGN_OR_RETURN(const v1::CompileReply notes,
                   Compile(input, v1::COMPILE_TARGET_CUBIN_INSTRUMENTED));
  PrintFacts("  instrumented", notes);
  std::printf("%s", notes.diagnostics().c_str());
  return Write(input, notes);
}

absl::Status Emitter::Emit(const Application& application) {
  // IR first: it says which kernels a translation unit has.
  std::vector<v1::CompileInput> inputs;
  v1::CompileInput linked;
  for (const std::string& source : application.sources) {
    ASSIGN_OR_RETURN(v1::CompileInput input, Describe(application, source));
    ASSIGN_OR_RETURN(v1::CompileReply reply,
                     Compile(input, v1::COMPILE_TARGET_DEVICE_IR));
    input.mutable_translation_units(0)->set_ir(
        std::move(*reply.mutable_code()));
    linked.add_translation_units()->CopyFrom(input.translation_units(0));
    for (const v1::CompiledKernelInfo& kernel : reply.kernels()) {
      input.add_kernels(kernel.symbol());
      linked.add_kernels(kernel.symbol());
    }
    if (!input.kernels().empty()) inputs.push_back(std::move(input));
  }
  if (inputs.empty())
    return absl::NotFoundError(application.name + " has no kernels");
  if (relocatable_) {
    linked.set_architecture(architecture_);
    inputs = {std::move(linked)};
  }
  if (inputs.size() == 1) inputs[0].set_key(application.name);
  for (const v1::CompileInput& input : inputs) RETURN_IF_ERROR(EmitOne(input));
  return absl::OkStatus();
}

int Main(const std::string& apps, const std::string& output,
         const std::string& architecture, bool instrumented) {
  const absl::StatusOr<std::vector<Application>> applications =
      ReadApplications(apps + "/apps.tsv");
  absl::Status status = applications.status();
  if (status.ok()) status = MakeDirectories(output);
  if (!status.ok()) {
    std::fprintf(stderr, "emit_cubins: %s\n",
                 std::string(status.message()).c_str());
    return 1;
  }
  Emitter emitter(apps, output, architecture, instrumented);
  size_t good = 0;
  for (const Application& application : *applications) {
    status = emitter.Emit(application);
    good += status.ok();
    if (status.ok()) continue;
    std::printf("%-24s FAILED: %s\n", application.name.c_str(),
                std::string(status.message()).c_str());
  }
  std::printf("%zu of %zu applications compiled into %d cubins for %s\n", good,
              applications->size(), emitter.cubins(), architecture.c_str());
  return good == applications->size() ? 0 : 1;
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto flag =
      std::find(arguments.begin(), arguments.end(), "--instrumented");
  const bool instrumented = flag != arguments.end();
  if (instrumented) arguments.erase(flag);
  if (arguments.size() != 2 && arguments.size() != 3) {
    std::fprintf(stderr,
                 "usage: emit_cubins [--instrumented] APPS_DIRECTORY "
                 "OUTPUT_DIRECTORY [ARCHITECTURE]\n");
    return 2;
  }
  return reprise::Main(
      std::filesystem::absolute(arguments[0]).string(), arguments[1],
      arguments.size() == 3 ? arguments[2] : "sm_90", instrumented);
}
