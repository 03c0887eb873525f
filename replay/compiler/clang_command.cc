// The dialect of clang++ and g++ drivers.
#include <array>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/command_line_internal.h"

namespace reprise::command_line {
namespace {

// Their value is the next word, and they say nothing about device code.
constexpr std::array<std::string_view, 22> kIgnoredWithValue = {
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xanalyzer",
    "-Xarch_host",
    "-Xoffload-linker",
    "-Xcuda-fatbinary",
    "-target",
    "-T",
    "-e",
    "-z",
    "-u",
    "-L",
    "-l",
    "-B",
    "-framework",
    "-rpath",
    "-include-pch"};

constexpr std::array<std::string_view, 22> kIgnoredPrefixes = {
    "-L",
    "-l",
    "-Wl,",
    "-Wa,",
    "-MD",
    "-MMD",
    "-MP",
    "-MF",
    "-MT",
    "-MQ",
    "-MG",
    "-B",
    "--target=",
    "-save-temps",
    "-no-canonical",
    "-Qunused",
    "--cuda-host-only",
    "--offload-new-driver",
    "--no-offload-new-driver",
    "--offload-link",
    "--cuda-noopt-device-debug",
    "--cuda-include-ptx="};

class ClangParser {
 public:
  explicit ClangParser(Parsed& parsed)
      : parsed_(parsed), command_(parsed.command) {}

  absl::Status Parse(const std::vector<std::string>& arguments);
  void Finish();

 private:
  absl::Status TakeFlag(const std::vector<std::string>& arguments, size_t& i);
  // Flags that say what is made; false where the flag is none of them.
  bool TakeMode(const std::string& flag);
  bool TakeArchitecture(const std::string& flag);
  absl::StatusOr<bool> TakePairedFlag(const std::vector<std::string>& arguments,
                                      size_t& i);

  Parsed& parsed_;
  CompilerCommand& command_;
  std::string language_;
  std::vector<std::string> real_;
};

absl::StatusOr<std::string> NextWord(const std::vector<std::string>& arguments,
                                     size_t& i) {
  const std::string& flag = arguments[i];
  if (++i >= arguments.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " wants a value, got the end of the command"));
  }
  return arguments[i];
}

absl::Status ClangParser::Parse(const std::vector<std::string>& arguments) {
  bool only_inputs = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!only_inputs && argument == "--") {
      only_inputs = true;
    } else if (only_inputs || argument.size() < 2 || argument[0] != '-') {
      AddInput(argument, language_, command_);
    } else {
      RETURN_IF_ERROR(TakeFlag(arguments, i));
    }
  }
  return absl::OkStatus();
}

absl::Status ClangParser::TakeFlag(const std::vector<std::string>& arguments,
                                   size_t& i) {
  const std::string& flag = arguments[i];
  if (TakeMode(flag) || TakeArchitecture(flag)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool paired, TakePairedFlag(arguments, i));
  if (paired) return absl::OkStatus();
  if (StartsWith(flag, "-x") && flag.size() > 2) {
    language_ = flag.substr(2);
    return absl::OkStatus();
  }
  if (StartsWith(flag, "-o") && flag.find('=') == std::string::npos &&
      !StartsWith(flag, "-objc")) {
    command_.output = flag.substr(2);
    return absl::OkStatus();
  }
  if (StartsWith(flag, "--cuda-path=")) {
    parsed_.cuda_home = flag.substr(12);
    return absl::OkStatus();
  }
  for (std::string_view prefix : kIgnoredPrefixes) {
    if (StartsWith(flag, prefix)) return absl::OkStatus();
  }
  if (StartsWith(flag, "--cuda-") || StartsWith(flag, "--libomptarget")) {
    command_.clang_args.push_back(flag);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const bool known, TakeLanguageFlag(arguments, i, parsed_));
  if (!known) command_.unknown_flags.push_back(flag);
  return absl::OkStatus();
}

