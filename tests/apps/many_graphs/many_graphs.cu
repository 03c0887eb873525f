// The cost of launching a graph: many launches of a captured graph of twenty
// tiny kernels in a row. With --time it prints microseconds per launch on the
// host's clock, the wait for the device at the end of each iteration included:
// the median over the iterations, among which the launches are divided. Results
// are exact. --size: number of launches in all.
#include <chrono>

#include "../common/app.h"

constexpr int kNodes = 20;

// One thread: as many increments as kernels, in this order.
__global__ void CountNodeKernel(unsigned int* counter, unsigned int node) {
  if (*counter % kNodes == node) *counter += 1;
}

cudaGraphExec_t Capture(cudaStream_t stream, unsigned int* counter) {
  cudaGraph_t graph;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (unsigned int node = 0; node < kNodes; ++node)
    CountNodeKernel<<<1, 1, 0, stream>>>(counter, node);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  return executable;
}

int main(int argc, char** argv) {
  constexpr int64_t kWarmUp = 100;
  const apps::Options options =
      apps::ParseOptions(argc, argv, "many_graphs",
                         {20000, 200, 10000000, "number of launches in all"});
  const int64_t launches =
      std::max<int64_t>(1, options.size / options.iterations);  // an iteration
  apps::DeviceArray<unsigned int> counter(1);
  counter.Clear();
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaDeviceSynchronize());
  const cudaGraphExec_t executable = Capture(stream, counter.get());

  const auto launch_many = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      CUDA_CHECK(cudaGraphLaunch(executable, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
  };
  launch_many(kWarmUp);
  std::vector<double> launch_us;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const auto begin = std::chrono::steady_clock::now();
    launch_many(launches);
    const std::chrono::duration<double, std::micro> elapsed =
        std::chrono::steady_clock::now() - begin;
    launch_us.push_back(elapsed.count() / static_cast<double>(launches));
  }
  if (options.time) {
    std::sort(launch_us.begin(), launch_us.end());
    std::printf("many_graphs: graph_launch_us %.3f\n",
                launch_us[launch_us.size() / 2]);
  }

  apps::Checker checker;
  const std::vector<unsigned int> got = counter.ToHost();
  checker.Expect(
      "counter", 0, got[0],
      static_cast<double>(kNodes * (kWarmUp + launches * options.iterations)),
      apps::kExact);
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaStreamDestroy(stream));
  return checker.Finish();
}
