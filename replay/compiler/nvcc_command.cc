// nvcc's dialect of compiler commands (CUDA 11 to 13).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/command_line_internal.h"
#include "replay/compiler/nvcc_flags.h"

namespace reprise::command_line {
namespace {

class NvccParser {
 public:
  NvccParser(const CommandContext& context, Parsed& parsed)
      : context_(context), parsed_(parsed), command_(parsed.command) {}

  absl::Status Parse(const std::vector<std::string>& arguments, int depth);
  void Finish();

 private:
  // Reads the flag at arguments[i] and moves i to its last word.
  absl::Status TakeFlag(const std::vector<std::string>& arguments, size_t& i,
                        int depth);
  absl::Status Apply(const Flag& flag, const std::string& value, int depth);
  void ApplyMacro(Meaning meaning, const std::string& value);
  void ApplyArithmetic(Meaning meaning, bool value);
  absl::Status ApplyMode(const Flag& flag);
  void AddGenerateCode(const std::string& value);
  absl::Status AddHostOptions(const std::string& value);

  void AddArg(std::string arg) {
    command_.clang_args.push_back(std::move(arg));
  }

  const CommandContext& context_;
  Parsed& parsed_;
  CompilerCommand& command_;
  std::string language_;
  std::string arch_;
  std::vector<std::string> codes_;
  std::vector<std::string> inputs_;
  std::vector<std::string> real_, virtual_;
};

absl::Status NvccParser::Parse(const std::vector<std::string>& arguments,
                               int depth) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-') {
      inputs_.push_back(argument);
      continue;
    }
    RETURN_IF_ERROR(TakeFlag(arguments, i, depth));
  }
  return absl::OkStatus();
}

absl::Status NvccParser::TakeFlag(const std::vector<std::string>& arguments,
                                  size_t& i, int depth) {
  const std::string& argument = arguments[i];
  const std::string word = argument.substr(argument[1] == '-' ? 2 : 1);
  const size_t equals = word.find('=');
  const Flag* flag = FindFlag(word.substr(0, equals));
  std::string value;
  bool has_value = equals != std::string::npos;
  if (has_value) value = word.substr(equals + 1);
  if (flag == nullptr && argument[1] != '-') {
    flag = FindJoinedFlag(word);
    has_value = flag != nullptr;
    if (has_value) value = word.substr(1);
  }
  if (flag == nullptr) {
    // What nvcc hands on under --forward-unknown-to-host-compiler.
    ASSIGN_OR_RETURN(const bool known, TakeLanguageFlag(arguments, i, parsed_));
    if (!known) command_.unknown_flags.push_back(argument);
    return absl::OkStatus();
  }
  if (TakesValue(flag->meaning) && !has_value) {
    if (++i >= arguments.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(argument, " wants a value, got the end of the command"));
    }
    value = arguments[i];
  }
  return Apply(*flag, value, depth);
}