bool ClangParser::TakeMode(const std::string& flag) {
  if (flag == "-c") {
    if (parsed_.stop == Stop::kLink) parsed_.stop = Stop::kObject;
  } else if (flag == "-S" || flag == "-emit-llvm") {
    if (parsed_.stop != Stop::kNoOutput) parsed_.stop = Stop::kDeviceFile;
    if (flag == "-S") parsed_.output_suffix = ".s";
  } else if (flag == "-E" || flag == "-M" || flag == "-MM" ||
             flag == "-fsyntax-only" || flag == "-###" || flag == "--version" ||
             flag == "--help" || flag == "-dumpversion" ||
             flag == "-dumpmachine" || StartsWith(flag, "-print-") ||
             StartsWith(flag, "--print-")) {
    parsed_.stop = Stop::kNoOutput;
  } else if (flag == "-fgpu-rdc" || flag == "-fcuda-rdc") {
    command_.relocatable_device_code = true;
  } else if (flag == "-fno-gpu-rdc") {
    command_.relocatable_device_code = false;
  } else if (flag == "--cuda-device-only" || flag == "--offload-device-only") {
    if (parsed_.stop == Stop::kLink) parsed_.stop = Stop::kDeviceFile;
  } else {
    return false;
  }
  return true;
}

bool ClangParser::TakeArchitecture(const std::string& flag) {
  const bool remove = StartsWith(flag, "--no-");
  const std::string rest = remove ? "--" + flag.substr(5) : flag;
  for (std::string_view prefix : {"--cuda-gpu-arch=", "--offload-arch="}) {
    if (!StartsWith(rest, prefix)) continue;
    for (const std::string& arch :
         SplitList(std::string_view(rest).substr(prefix.size()), ',')) {
      if (!remove) {
        AddUnique(real_, arch);
      } else {
        std::erase_if(real_, [&](const std::string& have) {
          return arch == "all" || have == arch;
        });
      }
    }
    return true;
  }
  return false;
}

absl::StatusOr<bool> ClangParser::TakePairedFlag(
    const std::vector<std::string>& arguments, size_t& i) {
  const std::string& flag = arguments[i];
  if (flag == "-o" || flag == "--output") {
    ASSIGN_OR_RETURN(command_.output, NextWord(arguments, i));
    return true;
  }
  if (flag == "-x" || flag == "--language") {
    ASSIGN_OR_RETURN(language_, NextWord(arguments, i));
    return true;
  }
  if (flag == "-Xclang" || flag == "-mllvm" || flag == "-Xcuda-ptxas" ||
      flag == "-Xarch_device") {
    ASSIGN_OR_RETURN(const std::string value, NextWord(arguments, i));
    const std::string cap = "-maxrregcount=";
    const size_t dashes = StartsWith(value, "--") ? 1 : 0;
    if (StartsWith(value.substr(dashes), cap)) {
      if (!absl::SimpleAtoi(value.substr(dashes + cap.size()),
                            &command_.max_registers))
        return absl::InvalidArgumentError(
            absl::StrCat("-maxrregcount wants a number, got '", value, "'"));
    }
    command_.clang_args.push_back(flag);
    command_.clang_args.push_back(value);
    return true;
  }
  for (std::string_view name : kIgnoredWithValue) {
    if (flag != name) continue;
    ASSIGN_OR_RETURN(const std::string ignored, NextWord(arguments, i));
    return true;
  }
  return false;
}

void ClangParser::Finish() {
  // Clang 22's own default.
  if (real_.empty()) real_.push_back("sm_52");
  for (const std::string& arch : real_) {
    AddUnique(command_.architectures, arch);
  }
  if (command_.relocatable_device_code)
    command_.clang_args.push_back("-fgpu-rdc");
}

}  // namespace

absl::Status ParseClang(const std::vector<std::string>& arguments,
                        const CommandContext& context, Parsed& parsed) {
  ClangParser parser(parsed);
  RETURN_IF_ERROR(parser.Parse(arguments));
  parser.Finish();
  return absl::OkStatus();
}

}  // namespace reprise::command_line
