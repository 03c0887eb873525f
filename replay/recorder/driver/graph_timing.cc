#include "replay/recorder/driver/graph_timing.h"

#include <stdlib.h>
#include <time.h>

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/contexts.h"
#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/graph_parts.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/profile.h"

namespace reprise::driver {
namespace {

// Nodes that may be cloned, to keep the first launch of a graph short.
constexpr uint64_t kMostClonedNodes = 1 << 19;
constexpr int64_t kTimeoutMs = 60000;

struct Step {
  Kernel* kernel = nullptr;  // null: nodes of other kinds
  CUgraphExec part = nullptr;
  CUevent end = nullptr;
};

class TimedLaunch {
 public:
  TimedLaunch(ExecutableGraph* graph, CUstream stream)
      : graph_(graph), stream_(stream) {}
  ~TimedLaunch();
  TimedLaunch(const TimedLaunch&) = delete;
  TimedLaunch& operator=(const TimedLaunch&) = delete;

  // False: nothing has been launched.
  bool Prepare();
  CUresult Run();

 private:
  bool AddLevel(uint32_t level);
  bool AddOthers(const GraphLevel& level, unsigned char* choice);
  bool AddStep(Kernel* kernel, CUgraphExec part);
  bool Await();
  void NoteTimes();

  ExecutableGraph* graph_;
  CUstream stream_;
  CUevent begin_ = nullptr;
  Array<Step> steps_;
  unsigned char* choice_ = nullptr;
  uint64_t cloned_ = 0;
};

TimedLaunch::~TimedLaunch() {
  for (Step& step : steps_) {
    DestroyPart(&step.part);
    if (step.end != nullptr) CUDA_CALL(cuEventDestroy_v2, step.end);
  }
  if (begin_ != nullptr) CUDA_CALL(cuEventDestroy_v2, begin_);
  free(steps_.data());
  free(choice_);
}

bool TimedLaunch::Prepare() {
  choice_ = static_cast<unsigned char*>(
      calloc(graph_->nodes.size() > 0 ? graph_->nodes.size() : 1, 1));
  return choice_ != nullptr &&
         CUDA_CALL(cuEventCreate, &begin_, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
         AddLevel(0);
}

bool TimedLaunch::AddStep(Kernel* kernel, CUgraphExec part) {
  Step step;
  step.kernel = kernel;
  step.part = part;
  if (!steps_.Append(step)) {
    DestroyPart(&part);
    return false;
  }
  return CUDA_CALL(cuEventCreate, &steps_[steps_.size() - 1].end,
                   CU_EVENT_DEFAULT) == CUDA_SUCCESS;
}

// The nodes that are chosen and no kernels, as one step.
bool TimedLaunch::AddOthers(const GraphLevel& level, unsigned char* choice) {
  bool any = false;
  for (uint32_t i = level.first; i < level.end && !any; ++i)
    any = choice[i] != 0;
  if (!any) return true;
  cloned_ += level.end - level.first;
  CUgraphExec part = nullptr;
  const bool made =
      cloned_ <= kMostClonedNodes &&
      MakePart(*graph_, level, choice, 1, &part) == CUDA_SUCCESS &&
      AddStep(nullptr, part);
  for (uint32_t i = level.first; i < level.end; ++i) choice[i] = 0;
  return made;
}

bool TimedLaunch::AddLevel(uint32_t number) {
  const GraphLevel& level = graph_->levels[number];
  for (uint32_t i = level.first; i < level.end; ++i) {
    const GraphNode& node = graph_->nodes[i];
    const bool runs_kernel =
        node.type == CU_GRAPH_NODE_TYPE_KERNEL && !node.disabled;
    if (!runs_kernel && node.child == kNoIndex) {
      choice_[i] = 1;
      continue;
    }
    if (!AddOthers(level, choice_)) return false;
    if (node.child != kNoIndex) {
      if (!AddLevel(node.child)) return false;
      continue;
    }
    CUgraphExec part = nullptr;
    if (MakeKernelPart(*graph_, node, &part) != CUDA_SUCCESS ||
        !AddStep(node.kernel, part))
      return false;
  }
  return AddOthers(level, choice_);
}

CUresult TimedLaunch::Run() {
  CUDA_CALL(cuEventRecord, begin_, stream_);
  for (const Step& step : steps_) {
    const CUresult result = WithTrim(
        [&] { return Noted(CUDA_CALL(cuGraphLaunch, step.part, stream_)); });
    if (result != CUDA_SUCCESS) return result;
    CUDA_CALL(cuEventRecord, step.end, stream_);
  }
  if (Await()) NoteTimes();
  return CUDA_SUCCESS;
}

bool TimedLaunch::Await() {
  const int64_t end = standin::MonotonicNs() + kTimeoutMs * 1000000;
  for (int round = 0; standin::MonotonicNs() < end; ++round) {
    const CUresult state = CUDA_CALL(cuStreamQuery, stream_);
    if (state != CUDA_ERROR_NOT_READY) return state == CUDA_SUCCESS;
    const timespec pause{0, 20000};
    if (round > 100) nanosleep(&pause, nullptr);
  }
  return false;
}

void TimedLaunch::NoteTimes() {
  CUevent last = begin_;
  for (const Step& step : steps_) {
    float milliseconds = 0;
    const CUresult result =
        CUDA_CALL(cuEventElapsedTime, &milliseconds, last, step.end);
    last = step.end;
    if (result != CUDA_SUCCESS) continue;
    for (GraphKernel& kernel : graph_->kernels)
      if (step.kernel != nullptr && kernel.kernel == step.kernel)
        kernel.ns += static_cast<uint64_t>(milliseconds * 1e6);
  }
  for (const GraphKernel& kernel : graph_->kernels)
    if (kernel.ns > 0) AddTiming(kernel.kernel, kernel.ns, kernel.nodes);
}

}  // namespace

CUresult LaunchGraphTimed(ExecutableGraph* graph, CUstream stream,
                          RealLaunch whole) {
  graph->timed = true;
  TimedLaunch launch(graph, stream);
  return launch.Prepare() ? launch.Run() : whole();
}

}  // namespace reprise::driver