absl::Status NvccParser::Apply(const Flag& flag, const std::string& value,
                               int depth) {
  switch (flag.meaning) {
    case Meaning::kOutput:
      command_.output = value;
      break;
    case Meaning::kOutputDirectory:
      parsed_.output_directory = value;
      break;
    case Meaning::kDefine:
    case Meaning::kUndefine:
    case Meaning::kInclude:
    case Meaning::kSystemInclude:
    case Meaning::kPreInclude:
      ApplyMacro(flag.meaning, value);
      break;
    case Meaning::kLanguage:
      language_ = value;
      break;
    case Meaning::kStandard:
      AddArg("-std=" + value);
      break;
    case Meaning::kArchitecture:
      arch_ = value;
      break;
    case Meaning::kCode:
      for (const std::string& code : SplitList(value, ','))
        codes_.push_back(code);
      break;
    case Meaning::kGenerateCode:
      AddGenerateCode(value);
      break;
    case Meaning::kRelocatable:
      command_.relocatable_device_code = value == "true";
      break;
    case Meaning::kHostOptions:
      return AddHostOptions(value);
    case Meaning::kPtxasOptions:
      for (const std::string& option : SplitList(value, ',')) {
        if (option == "-v" || option == "--verbose") continue;
        AddArg("-Xcuda-ptxas");
        AddArg(option);
      }
      break;
    case Meaning::kOptionsFile:
      for (const std::string& path : SplitList(value, ',')) {
        std::vector<std::string> more;
        RETURN_IF_ERROR(ExpandResponseFile(path, context_, depth, more));
        RETURN_IF_ERROR(Parse(more, depth + 1));
      }
      break;
    case Meaning::kMaxRegisters:
      if (!absl::SimpleAtoi(value, &command_.max_registers)) {
        return absl::InvalidArgumentError(
            absl::StrCat("-maxrregcount wants a number, got '", value, "'"));
      }
      break;
    case Meaning::kFlushDenormals:
    case Meaning::kDivision:
    case Meaning::kSquareRoot:
    case Meaning::kFuse:
      ApplyArithmetic(flag.meaning, value == "true");
      break;
    case Meaning::kDefaultStream:
      if (value == "per-thread") AddArg("-DCUDA_API_PER_THREAD_DEFAULT_STREAM");
      break;
    case Meaning::kTemplateDepth:
      AddArg("-ftemplate-depth=" + value);
      break;
    default:
      return ApplyMode(flag);
  }
  return absl::OkStatus();
}

void NvccParser::ApplyMacro(Meaning meaning, const std::string& value) {
  // nvcc lists values with commas; those of macros may be part of the value.
  const bool macro =
      meaning == Meaning::kDefine || meaning == Meaning::kUndefine;
  const std::vector<std::string> values =
      macro ? std::vector<std::string>{value} : SplitList(value, ',');
  for (const std::string& item : values) {
    if (meaning == Meaning::kDefine) {
      AddArg("-D" + item);
    } else if (meaning == Meaning::kUndefine) {
      AddArg("-U" + item);
    } else if (meaning == Meaning::kInclude) {
      AddArg("-I" + item);
    } else {
      AddArg(meaning == Meaning::kPreInclude ? "-include" : "-isystem");
      AddArg(item);
    }
  }
}

void NvccParser::ApplyArithmetic(Meaning meaning, bool value) {
  if (meaning == Meaning::kFlushDenormals) {
    AddArg(value ? "-fgpu-flush-denormals-to-zero"
                 : "-fno-gpu-flush-denormals-to-zero");
  } else if (meaning == Meaning::kFuse) {
    AddArg(value ? "-ffp-contract=fast" : "-ffp-contract=off");
  } else {
    // Clang has no driver flag for these: its NVPTX backend has. The division
    // that nvcc -prec-div=false takes is div.full, level 1.
    AddArg("-mllvm");
    AddArg(absl::StrCat(
        meaning == Meaning::kDivision ? "-nvptx-prec-divf32="
                                      : "-nvptx-prec-sqrtf32=",
        meaning == Meaning::kDivision ? (value ? 2 : 1) : (value ? 1 : 0)));
  }
}

