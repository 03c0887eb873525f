// nvcc's flags and what they mean here; not for use outside this folder.
#ifndef REPRISE_REPLAY_COMPILER_NVCC_FLAGS_H_
#define REPRISE_REPLAY_COMPILER_NVCC_FLAGS_H_

#include <string_view>

namespace reprise::command_line {

enum class Meaning {
  kIgnore,       // no value
  kIgnoreValue,  // one value
  kNoOutput,     // the command only prints
  kLinkObjects,  // device link, library: nothing of a source is kept
  kCompile,
  kDeviceCompile,
  kDeviceFile,
  kOutput,
  kOutputDirectory,
  kDefine,
  kUndefine,
  kInclude,
  kSystemInclude,
  kPreInclude,
  kLanguage,
  kStandard,
  kArchitecture,
  kCode,
  kGenerateCode,
  kRelocatable,
  kHostOptions,
  kPtxasOptions,
  kOptionsFile,
  kMaxRegisters,
  kFastMath,
  kFlushDenormals,
  kDivision,
  kSquareRoot,
  kFuse,
  kRelaxedConstexpr,
  kExtendedLambda,
  kDefaultStream,
  kNoExceptions,
  kTemplateDepth,
  kLinkInput,
};

struct Flag {
  std::string_view long_name;
  std::string_view short_name;
  Meaning meaning;
};

bool TakesValue(Meaning meaning);

// The flag that `word` (without dashes and value) names, long names and short
// names alike, whatever the number of dashes: nvcc accepts both. Null: none.
const Flag* FindFlag(std::string_view word);

// -Dname, -Ipath, -O3 and others whose value may follow without a separator.
const Flag* FindJoinedFlag(std::string_view word);

}  // namespace reprise::command_line

#endif  // REPRISE_REPLAY_COMPILER_NVCC_FLAGS_H_
