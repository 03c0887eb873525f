#include "replay/compiler/nvidia_options.h"

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "replay/compiler/unit_options.h"

namespace reprise {
namespace {

// As the application was compiled; then what the variant says.
struct Arithmetic {
  bool fuse = true;
  bool flush = false;
  bool fast = false;  // -use_fast_math
  std::optional<bool> precise_division, precise_sqrt;
};

Arithmetic ArithmeticOf(const v1::CompileTranslationUnit& unit,
                        const v1::CodegenOptions& codegen) {
  const UnitOptions options = ParseUnitOptions(unit);
  Arithmetic arithmetic;
  arithmetic.fuse = options.fuse;
  if (options.division_precision.has_value())
    arithmetic.precise_division = *options.division_precision == 2;
  arithmetic.precise_sqrt = options.precise_sqrt;
  for (const std::string& arg : unit.clang_args()) {
    if (arg == "-fgpu-flush-denormals-to-zero") arithmetic.flush = true;
    if (arg == "-fno-gpu-flush-denormals-to-zero") arithmetic.flush = false;
    if (arg == "-fgpu-approx-transcendentals") arithmetic.fast = true;
  }
  if (codegen.has_fp_contract()) arithmetic.fuse = codegen.fp_contract();
  if (codegen.has_flush_denormals())
    arithmetic.flush = codegen.flush_denormals();
  if (codegen.has_approximate_division())
    arithmetic.precise_division = !codegen.approximate_division();
  if (codegen.has_approximate_sqrt())
    arithmetic.precise_sqrt = !codegen.approximate_sqrt();
  return arithmetic;
}

void AddArithmetic(const Arithmetic& arithmetic,
                   std::vector<std::string>& words) {
  // First, since it sets the others too.
  if (arithmetic.fast) words.push_back("-use_fast_math");
  words.push_back(absl::StrCat("-fmad=", arithmetic.fuse ? "true" : "false"));
  words.push_back(absl::StrCat("-ftz=", arithmetic.flush ? "true" : "false"));
  if (arithmetic.precise_division.has_value())
    words.push_back(absl::StrCat(
        "-prec-div=", *arithmetic.precise_division ? "true" : "false"));
  if (arithmetic.precise_sqrt.has_value())
    words.push_back(absl::StrCat("-prec-sqrt=",
                                 *arithmetic.precise_sqrt ? "true" : "false"));
}

// Macros that nvcc defines itself for an option that it is given here too.
bool IsMacroOfNvcc(absl::string_view definition) {
  return absl::StartsWith(definition, "__CUDACC_") ||
         absl::StartsWith(definition, "__USE_FAST_MATH__");
}

void AddFlag(const google::protobuf::RepeatedPtrField<std::string>& args,
             int& i, NvidiaOptions& options) {
  absl::string_view value = args[i];
  const bool has_next = i + 1 < args.size();
  if (absl::ConsumePrefix(&value, "-D")) {
    if (!IsMacroOfNvcc(value)) options.language.push_back(args[i]);
  } else if (absl::StartsWith(args[i], "-U")) {
    options.language.push_back(args[i]);
  } else if (absl::ConsumePrefix(&value, "-std=")) {
    absl::ConsumePrefix(&value, "gnu++") || absl::ConsumePrefix(&value, "c++");
    options.language.push_back(absl::StrCat("-std=c++", std::string(value)));
  } else if (absl::ConsumePrefix(&value, "-I") && !value.empty()) {
    options.include_directories.emplace_back(std::string(value), false);
  } else if ((args[i] == "-I" || args[i] == "-iquote") && has_next) {
    options.include_directories.emplace_back(args[++i], false);
  } else if ((args[i] == "-isystem" || args[i] == "-isystem-after" ||
              args[i] == "-idirafter") &&
             has_next) {
    options.include_directories.emplace_back(args[++i], true);
  } else if (args[i] == "-include" && has_next) {
    options.pre_includes.push_back(args[++i]);
  } else if ((args[i] == "-mllvm" || args[i] == "-Xcuda-ptxas" ||
              args[i] == "-imacros" || args[i] == "-isysroot") &&
             has_next) {
    ++i;
  }
}

}  // namespace

NvidiaOptions TranslateForNvidia(const v1::CompileTranslationUnit& unit,
                                 const v1::CodegenOptions& codegen) {
  NvidiaOptions options;
  for (int i = 0; i < unit.clang_args_size(); ++i)
    AddFlag(unit.clang_args(), i, options);
  AddArithmetic(ArithmeticOf(unit, codegen), options.language);
  options.relocatable = ParseUnitOptions(unit).relocatable_device_code;
  return options;
}

std::string VirtualArchitecture(const std::string& architecture) {
  absl::string_view number = architecture;
  return absl::ConsumePrefix(&number, "sm_")
             ? absl::StrCat("compute_", std::string(number))
             : architecture;
}

absl::Status CheckNvidiaVariant(const v1::Variant& variant) {
  std::vector<std::string> refused;
  const v1::CodegenOptions& codegen = variant.codegen();
  if (!variant.pipeline().empty()) refused.push_back("pipeline");
  if (codegen.has_unroll_threshold())
    refused.push_back("codegen.unroll_threshold");
  if (codegen.has_inline_threshold())
    refused.push_back("codegen.inline_threshold");
  if (codegen.has_reassociate()) refused.push_back("codegen.reassociate");
  if (codegen.has_no_signed_zeros())
    refused.push_back("codegen.no_signed_zeros");
  if (codegen.has_finite_math_only())
    refused.push_back("codegen.finite_math_only");
  if (refused.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "got ", absl::StrJoin(refused, ", "),
      " with front end nvrtc: passes cannot be tuned there, since NVIDIA's "
      "compiler runs its own; use front end clang"));
}

}  // namespace reprise
