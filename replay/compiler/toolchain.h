// Where the files lie that a device compile needs beside the source: Clang's
// own headers, the CUDA toolkit, libdevice, nvJitLink and NVIDIA's compilers.
// Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_TOOLCHAIN_H_
#define REPRISE_REPLAY_COMPILER_TOOLCHAIN_H_

#include <string>
#include <vector>

namespace reprise {

struct Toolchain {
  // Toolkit of this machine; may not exist where everything comes from a
  // unit's closure and IR.
  std::string cuda_home;
  // Directory whose include/ holds Clang 22's headers; empty: not found.
  std::string clang_resources;
  // libdevice.10.bc; empty: not found.
  std::string libdevice;
  // Where nvJitLink may be, best first; names for dlopen.
  std::vector<std::string> nvjitlink_candidates;
  // Where NVRTC may be, best first; names for dlopen.
  std::vector<std::string> nvrtc_candidates;
  // nvcc of the toolkit; empty: not found.
  std::string nvcc;
};

// Looks beside the running executable (a relocatable bundle), in `cuda_home`
// and where LLVM was when Reprise was built. $REPRISE_CLANG_RESOURCES overrides
// the place of Clang's headers. An empty cuda_home means $CUDA_HOME or
// /usr/local/cuda. Never fails: what is missing is said where it is needed.
// `driver_cuda` is the CUDA version of the driver that will load machine code,
// 12040 for 12.4; 0: not known. Its own nvJitLink is preferred.
Toolchain FindToolchain(std::string cuda_home, int driver_cuda = 0);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_TOOLCHAIN_H_
