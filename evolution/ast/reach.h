// What a kernel uses of the user's files. Internal to the AST library.
#ifndef REPRISE_EVOLUTION_AST_REACH_H_
#define REPRISE_EVOLUTION_AST_REACH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "evolution/ast/code.h"
#include "evolution/ast/frontend.h"
#include "evolution/source.h"

namespace reprise::evolution {

// A function of the user and every body that the translation unit makes of it:
// itself, or the instantiations of its template.
struct ReachedFunction {
  const clang::FunctionDecl* pattern = nullptr;
  std::vector<const clang::FunctionDecl*> bodies;
  bool kernel = false;
};

struct Reach {
  std::vector<ReachedFunction> functions;  // the kernel first
  std::vector<Region> regions;             // unsorted, may overlap
};

// NOT_FOUND: no kernel of that symbol has its definition in a file of the user.
absl::StatusOr<Reach> FindReach(const Parsed& parsed, const Code& code,
                                const std::string& kernel_symbol);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_AST_REACH_H_
