// reprise: one binary for people, for builds (cc) and for its own children
// (executor, cuda-executor, compile-worker).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "replay/base/log.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/cpu/executor_client.h"
#include "replay/device/cuda/executor_client.h"
#include "replay/recorder/cc/launcher.h"
#include "services/cli/context.h"

namespace reprise {
namespace {

constexpr char kVersion[] = "reprise 0.1.0";
constexpr char kDescription[] =
    "Records GPU kernels out of running CUDA programs, remixes them, and "
    "replays the remixes\n"
    "against the recorded memory until a faster kernel that computes the same "
    "thing is found.";
constexpr char kFooter[] =
    "Start here:\n"
    "  reprise demo                                 see it work, no GPU "
    "needed\n"
    "  reprise cc clang++ -O3 -x cuda -c a.cu ...   build your program through "
    "reprise (as with ccache)\n"
    "  reprise record -- ./application              record its kernels\n"
    "  reprise units                                what was recorded\n"
    "  reprise optimize UNIT                        find a faster kernel\n"
    "  reprise apply RESULT -- ./application        run the application with "
    "it\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 bad usage, 3 nothing better found, 130 "
    "interrupted. record and\n"
    "apply: the application's own where it is not 0; record: 1 where nothing "
    "was recorded.";

constexpr char kCompilerHelp[] =
    "Usage: reprise cc COMPILER ARGUMENTS...\n"
    "Runs the compiler (clang++ or nvcc) untouched, with the same output files "
    "and exit status, and keeps what replay\n"
    "needs of every CUDA compile and of every link: command, sources and the "
    "digest of the device code. As a launcher:\n"
    "  cmake -DCMAKE_CUDA_COMPILER_LAUNCHER=\"reprise;cc\" ...\n"
    "  make CXX=\"reprise cc clang++-22\"\n"
    "Kept in $REPRISE_HOME (or what reprise.yaml says), by default "
    "~/.cache/reprise.\n";

// The verb that was meant: one that begins so, or differs in few letters.
std::string Nearest(const std::string& word,
                    const std::vector<const CLI::App*>& verbs) {
  std::string best;
  size_t best_distance = std::min<size_t>(2, word.size() / 3) + 1;
  for (const CLI::App* verb : verbs) {
    const std::string& name = verb->get_name();
    if (name.starts_with(word)) return name;
    // Levenshtein's distance, row by row.
    std::vector<size_t> row(name.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < word.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i + 1);
      for (size_t j = 0; j < name.size(); ++j) {
        const size_t replaced = diagonal + (word[i] == name[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = name;
    }
  }
  return best;
}

// Says what is wrong with the first word, if that is it; the parser would only
// miss a verb.
bool RefuseFirstWord(int argc, char** argv, const CLI::App& app) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "-h" || word == "--help" || word == "--version") return false;
  const std::vector<const CLI::App*> verbs =
      app.get_subcommands([](const CLI::App*) { return true; });
  std::string names;
  for (const CLI::App* verb : verbs) {
    if (verb->get_name() == word) return false;
    names += (names.empty() ? "" : ", ") + verb->get_name();
  }
  std::string text = word.empty() ? "got no verb" : "got '" + word + "'";
  text += ", expected a verb: " + names;
  const std::string nearest = word.size() < 3 ? "" : Nearest(word, verbs);
  if (!nearest.empty())
    text += "; did you mean " + nearest + "?";
  else if (word.starts_with('-'))
    text += "; options follow the verb";
  std::fprintf(stderr, "reprise: %s\nRun 'reprise --help' for what they do.\n",
               text.c_str());
  return true;
}

int RunVerbs(int argc, char** argv) {
  absl::StatusOr<Settings> settings =
      Settings::Load(std::filesystem::current_path());
  if (!settings.ok()) {
    std::fprintf(stderr, "reprise: %s\n",
                 std::string(settings.status().message()).c_str());
    return kExitUsage;
  }
  CliContext context{.settings = *std::move(settings)};
  CLI::App app{kDescription, "reprise"};
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  AddRecordVerb(&app, &context);
  AddUnitsVerb(&app, &context);
  AddInspectVerb(&app, &context);
  AddReplayVerb(&app, &context);
  AddOptimizeVerb(&app, &context);
  AddApplyVerb(&app, &context);
  AddDemoVerb(&app, &context);
  AddServeVerb(&app, &context);
  AddCertsVerb(&app, &context);
  AddDoctorVerb(&app, &context);
  // Listed for --help only; main() runs it before options are parsed, since
  // every argument is the compiler's.
  app.add_subcommand("cc",
                     "run a compiler untouched and keep what replay needs: "
                     "reprise cc COMPILER ARGUMENTS...");
  app.footer(kFooter);  // last: subcommands would inherit it
  if (RefuseFirstWord(argc, argv, app)) return kExitUsage;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& call) {
    return app.exit(call);
  } catch (const CLI::CallForVersion& call) {
    return app.exit(call);
  } catch (const CLI::ParseError& error) {
    std::fprintf(
        stderr, "reprise: %s\nRun 'reprise%s%s --help' for what is expected.\n",
        error.what(), app.get_subcommands().empty() ? "" : " ",
        app.get_subcommands().empty()
            ? ""
            : app.get_subcommands()[0]->get_name().c_str());
    return kExitUsage;
  }
  return context.exit_code;
}

// `reprise cc` looks for $REPRISE_HOME alone; a project or user file may name
// it as well.
int RunCompiler(int argc, char** argv) {
  if (argc == 0 || std::strcmp(argv[0], "--help") == 0 ||
      std::strcmp(argv[0], "-h") == 0) {
    std::fprintf(argc == 0 ? stderr : stdout, "%s", kCompilerHelp);
    return argc == 0 ? kExitUsage : kExitDone;
  }
  const absl::StatusOr<Settings> settings =
      Settings::Load(std::filesystem::current_path());
  if (settings.ok()) setenv("REPRISE_HOME", settings->Get("home").c_str(), 1);
  return CompilerLauncherMain(argc, argv);
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  reprise::InitializeLogging();
  const char* verb = argc > 1 ? argv[1] : "";
  if (std::strcmp(verb, "cc") == 0)
    return reprise::RunCompiler(argc - 2, argv + 2);
  if (std::strcmp(verb, "executor") == 0)
    return reprise::ExecutorMain(argc - 2, argv + 2);
  if (std::strcmp(verb, "cuda-executor") == 0)
    return reprise::CudaExecutorMain(argc - 2, argv + 2);
  if (std::strcmp(verb, "compile-worker") == 0)
    return reprise::CompileWorkerMain(argc - 2, argv + 2);
  return reprise::RunVerbs(argc, argv);
}
