#include "replay/recorder/driver/graph_launch.h"

#include <stdlib.h>
#include <string.h>

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/contexts.h"
#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/gate.h"
#include "replay/recorder/driver/graph_parts.h"
#include "replay/recorder/driver/graph_timing.h"
#include "replay/recorder/driver/graphs.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/profile.h"
#include "replay/recorder/driver/recording.h"

namespace reprise::driver {
namespace {

// Null: the current one.
CUcontext ContextOf(CUstream stream) {
  CUcontext context = nullptr;
  if (stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD)
    CUDA_CALL(cuStreamGetCtx, stream, &context);
  return context;
}

// The driver runs launches of one executable graph one after the other, in
// whichever streams they are; it does not know of those in parts.
void NoteLastLaunch(ExecutableGraph* graph, CUstream stream) {
  RelaxedCapture relaxed;
  const CUcontext context = ContextOf(stream);
  CUcontext current = nullptr;
  CUDA_CALL(cuCtxGetCurrent, &current);
  WithContext with(context != nullptr ? context : current);
  CUevent* event = &graph->last_launch;
  if (*event == nullptr &&
      CUDA_CALL(cuEventCreate, event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
    *event = nullptr;
  graph->wait_for_last = *event != nullptr && CUDA_CALL(cuEventRecord, *event,
                                                        stream) == CUDA_SUCCESS;
}

void AwaitLastLaunch(ExecutableGraph* graph, CUstream stream) {
  if (!graph->wait_for_last) return;
  RelaxedCapture relaxed;
  if (CUDA_CALL(cuEventQuery, graph->last_launch) == CUDA_ERROR_NOT_READY)
    CUDA_CALL(cuStreamWaitEvent, stream, graph->last_launch, 0u);
  else
    graph->wait_for_last = false;
}

// One launch of a graph in as many parts as the parent wants kernels of it.
class PartwiseLaunch {
 public:
  PartwiseLaunch(ExecutableGraph* graph, CUstream stream)
      : graph_(graph), stream_(stream) {}
  ~PartwiseLaunch();
  PartwiseLaunch(const PartwiseLaunch&) = delete;
  PartwiseLaunch& operator=(const PartwiseLaunch&) = delete;

  // `whole` launches the executable graph itself.
  CUresult Run(RealLaunch whole);

 private:
  // What has become of a node in this launch.
  enum State : unsigned char { kPending, kDone, kBefore, kRest };
  struct Level {
    bool open = false;  // a part of it has been launched
    CUgraphExec rest = nullptr;
    CUgraphExec before = nullptr;
    CUgraphExec next_rest = nullptr;
  };

  bool Allocate();
  void Visit(uint32_t level);
  void Record(uint32_t level, uint32_t node);
  CUresult LaunchBefore(uint32_t level, uint32_t node);
  CUresult MakeParts(uint32_t level, uint32_t node);
  void Choose(const GraphLevel& level, uint32_t node);
  CUresult LaunchOpened(uint32_t level);
  void Close(uint32_t level);
  CUresult Launch(CUgraphExec part);
  uint64_t NextOccurrence(const Kernel* kernel);
  void DropParts();

  ExecutableGraph* graph_;
  CUstream stream_;
  unsigned char* states_ = nullptr;  // of all nodes
  Level* levels_ = nullptr;
  CUgraphExec kernel_ = nullptr;
  CUresult result_ = CUDA_SUCCESS;
};

PartwiseLaunch::~PartwiseLaunch() {
  DestroyPart(&kernel_);
  if (levels_ != nullptr) {
    DropParts();
    for (size_t i = 0; i < graph_->levels.size(); ++i)
      DestroyPart(&levels_[i].rest);
  }
  free(levels_);
  free(states_);
}

void PartwiseLaunch::DropParts() {
  for (size_t i = 0; i < graph_->levels.size(); ++i) {
    DestroyPart(&levels_[i].before);
    DestroyPart(&levels_[i].next_rest);
  }
}

bool PartwiseLaunch::Allocate() {
  states_ =
      static_cast<unsigned char*>(calloc(graph_->nodes.size(), sizeof(State)));
  levels_ = static_cast<Level*>(calloc(graph_->levels.size(), sizeof(Level)));
  return states_ != nullptr && levels_ != nullptr;
}

CUresult PartwiseLaunch::Run(RealLaunch whole) {
  if (Allocate()) Visit(0);
  SharedGate gate;
  if (levels_ == nullptr || !levels_[0].open) {
    if (result_ != CUDA_SUCCESS) return result_;
    AwaitLastLaunch(graph_, stream_);
    return whole();
  }
  if (result_ == CUDA_SUCCESS) Close(0);
  NoteLastLaunch(graph_, stream_);
  // After a kernel that failed by itself, the launch of the whole graph would
  // have gone well; the application meets the error as it would have.
  return BreaksContext(result_) ? CUDA_SUCCESS : result_;
}

// In topological order, so that all that a node depends on and is wanted has
// been seen before it.
void PartwiseLaunch::Visit(uint32_t number) {
  const GraphLevel& level = graph_->levels[number];
  for (uint32_t i = level.first; i < level.end; ++i) {
    const GraphNode& node = graph_->nodes[i];
    if (result_ != CUDA_SUCCESS) return;
    if (node.child != kNoIndex && states_[i] != kDone)
      Visit(node.child);
    else if (node.kernel != nullptr && !node.disabled && states_[i] != kDone &&
             node.kernel->wanted.load())
      Record(number, i);
  }
  if (level.parent == kNoIndex || !levels_[number].open) return;
  SharedGate gate;
  if (result_ == CUDA_SUCCESS) Close(number);
}

uint64_t PartwiseLaunch::NextOccurrence(const Kernel* kernel) {
  for (GraphKernel& known : graph_->kernels)
    if (known.kernel == kernel) return known.next_occurrence++;
  return 0;
}

void PartwiseLaunch::Record(uint32_t level, uint32_t index) {
  const GraphNode& node = graph_->nodes[index];
  LaunchCall launch;
  launch.stream = stream_;
  CUcontext context = nullptr;
  if (!LaunchOf(node, &launch, &context)) return;
  const Context* own = context != nullptr ? FindContext(context) : nullptr;
  const CUcontext streams = ContextOf(stream_);
  const Context* here =
      streams != nullptr ? FindContext(streams) : CurrentContext();
  if (own != nullptr && here != nullptr && own->device != here->device) {
    Problem(
        "%s is not recorded where a CUDA graph launches it: it runs on another "
        "device than the graph is launched on",
        node.kernel->name);
    return;
  }
  const auto before = [&] { return LaunchBefore(level, index); };
  const auto alone = [&] { return Launch(kernel_); };
  const RealLaunch real_before = AsRealLaunch(before);
  CUresult result = CUDA_SUCCESS;
  if (TryRecordLaunch(node.kernel, NextOccurrence(node.kernel), launch,
                      AsRealLaunch(alone), &real_before, &result) &&
      result_ == CUDA_SUCCESS)
    result_ = result;
}

CUresult PartwiseLaunch::Launch(CUgraphExec part) {
  if (part == nullptr) return CUDA_SUCCESS;
  return WithTrim(
      [&] { return Noted(CUDA_CALL(cuGraphLaunch, part, stream_)); });
}

// Marks the pending nodes of a level: those that `node` depends on, and the
// others.
void PartwiseLaunch::Choose(const GraphLevel& level, uint32_t node) {
  for (uint32_t i = level.first; i < level.end; ++i)
    if (states_[i] != kDone) states_[i] = kRest;
  states_[node] = kBefore;
  for (uint32_t i = level.first_edge; i < level.end_edge; ++i) {
    const GraphEdge& edge = graph_->edges[i];
    if (states_[edge.to] == kBefore && states_[edge.from] == kRest)
      states_[edge.from] = kBefore;
  }
  states_[node] = kPending;
}

// The parts of the node's level and of those around it, before any of them is
// launched: where one cannot be made, nothing has happened.
CUresult PartwiseLaunch::MakeParts(uint32_t number, uint32_t node) {
  DestroyPart(&kernel_);
  CUresult result = MakeKernelPart(*graph_, graph_->nodes[node], &kernel_);
  while (result == CUDA_SUCCESS && number != kNoIndex) {
    const GraphLevel& level = graph_->levels[number];
    Level& parts = levels_[number];
    Choose(level, node);
    result = MakePart(*graph_, level, states_, kBefore, &parts.before);
    if (result == CUDA_SUCCESS)
      result = MakePart(*graph_, level, states_, kRest, &parts.next_rest);
    node = level.parent_node;
    number = level.parent;
  }
  // What the first launch would do besides running the kernel.
  if (result == CUDA_SUCCESS)
    result = CUDA_CALL(cuGraphUpload, kernel_, stream_);
  if (result != CUDA_SUCCESS) DropParts();
  return result;
}

// From the outermost level to this one.
CUresult PartwiseLaunch::LaunchOpened(uint32_t number) {
  const GraphLevel& level = graph_->levels[number];
  CUresult result = CUDA_SUCCESS;
  if (level.parent != kNoIndex) result = LaunchOpened(level.parent);
  if (result != CUDA_SUCCESS) return result;
  Level& parts = levels_[number];
  result = Launch(parts.before);
  if (result != CUDA_SUCCESS) return result;
  parts.open = true;
  DestroyPart(&parts.before);
  DestroyPart(&parts.rest);
  parts.rest = parts.next_rest;
  parts.next_rest = nullptr;
  for (uint32_t i = level.first; i < level.end; ++i)
    if (states_[i] == kBefore) states_[i] = kDone;
  return result;
}

CUresult PartwiseLaunch::LaunchBefore(uint32_t level, uint32_t node) {
  CUresult result = MakeParts(level, node);
  if (result != CUDA_SUCCESS) return result;
  result = LaunchOpened(level);
  if (result != CUDA_SUCCESS) {
    DropParts();
    // Something has been launched: the graph cannot be launched as a whole.
    if (levels_[0].open) result_ = result;
    return result;
  }
  states_[node] = kDone;
  return result;
}

// Launches what is left of a level.
void PartwiseLaunch::Close(uint32_t number) {
  result_ = Launch(levels_[number].rest);
  DestroyPart(&levels_[number].rest);
  levels_[number].open = false;
  const uint32_t node = graph_->levels[number].parent_node;
  if (node != kNoIndex) states_[node] = kDone;
}

// True: a kernel of it is wanted.
bool CountLaunch(ExecutableGraph* graph) {
  bool wanted = false;
  for (GraphKernel& kernel : graph->kernels) {
    if (kernel.nodes == 0) continue;
    kernel.next_occurrence = __atomic_fetch_add(
        &kernel.kernel->counter->launches, kernel.nodes, __ATOMIC_RELAXED);
    if (kernel.ns > 0) AddTiming(kernel.kernel, kernel.ns, kernel.nodes);
    wanted = wanted || kernel.kernel->wanted.load(std::memory_order_relaxed);
  }
  return wanted;
}

void SayRefusal(ExecutableGraph* graph) {
  if (graph->refusal == nullptr || graph->refusal_said) return;
  graph->refusal_said = true;
  for (const GraphKernel& kernel : graph->kernels) {
    if (kernel.nodes == 0) continue;
    if (kernel.kernel->wanted.load())
      Problem("%s is not recorded where a CUDA graph launches it: %s",
              kernel.kernel->name, graph->refusal);
    else if (Profiling())
      Problem("%s is not timed where a CUDA graph launches it: %s",
              kernel.kernel->name, graph->refusal);
  }
}

}  // namespace

CUresult LaunchGraph(CUgraphExec exec, CUstream stream,
                     RealLaunch real_launch) {
  const auto trimming = [&] {
    return WithTrim([&] { return Noted(real_launch()); });
  };
  const RealLaunch real = AsRealLaunch(trimming);

  SharedGate gate;
  ExecutableGraph* graph = FindGraph(exec);
  // A graph that is launched into a capture becomes a node.
  if (graph == nullptr || IsCapturing(stream)) return real();
  const bool wanted = CountLaunch(graph);
  if (wanted || Profiling()) SayRefusal(graph);
  if (wanted && graph->copy != nullptr && ParentListens() && !Capturing()) {
    gate.Release();
    return PartwiseLaunch(graph, stream).Run(real);
  }
  AwaitLastLaunch(graph, stream);
  if (Profiling() && graph->copy != nullptr && !graph->timed && !Capturing())
    return LaunchGraphTimed(graph, stream, real);
  return real();
}

}  // namespace reprise::driver
