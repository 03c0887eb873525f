// A CUDA graph built node by node: memset, copy, host function and child graph
// between four kernels, one of them cooperative and one with much dynamic
// shared memory. No kernel is ever launched by itself. The executable graph is
// launched several times, a kernel of it is given other arguments, and nodes of
// it are disabled for a while. Results are exact. --size: number of values.
#include <cooperative_groups.h>

#include "../common/app.h"

constexpr int kBlock = 256;
constexpr int kSegment = 16384;  // values in shared memory, 64 KiB

// sums[i] += values[(i + shift) % count].
__global__ void AccumulateKernel(unsigned int* sums, const unsigned int* values,
                                 int count, int shift) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sums[i] += values[(i + shift) % count];
}

__global__ void RaiseKernel(unsigned int* values, int count,
                            unsigned int addend) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 3 + addend;
}

// to[i] = from[i] + from[i + 1], then from[i] ^= to[i - 1]: a ring.
__global__ void SpreadRingKernel(unsigned int* from, unsigned int* to,
                                 int count) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  const int threads = static_cast<int>(grid.size());
  const int first = static_cast<int>(grid.thread_rank());
  for (int i = first; i < count; i += threads)
    to[i] = from[i] + from[i + 1 < count ? i + 1 : 0];
  grid.sync();
  for (int i = first; i < count; i += threads)
    from[i] ^= to[i > 0 ? i - 1 : count - 1];
}

// Reverses each segment of `values` in place.
__global__ void ReverseSegmentsKernel(unsigned int* values, int count) {
  extern __shared__ unsigned int segment[];
  const int begin = blockIdx.x * kSegment;
  const int size = min(kSegment, count - begin);
  for (int i = threadIdx.x; i < size; i += blockDim.x)
    segment[i] = values[begin + i];
  __syncthreads();
  for (int i = threadIdx.x; i < size; i += blockDim.x)
    values[begin + i] = segment[size - 1 - i];
}

struct Buffers {
  unsigned int* values;
  unsigned int* sums;
  unsigned int* spread;
  int count;
};

cudaGraphNode_t AddKernel(cudaGraph_t graph,
                          const std::vector<cudaGraphNode_t>& after,
                          const void* kernel, int blocks, size_t shared_bytes,
                          void** arguments) {
  cudaKernelNodeParams node = {};
  node.func = const_cast<void*>(kernel);
  node.gridDim = dim3(blocks);
  node.blockDim = dim3(kBlock);
  node.sharedMemBytes = static_cast<unsigned int>(shared_bytes);
  node.kernelParams = arguments;
  cudaGraphNode_t added;
  CUDA_CHECK(
      cudaGraphAddKernelNode(&added, graph, after.data(), after.size(), &node));
  return added;
}

void CountLaunch(void* launches) { ++*static_cast<int*>(launches); }

