// Runs commands for tests and catches what they print. Not thread-safe.
#ifndef REPRISE_TESTS_REPLAY_RECORDER_SHELL_H_
#define REPRISE_TESTS_REPLAY_RECORDER_SHELL_H_

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace reprise::testing {

inline std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void Spit(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

struct ShellResult {
  int status = 0;  // as wait gives it
  std::string out;
  std::string err;

  int exit_code() const {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
};

// Runs a shell command in `directory`.
inline ShellResult Shell(const std::string& directory,
                         const std::string& command) {
  const std::string out = directory + "/.stdout";
  const std::string err = directory + "/.stderr";
  ShellResult result;
  result.status = std::system(("cd '" + directory + "' && { " + command +
                               "\n} >'" + out + "' 2>'" + err + "'")
                                  .c_str());
  result.out = Slurp(out);
  result.err = Slurp(err);
  return result;
}

inline std::string CudaHome() {
  const char* home = std::getenv("CUDA_HOME");
  return home != nullptr ? home : "/usr/local/cuda";
}

inline std::string ClangCuda() {
  return "clang++-22 -x cuda --cuda-gpu-arch=sm_90 --cuda-path=" + CudaHome() +
         " -Wno-unknown-cuda-version";
}

inline std::string Nvcc() { return CudaHome() + "/bin/nvcc"; }

inline bool HasNvcc() {
  return std::system((Nvcc() + " --version >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace reprise::testing

#endif  // REPRISE_TESTS_REPLAY_RECORDER_SHELL_H_
