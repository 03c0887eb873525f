// Two host threads with a default stream each (--default-stream=per-thread):
// one launches a short kernel all the time, the other does the work of
// RunIterations on its default stream and on a stream of its own. Results are
// exact. --size: number of values.
#include <atomic>
#include <thread>

#include "../common/app.h"

constexpr int kBlock = 256;
constexpr int kBusyBlock = 64;
constexpr int kBusyBound = 64;  // launches between two waits

// Counts its own launches in each of kBusyBlock counters.
__global__ void BusyKernel(unsigned int* counters) {
  counters[threadIdx.x] += 1;
}

// values[i] = 3 values[i] + i, modulo 2^32.
__global__ void WorkKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 3u + static_cast<unsigned int>(i);
}

// The thread that launches all the time. Start() returns once it does.
class BusyThread {
 public:
  explicit BusyThread(unsigned int* counters) : counters_(counters) {}

  void Start() {
    thread_ = std::thread([this] { Run(); });
    while (launches_ == 0) std::this_thread::yield();
  }
  // Returns the number of launches, all of which are done.
  unsigned int Stop() {
    stop_ = true;
    thread_.join();
    return launches_;
  }

 private:
  void Run() {
    while (!stop_) {
      BusyKernel<<<1, kBusyBlock>>>(counters_);
      CUDA_CHECK(cudaGetLastError());
      if (++launches_ % kBusyBound == 0) CUDA_CHECK(cudaStreamSynchronize(0));
    }
    CUDA_CHECK(cudaStreamSynchronize(0));
  }

  unsigned int* counters_;
  std::atomic<unsigned int> launches_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "two_threads", {1 << 22, 10007, 1 << 28, "number of values"});
  const int count = static_cast<int>(options.size);
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  apps::DeviceArray<unsigned int> first(values), second(values);
  apps::DeviceArray<unsigned int> counters(kBusyBlock);
  counters.Clear();
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaDeviceSynchronize());

  BusyThread busy(counters.get());
  busy.Start();
  apps::RunIterations(options, [&] {
    const int blocks = apps::BlocksFor(count, kBlock);
    WorkKernel<<<blocks, kBlock>>>(first.get(), count);
    WorkKernel<<<blocks, kBlock, 0, stream>>>(second.get(), count);
    CUDA_CHECK(cudaStreamSynchronize(stream));
  });
  const unsigned int launches = busy.Stop();

  apps::Checker checker;
  for (unsigned int counter : counters.ToHost()) {
    checker.Expect("busy launches", 0, counter, launches, apps::kExact);
  }
  const std::vector<unsigned int> got_first = first.ToHost();
  const std::vector<unsigned int> got_second = second.ToHost();
  for (int i = 0; i < count; ++i) {
    unsigned int value = values[i];
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      value = value * 3u + static_cast<unsigned int>(i);
    }
    checker.Expect("first", i, got_first[i], value, apps::kExact);
    checker.Expect("second", i, got_second[i], value, apps::kExact);
  }
  CUDA_CHECK(cudaStreamDestroy(stream));
  return checker.Finish();
}
