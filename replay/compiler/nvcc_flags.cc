#include "replay/compiler/nvcc_flags.h"

namespace reprise::command_line {
namespace {

constexpr Flag kFlags[] = {
    {"cuda", "cuda", Meaning::kDeviceFile},
    {"cubin", "cubin", Meaning::kDeviceFile},
    {"fatbin", "fatbin", Meaning::kDeviceFile},
    {"ptx", "ptx", Meaning::kDeviceFile},
    {"optix-ir", "optix-ir", Meaning::kDeviceFile},
    {"ltoir", "ltoir", Meaning::kDeviceFile},
    {"preprocess", "E", Meaning::kNoOutput},
    {"generate-dependencies", "M", Meaning::kNoOutput},
    {"generate-nonsystem-dependencies", "MM", Meaning::kNoOutput},
    {"generate-dependencies-with-compile", "MD", Meaning::kIgnore},
    {"generate-nonsystem-dependencies-with-compile", "MMD", Meaning::kIgnore},
    {"generate-dependency-targets", "MP", Meaning::kIgnore},
    {"dependency-output", "MF", Meaning::kIgnoreValue},
    {"dependency-target-name", "MT", Meaning::kIgnoreValue},
    {"dependency-target-name-quoted", "MQ", Meaning::kIgnoreValue},
    {"compile", "c", Meaning::kCompile},
    {"device-c", "dc", Meaning::kDeviceCompile},
    {"device-w", "dw", Meaning::kCompile},
    {"device-link", "dlink", Meaning::kLinkObjects},
    {"link", "link", Meaning::kIgnore},
    {"lib", "lib", Meaning::kLinkObjects},
    {"run", "run", Meaning::kIgnore},
    {"output-file", "o", Meaning::kOutput},
    {"output-directory", "odir", Meaning::kOutputDirectory},
    {"pre-include", "include", Meaning::kPreInclude},
    {"define-macro", "D", Meaning::kDefine},
    {"undefine-macro", "U", Meaning::kUndefine},
    {"include-path", "I", Meaning::kInclude},
    {"system-include", "isystem", Meaning::kSystemInclude},
    {"library", "l", Meaning::kIgnoreValue},
    {"library-path", "L", Meaning::kIgnoreValue},
    {"compiler-bindir", "ccbin", Meaning::kIgnoreValue},
    {"archiver-binary", "arbin", Meaning::kIgnoreValue},
    {"cudart", "cudart", Meaning::kIgnoreValue},
    {"cudadevrt", "cudadevrt", Meaning::kIgnoreValue},
    {"libdevice-directory", "ldir", Meaning::kIgnoreValue},
    {"target-directory", "target-dir", Meaning::kIgnoreValue},
    {"optimization-info", "opt-info", Meaning::kIgnoreValue},
    {"optimize", "O", Meaning::kIgnoreValue},
    {"Ofast-compile", "Ofc", Meaning::kIgnoreValue},
    {"dopt", "dopt", Meaning::kIgnoreValue},
    {"ftemplate-backtrace-limit", "ftemplate-backtrace-limit",
     Meaning::kIgnoreValue},
    {"ftemplate-depth", "ftemplate-depth", Meaning::kTemplateDepth},
    {"no-exceptions", "noeh", Meaning::kNoExceptions},
    {"x", "x", Meaning::kLanguage},
    {"std", "std", Meaning::kStandard},
    {"machine", "m", Meaning::kIgnoreValue},
    {"m64", "m64", Meaning::kIgnore},
    {"compiler-options", "Xcompiler", Meaning::kHostOptions},
    {"linker-options", "Xlinker", Meaning::kIgnoreValue},
    {"archive-options", "Xarchive", Meaning::kIgnoreValue},
    {"ptxas-options", "Xptxas", Meaning::kPtxasOptions},
    {"nvlink-options", "Xnvlink", Meaning::kIgnoreValue},
    {"static-global-template-stub", "static-global-template-stub",
     Meaning::kIgnoreValue},
    {"device-entity-has-hidden-visibility",
     "device-entity-has-hidden-visibility", Meaning::kIgnoreValue},
    {"dryrun", "dryrun", Meaning::kNoOutput},
    {"threads", "t", Meaning::kIgnoreValue},
    {"split-compile", "split-compile", Meaning::kIgnoreValue},
    {"split-compile-extended", "split-compile-extended", Meaning::kIgnoreValue},
    {"fdevice-time-trace", "fdevice-time-trace", Meaning::kIgnoreValue},
    {"keep-dir", "keep-dir", Meaning::kIgnoreValue},
    {"clean-targets", "clean", Meaning::kNoOutput},
    {"time", "time", Meaning::kIgnoreValue},
    {"run-args", "run-args", Meaning::kIgnoreValue},
    {"gpu-architecture", "arch", Meaning::kArchitecture},
    {"gpu-code", "code", Meaning::kCode},
    {"generate-code", "gencode", Meaning::kGenerateCode},
    {"relocatable-device-code", "rdc", Meaning::kRelocatable},
    {"entries", "e", Meaning::kIgnoreValue},
    {"maxrregcount", "maxrregcount", Meaning::kMaxRegisters},
    {"use_fast_math", "use_fast_math", Meaning::kFastMath},
    {"ftz", "ftz", Meaning::kFlushDenormals},
    {"prec-div", "prec-div", Meaning::kDivision},
    {"prec-sqrt", "prec-sqrt", Meaning::kSquareRoot},
    {"fmad", "fmad", Meaning::kFuse},
    {"expt-relaxed-constexpr", "expt-relaxed-constexpr",
     Meaning::kRelaxedConstexpr},
    {"extended-lambda", "extended-lambda", Meaning::kExtendedLambda},
    {"expt-extended-lambda", "expt-extended-lambda", Meaning::kExtendedLambda},
    {"default-stream", "default-stream", Meaning::kDefaultStream},
    {"Werror", "Werror", Meaning::kIgnoreValue},
    {"diag-error", "diag-error", Meaning::kIgnoreValue},
    {"diag-suppress", "diag-suppress", Meaning::kIgnoreValue},
    {"diag-warn", "diag-warn", Meaning::kIgnoreValue},
    {"host-linker-script", "hls", Meaning::kIgnoreValue},
    {"brief-diagnostics", "brief-diag", Meaning::kIgnoreValue},
    {"jump-table-density", "jtd", Meaning::kIgnoreValue},
    {"device-stack-protector", "device-stack-protector", Meaning::kIgnoreValue},
    {"compress-mode", "compress-mode", Meaning::kIgnoreValue},
    {"frandom-seed", "frandom-seed", Meaning::kIgnoreValue},
    {"sanitize", "sanitize", Meaning::kIgnoreValue},
    {"options-file", "optf", Meaning::kOptionsFile},
    {"list-gpu-code", "code-ls", Meaning::kNoOutput},
    {"list-gpu-arch", "arch-ls", Meaning::kNoOutput},
    {"help", "h", Meaning::kNoOutput},
    {"version", "V", Meaning::kNoOutput},
    {"fdevice-syntax-only", "fdevice-syntax-only", Meaning::kNoOutput},
    // No value, and nothing in Clang for them that would change device code.
    {"objdir-as-tempdir", "objtemp", Meaning::kIgnore},
    {"allow-unsupported-compiler", "allow-unsupported-compiler",
     Meaning::kIgnore},
    {"use-local-env", "use-local-env", Meaning::kIgnore},
    {"profile", "pg", Meaning::kIgnore},
    {"debug", "g", Meaning::kIgnore},
    {"device-debug", "G", Meaning::kIgnore},
    {"generate-line-info", "lineinfo", Meaning::kIgnore},
    {"dlink-time-opt", "dlto", Meaning::kIgnore},
    {"lto", "lto", Meaning::kIgnore},
    {"gen-opt-lto", "gen-opt-lto", Meaning::kIgnore},
    {"shared", "shared", Meaning::kIgnore},
    {"no-host-device-initializer-list", "nohdinitlist", Meaning::kIgnore},
    {"no-host-device-move-forward", "nohdmoveforward", Meaning::kIgnore},
    {"forward-unknown-to-host-compiler", "forward-unknown-to-host-compiler",
     Meaning::kIgnore},
    {"forward-unknown-to-host-linker", "forward-unknown-to-host-linker",
     Meaning::kIgnore},
    {"forward-unknown-opts", "forward-unknown-opts", Meaning::kIgnore},
    {"dont-use-profile", "noprof", Meaning::kIgnore},
    {"verbose", "v", Meaning::kIgnore},
    {"keep", "keep", Meaning::kIgnore},
    {"save-temps", "save-temps", Meaning::kIgnore},
    {"no-align-double", "no-align-double", Meaning::kIgnore},
    {"no-device-link", "nodlink", Meaning::kIgnore},
    {"extra-device-vectorization", "extra-device-vectorization",
     Meaning::kIgnore},
    {"disable-warnings", "w", Meaning::kIgnore},
    {"keep-device-functions", "keep-device-functions", Meaning::kIgnore},
    {"source-in-ptx", "src-in-ptx", Meaning::kIgnore},
    {"resource-usage", "res-usage", Meaning::kIgnore},
    {"extensible-whole-program", "ewp", Meaning::kIgnore},
    {"no-compress", "no-compress", Meaning::kIgnore},
    {"display-error-number", "err-no", Meaning::kIgnore},
    {"no-display-error-number", "no-err-no", Meaning::kIgnore},
    {"augment-host-linker-script", "aug-hls", Meaning::kIgnore},
    {"relocatable-link", "r", Meaning::kIgnore},
    {"relocatable-ptx", "reloc-ptx", Meaning::kIgnore},
    {"jobserver", "jobserver", Meaning::kIgnore},
};

}  // namespace

bool TakesValue(Meaning meaning) {
  switch (meaning) {
    case Meaning::kIgnore:
    case Meaning::kNoOutput:
    case Meaning::kLinkObjects:
    case Meaning::kCompile:
    case Meaning::kDeviceCompile:
    case Meaning::kDeviceFile:
    case Meaning::kFastMath:
    case Meaning::kRelaxedConstexpr:
    case Meaning::kExtendedLambda:
    case Meaning::kNoExceptions:
      return false;
    default:
      return true;
  }
}

const Flag* FindFlag(std::string_view word) {
  for (const Flag& flag : kFlags) {
    if (word == flag.long_name || word == flag.short_name) return &flag;
  }
  return nullptr;
}

const Flag* FindJoinedFlag(std::string_view word) {
  if (word.size() < 2 ||
      std::string_view("DUILlOxtm").find(word[0]) == std::string_view::npos)
    return nullptr;
  return FindFlag(word.substr(0, 1));
}

}  // namespace reprise::command_line
