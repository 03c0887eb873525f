// Runs Clang's front end over a unit's translation unit, in memory. Internal to
// the AST library. Calls are independent of each other and may run in parallel.
#ifndef REPRISE_EVOLUTION_AST_FRONTEND_H_
#define REPRISE_EVOLUTION_AST_FRONTEND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clang/AST/ASTContext.h"
#include "clang/Basic/SourceLocation.h"
#include "clang/Lex/MacroInfo.h"
#include "evolution/ast/analyze.h"
#include "evolution/source.h"

namespace reprise::evolution {

// A use of a macro that is defined in a file of the user.
struct MacroUse {
  std::string name;
  clang::SourceLocation place;  // where the outermost expansion stands
  const clang::MacroInfo* macro = nullptr;
};

struct Parsed {
  clang::ASTContext& ast;
  const std::vector<MacroUse>& macros;
};

// Parses for the device with `overlay` in place of recorded files, then calls
// `use` while the tree lives. INVALID_ARGUMENT with Clang's diagnostics: the
// source does not compile.
absl::Status ParseUnit(const SourceContext& context,
                       const FileContents& overlay,
                       const AnalyzeOptions& options,
                       const std::function<absl::Status(const Parsed&)>& use);

// `path` made absolute against `directory`, without . and .. parts.
std::string AbsolutePath(const std::string& path, const std::string& directory);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_AST_FRONTEND_H_
