// Programs of several processes, as MPI starts them: the process that the user
// starts runs ranks of itself by fork and exec, which talk in a ring of pipes,
// and waits for them. It makes no CUDA call; ranks say nothing unless they
// fail. Errors end the process with a FAIL line, as in app.h.
#ifndef REPRISE_TESTS_APPS_COMMON_RANKS_H_
#define REPRISE_TESTS_APPS_COMMON_RANKS_H_

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app.h"

namespace apps {

// This process, where it is one of the ranks.
struct Rank {
  int number = -1;  // -1: the process that the user started
  int in = -1;      // from the rank before this one
  int out = -1;     // to the rank after it

  template <typename T>
  void Send(const T& value) const {
    if (write(out, &value, sizeof(value)) != sizeof(value)) Fail("sending");
  }
  template <typename T>
  T Receive() const {
    T value;
    char* at = reinterpret_cast<char*>(&value);
    for (size_t left = sizeof(value); left > 0;) {
      const ssize_t got = read(in, at, left);
      if (got <= 0) Fail("receiving");
      at += got;
      left -= static_cast<size_t>(got);
    }
    return value;
  }

  [[noreturn]] void Fail(const char* what) const {
    std::printf("%s: FAIL %s in rank %d\n", AppName(), what, number);
    std::exit(1);
  }
};

inline Rank ThisRank() {
  Rank rank;
  if (const char* text = std::getenv("APPS_RANK"))
    std::sscanf(text, "%d %d %d", &rank.number, &rank.in, &rank.out);
  return rank;
}

// In the process that the user started: runs `count` ranks of this program with
// its arguments, waits, and returns main's exit code.
inline int RunRanks(int count, char** argv) {
  std::vector<std::pair<int, int>> pipes(count);  // i: from rank i to the next
  for (auto& [in, out] : pipes) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) Rank().Fail("pipe");
    in = ends[0];
    out = ends[1];
  }
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    children.push_back(fork());
    if (children.back() < 0) Rank().Fail("fork");
    if (children.back() > 0) continue;
    const int in = pipes[(i + count - 1) % count].first;
    const int out = pipes[i].second;
    fcntl(in, F_SETFD, 0);
    fcntl(out, F_SETFD, 0);
    char text[64];
    std::snprintf(text, sizeof(text), "%d %d %d", i, in, out);
    setenv("APPS_RANK", text, 1);
    execv("/proc/self/exe", argv);
    _exit(127);
  }
  for (const auto& [in, out] : pipes) {
    close(in);
    close(out);
  }
  Checker checker;
  for (int i = 0; i < count; ++i) {
    int status = 0;
    waitpid(children[i], &status, 0);
    checker.Expect("exit code of rank", i,
                   WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, kExact);
  }
  return checker.Finish();
}

}  // namespace apps

#endif  // REPRISE_TESTS_APPS_COMMON_RANKS_H_
