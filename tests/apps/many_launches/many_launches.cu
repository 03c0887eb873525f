// The cost of a launch and of an allocation: many launches of a tiny kernel,
// and half as many pairs of cudaMallocAsync and cudaFreeAsync of a few hundred
// bytes. With --time it prints microseconds per launch and per pair on the
// host's clock, the wait for the device at the end of each iteration included:
// the median over the iterations, among which the launches are divided.
// Results are exact. --size: number of launches in all.
#include <chrono>

#include "../common/app.h"

constexpr int kMarkEvery = 500;  // pairs whose buffer a kernel uses

// One thread: counts the launches.
__global__ void TinyKernel(unsigned int* counter) { *counter += 1; }

// One thread: writes the buffer and counts.
__global__ void MarkBufferKernel(unsigned int* buffer, unsigned int mark,
                                 unsigned int* counter) {
  *buffer = mark;
  *counter += 1;
}

struct Work {
  cudaStream_t stream;
  unsigned int* launches;  // on the device
  unsigned int* marks;     // on the device
};

void LaunchMany(const Work& work, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    TinyKernel<<<1, 1, 0, work.stream>>>(work.launches);
  }
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaStreamSynchronize(work.stream));
}

// Returns how many of the buffers were marked.
int64_t AllocateMany(const Work& work, int64_t count) {
  int64_t marked = 0;
  for (int64_t i = 0; i < count; ++i) {
    unsigned int* buffer = nullptr;
    CUDA_CHECK(cudaMallocAsync(&buffer, 256 + i % 16 * 64, work.stream));
    if (i % kMarkEvery == 0) {
      MarkBufferKernel<<<1, 1, 0, work.stream>>>(
          buffer, static_cast<unsigned int>(i), work.marks);
      ++marked;
    }
    CUDA_CHECK(cudaFreeAsync(buffer, work.stream));
  }
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaStreamSynchronize(work.stream));
  return marked;
}

// Microseconds per element of `count`.
template <typename Function>
double MicrosecondsEach(int64_t count, Function function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  const std::chrono::duration<double, std::micro> elapsed =
      std::chrono::steady_clock::now() - begin;
  return elapsed.count() / static_cast<double>(count);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int main(int argc, char** argv) {
  constexpr int64_t kWarmUp = 500;
  const apps::Options options = apps::ParseOptions(
      argc, argv, "many_launches",
      {200000, 2000, 100000000, "number of launches in all"});
  const int64_t launches =
      std::max<int64_t>(2, options.size / options.iterations);  // an iteration
  apps::DeviceArray<unsigned int> counters(2);
  counters.Clear();
  Work work = {nullptr, counters.get(), counters.get() + 1};
  CUDA_CHECK(cudaStreamCreateWithFlags(&work.stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaDeviceSynchronize());

  LaunchMany(work, kWarmUp);
  int64_t marked = AllocateMany(work, kWarmUp);
  std::vector<double> launch_us, pair_us;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    launch_us.push_back(
        MicrosecondsEach(launches, [&] { LaunchMany(work, launches); }));
    pair_us.push_back(MicrosecondsEach(
        launches / 2, [&] { marked += AllocateMany(work, launches / 2); }));
  }
  if (options.time) {
    std::printf("many_launches: launch_us %.3f\n", Median(launch_us));
    std::printf("many_launches: alloc_free_us %.3f\n", Median(pair_us));
  }

  apps::Checker checker;
  const std::vector<unsigned int> got = counters.ToHost();
  checker.Expect("launches", 0, got[0],
                 static_cast<double>(kWarmUp + launches * options.iterations),
                 apps::kExact);
  checker.Expect("marked buffers", 0, got[1], static_cast<double>(marked),
                 apps::kExact);
  CUDA_CHECK(cudaStreamDestroy(work.stream));
  return checker.Finish();
}
