// Stand-ins for the host's standard headers, which NVRTC does not have.
// Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_NVRTC_HEADERS_H_
#define REPRISE_REPLAY_COMPILER_NVRTC_HEADERS_H_

#include <map>
#include <string>

namespace reprise {

// By the name in #include. `full`: with what cuda::std has of each, under std;
// else types, limits' macros, math functions, min, max and swap alone.
const std::map<std::string, std::string>& NvrtcHeaders(bool full);

// Whether std::NAME is there without `full`.
bool IsBasicStdName(const std::string& name);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_NVRTC_HEADERS_H_
