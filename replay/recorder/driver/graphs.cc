#include "replay/recorder/driver/graphs.h"

#include <stdlib.h>

#include <new>

#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/handle_map.h"
#include "replay/recorder/driver/launch.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/profile.h"

namespace reprise::driver {
namespace {

Mutex g_mutex;
HandleMap<ExecutableGraph, 1 << 10> g_graphs;
Array<ExecutableGraph*> g_unused;

constexpr char kUnreadable[] = "the driver does not tell what is in it";

// Why a graph with such a node is not launched in parts; null: it can be.
const char* RefusalOf(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return nullptr;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return "it allocates or frees memory (memory allocation nodes)";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return "it has conditional nodes";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return "it records or waits for events (external event nodes)";
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      return "it uses external semaphores";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return "it waits for values in memory or writes them (batch memory "
             "operation nodes)";
    default:
      return "it has nodes of a kind that is not known";
  }
}

bool IsDeviceUpdatable(CUgraphNode node) {
  CUkernelNodeAttrValue value{};
  return CUDA_CALL(cuGraphKernelNodeGetAttribute, node,
                   CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                   &value) == CUDA_SUCCESS &&
         value.deviceUpdatableKernelNode.deviceUpdatable != 0;
}

Kernel* KernelOfNode(CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
  if (CUDA_CALL(cuGraphKernelNodeGetParams_v2, node, &parameters) !=
      CUDA_SUCCESS)
    return nullptr;
  return MeetKernel(FunctionOf(parameters));
}

// Reads a graph with its child graphs into an ExecutableGraph.
class GraphReader {
 public:
  GraphReader(ExecutableGraph* to, bool edges) : to_(to), edges_(edges) {}

  // Null, or why a launch of the graph cannot be made in parts.
  const char* Read(CUgraph graph);

 private:
  bool ReadLevel(CUgraph graph, uint32_t parent, uint32_t parent_node);
  bool ReadNodes(GraphLevel* level);
  bool ReadNode(GraphNode* node);
  bool ReadEdges(GraphLevel* level);
  bool Sort(GraphLevel* level);
  uint32_t IndexOf(const GraphLevel& level, CUgraphNode node) const;

  ExecutableGraph* to_;
  bool edges_;
  const char* refusal_ = nullptr;
  Array<uint32_t> by_node_;  // of the level that is being read
};

int CompareHandles(const void* a, const void* b, void* nodes) {
  const GraphNode* all = static_cast<const GraphNode*>(nodes);
  const CUgraphNode left = all[*static_cast<const uint32_t*>(a)].node;
  const CUgraphNode right = all[*static_cast<const uint32_t*>(b)].node;
  return left < right ? -1 : left > right;
}

int CompareOriginals(const void* a, const void* b, void* nodes) {
  const GraphNode* all = static_cast<const GraphNode*>(nodes);
  const CUgraphNode left = all[*static_cast<const uint32_t*>(a)].original;
  const CUgraphNode right = all[*static_cast<const uint32_t*>(b)].original;
  return left < right ? -1 : left > right;
}

int CompareEdges(const void* a, const void* b) {
  const GraphEdge* left = static_cast<const GraphEdge*>(a);
  const GraphEdge* right = static_cast<const GraphEdge*>(b);
  return left->to > right->to ? -1 : left->to < right->to;
}

const char* GraphReader::Read(CUgraph graph) {
  to_->levels.clear();
  to_->nodes.clear();
  to_->edges.clear();
  const bool read = ReadLevel(graph, kNoIndex, kNoIndex);
  free(by_node_.data());
  if (!read) return kUnreadable;
  return refusal_;
}

bool GraphReader::ReadLevel(CUgraph graph, uint32_t parent,
                            uint32_t parent_node) {
  GraphLevel level;
  level.graph = graph;
  level.parent = parent;
  level.parent_node = parent_node;
  level.first = static_cast<uint32_t>(to_->nodes.size());
  level.first_edge = level.end_edge = static_cast<uint32_t>(to_->edges.size());
  if (!ReadNodes(&level)) return false;
  if (edges_ && (!ReadEdges(&level) || !Sort(&level))) return false;
  const uint32_t number = static_cast<uint32_t>(to_->levels.size());
  if (!to_->levels.Append(level)) return false;
  for (uint32_t i = level.first; i < level.end; ++i) {
    if (to_->nodes[i].type != CU_GRAPH_NODE_TYPE_GRAPH) continue;
    CUgraph child = nullptr;
    if (CUDA_CALL(cuGraphChildGraphNodeGetGraph, to_->nodes[i].node, &child) !=
        CUDA_SUCCESS)
      return false;
    to_->nodes[i].child = static_cast<uint32_t>(to_->levels.size());
    if (!ReadLevel(child, number, i)) return false;
  }
  return true;
}

bool GraphReader::ReadNodes(GraphLevel* level) {
  size_t count = 0;
  if (CUDA_CALL(cuGraphGetNodes, level->graph,
                static_cast<CUgraphNode*>(nullptr), &count) != CUDA_SUCCESS)
    return false;
  CUgraphNode* handles = static_cast<CUgraphNode*>(
      calloc(count > 0 ? count : 1, sizeof(CUgraphNode)));
  bool ok = handles != nullptr && to_->nodes.Reserve(level->first + count);
  if (ok && count > 0) {
    ok = CUDA_CALL(cuGraphGetNodes, level->graph, handles, &count) ==
         CUDA_SUCCESS;
  }
  for (size_t i = 0; ok && i < count; ++i) {
    GraphNode node;
    node.node = handles[i];
    ok = ReadNode(&node) && to_->nodes.Append(node);
  }
  free(handles);
  level->end = static_cast<uint32_t>(to_->nodes.size());
  return ok;
}

bool GraphReader::ReadNode(GraphNode* node) {
  if (CUDA_CALL(cuGraphNodeGetType, node->node, &node->type) != CUDA_SUCCESS)
    return false;
  if (refusal_ == nullptr) refusal_ = RefusalOf(node->type);
  if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    Problem(
        "the application makes a CUDA graph with conditional nodes; the "
        "kernels in their bodies are neither counted nor recorded");
  }
  if (node->type != CU_GRAPH_NODE_TYPE_KERNEL) return true;
  node->kernel = KernelOfNode(node->node);
  if (refusal_ == nullptr && IsDeviceUpdatable(node->node))
    refusal_ = "the device may update nodes of it";
  return true;
}

