// What a compiler was asked to do, and the same request in Clang's words.
//
// Understands the command lines of nvcc and of Clang/GCC drivers as build
// systems write them. The result says which sources are compiled, for which
// GPU architectures, to which objects, and gives driver arguments with which
// Clang 22 compiles the same translation unit for the device.
//
// Flags that are unknown never fail a parse: they are left out of the result
// and listed in `unknown_flags`. Needs no LLVM. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_COMMAND_LINE_H_
#define REPRISE_REPLAY_COMPILER_COMMAND_LINE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

enum class CommandKind {
  kCompile,  // at least one source; it may link as well, see `links`
  kLink,     // objects and libraries only
  kOther,    // preprocessing, version queries, dependency lists, no input
};

// What surrounds a command and changes its meaning.
struct CommandContext {
  // Working directory of the command; absolute.
  std::string directory;
  // Toolkit for nvcc commands whose compiler path does not tell it, and for
  // Clang commands without --cuda-path.
  std::string cuda_home;
  // $NVCC_PREPEND_FLAGS, $NVCC_APPEND_FLAGS, $CPATH and $CPLUS_INCLUDE_PATH.
  std::string nvcc_prepend_flags;
  std::string nvcc_append_flags;
  std::string cpath;
  std::string cplus_include_path;
  // Reads a response file; empty: from disk.
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;

  // With this process's directory and environment; cuda_home from $CUDA_HOME,
  // else /usr/local/cuda.
  static CommandContext FromEnvironment();
};

struct CommandSource {
  std::string path;  // as written
  // CUDA code, by its suffix or by -x cu, -x cuda.
  bool cuda = false;
  // Where the object (or PTX, cubin, fatbin) goes, as written or as the
  // compiler chooses. Empty where the compiler links and keeps no object.
  std::string output;
};

struct CompilerCommand {
  CommandKind kind = CommandKind::kOther;
  bool nvcc = false;   // nvcc's dialect; otherwise Clang's
  bool links = false;  // a program, shared library or device link results
  std::vector<CommandSource> sources;
  // Objects, archives and shared libraries among the arguments, as written.
  std::vector<std::string> link_inputs;
  // -o, or what the compiler takes without it; empty for kOther.
  std::string output;
  // Architectures of machine code, e.g. "sm_90a", then those for which only
  // PTX is kept, e.g. "compute_120"; in the order given, each once. "native",
  // "all" and "all-major" stay as words. Without a flag: the compiler's
  // default.
  std::vector<std::string> architectures;
  bool relocatable_device_code = false;
  // Driver arguments of Clang for a device compile of any of the sources,
  // without input, output, -c, -x, optimization level and architecture. Paths
  // that were relative still are, to CommandContext::directory.
  std::vector<std::string> clang_args;
  // Registers per thread that the command allows; 0: no cap.
  unsigned max_registers = 0;
  std::vector<std::string> unknown_flags;
};

// Parses argv, argv[0] being the compiler. INVALID_ARGUMENT names what is
// malformed: no arguments, a flag without its value, a response file that
// cannot be read or that includes itself.
absl::StatusOr<CompilerCommand> ParseCompilerCommand(
    const std::vector<std::string>& argv, const CommandContext& context);

// "sm_90a" for "sm_90a", "compute_90a" and "90a"; empty for words that name no
// single architecture.
std::string RealArchitecture(const std::string& architecture);

// Splits text into arguments as GCC and nvcc read response files: white space
// separates, quotes group, a backslash takes the next character literally.
std::vector<std::string> SplitArguments(const std::string& text);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_COMMAND_LINE_H_
