// A program that forks before it touches CUDA; parent and child then use the
// device at the same time. The parent waits for the child and says whether both
// were right; the child says nothing unless it fails. Results are exact.
// --size: number of values.
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/app.h"

constexpr int kBlock = 256;

// values[i] = factor values[i] + i, modulo 2^32.
__global__ void AdvanceForkedKernel(unsigned int* values, int count,
                                    unsigned int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * factor + static_cast<unsigned int>(i);
}

// Runs the kernel with `factor` and compares.
void Work(const apps::Options& options, unsigned int factor,
          apps::Checker& checker) {
  const int count = static_cast<int>(options.size);
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(factor, i);
  apps::DeviceArray<unsigned int> device_values(values);
  apps::RunIterations(options, [&] {
    AdvanceForkedKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(
        device_values.get(), count, factor);
  });
  const std::vector<unsigned int> got = device_values.ToHost();
  for (int i = 0; i < count; ++i) {
    unsigned int value = values[i];
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      value = value * factor + static_cast<unsigned int>(i);
    }
    checker.Expect("value", i, got[i], value, apps::kExact);
  }
}

int main(int argc, char** argv) {
  constexpr unsigned int kParentFactor = 3, kChildFactor = 5;
  const apps::Options options = apps::ParseOptions(
      argc, argv, "forked", {1 << 22, 10007, 1 << 28, "number of values"});
  const pid_t child = fork();
  if (child < 0) {
    std::printf("forked: FAIL fork: %s\n", std::strerror(errno));
    return 1;
  }
  apps::Checker checker;
  if (child == 0) {
    apps::AppName() = "forked (child)";
    Work(options, kChildFactor, checker);
    return checker.Right() ? 0 : checker.Finish();
  }
  // Also when a CUDA error ends the parent: the child must not outlive it.
  std::atexit([] { wait(nullptr); });
  Work(options, kParentFactor, checker);
  int status = 0;
  waitpid(child, &status, 0);
  checker.Expect("the child's exit code", 0,
                 WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, apps::kExact);
  return checker.Finish();
}
