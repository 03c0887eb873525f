#include "replay/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace reprise {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "reprise: broken invariant at %s:%d: %s\n", file, line,
               condition);
  std::abort();
}

}  // namespace reprise