absl::Status NvccParser::ApplyMode(const Flag& flag) {
  switch (flag.meaning) {
    case Meaning::kNoOutput:
      parsed_.stop = Stop::kNoOutput;
      break;
    case Meaning::kDeviceCompile:
      command_.relocatable_device_code = true;
      [[fallthrough]];
    case Meaning::kCompile:
      if (parsed_.stop != Stop::kNoOutput) parsed_.stop = Stop::kObject;
      break;
    case Meaning::kDeviceFile:
      if (parsed_.stop == Stop::kNoOutput) break;
      parsed_.stop = Stop::kDeviceFile;
      parsed_.output_suffix =
          flag.short_name == "cuda"
              ? ".cu.cpp.ii"
              : absl::StrCat(".", std::string(flag.short_name));
      break;
    case Meaning::kFastMath:
      AddArg("-fgpu-approx-transcendentals");
      ApplyArithmetic(Meaning::kFlushDenormals, true);
      AddArg("-mllvm");
      AddArg("-nvptx-prec-divf32=0");
      ApplyArithmetic(Meaning::kSquareRoot, false);
      AddArg("-D__USE_FAST_MATH__=1");
      break;
    case Meaning::kRelaxedConstexpr:
      AddArg("-D__CUDACC_RELAXED_CONSTEXPR__=1");
      break;
    case Meaning::kExtendedLambda:
      AddArg("-D__CUDACC_EXTENDED_LAMBDA__=1");
      break;
    case Meaning::kNoExceptions:
      AddArg("-fno-exceptions");
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

// arch=compute_90,code=sm_90 or arch=compute_90,code=[compute_90,sm_90], with
// or without quotes.
void NvccParser::AddGenerateCode(const std::string& value) {
  std::string arch;
  const size_t arch_at = value.find("arch=");
  if (arch_at != std::string::npos) {
    const size_t end = value.find(',', arch_at);
    arch = value.substr(arch_at + 5, end - arch_at - 5);
  }
  const size_t code_at = value.find("code=");
  std::string codes =
      code_at == std::string::npos ? arch : value.substr(code_at + 5);
  for (char c : {'[', ']', '"', '\''})
    codes.erase(std::remove(codes.begin(), codes.end(), c), codes.end());
  for (const std::string& code : SplitList(codes, ','))
    AddUnique(StartsWith(code, "compute_") ? virtual_ : real_, code);
}

absl::Status NvccParser::AddHostOptions(const std::string& value) {
  std::vector<std::string> words;
  // One option may hold several words: -Xcompiler "-O2 -DX".
  for (const std::string& option : SplitList(value, ',')) {
    for (std::string& word : SplitArguments(option))
      words.push_back(std::move(word));
  }
  for (size_t i = 0; i < words.size(); ++i) {
    // A value of the option before it, given by an -Xcompiler of its own, or a
    // host option without meaning here: neither is an error.
    const absl::StatusOr<bool> took = TakeLanguageFlag(words, i, parsed_);
    if (!took.ok() || !*took)
      command_.unknown_flags.push_back(words[i < words.size() ? i : i - 1]);
  }
  return absl::OkStatus();
}

void NvccParser::Finish() {
  if (!arch_.empty()) {
    if (codes_.empty()) {
      const std::string real = RealArchitecture(arch_);
      if (StartsWith(arch_, "compute_")) {
        AddUnique(virtual_, arch_);
      } else {
        AddUnique(real_, arch_);
        if (!real.empty()) AddUnique(virtual_, "compute_" + real.substr(3));
      }
    }
    for (const std::string& code : codes_)
      AddUnique(StartsWith(code, "compute_") ? virtual_ : real_, code);
  }
  // What CUDA 13's nvcc compiles for by itself.
  if (real_.empty() && virtual_.empty()) {
    real_.push_back("sm_75");
    virtual_.push_back("compute_75");
  }
  for (const auto* list : {&real_, &virtual_}) {
    for (const std::string& item : *list)
      AddUnique(command_.architectures, item);
  }
  for (const std::string& input : inputs_) AddInput(input, language_, command_);
  if (command_.relocatable_device_code) AddArg("-fgpu-rdc");
  if (command_.max_registers != 0) {
    AddArg("-Xcuda-ptxas");
    AddArg(absl::StrCat("-maxrregcount=", command_.max_registers));
  }
}

}  // namespace

absl::Status ParseNvcc(const std::vector<std::string>& arguments,
                       const CommandContext& context, Parsed& parsed) {
  NvccParser parser(context, parsed);
  RETURN_IF_ERROR(parser.Parse(arguments, 0));
  parser.Finish();
  return absl::OkStatus();
}

}  // namespace reprise::command_line