uint32_t GraphReader::IndexOf(const GraphLevel& level, CUgraphNode node) const {
  uint32_t low = 0;
  uint32_t high = level.end - level.first;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    const uint32_t index = by_node_[middle];
    if (to_->nodes[index].node == node) return index;
    if (to_->nodes[index].node < node)
      low = middle + 1;
    else
      high = middle;
  }
  return kNoIndex;
}

bool GraphReader::ReadEdges(GraphLevel* level) {
  by_node_.clear();
  for (uint32_t i = level->first; i < level->end; ++i)
    if (!by_node_.Append(i)) return false;
  if (!by_node_.empty()) {
    qsort_r(by_node_.data(), by_node_.size(), sizeof(uint32_t), CompareHandles,
            to_->nodes.data());
  }
  size_t count = 0;
  if (CUDA_CALL(cuGraphGetEdges_v2, level->graph,
                static_cast<CUgraphNode*>(nullptr),
                static_cast<CUgraphNode*>(nullptr),
                static_cast<CUgraphEdgeData*>(nullptr), &count) != CUDA_SUCCESS)
    return false;
  if (count == 0) return true;
  CUgraphNode* ends =
      static_cast<CUgraphNode*>(calloc(2 * count, sizeof(CUgraphNode)));
  CUgraphEdgeData* data =
      static_cast<CUgraphEdgeData*>(calloc(count, sizeof(CUgraphEdgeData)));
  bool ok = ends != nullptr && data != nullptr &&
            CUDA_CALL(cuGraphGetEdges_v2, level->graph, ends, ends + count,
                      data, &count) == CUDA_SUCCESS;
  for (size_t i = 0; ok && i < count; ++i) {
    const GraphEdge edge{IndexOf(*level, ends[i]),
                         IndexOf(*level, ends[count + i])};
    ok =
        edge.from != kNoIndex && edge.to != kNoIndex && to_->edges.Append(edge);
  }
  free(ends);
  free(data);
  level->end_edge = static_cast<uint32_t>(to_->edges.size());
  return ok;
}

