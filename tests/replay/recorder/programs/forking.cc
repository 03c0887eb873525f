// CUDA in a process, in a child forked before it, in one forked after it, and
// in one exec'd after it.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace {

void Say(const char* who) {
  void* pointer = nullptr;
  std::printf("%s: %s\n", who, cudaGetErrorName(cudaMalloc(&pointer, 64)));
  std::fflush(stdout);
}

template <typename Body>
void InChild(const Body& body) {
  std::fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  waitpid(pid, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    Say("exec'd child");
    return 0;
  }
  InChild([] { Say("child before"); });
  Say("parent");
  char* managed = nullptr;
  cudaMallocManaged(reinterpret_cast<void**>(&managed), 64);
  *managed = 1;
  InChild([] { Say("child after"); });
  InChild([&] { execl(argv[0], argv[0], "again", nullptr); });
  void* pointer = nullptr;
  std::printf("parent again: %s, memory %d\n",
              cudaGetErrorName(cudaMalloc(&pointer, 64)), *managed);
  return 0;
}
