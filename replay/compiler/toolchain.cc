#include "replay/compiler/toolchain.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/process.h"

namespace reprise {
namespace {

bool Exists(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

std::string FirstExisting(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (Exists(path)) return path;
  }
  return "";
}

std::string FindClangResources(const std::string& executable_directory) {
  std::vector<std::string> candidates;
  if (const char* variable = std::getenv("REPRISE_CLANG_RESOURCES"))
    candidates.push_back(variable);
  candidates.push_back(executable_directory + "/../lib/clang/22");
  candidates.push_back(REPRISE_LLVM_PREFIX "/lib/clang/22");
  candidates.push_back("/usr/lib/llvm-22/lib/clang/22");
  for (const std::string& candidate : candidates) {
    if (Exists(candidate + "/include/__clang_cuda_runtime_wrapper.h"))
      return candidate;
  }
  return "";
}

// Names for dlopen, best first.
std::vector<std::string> LibraryPlaces(const std::string& executable_directory,
                                       const std::string& cuda_home,
                                       const std::string& library) {
  std::vector<std::string> places;
  for (const char* place : {"/", "/../lib/"})
    places.push_back(absl::StrCat(executable_directory, place, library));
  for (const char* place : {"/lib64/", "/targets/x86_64-linux/lib/", "/lib/"})
    places.push_back(absl::StrCat(cuda_home, place, library));
  places.push_back(library);
  return places;
}

std::vector<std::string> NvJitLinkCandidates(
    const std::string& executable_directory, const std::string& cuda_home,
    int driver_cuda) {
  std::vector<std::string> versions = {"libnvJitLink.so.13",
                                       "libnvJitLink.so.12"};
  if (driver_cuda != 0 && driver_cuda < 13000)
    std::swap(versions[0], versions[1]);
  std::vector<std::string> candidates;
  for (const std::string& name : versions) {
    for (std::string& place :
         LibraryPlaces(executable_directory, cuda_home, name))
      candidates.push_back(std::move(place));
  }
  return candidates;
}

}  // namespace

Toolchain FindToolchain(std::string cuda_home, int driver_cuda) {
  if (cuda_home.empty()) {
    const char* variable = std::getenv("CUDA_HOME");
    cuda_home =
        variable != nullptr && *variable != '\0' ? variable : "/usr/local/cuda";
  }
  const std::string self = SelfExecutable().value_or("");
  const std::string directory = self.substr(0, self.rfind('/'));
  Toolchain tools;
  tools.cuda_home = cuda_home;
  tools.clang_resources = FindClangResources(directory);
  tools.libdevice =
      FirstExisting({cuda_home + "/nvvm/libdevice/libdevice.10.bc",
                     directory + "/../lib/libdevice.10.bc"});
  tools.nvjitlink_candidates =
      NvJitLinkCandidates(directory, cuda_home, driver_cuda);
  tools.nvrtc_candidates =
      LibraryPlaces(directory, cuda_home, "libnvrtc.so.13");
  tools.nvcc = FirstExisting({cuda_home + "/bin/nvcc"});
  return tools;
}

}  // namespace reprise
