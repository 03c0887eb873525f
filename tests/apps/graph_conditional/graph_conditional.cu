// A graph with a loop: a conditional node runs its body until a kernel in it
// has counted down. Such a graph cannot be cloned, so the launches of the
// kernel before the loop are counted and not recorded; those in the body are
// not even seen. Results are exact. --size: number of values.
#include "../common/app.h"

constexpr int kBlock = 256;
constexpr unsigned int kRounds = 5;

__global__ void StartRoundsKernel(unsigned int* rounds, unsigned int* values,
                                  int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) *rounds = kRounds;
  if (i < count) values[i] += 1;
}

__global__ void RoundKernel(unsigned int* values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 3 + static_cast<unsigned int>(i);
}

__global__ void CountDownKernel(cudaGraphConditionalHandle handle,
                                unsigned int* rounds) {
  cudaGraphSetConditional(handle, --*rounds);
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "graph_conditional",
                         {1 << 20, 10007, 1 << 28, "number of values"});
  const int count = static_cast<int>(options.size);
  const int blocks = apps::BlocksFor(count, kBlock);
  std::vector<unsigned int> host(count);
  for (int i = 0; i < count; ++i) host[i] = apps::HashBits(1, i);
  apps::DeviceArray<unsigned int> values(host), rounds(1);
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  cudaGraph_t graph;
  CUDA_CHECK(cudaGraphCreate(&graph, 0));
  CUDA_CHECK(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                           cudaStreamCaptureModeGlobal));
  StartRoundsKernel<<<blocks, kBlock, 0, stream>>>(rounds.get(), values.get(),
                                                   count);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 1;
  cudaGraphNode_t first;
  CUDA_CHECK(cudaGraphGetNodes(graph, &first, &nodes));
  cudaGraphConditionalHandle handle;
  CUDA_CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1,
                                              cudaGraphCondAssignDefault));
  cudaGraphNodeParams loop = {};
  loop.type = cudaGraphNodeTypeConditional;
  loop.conditional.handle = handle;
  loop.conditional.type = cudaGraphCondTypeWhile;
  loop.conditional.size = 1;
  cudaGraphNode_t node;
  CUDA_CHECK(cudaGraphAddNode(&node, graph, &first, nullptr, 1, &loop));
  cudaGraph_t body = loop.conditional.phGraph_out[0];
  CUDA_CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                           cudaStreamCaptureModeGlobal));
  RoundKernel<<<blocks, kBlock, 0, stream>>>(values.get(), count);
  CountDownKernel<<<1, 1, 0, stream>>>(handle, rounds.get());
  CUDA_CHECK(cudaStreamEndCapture(stream, &body));

  cudaGraphExec_t executable;
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < options.iterations; ++i) {
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
    for (int k = 0; k < count; ++k) {
      host[k] += 1;
      for (unsigned int round = 0; round < kRounds; ++round)
        host[k] = host[k] * 3 + static_cast<unsigned int>(k);
    }
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
