// Kernels that wait for the host: one for what the launching thread stores
// after the launch, one for what another thread stores while it runs. A
// recorder that makes the launching thread wait must give up on the first, and
// a replay of the second never ends; it must say so and leave the program its
// results. Results are exact. --size: number the kernels add to what they read.
#include <thread>

#include "../common/app.h"

__device__ void AwaitFlag(const volatile unsigned int* flag,
                          unsigned int number, unsigned int* sum) {
  unsigned int seen = 0;
  while ((seen = *flag) == 0) {
  }
  *sum += seen + number;
}

__global__ void AwaitLauncherKernel(const volatile unsigned int* flag,
                                    unsigned int number, unsigned int* sum) {
  AwaitFlag(flag, number, sum);
}
__global__ void AwaitThreadKernel(volatile unsigned int* runs,
                                  const volatile unsigned int* flag,
                                  unsigned int number, unsigned int* sum) {
  *runs = 1;
  __threadfence_system();
  AwaitFlag(flag, number, sum);
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "spin_host",
      {1000, 10, 1 << 20, "number the kernels add to what they read"});
  const auto number = static_cast<unsigned int>(options.size);
  unsigned int* flags = nullptr;
  CUDA_CHECK(cudaHostAlloc(&flags, 3 * sizeof(*flags), cudaHostAllocMapped));
  volatile unsigned int* by_launcher = &flags[0];
  volatile unsigned int* by_thread = &flags[1];
  volatile unsigned int* runs = &flags[2];
  apps::DeviceArray<unsigned int> sums(2);
  sums.Clear();
  unsigned int expected = 0;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const unsigned int value = 1u + static_cast<unsigned int>(iteration);
    *by_launcher = *by_thread = *runs = 0;
    AwaitLauncherKernel<<<1, 1>>>(by_launcher, number, sums.get());
    *by_launcher = value;
    CUDA_CHECK(cudaDeviceSynchronize());
    std::thread other([&] {
      while (*runs == 0) std::this_thread::yield();
      *by_thread = value;
    });
    AwaitThreadKernel<<<1, 1>>>(runs, by_thread, number, sums.get() + 1);
    other.join();
    CUDA_CHECK(cudaDeviceSynchronize());
    expected += value + number;
  }
  const std::vector<unsigned int> got = sums.ToHost();
  apps::Checker checker;
  for (int i = 0; i < 2; ++i)
    checker.Expect("sum", i, got[i], expected, apps::kExact);
  CUDA_CHECK(cudaFreeHost(flags));
  return checker.Finish();
}
