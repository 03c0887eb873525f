// CUDA graphs: kernels captured from two streams that fork and join, launched
// several times; then the executable graph is updated to other arguments and
// launched again. AdvanceKernel is also launched once by itself, the way
// programs warm up before a capture; MixKernel only ever runs in the graph.
// Results are exact. --size: number of values.
#include "../common/app.h"

constexpr int kBlock = 256;

// values[i] = values[i] * factor + i.
__global__ void AdvanceKernel(unsigned int* values, int count,
                              unsigned int factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * factor + static_cast<unsigned int>(i);
}

// left[i] += right[count - 1 - i].
__global__ void MixKernel(unsigned int* left, const unsigned int* right,
                          int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) left[i] += right[count - 1 - i];
}

struct Work {
  cudaStream_t main;
  cudaStream_t side;
  cudaEvent_t fork;
  cudaEvent_t join;
  unsigned int* left;
  unsigned int* right;
  int count;
};

// Advances left by `factor` on the main stream and right by `factor + 2` on the
// side stream, then mixes right into left.
void Enqueue(const Work& work, unsigned int factor) {
  const int blocks = apps::BlocksFor(work.count, kBlock);
  CUDA_CHECK(cudaEventRecord(work.fork, work.main));
  CUDA_CHECK(cudaStreamWaitEvent(work.side, work.fork, 0));
  AdvanceKernel<<<blocks, kBlock, 0, work.main>>>(work.left, work.count,
                                                  factor);
  AdvanceKernel<<<blocks, kBlock, 0, work.side>>>(work.right, work.count,
                                                  factor + 2);
  CUDA_CHECK(cudaEventRecord(work.join, work.side));
  CUDA_CHECK(cudaStreamWaitEvent(work.main, work.join, 0));
  MixKernel<<<blocks, kBlock, 0, work.main>>>(work.left, work.right,
                                              work.count);
  CUDA_CHECK(cudaGetLastError());
}

cudaGraph_t Capture(const Work& work, unsigned int factor) {
  cudaGraph_t graph;
  CUDA_CHECK(
      cudaStreamBeginCapture(work.main, cudaStreamCaptureModeThreadLocal));
  Enqueue(work, factor);
  CUDA_CHECK(cudaStreamEndCapture(work.main, &graph));
  return graph;
}

// The same on the host.
void Advance(std::vector<unsigned int>& values, unsigned int factor) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = values[i] * factor + static_cast<unsigned int>(i);
  }
}
void Replay(std::vector<unsigned int>& left, std::vector<unsigned int>& right,
            unsigned int factor) {
  Advance(left, factor);
  Advance(right, factor + 2);
  for (size_t i = 0; i < left.size(); ++i) {
    left[i] += right[right.size() - 1 - i];
  }
}

int main(int argc, char** argv) {
  constexpr unsigned int kWarmUp = 3, kFirst = 5, kSecond = 11;
  const apps::Options options = apps::ParseOptions(
      argc, argv, "graphs", {1 << 20, 10007, 1 << 28, "number of values"});
  std::vector<unsigned int> left(options.size), right(options.size);
  for (size_t i = 0; i < left.size(); ++i) {
    left[i] = apps::HashBits(1, i);
    right[i] = apps::HashBits(2, i);
  }
  apps::DeviceArray<unsigned int> device_left(left), device_right(right);
  Work work = {};
  work.left = device_left.get();
  work.right = device_right.get();
  work.count = static_cast<int>(options.size);
  CUDA_CHECK(cudaStreamCreateWithFlags(&work.main, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&work.side, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreateWithFlags(&work.fork, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&work.join, cudaEventDisableTiming));
  CUDA_CHECK(cudaDeviceSynchronize());

  AdvanceKernel<<<apps::BlocksFor(work.count, kBlock), kBlock, 0, work.main>>>(
      work.left, work.count, kWarmUp);
  CUDA_CHECK(cudaGetLastError());

  cudaGraph_t graph = Capture(work, kFirst);
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < options.iterations; ++i) {
    CUDA_CHECK(cudaGraphLaunch(executable, work.main));
  }
  cudaGraph_t updated = Capture(work, kSecond);
  cudaGraphExecUpdateResultInfo result;
  CUDA_CHECK(cudaGraphExecUpdate(executable, updated, &result));
  for (int i = 0; i < options.iterations; ++i) {
    CUDA_CHECK(cudaGraphLaunch(executable, work.main));
  }
  CUDA_CHECK(cudaStreamSynchronize(work.main));

  Advance(left, kWarmUp);
  for (unsigned int factor : {kFirst, kSecond}) {
    for (int i = 0; i < options.iterations; ++i) Replay(left, right, factor);
  }
  apps::Checker checker;
  const std::vector<unsigned int> got_left = device_left.ToHost();
  const std::vector<unsigned int> got_right = device_right.ToHost();
  for (size_t i = 0; i < left.size(); ++i) {
    checker.Expect("left", i, got_left[i], left[i], apps::kExact);
    checker.Expect("right", i, got_right[i], right[i], apps::kExact);
  }
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaGraphDestroy(updated));
  CUDA_CHECK(cudaEventDestroy(work.fork));
  CUDA_CHECK(cudaEventDestroy(work.join));
  CUDA_CHECK(cudaStreamDestroy(work.main));
  CUDA_CHECK(cudaStreamDestroy(work.side));
  return checker.Finish();
}
