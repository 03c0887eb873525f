// CUDA graphs of the fake driver: captured or built node by node, cloned,
// changed, instantiated, and run in order at their launch. Requires the fake
// driver's lock.
#ifndef REPRISE_TESTS_REPLAY_RECORDER_DRIVER_FAKE_GRAPHS_H_
#define REPRISE_TESTS_REPLAY_RECORDER_DRIVER_FAKE_GRAPHS_H_

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace fake {

// --- What graphs need of the rest of the driver.
std::recursive_mutex& Mutex();
void Count(const char* call);
// Sizes of a kernel's parameters, and where they lie in the packed form.
std::vector<size_t> ParameterBytes(CUfunction function);
std::vector<size_t> ParameterOffsets(CUfunction function);
CUresult RunKernel(CUfunction function, unsigned blocks, unsigned threads,
                   CUstream stream, void** parameters);

// What a launch of an executable graph in a stream does; null: there is none.
std::function<void()> WorkOf(CUgraphExec exec, CUstream stream);

// --- Captures, one node after the other.
class Capture {
 public:
  void Begin();
  CUgraph End();
  void AddKernel(const CUDA_KERNEL_NODE_PARAMS& parameters);
  void AddCopy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
  void AddMemset(CUdeviceptr to, unsigned char value, size_t bytes);
  void AddGraph(CUgraphExec exec);

 private:
  void AddOfKind(CUgraphNodeType type);

  CUgraph graph_ = nullptr;
  CUgraphNode last_ = nullptr;
};

}  // namespace fake

#endif  // REPRISE_TESTS_REPLAY_RECORDER_DRIVER_FAKE_GRAPHS_H_
