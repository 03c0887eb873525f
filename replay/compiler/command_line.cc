#include "replay/compiler/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/command_line_internal.h"

namespace reprise {
namespace command_line {
namespace {

constexpr int kMaxResponseDepth = 8;

std::string Basename(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string Stem(const std::string& path) {
  const std::string name = Basename(path);
  const size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
}

std::string Suffix(const std::string& path) {
  const std::string name = Basename(path);
  const size_t dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? "" : name.substr(dot);
}

bool IsOneOf(std::string_view text,
             std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool IsCudaSuffix(const std::string& suffix) {
  return IsOneOf(suffix, {".cu", ".cuh", ".CU"});
}

bool IsSourceSuffix(const std::string& suffix) {
  return IsCudaSuffix(suffix) ||
         IsOneOf(suffix, {".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".CC",
                          ".CPP", ".cp", ".i", ".ii", ".m", ".mm"});
}

// Fills outputs of sources and the command's own from what was parsed.
void FinishOutputs(Parsed& parsed, const std::string& explicit_output) {
  CompilerCommand& command = parsed.command;
  command.links = parsed.stop == Stop::kLink;
  command.output.clear();
  if (parsed.stop == Stop::kNoOutput) return;
  if (command.sources.empty()) {
    const bool links = command.links && !command.link_inputs.empty();
    command.kind = links ? CommandKind::kLink : CommandKind::kOther;
    if (links)
      command.output = explicit_output.empty() ? "a.out" : explicit_output;
    return;
  }
  command.kind = CommandKind::kCompile;
  if (command.links) {
    command.output = explicit_output.empty() ? "a.out" : explicit_output;
    return;
  }
  for (CommandSource& source : command.sources) {
    source.output = Stem(source.path) + parsed.output_suffix;
    if (!parsed.output_directory.empty())
      source.output = parsed.output_directory + "/" + source.output;
  }
  if (command.sources.size() == 1 && !explicit_output.empty())
    command.sources[0].output = explicit_output;
  command.output = command.sources[0].output;
}

absl::StatusOr<std::vector<std::string>> ExpandArguments(
    const std::vector<std::string>& argv, const CommandContext& context) {
  std::vector<std::string> arguments;
  for (size_t i = 1; i < argv.size(); ++i) {
    if (argv[i].size() > 1 && argv[i][0] == '@') {
      RETURN_IF_ERROR(
          ExpandResponseFile(argv[i].substr(1), context, 0, arguments));
    } else {
      arguments.push_back(argv[i]);
    }
  }
  return arguments;
}

// Headers that the environment adds, and Thrust, CUB and libcu++, which nvcc
// finds by itself, after the command's own paths, as the compilers do it; and
// where nvcc's arithmetic is not Clang's by default.
void AddImplicitArguments(const CommandContext& context, Parsed& parsed) {
  std::vector<std::string>& args = parsed.command.clang_args;
  for (const std::string& path : SplitList(context.cpath, ':'))
    args.push_back("-I" + path);
  for (const std::string& path : SplitList(context.cplus_include_path, ':')) {
    args.push_back("-isystem");
    args.push_back(path);
  }
  // nvcc takes sqrt.rn unless told otherwise, Clang sqrt.approx.
  constexpr char kSqrt[] = "-nvptx-prec-sqrtf32=";
  const bool says_sqrt = std::any_of(
      args.begin(), args.end(),
      [&](const std::string& arg) { return StartsWith(arg, kSqrt); });
  if (parsed.command.nvcc && !says_sqrt) {
    args.push_back("-mllvm");
    args.push_back(absl::StrCat(kSqrt, 1));
  }
  if (parsed.cuda_home.empty()) return;
  args.push_back("--cuda-path=" + parsed.cuda_home);
  args.push_back(parsed.command.nvcc ? "-isystem" : "-idirafter");
  args.push_back(parsed.cuda_home + "/include/cccl");
}

}  // namespace

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         text.substr(text.size() - suffix.size()) == suffix;
}

std::vector<std::string> SplitList(std::string_view text, char separator) {
  std::vector<std::string> items;
  std::string item;
  bool quoted = false;
  for (char c : text) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == separator && !quoted) {
      if (!item.empty()) items.push_back(std::exchange(item, ""));
    } else {
      item.push_back(c);
    }
  }
  if (!item.empty()) items.push_back(item);
  return items;
}

void AddUnique(std::vector<std::string>& list, const std::string& value) {
  if (std::find(list.begin(), list.end(), value) == list.end())
    list.push_back(value);
}

std::string Absolute(const std::string& path, const CommandContext& context) {
  if (path.empty() || path[0] == '/') return path;
  return context.directory + "/" + path;
}

absl::Status ExpandResponseFile(const std::string& path,
                                const CommandContext& context, int depth,
                                std::vector<std::string>& out) {
  if (depth >= kMaxResponseDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("response file ", path, " is nested more than ",
                     kMaxResponseDepth, " deep (does it include itself?)"));
  }
  const std::string absolute = Absolute(path, context);
  absl::StatusOr<std::string> text =
      context.read_file ? context.read_file(absolute) : ReadFile(absolute);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("response file: ", text.status().message()));
  }
  for (const std::string& argument : SplitArguments(*text)) {
    if (argument.size() > 1 && argument[0] == '@') {
      RETURN_IF_ERROR(
          ExpandResponseFile(argument.substr(1), context, depth + 1, out));
    } else {
      out.push_back(argument);
    }
  }
  return absl::OkStatus();
}

