// printf in a kernel: a few threads of the first block print, one after the
// other, so that the output is the same every time. The verdict is about the
// numbers the kernel computes.
// --size: number of starting values.
#include "../common/app.h"

constexpr int kBlock = 128;

// Counts the steps of the Collatz sequence from i + 1 down to 1.
__global__ void CollatzKernel(int* steps, int* printed, int count, int launch) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    unsigned long long value = i + 1;
    int length = 0;
    while (value != 1) {
      value = value % 2 == 0 ? value / 2 : 3 * value + 1;
      ++length;
    }
    steps[i] = length;
  }
  if (blockIdx.x != 0) return;
  if (i == 0) printf("launch %d of %s begins\n", launch, "CollatzKernel");
  // Threads 26, 52, 78 and 104 in turn.
  for (int turn = 1; turn <= 4; ++turn) {
    __syncthreads();
    if (threadIdx.x != 26 * turn || i >= count) continue;
    *printed = printf("  %4d: %u steps, %.3f a bit, %c %% %08x %lld %-6s|\n",
                      i + 1, static_cast<unsigned int>(steps[i]),
                      steps[i] / log2f(static_cast<float>(i + 1)), 'a' + turn,
                      i * 0x01010101, -(1LL << (30 + turn)), "end");
  }
  __syncthreads();
  if (i == 0) printf("launch ends\n");
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "device_printf",
                         {1 << 20, 1000, 1 << 26, "number of starting values"});
  const int count = static_cast<int>(options.size);
  apps::DeviceArray<int> steps(count);
  apps::DeviceArray<int> printed(1);

  int launch = 0;
  apps::RunIterations(options, [&] {
    CollatzKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(
        steps.get(), printed.get(), count, launch);
    ++launch;
  });

  const std::vector<int> got = steps.ToHost();
  apps::Checker checker;
  for (int i = 0; i < count; ++i) {
    uint64_t value = i + 1;
    int length = 0;
    for (; value != 1; ++length) {
      value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    }
    checker.Expect("steps", i, got[i], length, apps::kExact);
  }
  // Negative would be an error; the device counts arguments, the host
  // characters.
  if (count > 104) {
    checker.Expect("printf succeeded", 0, printed.ToHost()[0] > 0, 1,
                   apps::kExact);
  }
  return checker.Finish();
}
