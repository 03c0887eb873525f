// Text that the toolkit's libraries give out (nvJitLink, NVRTC).
#ifndef REPRISE_REPLAY_COMPILER_LIBRARY_TEXT_H_
#define REPRISE_REPLAY_COMPILER_LIBRARY_TEXT_H_

#include <cstddef>
#include <string>

namespace reprise {

// Asks for the size, the NUL at the end included, and then for the text. Empty
// where either call fails: both answer 0 when they went well.
inline std::string ReadLibraryText(void* handle,
                                   int (*get_size)(void*, size_t*),
                                   int (*get)(void*, char*)) {
  size_t size = 0;
  if (get_size(handle, &size) != 0 || size == 0) return "";
  std::string text(size, '\0');
  if (get(handle, text.data()) != 0) return "";
  text.resize(text.find('\0') == std::string::npos ? size : text.find('\0'));
  return text;
}

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_LIBRARY_TEXT_H_