// Orders the level's nodes by the longest path to them, then as they were
// created; where that is an order already, it stays.
bool GraphReader::Sort(GraphLevel* level) {
  GraphEdge* edges = to_->edges.data() + level->first_edge;
  const uint32_t edge_count = level->end_edge - level->first_edge;
  const uint32_t count = level->end - level->first;
  bool ordered = true;
  for (uint32_t i = 0; i < edge_count; ++i)
    ordered = ordered && edges[i].from < edges[i].to;
  if (!ordered) {
    uint32_t* depth = static_cast<uint32_t*>(calloc(2 * count, 4));
    GraphNode* moved =
        static_cast<GraphNode*>(malloc(count * sizeof(GraphNode)));
    if (depth == nullptr || moved == nullptr) {
      free(depth);
      free(moved);
      return false;
    }
    uint32_t deepest = 0;
    for (bool changed = true; changed && deepest <= count;) {
      changed = false;
      for (uint32_t i = 0; i < edge_count; ++i) {
        const uint32_t least = depth[edges[i].from - level->first] + 1;
        uint32_t* at = &depth[edges[i].to - level->first];
        if (*at >= least) continue;
        *at = least;
        if (least > deepest) deepest = least;
        changed = true;
      }
    }
    uint32_t* place = depth + count;
    uint32_t next = 0;
    for (uint32_t d = 0; d <= deepest && next < count; ++d)
      for (uint32_t i = 0; i < count; ++i)
        if (depth[i] == d) place[i] = next++;
    GraphNode* nodes = to_->nodes.data() + level->first;
    for (uint32_t i = 0; i < count; ++i) moved[place[i]] = nodes[i];
    for (uint32_t i = 0; i < count; ++i) nodes[i] = moved[i];
    for (uint32_t i = 0; i < edge_count; ++i) {
      edges[i] = {level->first + place[edges[i].from - level->first],
                  level->first + place[edges[i].to - level->first]};
    }
    free(depth);
    free(moved);
  }
  if (edge_count > 0) qsort(edges, edge_count, sizeof(GraphEdge), CompareEdges);
  return true;
}

// Which kernels a launch of the graph runs. Keeps what is known of them.
bool CountKernels(ExecutableGraph* graph) {
  for (GraphKernel& kernel : graph->kernels) kernel.nodes = 0;
  for (const GraphNode& node : graph->nodes) {
    if (node.kernel == nullptr || node.disabled) continue;
    size_t at = 0;
    while (at < graph->kernels.size() &&
           graph->kernels[at].kernel != node.kernel)
      ++at;
    if (at == graph->kernels.size()) {
      GraphKernel fresh;
      fresh.kernel = node.kernel;
      if (!graph->kernels.Append(fresh)) return false;
    }
    ++graph->kernels[at].nodes;
  }
  return true;
}

bool AnyWanted(ExecutableGraph* graph) {
  for (const GraphKernel& kernel : graph->kernels)
    if (kernel.nodes > 0 && kernel.kernel->wanted.load()) return true;
  return false;
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
    GraphNode* node = &graph->nodes[next];
    if (node->node != found) continue;
    node->original = handles[i];
    CUgraph child = nullptr;
    if (node->child != kNoIndex &&
        CUDA_CALL(cuGraphChildGraphNodeGetGraph, handles[i], &child) ==
            CUDA_SUCCESS)
      FindOriginals(graph, child, node->child);
  }
  free(handles);
}

// Takes what is in `source`: nodes, kernels, and a copy where it is of use.
void Take(ExecutableGraph* graph, CUgraph source) {
  DropCopy(graph);
  const char* refusal = GraphReader(graph, /*edges=*/false).Read(source);
  if (refusal == nullptr &&
      (graph->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0)
    refusal = "the device may launch it";
  for (GraphNode& node : graph->nodes) node.original = node.node;
  if (!CountKernels(graph)) refusal = "out of host memory";
  const bool to_time = Profiling() && !graph->timed;
  graph->refusal = refusal;
  if (refusal == nullptr && (to_time || AnyWanted(graph))) {
    const CUresult result = CUDA_CALL(cuGraphClone, &graph->copy, source);
    if (result != CUDA_SUCCESS) graph->copy = nullptr;
    if (graph->copy == nullptr) {
      graph->refusal = "the driver does not clone it";
    } else {
      refusal = GraphReader(graph, /*edges=*/true).Read(graph->copy);
      if (refusal != nullptr) GiveUp(graph, refusal);
      if (graph->copy != nullptr) FindOriginals(graph, source, 0);
    }
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
  Take(added, graph);
  MutexLock lock(g_mutex);
  g_graphs.Set(exec, added);
}

void UpdateGraph(CUgraphExec exec, CUgraph source) {
  ExecutableGraph* graph = FindGraph(exec);
  if (graph == nullptr) return;
  const bool any_disabled = AnyDisabled(graph);
  graph->refusal_said = false;
  Take(graph, source);
  // The application goes on to name the nodes that it instantiated. Which one
  // is which of these, the driver alone knows.
  for (GraphNode& node : graph->nodes) node.original = nullptr;
  graph->by_original.clear();
  if (any_disabled)
    GiveUp(graph, "it was updated by another graph while nodes were disabled");
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
  graph->kernels.clear();
  MutexLock lock(g_mutex);
  g_graphs.Set(exec, nullptr);
  g_unused.Append(graph);
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
    node->kernel = MeetKernel(function);
    CountKernels(graph);
  }
  if (graph->copy != nullptr) {
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
    GiveUp(graph,
           "a node of it was enabled or disabled after it had been updated by "
           "another graph");
    return;
  }
  node->disabled = !enabled;
  CountKernels(graph);
}

}  // namespace reprise::driver
