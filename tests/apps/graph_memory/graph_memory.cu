// A captured graph that allocates the memory it works in: it cannot be cloned,
// so the launches of its kernels are counted and not recorded. Results are
// exact. --size: number of values.
#include "../common/app.h"

constexpr int kBlock = 256;

__global__ void DoubleIntoKernel(const unsigned int* from, unsigned int* to,
                                 int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i] * 2 + 1;
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "graph_memory",
                         {1 << 20, 10007, 1 << 28, "number of values"});
  const int count = static_cast<int>(options.size);
  const size_t bytes = count * sizeof(unsigned int);
  std::vector<unsigned int> host(count);
  for (int i = 0; i < count; ++i) host[i] = apps::HashBits(1, i);
  apps::DeviceArray<unsigned int> values(host);
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  const int blocks = apps::BlocksFor(count, kBlock);
  cudaGraph_t graph;
  unsigned int* scratch = nullptr;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CUDA_CHECK(cudaMallocAsync(&scratch, bytes, stream));
  DoubleIntoKernel<<<blocks, kBlock, 0, stream>>>(values.get(), scratch, count);
  DoubleIntoKernel<<<blocks, kBlock, 0, stream>>>(scratch, values.get(), count);
  CUDA_CHECK(cudaFreeAsync(scratch, stream));
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < options.iterations; ++i) {
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
    for (unsigned int& value : host) value = (value * 2 + 1) * 2 + 1;
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));

  apps::Checker checker;
  const std::vector<unsigned int> got = values.ToHost();
  for (int i = 0; i < count; ++i)
    checker.Expect("values", i, got[i], host[i], apps::kExact);
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaStreamDestroy(stream));
  return checker.Finish();
}
