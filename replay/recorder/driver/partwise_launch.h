// One launch of a graph in parts, made from the copy of it. For each kernel
// node that is to be recorded or timed: what the node depends on, the node by
// itself; in the end the rest. Any order of launches that results is one that
// the graph's edges allow.
//
// A part that cannot be made leaves the launch as it is so far; the rest then
// goes in one piece, or the whole graph, where nothing of it has been launched.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_PARTWISE_LAUNCH_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_PARTWISE_LAUNCH_H_

#include <cuda.h>
#include <stdint.h>

#include "replay/recorder/driver/graphs.h"
#include "replay/recorder/driver/launch.h"

namespace reprise::driver {

class PartwiseLaunch {
 public:
  enum Purpose {
    kRecord,  // the kernels that the parent wants
    kTime,    // all kernels, into ExecutableGraph.kernels
  };
  // `graph` has a copy; `stream` is explicit.
  PartwiseLaunch(ExecutableGraph* graph, CUstream stream, Purpose purpose)
      : graph_(graph), stream_(stream), purpose_(purpose) {}
  ~PartwiseLaunch();
  PartwiseLaunch(const PartwiseLaunch&) = delete;
  PartwiseLaunch& operator=(const PartwiseLaunch&) = delete;

  // Answers as the launch of the whole graph would, which `whole` makes. Must
  // not hold the gate. Call once.
  CUresult Run(RealLaunch whole);

 private:
  // What becomes of a node in this launch.
  enum State : unsigned char { kPending, kDone, kBefore, kBeside, kRest };
  struct Level {
    bool open = false;  // a part of it has been launched
    CUgraphExec before = nullptr;
    CUgraphExec rest = nullptr;
    CUgraphExec next_rest = nullptr;
  };

  bool Allocate();
  void Visit(uint32_t level);
  void Record(uint32_t level, uint32_t node);
  void Time(uint32_t level, uint32_t node);
  bool AwaitKernel();
  CUresult LaunchBefore(uint32_t level, uint32_t node);
  CUresult MakeParts(uint32_t level, uint32_t node);
  void ChooseBefore(const GraphLevel& level, uint32_t node);
  CUresult LaunchOpened(uint32_t level);
  void ReleaseBeside(uint32_t level, uint32_t node);
  CUresult LaunchBeside(uint32_t level, uint32_t node, CUstream side);
  void ChooseBeside(const GraphLevel& level, uint32_t node);
  void Close(uint32_t level);
  CUresult Launch(CUgraphExec part, CUstream stream);
  void MarkDone(const GraphLevel& level, State state);
  uint64_t NextOccurrence(const Kernel* kernel);
  void DropParts();
  // Where the stream is; null: in the current one.
  CUcontext StreamContext() const;

  ExecutableGraph* graph_;
  CUstream stream_;
  Purpose purpose_;
  unsigned char* states_ = nullptr;  // of all nodes
  Level* levels_ = nullptr;
  CUgraphExec kernel_ = nullptr;
  CUresult result_ = CUDA_SUCCESS;
  // While kernels are timed.
  bool timing_ = false;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
};

// The driver runs launches of one executable graph one after the other, in
// whichever streams they are; it does not know of those in parts. Before a
// launch as a whole.
void AwaitLastLaunch(ExecutableGraph* graph, CUstream stream);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_PARTWISE_LAUNCH_H_
