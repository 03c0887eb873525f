#include "replay/recorder/driver/graph_launch.h"

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/contexts.h"
#include "replay/recorder/driver/gate.h"
#include "replay/recorder/driver/graphs.h"
#include "replay/recorder/driver/partwise_launch.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/profile.h"
#include "replay/recorder/driver/substitutes.h"

namespace reprise::driver {
namespace {

// True: a kernel of it is wanted.
bool CountLaunch(ExecutableGraph* graph) {
  bool wanted = false;
  for (GraphKernel& kernel : graph->kernels) {
    if (kernel.nodes == 0) continue;
    kernel.next_occurrence = __atomic_fetch_add(
        &kernel.kernel->counter->launches, kernel.nodes, __ATOMIC_RELAXED);
    CountDeclined(*kernel.kernel, driver_wire::kInGraph, kernel.nodes);
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

// The first launch of a graph in a profile. Later ones are taken to cost the
// same.
CUresult LaunchAndTime(ExecutableGraph* graph, CUstream stream,
                       RealLaunch real) {
  graph->timed = true;
  const CUresult result =
      PartwiseLaunch(graph, stream, PartwiseLaunch::kTime).Run(real);
  for (const GraphKernel& kernel : graph->kernels)
    if (kernel.ns > 0) AddTiming(kernel.kernel, kernel.ns, kernel.nodes);
  return result;
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
    return PartwiseLaunch(graph, stream, PartwiseLaunch::kRecord).Run(real);
  }
  if (Profiling() && graph->copy != nullptr && !graph->timed && !Capturing()) {
    gate.Release();
    return LaunchAndTime(graph, stream, real);
  }
  AwaitLastLaunch(graph, stream);
  return real();
}

}  // namespace reprise::driver
