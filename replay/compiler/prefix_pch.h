// Precompiled headers of prefixes of a unit's main file, in memory.
//
// A prefix runs to a cut (main_file_outline.h) and is always that of the
// unmodified source, with everything that it includes; a variant may use it
// when its edits come after the cut and touch no included file. A few are
// kept, the most recently used ones.
//
// Not thread-safe. A PrefixPch stays valid until the next call of Find.
#ifndef REPRISE_REPLAY_COMPILER_PREFIX_PCH_H_
#define REPRISE_REPLAY_COMPILER_PREFIX_PCH_H_

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clang/Frontend/CompilerInvocation.h"
#include "clang/Frontend/PrecompiledPreamble.h"
#include "llvm/ADT/StringMap.h"
#include "replay/compiler/main_file_outline.h"
#include "replay/compiler/source_files.h"

namespace clang {
class Decl;
}

namespace reprise {

class PrefixPch {
 public:
  // Null where the prefix does not compile by itself. With
  // FrontendOpts.SkipFunctionBodies in the invocation, bodies of host functions
  // are left out.
  static std::unique_ptr<PrefixPch> Build(
      const clang::CompilerInvocation& invocation, const std::string& main_text,
      size_t cut, const std::string& directory, FileSystemPtr files);

  size_t cut() const { return cut_; }

  // Offset in the main file of the #include through which `clean_path` is
  // read; kBeforeMainFile where it comes from the command line (-include).
  // Empty: not part of the prefix.
  static constexpr size_t kBeforeMainFile = static_cast<size_t>(-1);
  std::optional<size_t> IncludedFrom(const std::string& clean_path) const;

  // Makes a compile of `main_text` start behind the prefix. `main_text` and
  // this object must outlive the compile.
  void Use(clang::CompilerInvocation& invocation, FileSystemPtr& files,
           llvm::MemoryBuffer* main_text) const;

 private:
  PrefixPch(size_t cut, clang::PrecompiledPreamble preamble,
            llvm::StringMap<size_t> includes)
      : cut_(cut),
        preamble_(std::move(preamble)),
        includes_(std::move(includes)) {}

  const size_t cut_;
  const clang::PrecompiledPreamble preamble_;
  const llvm::StringMap<size_t> includes_;
};

// Whether a device compile can do without the function's body: nothing that
// runs on the device calls a function that is for the host alone.
bool IsHostOnly(clang::Decl& decl);

class PrefixCache {
 public:
  // All must outlive the cache; `main_text` is the unmodified main file.
  PrefixCache(const clang::CompilerInvocation& invocation,
              const std::string& main_file, const std::string& main_text,
              const std::string& directory, FileSystemPtr files);

  using Overlays = google::protobuf::RepeatedPtrField<v1::SourceOverlay>;

  // The prefix for a variant with these overlays, built if need be. Null:
  // there is none.
  const PrefixPch* Find(const Overlays& overlays);

 private:
  // Null where it does not compile; that is remembered.
  const PrefixPch* GetOrBuild(size_t cut);

  static constexpr size_t kMaxKept = 4;

  const clang::CompilerInvocation& invocation_;
  const std::string main_file_;  // clean
  const std::string& main_text_;
  const std::string directory_;
  const FileSystemPtr files_;
  const MainFileOutline outline_;
  std::list<std::unique_ptr<PrefixPch>> kept_;  // most recently used first
  std::set<size_t> failed_cuts_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_PREFIX_PCH_H_
