// Flags that Clang and GCC share and that change what a translation unit
// means: see TakeLanguageFlag.
#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "replay/compiler/command_line_internal.h"

namespace reprise::command_line {
namespace {

// Take their value joined or as the next word.
constexpr std::array<std::string_view, 10> kValueFlags = {
    "-isystem-after", "-isystem", "-iquote", "-idirafter", "-include",
    "-imacros",       "-D",       "-U",      "-I",         "-isysroot"};

// -f flags, without -f and no-, that change language or meaning anywhere.
constexpr std::array<std::string_view, 27> kLanguageFeatures = {
    "exceptions",
    "cxx-exceptions",
    "rtti",
    "strict-aliasing",
    "signed-char",
    "unsigned-char",
    "short-enums",
    "ms-extensions",
    "ms-compatibility",
    "pack-struct",
    "wrapv",
    "strict-overflow",
    "strict-enums",
    "builtin",
    "constexpr-",
    "template-depth",
    "template-backtrace-",
    "bracket-depth",
    "delayed-template-",
    "char8_t",
    "coroutines",
    "aligned-allocation",
    "sized-deallocation",
    "threadsafe-statics",
    "freestanding",
    "hosted",
    "relaxed-template-template-args"};

// -f flags that change arithmetic, optimization or GPU code. nvcc keeps these
// for host code when they come through -Xcompiler.
constexpr std::array<std::string_view, 22> kCodeFeatures = {"fast-math",
                                                            "math-errno",
                                                            "finite-math-only",
                                                            "associative-math",
                                                            "reciprocal-math",
                                                            "signed-zeros",
                                                            "trapping-math",
                                                            "unsafe-math-",
                                                            "approx-func",
                                                            "honor-",
                                                            "fp-contract=",
                                                            "fp-model=",
                                                            "denormal-fp-math",
                                                            "rounding-math",
                                                            "unroll-loops",
                                                            "inline",
                                                            "vectorize",
                                                            "slp-vectorize",
                                                            "gpu-",
                                                            "cuda-",
                                                            "offload-",
                                                            "jump-tables"};

// -f flags known not to matter here: linking, debugging, diagnostics,
// instrumentation of host code.
constexpr std::array<std::string_view, 28> kIrrelevantFeatures = {
    "PIC",
    "pic",
    "PIE",
    "pie",
    "lto",
    "sanitize",
    "profile",
    "coverage",
    "diagnostics",
    "color-",
    "use-ld",
    "plugin",
    "debug-",
    "stack-",
    "visibility",
    "time-",
    "save-",
    "openmp",
    "omit-frame",
    "function-sections",
    "data-sections",
    "asynchronous-unwind",
    "unwind",
    "file-prefix-map",
    "macro-prefix-map",
    "common",
    "semantic-interposition",
    "cf-protection"};

template <size_t N>
bool MatchesAny(std::string_view feature,
                const std::array<std::string_view, N>& list) {
  for (std::string_view item : list) {
    if (StartsWith(feature, item)) return true;
  }
  return false;
}

absl::StatusOr<bool> TakeValueFlag(const std::vector<std::string>& arguments,
                                   size_t& i, Parsed& parsed) {
  std::vector<std::string>& args = parsed.command.clang_args;
  const std::string& flag = arguments[i];
  for (std::string_view name : kValueFlags) {
    if (!StartsWith(flag, name)) continue;
    std::string value = flag.substr(name.size());
    if (value.empty()) {
      if (++i >= arguments.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat(flag, " wants a value, got the end of the command"));
      }
      value = arguments[i];
    } else if (value[0] == '=' && name.size() > 2) {
      value = value.substr(1);
    }
    if (name.size() == 2) {  // -D, -U, -I
      args.push_back(std::string(name) + value);
    } else {
      args.emplace_back(name);
      args.push_back(value);
    }
    return true;
  }
  return false;
}

// Whether the -f flag was understood.
bool TakeFeature(const std::string& flag, Parsed& parsed) {
  std::string_view feature = std::string_view(flag).substr(2);
  if (StartsWith(feature, "no-")) feature.remove_prefix(3);
  const bool code = MatchesAny(feature, kCodeFeatures);
  if (code && parsed.command.nvcc) return true;
  if (code || MatchesAny(feature, kLanguageFeatures)) {
    parsed.command.clang_args.push_back(flag);
    return true;
  }
  return MatchesAny(feature, kIrrelevantFeatures);
}

}  // namespace

absl::StatusOr<bool> TakeLanguageFlag(const std::vector<std::string>& arguments,
                                      size_t& i, Parsed& parsed) {
  const std::string& flag = arguments[i];
  const absl::StatusOr<bool> took = TakeValueFlag(arguments, i, parsed);
  if (!took.ok() || *took) return took;
  if (StartsWith(flag, "-std=") || StartsWith(flag, "--std=") ||
      StartsWith(flag, "-stdlib=") || StartsWith(flag, "--sysroot=") ||
      flag == "-pthread" || flag == "-nostdinc" || flag == "-nostdinc++" ||
      flag == "-ansi") {
    parsed.command.clang_args.push_back(
        StartsWith(flag, "--std=") ? flag.substr(1) : flag);
    return true;
  }
  if (StartsWith(flag, "-f")) return TakeFeature(flag, parsed);
  // Warnings, optimization level, debugging and the host's instruction set.
  return StartsWith(flag, "-W") || StartsWith(flag, "-O") ||
         StartsWith(flag, "-g") || StartsWith(flag, "-m") || flag == "-w" ||
         StartsWith(flag, "-pedantic") || flag == "-pipe" ||
         flag == "-rdynamic" || flag == "-pg" || flag == "-static" ||
         flag == "-shared" || flag == "-pie" || flag == "-no-pie" ||
         flag == "-s" || flag == "-v";
}

}  // namespace reprise::command_line
