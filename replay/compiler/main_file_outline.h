// Where a main file can be cut so that what comes before the cut is a complete
// translation unit that a precompiled header can hold.
//
// Found by lexing alone, in about a millisecond. Macros can fool it (one that
// opens a namespace, say); a cut that is none shows as an error when the
// precompiled header is built. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_MAIN_FILE_OUTLINE_H_
#define REPRISE_REPLAY_COMPILER_MAIN_FILE_OUTLINE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace clang {
class LangOptions;
}

namespace reprise {

struct MainFileOutline {
  // Offsets of line starts outside all braces and conditionals, ascending.
  // Always begins with 0.
  std::vector<size_t> cuts;
  // The cut before the first item that holds device code (__global__ or
  // __device__ outside of directives); without such an item, the cut after the
  // last #include.
  size_t first_device_code = 0;

  // The last cut that is not after `offset`.
  size_t CutBefore(size_t offset) const;
};

// `text` must be followed by a null byte, as std::string's is.
MainFileOutline OutlineMainFile(const std::string& text,
                                const clang::LangOptions& language);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_MAIN_FILE_OUTLINE_H_
