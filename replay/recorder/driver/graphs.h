// The application's executable graphs: which kernels one launch of each runs
// and, where the parent wants such a kernel, a copy of the graph from which a
// launch can be made in parts. The copy follows what the application changes in
// the executable graph; where it cannot, it is given up and `refusal` says why.
//
// As with the driver, calls about one executable graph must not overlap;
// otherwise thread-safe. Whoever changes or uses a copy holds the gate.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_GRAPHS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_GRAPHS_H_

#include <cuda.h>
#include <stdint.h>

#include "replay/recorder/driver/modules.h"
#include "replay/recorder/preload/support.h"

namespace reprise::driver {

inline constexpr uint32_t kNoIndex = ~uint32_t{0};

struct GraphNode {
  CUgraphNode node = nullptr;  // in the copy, else in the application's graph
  // In the graph that the application instantiated; null: not known, such as
  // after an update by a whole graph.
  CUgraphNode original = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  bool disabled = false;
  uint32_t child = kNoIndex;  // level of a child graph
  Kernel* kernel = nullptr;   // of a kernel node; null: cannot be named
};

struct GraphEdge {
  uint32_t from = 0;
  uint32_t to = 0;
};

// The graph itself, or a child graph: nodes [first, end) in topological order,
// and edges [first_edge, end_edge) between them, by falling `to`.
struct GraphLevel {
  CUgraph graph = nullptr;  // in the copy, else the application's
  uint32_t parent = kNoIndex;
  uint32_t parent_node = kNoIndex;
  uint32_t first = 0;
  uint32_t end = 0;
  uint32_t first_edge = 0;
  uint32_t end_edge = 0;
};

struct GraphKernel {
  Kernel* kernel = nullptr;
  uint32_t nodes = 0;  // launches of the kernel in one of the graph
  uint64_t next_occurrence = 0;
  uint64_t ns = 0;  // of one launch of the graph, once that is known
};

struct ExecutableGraph {
  CUcontext context = nullptr;  // current when it was made
  uint64_t flags = 0;
  CUgraph copy = nullptr;         // null: no launch of it will be recorded
  const char* refusal = nullptr;  // why not, although a kernel is wanted
  bool refusal_said = false;
  bool timed = false;
  bool unknown_disabled = false;  // which nodes are disabled is not known
  // Behind the last launch in parts; the next launch of the graph waits for it.
  CUevent last_launch = nullptr;
  CUcontext last_context = nullptr;  // of the event
  bool wait_for_last = false;

  standin::Array<GraphLevel> levels;  // [0]: the graph itself
  standin::Array<GraphNode> nodes;    // of all levels
  standin::Array<GraphEdge> edges;    // where there is a copy
  standin::Array<GraphKernel> kernels;
  standin::Array<uint32_t> by_original;  // nodes, by rising `original`
};

// The kernel of a kernel node: a CUfunction, or a CUkernel in its place.
template <typename KernelNodeParameters>
CUfunction FunctionOf(const KernelNodeParameters& parameters) {
  return parameters.func != nullptr
             ? parameters.func
             : reinterpret_cast<CUfunction>(parameters.kern);
}

// The executable graph `exec` was made from `graph`. Requires Active() and the
// gate, as all below.
void AddGraph(CUgraphExec exec, CUgraph graph, uint64_t flags);
// It was updated by `graph`.
void UpdateGraph(CUgraphExec exec, CUgraph graph);
void ForgetGraph(CUgraphExec exec);
// The context is gone, and what was made in it.
void ForgetContextGraphs(CUcontext context);
// Null: never seen.
ExecutableGraph* FindGraph(CUgraphExec exec);

// The driver's call that makes a change to a node of a graph.
struct NodeChange {
  CUresult (*call)(const void* arguments, CUgraphNode node) = nullptr;
  const void* arguments = nullptr;
};

template <typename Callable>
NodeChange AsNodeChange(const Callable& callable) {
  return {[](const void* arguments, CUgraphNode node) {
            return (*static_cast<const Callable*>(arguments))(node);
          },
          &callable};
}

// The application changed a node of an executable graph; `change` does the same
// to a node that is in no executable graph. `kernel` is a kernel node's.
void FollowNode(CUgraphExec exec, CUgraphNode node, NodeChange change,
                CUfunction kernel = nullptr);
void FollowEnabled(CUgraphExec exec, CUgraphNode node, bool enabled);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_GRAPHS_H_
