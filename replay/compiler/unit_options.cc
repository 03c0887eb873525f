#include "replay/compiler/unit_options.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace reprise {
namespace {

void ReadBackendOption(const std::string& option, UnitOptions& options) {
  absl::string_view value = option;
  int number = 0;
  if (absl::ConsumePrefix(&value, "-nvptx-prec-divf32=") &&
      absl::SimpleAtoi(value, &number))
    options.division_precision = number;
  if (absl::ConsumePrefix(&value, "-nvptx-prec-sqrtf32=") &&
      absl::SimpleAtoi(value, &number))
    options.precise_sqrt = number != 0;
}

void ReadPtxasOption(const std::string& option, UnitOptions& options) {
  absl::string_view value = option;
  absl::ConsumePrefix(&value, "-");
  if (absl::ConsumePrefix(&value, "-maxrregcount=") ||
      absl::ConsumePrefix(&value, "maxrregcount=")) {
    uint32_t number = 0;
    if (absl::SimpleAtoi(value, &number)) options.max_registers = number;
  } else if (option != "-v" && option != "--verbose") {
    options.ptxas_options.push_back(option);
  }
}

}  // namespace

UnitOptions ParseUnitOptions(const v1::CompileTranslationUnit& unit) {
  UnitOptions options;
  const auto& args = unit.clang_args();
  for (int i = 0; i < args.size(); ++i) {
    absl::string_view value = args[i];
    if (args[i] == "-fgpu-rdc") {
      options.relocatable_device_code = true;
    } else if (absl::ConsumePrefix(&value, "-ffp-contract=")) {
      options.fuse = value != "off" && value != "on";
    } else if (absl::ConsumePrefix(&value, "--cuda-path=")) {
      options.cuda_path = std::string(value);
    } else if (i + 1 < args.size() && args[i] == "-mllvm") {
      ReadBackendOption(args[++i], options);
    } else if (i + 1 < args.size() && args[i] == "-Xcuda-ptxas") {
      ReadPtxasOption(args[++i], options);
    }
  }
  return options;
}

}  // namespace reprise
