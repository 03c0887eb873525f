#include "replay/recorder/driver/graph_reader.h"

#include <stdlib.h>

#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/launch.h"
#include "replay/recorder/driver/process.h"

namespace reprise::driver {
namespace {

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
  uint32_t FindDepths(const GraphLevel& level, uint32_t* depths) const;
  bool Reorder(const GraphLevel& level);
  bool Sort(const GraphLevel& level);
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
  if (edges_ && (!ReadEdges(&level) || !Sort(level))) return false;
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

// The longest path to each node of the level, in edges.
uint32_t GraphReader::FindDepths(const GraphLevel& level,
                                 uint32_t* depths) const {
  uint32_t deepest = 0;
  bool changed = true;
  while (changed && deepest <= level.end - level.first) {
    changed = false;
    for (uint32_t i = level.first_edge; i < level.end_edge; ++i) {
      const GraphEdge& edge = to_->edges[i];
      const uint32_t least = depths[edge.from - level.first] + 1;
      uint32_t* at = &depths[edge.to - level.first];
      if (*at >= least) continue;
      *at = least;
      if (least > deepest) deepest = least;
      changed = true;
    }
  }
  return deepest;
}

// Orders the level's nodes by the longest path to them, then as they were
// created.
bool GraphReader::Reorder(const GraphLevel& level) {
  const uint32_t count = level.end - level.first;
  uint32_t* depths = static_cast<uint32_t*>(calloc(count, sizeof(uint32_t)));
  uint32_t* places = static_cast<uint32_t*>(calloc(count, sizeof(uint32_t)));
  GraphNode* moved = static_cast<GraphNode*>(malloc(count * sizeof(GraphNode)));
  const bool ok = depths != nullptr && places != nullptr && moved != nullptr;
  if (ok) {
    const uint32_t deepest = FindDepths(level, depths);
    uint32_t next = 0;
    for (uint32_t depth = 0; depth <= deepest; ++depth)
      for (uint32_t i = 0; i < count; ++i)
        if (depths[i] == depth) places[i] = next++;
    GraphNode* nodes = to_->nodes.data() + level.first;
    for (uint32_t i = 0; i < count; ++i) moved[places[i]] = nodes[i];
    for (uint32_t i = 0; i < count; ++i) nodes[i] = moved[i];
    for (uint32_t i = level.first_edge; i < level.end_edge; ++i) {
      GraphEdge* edge = &to_->edges[i];
      edge->from = level.first + places[edge->from - level.first];
      edge->to = level.first + places[edge->to - level.first];
    }
  }
  free(depths);
  free(places);
  free(moved);
  return ok;
}

// Topological order; where creation is one, it stays.
bool GraphReader::Sort(const GraphLevel& level) {
  bool ordered = true;
  for (uint32_t i = level.first_edge; i < level.end_edge && ordered; ++i)
    ordered = to_->edges[i].from < to_->edges[i].to;
  if (!ordered && !Reorder(level)) return false;
  if (level.first_edge < level.end_edge) {
    qsort(to_->edges.data() + level.first_edge,
          level.end_edge - level.first_edge, sizeof(GraphEdge), CompareEdges);
  }
  return true;
}

}  // namespace

const char* ReadGraph(CUgraph graph, bool edges, ExecutableGraph* to) {
  return GraphReader(to, edges).Read(graph);
}

}  // namespace reprise::driver