void AddInput(const std::string& path, const std::string& language,
              CompilerCommand& command) {
  const std::string suffix = Suffix(path);
  const bool forced = !language.empty() && language != "none";
  const bool object_like =
      IsOneOf(suffix, {".o", ".a", ".so", ".obj", ".lo"}) ||
      path.find(".so.") != std::string::npos;
  if (object_like || (!forced && !IsSourceSuffix(suffix))) {
    command.link_inputs.push_back(path);
    return;
  }
  const bool cuda = forced
                        ? IsOneOf(language, {"cu", "cuda", "cuda-cpp-output"})
                        : IsCudaSuffix(suffix);
  command.sources.push_back({path, cuda, ""});
}

}  // namespace command_line

std::vector<std::string> SplitArguments(const std::string& text) {
  std::vector<std::string> arguments;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() && quote != '\'') {
      if (text[i + 1] != '\n') word.push_back(text[i + 1]);
      in_word = in_word || text[i + 1] != '\n';
      ++i;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word.push_back(c);
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      if (in_word) arguments.push_back(std::exchange(word, ""));
      in_word = false;
    } else {
      word.push_back(c);
      in_word = true;
    }
  }
  if (in_word) arguments.push_back(word);
  return arguments;
}

std::string RealArchitecture(const std::string& architecture) {
  size_t digits = 0;
  for (const char* prefix : {"sm_", "compute_", "lto_"}) {
    if (command_line::StartsWith(architecture, prefix))
      digits = std::string_view(prefix).size();
  }
  const std::string number = architecture.substr(digits);
  if (number.empty() || !std::isdigit(static_cast<unsigned char>(number[0])))
    return "";
  return "sm_" + number;
}

CommandContext CommandContext::FromEnvironment() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  CommandContext context;
  std::error_code ignored;
  context.directory = std::filesystem::current_path(ignored).string();
  context.cuda_home = variable("CUDA_HOME");
  if (context.cuda_home.empty()) context.cuda_home = "/usr/local/cuda";
  context.nvcc_prepend_flags = variable("NVCC_PREPEND_FLAGS");
  context.nvcc_append_flags = variable("NVCC_APPEND_FLAGS");
  context.cpath = variable("CPATH");
  context.cplus_include_path = variable("CPLUS_INCLUDE_PATH");
  return context;
}

absl::StatusOr<CompilerCommand> ParseCompilerCommand(
    const std::vector<std::string>& argv, const CommandContext& context) {
  using command_line::Parsed;
  if (argv.empty())
    return absl::InvalidArgumentError("got no compiler command to understand");
  ASSIGN_OR_RETURN(std::vector<std::string> arguments,
                   command_line::ExpandArguments(argv, context));
  Parsed parsed;
  // Wrappers such as Kokkos' nvcc_wrapper speak nvcc's dialect too.
  parsed.command.nvcc =
      command_line::Basename(argv[0]).find("nvcc") != std::string::npos;
  parsed.cuda_home = context.cuda_home;
  if (parsed.command.nvcc) {
    const size_t bin = argv[0].rfind("/bin/");
    if (bin != std::string::npos) parsed.cuda_home = argv[0].substr(0, bin);
    std::vector<std::string> all = SplitArguments(context.nvcc_prepend_flags);
    all.insert(all.end(), arguments.begin(), arguments.end());
    for (std::string& flag : SplitArguments(context.nvcc_append_flags))
      all.push_back(std::move(flag));
    RETURN_IF_ERROR(command_line::ParseNvcc(all, context, parsed));
  } else {
    RETURN_IF_ERROR(command_line::ParseClang(arguments, context, parsed));
  }
  command_line::AddImplicitArguments(context, parsed);
  command_line::FinishOutputs(parsed, std::string(parsed.command.output));
  return std::move(parsed.command);
}

}  // namespace reprise