class Program {
 public:
  Program(Buffers buffers, int* launches) : buffers_(buffers) {
    CUDA_CHECK(cudaGraphCreate(&graph_, 0));
    Build(launches);
    CUDA_CHECK(cudaGraphInstantiate(&executable_, graph_, 0));
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~Program() {
    CUDA_CHECK(cudaStreamDestroy(stream_));
    CUDA_CHECK(cudaGraphExecDestroy(executable_));
    CUDA_CHECK(cudaGraphDestroy(graph_));
  }

  void Launch(int times) {
    for (int i = 0; i < times; ++i)
      CUDA_CHECK(cudaGraphLaunch(executable_, stream_));
  }
  void SetShift(int shift) {
    void* arguments[] = {&buffers_.sums, &buffers_.values, &buffers_.count,
                         &shift};
    cudaKernelNodeParams node = {};
    node.func = reinterpret_cast<void*>(AccumulateKernel);
    node.gridDim = dim3(apps::BlocksFor(buffers_.count, kBlock));
    node.blockDim = dim3(kBlock);
    node.kernelParams = arguments;
    CUDA_CHECK(
        cudaGraphExecKernelNodeSetParams(executable_, accumulate_, &node));
  }
  void EnableSums(bool enabled) {
    CUDA_CHECK(cudaGraphNodeSetEnabled(executable_, clear_, enabled));
    CUDA_CHECK(cudaGraphNodeSetEnabled(executable_, accumulate_, enabled));
  }
  void Wait() { CUDA_CHECK(cudaStreamSynchronize(stream_)); }

 private:
  // Two kernels, one after the other.
  cudaGraphNode_t AddChild(cudaGraphNode_t after) {
    cudaGraph_t child;
    CUDA_CHECK(cudaGraphCreate(&child, 0));
    const int blocks = apps::BlocksFor(buffers_.count, kBlock);
    unsigned int addend = 7;
    void* arguments[] = {&buffers_.spread, &buffers_.count, &addend};
    const cudaGraphNode_t first = AddKernel(
        child, {}, reinterpret_cast<void*>(RaiseKernel), blocks, 0, arguments);
    addend = 11;
    AddKernel(child, {first}, reinterpret_cast<void*>(RaiseKernel), blocks, 0,
              arguments);
    cudaGraphNode_t added;
    CUDA_CHECK(cudaGraphAddChildGraphNode(&added, graph_, &after, 1, child));
    CUDA_CHECK(cudaGraphDestroy(child));
    return added;
  }

  cudaGraphNode_t AddCooperative(cudaGraphNode_t after) {
    int device = 0, processors = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&processors,
                                      cudaDevAttrMultiProcessorCount, device));
    void* arguments[] = {&buffers_.spread, &buffers_.values, &buffers_.count};
    const int blocks =
        std::min(processors, apps::BlocksFor(buffers_.count, kBlock));
    const cudaGraphNode_t added =
        AddKernel(graph_, {after}, reinterpret_cast<void*>(SpreadRingKernel),
                  blocks, 0, arguments);
    cudaLaunchAttributeValue cooperative = {};
    cooperative.cooperative = 1;
    CUDA_CHECK(cudaGraphKernelNodeSetAttribute(
        added, cudaLaunchAttributeCooperative, &cooperative));
    return added;
  }

  void Build(int* launches) {
    const size_t bytes = buffers_.count * sizeof(unsigned int);
    cudaMemsetParams zeros = {};
    zeros.dst = buffers_.sums;
    zeros.elementSize = sizeof(unsigned int);
    zeros.width = buffers_.count;
    zeros.height = 1;
    CUDA_CHECK(cudaGraphAddMemsetNode(&clear_, graph_, nullptr, 0, &zeros));
    int shift = 1;
    void* sums[] = {&buffers_.sums, &buffers_.values, &buffers_.count, &shift};
    accumulate_ =
        AddKernel(graph_, {clear_}, reinterpret_cast<void*>(AccumulateKernel),
                  apps::BlocksFor(buffers_.count, kBlock), 0, sums);
    cudaGraphNode_t copy;
    CUDA_CHECK(cudaGraphAddMemcpyNode1D(&copy, graph_, &accumulate_, 1,
                                        buffers_.spread, buffers_.sums, bytes,
                                        cudaMemcpyDeviceToDevice));
    const cudaGraphNode_t ring = AddCooperative(AddChild(copy));
    constexpr int kShared = kSegment * sizeof(unsigned int);
    CUDA_CHECK(cudaFuncSetAttribute(ReverseSegmentsKernel,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    kShared));
    void* segments[] = {&buffers_.values, &buffers_.count};
    AddKernel(graph_, {ring}, reinterpret_cast<void*>(ReverseSegmentsKernel),
              apps::BlocksFor(buffers_.count, kSegment), kShared, segments);
    const cudaHostNodeParams host = {CountLaunch, launches};
    cudaGraphNode_t added;
    CUDA_CHECK(cudaGraphAddHostNode(&added, graph_, &ring, 1, &host));
  }

  Buffers buffers_;
  cudaGraph_t graph_;
  cudaGraphExec_t executable_;
  cudaStream_t stream_;
  cudaGraphNode_t clear_;
  cudaGraphNode_t accumulate_;
};

// What one launch does, on the host.
struct Host {
  std::vector<unsigned int> values, sums, spread;

  void Launch(int shift, bool sums_enabled) {
    const size_t count = values.size();
    for (size_t i = 0; sums_enabled && i < count; ++i)
      sums[i] = values[(i + shift) % count];
    for (size_t i = 0; i < count; ++i) spread[i] = (sums[i] * 3 + 7) * 3 + 11;
    for (size_t i = 0; i < count; ++i)
      values[i] = spread[i] + spread[(i + 1) % count];
    for (size_t i = 0; i < count; ++i)
      spread[i] ^= values[(i + count - 1) % count];
    for (size_t begin = 0; begin < count; begin += kSegment) {
      const size_t end = std::min<size_t>(count, begin + kSegment);
      std::reverse(values.begin() + begin, values.begin() + end);
    }
  }
};

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "graph_nodes", {1 << 20, 20011, 1 << 26, "number of values"});
  Host host;
  host.values.resize(options.size);
  for (size_t i = 0; i < host.values.size(); ++i)
    host.values[i] = apps::HashBits(1, i);
  host.sums = host.spread = host.values;
  apps::DeviceArray<unsigned int> values(host.values), sums(host.sums),
      spread(host.spread);
  int launches = 0;
  {
    Program program({values.get(), sums.get(), spread.get(),
                     static_cast<int>(options.size)},
                    &launches);
    program.Launch(options.iterations);
    program.SetShift(5);
    program.Launch(options.iterations);
    program.EnableSums(false);
    program.Launch(1);
    program.EnableSums(true);
    program.Launch(1);
    program.Wait();
  }
  for (int i = 0; i < options.iterations; ++i) host.Launch(1, true);
  for (int i = 0; i < options.iterations; ++i) host.Launch(5, true);
  host.Launch(5, false);
  host.Launch(5, true);

  apps::Checker checker;
  const std::vector<unsigned int> got_values = values.ToHost();
  const std::vector<unsigned int> got_spread = spread.ToHost();
  for (size_t i = 0; i < got_values.size(); ++i) {
    checker.Expect("values", i, got_values[i], host.values[i], apps::kExact);
    checker.Expect("spread", i, got_spread[i], host.spread[i], apps::kExact);
  }
  checker.Expect("launches", 0, launches, 2 * options.iterations + 2,
                 apps::kExact);
  return checker.Finish();
}
