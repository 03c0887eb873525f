#include "replay/recorder/driver/partwise_launch.h"

#include <stdlib.h>
#include <time.h>

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/contexts.h"
#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/gate.h"
#include "replay/recorder/driver/graph_parts.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/recording.h"

namespace reprise::driver {
namespace {

// How long a kernel that is timed may wait for nodes beside it.
constexpr int64_t kTimingPatienceMs = 2000;

CUcontext OrCurrent(CUcontext context) {
  if (context == nullptr) CUDA_CALL(cuCtxGetCurrent, &context);
  return context;
}

// Behind what has been launched in the stream, which is of the current context,
// as events must be.
void NoteLastLaunch(ExecutableGraph* graph, CUstream stream) {
  CUevent* event = &graph->last_launch;
  CUcontext context = nullptr;
  CUDA_CALL(cuCtxGetCurrent, &context);
  if (*event != nullptr && graph->last_context != context) {
    CUDA_CALL(cuEventDestroy_v2, *event);
    *event = nullptr;
  }
  if (*event == nullptr &&
      CUDA_CALL(cuEventCreate, event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
    *event = nullptr;
  graph->last_context = context;
  graph->wait_for_last = *event != nullptr && CUDA_CALL(cuEventRecord, *event,
                                                        stream) == CUDA_SUCCESS;
}

}  // namespace

void AwaitLastLaunch(ExecutableGraph* graph, CUstream stream) {
  if (!graph->wait_for_last) return;
  RelaxedCapture relaxed;
  if (CUDA_CALL(cuEventQuery, graph->last_launch) == CUDA_ERROR_NOT_READY)
    CUDA_CALL(cuStreamWaitEvent, stream, graph->last_launch, 0u);
  else
    graph->wait_for_last = false;
}

PartwiseLaunch::~PartwiseLaunch() {
  DestroyPart(&kernel_);
  if (levels_ != nullptr) {
    DropParts();
    for (size_t i = 0; i < graph_->levels.size(); ++i)
      DestroyPart(&levels_[i].rest);
  }
  free(levels_);
  free(states_);
  for (CUevent event : {begin_, end_})
    if (event != nullptr) CUDA_CALL(cuEventDestroy_v2, event);
}

void PartwiseLaunch::DropParts() {
  for (size_t i = 0; i < graph_->levels.size(); ++i) {
    DestroyPart(&levels_[i].before);
    DestroyPart(&levels_[i].next_rest);
  }
}

CUcontext PartwiseLaunch::StreamContext() const {
  CUcontext context = nullptr;
  if (stream_ != CU_STREAM_LEGACY && stream_ != CU_STREAM_PER_THREAD)
    CUDA_CALL(cuStreamGetCtx, stream_, &context);
  return context;
}

bool PartwiseLaunch::Allocate() {
  const size_t nodes = graph_->nodes.size();
  states_ = static_cast<unsigned char*>(calloc(nodes > 0 ? nodes : 1, 1));
  levels_ = static_cast<Level*>(calloc(graph_->levels.size(), sizeof(Level)));
  timing_ =
      purpose_ == kTime &&
      CUDA_CALL(cuEventCreate, &begin_, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
      CUDA_CALL(cuEventCreate, &end_, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
  return states_ != nullptr && levels_ != nullptr;
}

CUresult PartwiseLaunch::Run(RealLaunch whole) {
  WithContext with(OrCurrent(StreamContext()));
  if (Allocate()) Visit(0);
  SharedGate gate;
  if (levels_ == nullptr || !levels_[0].open) {
    if (result_ != CUDA_SUCCESS) return result_;
    AwaitLastLaunch(graph_, stream_);
    return whole();
  }
  RelaxedCapture relaxed;
  if (result_ == CUDA_SUCCESS) Close(0);
  NoteLastLaunch(graph_, stream_);
  // After a kernel that failed by itself, the launch of the whole graph would
  // have gone well; the application meets the error as it would have.
  return BreaksContext(result_) ? CUDA_SUCCESS : result_;
}

// In topological order, so that a node comes after all that it depends on.
void PartwiseLaunch::Visit(uint32_t number) {
  const GraphLevel& level = graph_->levels[number];
  for (uint32_t i = level.first; i < level.end; ++i) {
    const GraphNode& node = graph_->nodes[i];
    if (result_ != CUDA_SUCCESS) return;
    if (states_[i] == kDone) continue;
    if (node.child != kNoIndex) Visit(node.child);
    if (node.kernel == nullptr || node.disabled) continue;
    if (timing_)
      Time(number, i);
    else if (purpose_ == kRecord && node.kernel->wanted.load())
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
  const Context* here = CurrentContext();
  if (own != nullptr && here != nullptr && own->device != here->device) {
    Problem(
        "%s is not recorded where a CUDA graph launches it: it runs on another "
        "device than the graph is launched on",
        node.kernel->name);
    return;
  }
  const auto before = [&] { return LaunchBefore(level, index); };
  const auto alone = [&] { return Launch(kernel_, stream_); };
  const RealLaunch real_before = AsRealLaunch(before);
  CUresult result = CUDA_SUCCESS;
  if (!TryRecordLaunch(node.kernel, NextOccurrence(node.kernel), launch,
                       AsRealLaunch(alone), &real_before, &result))
    return;
  result_ = result;
  // Where it did not end in time, it may wait for nodes beside it.
  if (result_ != CUDA_SUCCESS || node.kernel->wanted.load()) return;
  SharedGate gate;
  RelaxedCapture relaxed;
  if (CUDA_CALL(cuStreamQuery, stream_) == CUDA_ERROR_NOT_READY)
    ReleaseBeside(level, index);
}

void PartwiseLaunch::Time(uint32_t level, uint32_t index) {
  SharedGate gate;
  if (LaunchBefore(level, index) != CUDA_SUCCESS) {
    timing_ = false;
    return;
  }
  result_ = Launch(kernel_, stream_);
  if (result_ != CUDA_SUCCESS) return;
  if (!AwaitKernel()) {
    timing_ = false;
    ReleaseBeside(level, index);
    return;
  }
  float milliseconds = 0;
  if (CUDA_CALL(cuEventElapsedTime, &milliseconds, begin_, end_) !=
      CUDA_SUCCESS)
    return;
  for (GraphKernel& kernel : graph_->kernels)
    if (kernel.kernel == graph_->nodes[index].kernel)
      kernel.ns += static_cast<uint64_t>(milliseconds * 1e6);
}

// False: it did not end in time.
bool PartwiseLaunch::AwaitKernel() {
  const int64_t end = standin::MonotonicNs() + kTimingPatienceMs * 1000000;
  for (int round = 0; standin::MonotonicNs() < end; ++round) {
    if (CUDA_CALL(cuStreamQuery, stream_) != CUDA_ERROR_NOT_READY) return true;
    const timespec pause{0, 20000};
    if (round > 1000) nanosleep(&pause, nullptr);
  }
  return false;
}

CUresult PartwiseLaunch::Launch(CUgraphExec part, CUstream stream) {
  if (part == nullptr) return CUDA_SUCCESS;
  return WithTrim(
      [&] { return Noted(CUDA_CALL(cuGraphLaunch, part, stream)); });
}

void PartwiseLaunch::MarkDone(const GraphLevel& level, State state) {
  for (uint32_t i = level.first; i < level.end; ++i)
    if (states_[i] == state) states_[i] = kDone;
}

// Of what is not done yet: what `node` depends on, and all else.
void PartwiseLaunch::ChooseBefore(const GraphLevel& level, uint32_t node) {
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
  CUresult result =
      MakeKernelPart(*graph_, graph_->nodes[node], begin_, end_, &kernel_);
  while (result == CUDA_SUCCESS && number != kNoIndex) {
    const GraphLevel& level = graph_->levels[number];
    Level& parts = levels_[number];
    ChooseBefore(level, node);
    result = MakePart(*graph_, level, states_, kBefore, &parts.before);
    // While timing, the rest is made when it is needed.
    if (result == CUDA_SUCCESS && purpose_ == kRecord)
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
  result = Launch(parts.before, stream_);
  if (result != CUDA_SUCCESS) return result;
  parts.open = true;
  DestroyPart(&parts.before);
  DestroyPart(&parts.rest);
  parts.rest = parts.next_rest;
  parts.next_rest = nullptr;
  MarkDone(level, kBefore);
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

// Of what is not done yet: what depends on `node`, and all else.
void PartwiseLaunch::ChooseBeside(const GraphLevel& level, uint32_t node) {
  for (uint32_t i = level.first; i < level.end; ++i)
    if (states_[i] != kDone) states_[i] = kBeside;
  if (states_[node] != kDone) states_[node] = kPending;
  for (uint32_t i = level.end_edge; i > level.first_edge; --i) {
    const GraphEdge& edge = graph_->edges[i - 1];
    const bool follows = edge.from == node || states_[edge.from] == kRest;
    if (follows && states_[edge.to] == kBeside) states_[edge.to] = kRest;
  }
}

CUresult PartwiseLaunch::LaunchBeside(uint32_t number, uint32_t node,
                                      CUstream side) {
  const GraphLevel& level = graph_->levels[number];
  Level& parts = levels_[number];
  ChooseBeside(level, node);
  CUgraphExec beside = nullptr;
  CUresult result = MakePart(*graph_, level, states_, kBeside, &beside);
  if (result == CUDA_SUCCESS && purpose_ == kRecord)
    result = MakePart(*graph_, level, states_, kRest, &parts.next_rest);
  if (result == CUDA_SUCCESS) result = Launch(beside, side);
  DestroyPart(&beside);
  if (result == CUDA_SUCCESS) {
    DestroyPart(&parts.rest);
    parts.rest = parts.next_rest;
    parts.next_rest = nullptr;
    MarkDone(level, kBeside);
  }
  DestroyPart(&parts.next_rest);
  return result;
}

// Launches what need not wait for `node`, which runs, in a stream of its own.
void PartwiseLaunch::ReleaseBeside(uint32_t number, uint32_t node) {
  CUstream side = nullptr;
  CUevent end = nullptr;
  if (CUDA_CALL(cuStreamCreate, &side, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
    return;
  CUresult result = CUDA_SUCCESS;
  while (result == CUDA_SUCCESS && number != kNoIndex) {
    result = LaunchBeside(number, node, side);
    node = graph_->levels[number].parent_node;
    number = graph_->levels[number].parent;
  }
  if (CUDA_CALL(cuEventCreate, &end, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) {
    CUDA_CALL(cuEventRecord, end, side);
    CUDA_CALL(cuStreamWaitEvent, stream_, end, 0u);
    CUDA_CALL(cuEventDestroy_v2, end);
  }
  CUDA_CALL(cuStreamDestroy_v2, side);
}

// Launches what is left of a level.
void PartwiseLaunch::Close(uint32_t number) {
  const GraphLevel& level = graph_->levels[number];
  Level& parts = levels_[number];
  if (purpose_ == kTime) {
    for (uint32_t i = level.first; i < level.end; ++i)
      if (states_[i] != kDone) states_[i] = kRest;
    result_ = MakePart(*graph_, level, states_, kRest, &parts.rest);
  }
  if (result_ == CUDA_SUCCESS) result_ = Launch(parts.rest, stream_);
  DestroyPart(&parts.rest);
  if (level.parent == kNoIndex) return;
  parts.open = false;
  states_[level.parent_node] = kDone;
}

}  // namespace reprise::driver
