// A kernel that waits for another one, which is launched after it in another
// stream. A recorder that runs one launch at a time must give up on both and
// leave the program its results. Results are exact.
// --size: number the waiting kernel adds to what it reads.
#include "../common/app.h"

__global__ void AwaitKernel(const volatile unsigned int* flag,
                            unsigned int number, unsigned int* sum) {
  unsigned int seen = 0;
  while ((seen = *flag) == 0) {
  }
  *sum += seen + number;
}

__global__ void RaiseKernel(volatile unsigned int* flag, unsigned int value) {
  *flag = value;
}

int main(int argc, char** argv) {
  // Code that is loaded when it is first launched may wait for the device.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  const apps::Options options = apps::ParseOptions(
      argc, argv, "spin_kernel",
      {1000, 10, 1 << 20, "number the waiting kernel adds to what it reads"});
  const auto number = static_cast<unsigned int>(options.size);
  cudaStream_t waiting = nullptr, raising = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&raising, cudaStreamNonBlocking));
  apps::DeviceArray<unsigned int> flag(1);
  apps::DeviceArray<unsigned int> sum(1);
  sum.Clear();
  unsigned int expected = 0;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const unsigned int value = 1u + static_cast<unsigned int>(iteration);
    flag.Clear();
    CUDA_CHECK(cudaDeviceSynchronize());
    AwaitKernel<<<1, 1, 0, waiting>>>(flag.get(), number, sum.get());
    CUDA_CHECK(cudaGetLastError());
    RaiseKernel<<<1, 1, 0, raising>>>(flag.get(), value);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    expected += value + number;
  }
  apps::Checker checker;
  checker.Expect("sum", 0, sum.ToHost()[0], expected, apps::kExact);
  CUDA_CHECK(cudaStreamDestroy(waiting));
  CUDA_CHECK(cudaStreamDestroy(raising));
  return checker.Finish();
}
