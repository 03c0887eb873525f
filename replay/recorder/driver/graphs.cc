#include "replay/recorder/driver/graphs.h"

#include <stdlib.h>

#include <new>

#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/graph_reader.h"
#include "replay/recorder/driver/handle_map.h"
#include "replay/recorder/driver/launch.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/profile.h"

namespace reprise::driver {
namespace {

Mutex g_mutex;
HandleMap<ExecutableGraph, 1 << 10> g_graphs;
Array<ExecutableGraph*> g_unused;

constexpr char kUnknownDisabled[] =
    "nodes of it were disabled and it was updated by another graph";

bool IsDeviceUpdatable(const GraphNode& node) {
  CUkernelNodeAttrValue value{};
  return node.type == CU_GRAPH_NODE_TYPE_KERNEL &&
         CUDA_CALL(cuGraphKernelNodeGetAttribute, node.node,
                   CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                   &value) == CUDA_SUCCESS &&
         value.deviceUpdatableKernelNode.deviceUpdatable != 0;
}

int CompareOriginals(const void* a, const void* b, void* nodes) {
  const GraphNode* all = static_cast<const GraphNode*>(nodes);
  const CUgraphNode left = all[*static_cast<const uint32_t*>(a)].original;
  const CUgraphNode right = all[*static_cast<const uint32_t*>(b)].original;
  return left < right ? -1 : left > right;
}

// One node more or less of a kernel. False: memory is exhausted.
bool CountNode(ExecutableGraph* graph, const GraphNode& node, int difference) {
  if (node.kernel == nullptr || node.disabled) return true;
  size_t at = 0;
  while (at < graph->kernels.size() && graph->kernels[at].kernel != node.kernel)
    ++at;
  if (at == graph->kernels.size()) {
    GraphKernel fresh;
    fresh.kernel = node.kernel;
    if (!graph->kernels.Append(fresh)) return false;
  }
  graph->kernels[at].nodes += difference;
  return true;
}

// Which kernels a launch of the graph runs. Keeps what is known of them.
bool CountKernels(ExecutableGraph* graph) {
  for (GraphKernel& kernel : graph->kernels) kernel.nodes = 0;
  for (const GraphNode& node : graph->nodes)
    if (!CountNode(graph, node, 1)) return false;
  return true;
}

bool AnyWanted(ExecutableGraph* graph) {
  for (const GraphKernel& kernel : graph->kernels)
    if (kernel.nodes > 0 && kernel.kernel->wanted.load()) return true;
  return false;
}

bool NeedsCopy(ExecutableGraph* graph) {
  return AnyWanted(graph) || (Profiling() && !graph->timed);
}

void SortByOriginal(ExecutableGraph* graph) {
  graph->by_original.clear();
  for (uint32_t i = 0; i < graph->nodes.size(); ++i)
    if (graph->nodes[i].original != nullptr) graph->by_original.Append(i);
  if (!graph->by_original.empty()) {
    qsort_r(graph->by_original.data(), graph->by_original.size(),
            sizeof(uint32_t), CompareOriginals, graph->nodes.data());
  }
}

GraphNode* FindNode(ExecutableGraph* graph, CUgraphNode original) {
  size_t low = 0;
  size_t high = graph->by_original.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    GraphNode* node = &graph->nodes[graph->by_original[middle]];
    if (node->original == original) return node;
    if (node->original < original)
      low = middle + 1;
    else
      high = middle;
  }
  return nullptr;
}

void DropCopy(ExecutableGraph* graph) {
  if (graph->copy != nullptr) CUDA_CALL(cuGraphDestroy, graph->copy);
  graph->copy = nullptr;
}

void GiveUp(ExecutableGraph* graph, const char* why) {
  DropCopy(graph);
  if (graph->refusal == nullptr) graph->refusal = why;
}

// Notes which nodes of the application's graph the copy's nodes come from.
void FindOriginals(ExecutableGraph* graph, CUgraph original, uint32_t number) {
  const GraphLevel level = graph->levels[number];
  size_t count = level.end - level.first;
  if (count == 0) return;
  CUgraphNode* handles =
      static_cast<CUgraphNode*>(calloc(count, sizeof(CUgraphNode)));
  if (handles == nullptr) return;
  if (CUDA_CALL(cuGraphGetNodes, original, handles, &count) != CUDA_SUCCESS)
    count = 0;
  uint32_t next = level.first;  // copies mostly come in the same order
  for (size_t i = 0; i < count; ++i) {
    CUgraphNode found = nullptr;
    if (CUDA_CALL(cuGraphNodeFindInClone, &found, handles[i], level.graph) !=
        CUDA_SUCCESS)
      continue;
    for (uint32_t tried = level.first; tried < level.end; ++tried, ++next) {
      if (next >= level.end) next = level.first;
      if (graph->nodes[next].node == found) break;
    }
    if (next >= level.end || graph->nodes[next].node != found) continue;
    GraphNode* node = &graph->nodes[next];
    node->original = handles[i];
    CUgraph child = nullptr;
    if (node->child != kNoIndex &&
        CUDA_CALL(cuGraphChildGraphNodeGetGraph, handles[i], &child) ==
            CUDA_SUCCESS)
      FindOriginals(graph, child, node->child);
  }
  free(handles);
}

bool AnyDeviceUpdatable(ExecutableGraph* graph) {
  for (const GraphNode& node : graph->nodes)
    if (IsDeviceUpdatable(node)) return true;
  return false;
}

// Null, or why there is no copy.
const char* MakeCopy(ExecutableGraph* graph, CUgraph source) {
  if (AnyDeviceUpdatable(graph)) return "the device may update nodes of it";
  if (CUDA_CALL(cuGraphClone, &graph->copy, source) != CUDA_SUCCESS) {
    graph->copy = nullptr;
    return "the driver does not clone it";
  }
  const char* refusal = ReadGraph(graph->copy, /*edges=*/true, graph);
  if (refusal == nullptr) FindOriginals(graph, source, 0);
  return refusal;
}

// Takes what is in `source`: nodes, kernels, and a copy where it is of use.
void Take(ExecutableGraph* graph, CUgraph source) {
  DropCopy(graph);
  graph->refusal = ReadGraph(source, /*edges=*/false, graph);
  for (GraphNode& node : graph->nodes) node.original = node.node;
  if (!CountKernels(graph)) GiveUp(graph, "out of host memory");
  if ((graph->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
    GiveUp(graph, "the device may launch it");
  if (graph->unknown_disabled) GiveUp(graph, kUnknownDisabled);
  if (graph->refusal == nullptr && NeedsCopy(graph)) {
    const char* refusal = MakeCopy(graph, source);
    if (refusal != nullptr) GiveUp(graph, refusal);
  }
  SortByOriginal(graph);
}

bool AnyDisabled(ExecutableGraph* graph) {
  for (const GraphNode& node : graph->nodes)
    if (node.disabled) return true;
  return false;
}

ExecutableGraph* NewGraph() {
  MutexLock lock(g_mutex);
  if (!g_unused.empty()) {
    ExecutableGraph* graph = g_unused[g_unused.size() - 1];
    g_unused.Remove(g_unused.size() - 1);
    return graph;
  }
  void* memory = malloc(sizeof(ExecutableGraph));
  return memory != nullptr ? new (memory) ExecutableGraph : nullptr;
}

}  // namespace

void AddGraph(CUgraphExec exec, CUgraph graph, uint64_t flags) {
  ForgetGraph(exec);
  ExecutableGraph* added = NewGraph();
  if (added == nullptr) return;
  added->flags = flags;
  CUDA_CALL(cuCtxGetCurrent, &added->context);
  Take(added, graph);
  MutexLock lock(g_mutex);
  g_graphs.Set(exec, added);
}

void UpdateGraph(CUgraphExec exec, CUgraph source) {
  ExecutableGraph* graph = FindGraph(exec);
  if (graph == nullptr) return;
  if (AnyDisabled(graph)) graph->unknown_disabled = true;
  graph->refusal_said = false;
  Take(graph, source);
  // The application goes on to name the nodes that it instantiated. Which one
  // is which of these, the driver alone knows.
  for (GraphNode& node : graph->nodes) node.original = nullptr;
  graph->by_original.clear();
}

void ForgetGraph(CUgraphExec exec) {
  ExecutableGraph* graph = FindGraph(exec);
  if (graph == nullptr) return;
  DropCopy(graph);
  if (graph->last_launch != nullptr)
    CUDA_CALL(cuEventDestroy_v2, graph->last_launch);
  graph->last_launch = nullptr;
  graph->wait_for_last = false;
  graph->timed = false;
  graph->refusal_said = false;
  graph->unknown_disabled = false;
  graph->kernels.clear();
  MutexLock lock(g_mutex);
  g_graphs.Set(exec, nullptr);
  g_unused.Append(graph);
}

void ForgetContextGraphs(CUcontext context) {
  MutexLock lock(g_mutex);
  g_graphs.EraseIf([&](ExecutableGraph* graph) {
    if (graph->last_context == context) {
      graph->last_launch = nullptr;
      graph->wait_for_last = false;
    }
    return graph->context == context;
  });
}

ExecutableGraph* FindGraph(CUgraphExec exec) { return g_graphs.Find(exec); }

void FollowNode(CUgraphExec exec, CUgraphNode original, NodeChange change,
                CUfunction function) {
  ExecutableGraph* graph = FindGraph(exec);
  if (graph == nullptr) return;
  GraphNode* node = FindNode(graph, original);
  if (node == nullptr) {
    GiveUp(graph,
           "a node of it was changed after it had been updated by another "
           "graph");
    return;
  }
  if (function != nullptr) {
    CountNode(graph, *node, -1);
    node->kernel = MeetKernel(function);
    CountNode(graph, *node, 1);
  }
  if (!NeedsCopy(graph)) {
    DropCopy(graph);
  } else if (graph->copy != nullptr) {
    if (change.call(change.arguments, node->node) != CUDA_SUCCESS)
      GiveUp(graph, "a change of a node of it could not be followed");
  } else if (graph->refusal == nullptr && AnyWanted(graph)) {
    graph->refusal = "the kernel came into it by a change of a node";
  }
}

void FollowEnabled(CUgraphExec exec, CUgraphNode original, bool enabled) {
  ExecutableGraph* graph = FindGraph(exec);
  if (graph == nullptr) return;
  GraphNode* node = FindNode(graph, original);
  if (node == nullptr) {
    graph->unknown_disabled = true;
    GiveUp(graph, kUnknownDisabled);
    return;
  }
  CountNode(graph, *node, -1);
  node->disabled = !enabled;
  CountNode(graph, *node, 1);
}

}  // namespace reprise::driver
