// Shared by the parsers of the two dialects; not for use outside this folder.
#ifndef REPRISE_REPLAY_COMPILER_COMMAND_LINE_INTERNAL_H_
#define REPRISE_REPLAY_COMPILER_COMMAND_LINE_INTERNAL_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/compiler/command_line.h"

namespace reprise::command_line {

// How far the compiler goes with its sources.
enum class Stop { kLink, kObject, kDeviceFile, kNoOutput };

// What a dialect's parser finds; CompilerCommand is finished from it.
struct Parsed {
  CompilerCommand command;
  Stop stop = Stop::kLink;
  // Suffix of default outputs: ".o", ".ptx", ".cubin", ".fatbin".
  std::string output_suffix = ".o";
  std::string output_directory;
  bool has_output = false;
  std::string cuda_home;
};

// Arguments after argv[0], with response files already expanded.
absl::Status ParseNvcc(const std::vector<std::string>& arguments,
                       const CommandContext& context, Parsed& parsed);
absl::Status ParseClang(const std::vector<std::string>& arguments,
                        const CommandContext& context, Parsed& parsed);

// Expands @file arguments (and, through the same function, the files that
// nvcc's --options-file names); `depth` bounds files that include themselves.
absl::Status ExpandResponseFile(const std::string& path,
                                const CommandContext& context, int depth,
                                std::vector<std::string>& out);

// `path` seen from the command's directory.
std::string Absolute(const std::string& path, const CommandContext& context);

// Sorts an argument that is no flag into sources or link inputs. `language` is
// the value of the last -x, or empty.
void AddInput(const std::string& path, const std::string& language,
              CompilerCommand& command);

// Host-compiler flags that matter to a device compile, spelled as Clang and
// GCC do: macros, include paths, language and -f flags. Reads the flag at
// arguments[i] and moves i to its last word; returns false where the flag is
// none of these.
absl::StatusOr<bool> TakeLanguageFlag(const std::vector<std::string>& arguments,
                                      size_t& i, Parsed& parsed);

void AddUnique(std::vector<std::string>& list, const std::string& value);

bool StartsWith(std::string_view text, std::string_view prefix);
bool EndsWith(std::string_view text, std::string_view suffix);
std::vector<std::string> SplitList(std::string_view text, char separator);

}  // namespace reprise::command_line

#endif  // REPRISE_REPLAY_COMPILER_COMMAND_LINE_INTERNAL_H_
