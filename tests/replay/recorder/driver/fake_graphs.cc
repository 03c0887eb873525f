#include "tests/replay/recorder/driver/fake_graphs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

struct FakeGraph;

struct FakeNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  FakeGraph* graph = nullptr;
  const FakeNode* origin = nullptr;  // what it was cloned from
  std::vector<FakeNode*> dependencies;

  CUDA_KERNEL_NODE_PARAMS kernel{};
  std::vector<std::vector<char>> arguments;
  std::vector<void*> argument_pointers;
  std::map<int, CUkernelNodeAttrValue> attributes;
  CUDA_MEMCPY3D copy;  // valid in a copy node
  CUDA_MEMSET_NODE_PARAMS set{};
  CUDA_HOST_NODE_PARAMS host{};
  std::unique_ptr<FakeGraph> child;

  void SetKernel(const CUDA_KERNEL_NODE_PARAMS& parameters);
  // Takes over what the other does, not its place.
  void TakeParameters(const FakeNode& other);
};

struct FakeGraph {
  std::vector<std::unique_ptr<FakeNode>> nodes;
};

struct FakeExec {
  std::unique_ptr<FakeGraph> graph;
  // By the nodes that the application knows.
  std::map<const FakeNode*, FakeNode*> nodes;
  std::set<const FakeNode*> disabled;
  unsigned long long flags = 0;
};

std::set<FakeGraph*> g_graphs;
// Their work may outlive their handles.
std::map<FakeExec*, std::shared_ptr<FakeExec>> g_execs;

FakeGraph* AsGraph(CUgraph graph) {
  return reinterpret_cast<FakeGraph*>(graph);
}
FakeNode* AsNode(CUgraphNode node) { return reinterpret_cast<FakeNode*>(node); }
CUgraphNode Handle(FakeNode* node) {
  return reinterpret_cast<CUgraphNode>(node);
}
FakeExec* AsExec(CUgraphExec exec) { return reinterpret_cast<FakeExec*>(exec); }

void FakeNode::SetKernel(const CUDA_KERNEL_NODE_PARAMS& parameters) {
  const CUfunction function =
      parameters.func != nullptr
          ? parameters.func
          : reinterpret_cast<CUfunction>(parameters.kern);
  const std::vector<size_t> bytes = fake::ParameterBytes(function);
  const std::vector<size_t> offsets = fake::ParameterOffsets(function);
  const char* packed = nullptr;
  if (parameters.kernelParams == nullptr && parameters.extra != nullptr) {
    for (void** e = parameters.extra; *e != CU_LAUNCH_PARAM_END; e += 2)
      if (e[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
        packed = static_cast<const char*>(e[1]);
  }
  std::vector<std::vector<char>> values;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char* from =
        packed != nullptr
            ? packed + offsets[i]
            : static_cast<const char*>(parameters.kernelParams[i]);
    values.emplace_back(from, from + bytes[i]);
  }
  arguments = std::move(values);
  argument_pointers.clear();
  for (std::vector<char>& argument : arguments)
    argument_pointers.push_back(argument.data());
  kernel = parameters;
  kernel.extra = nullptr;
  kernel.kernelParams = argument_pointers.data();
}

void FakeNode::TakeParameters(const FakeNode& other) {
  if (other.type == CU_GRAPH_NODE_TYPE_KERNEL) SetKernel(other.kernel);
  attributes = other.attributes;
  copy = other.copy;
  set = other.set;
  host = other.host;
  if (child != nullptr && other.child != nullptr)
    for (size_t i = 0; i < child->nodes.size(); ++i)
      child->nodes[i]->TakeParameters(*other.child->nodes[i]);
}

bool IsCloneable(const FakeGraph& graph) {
  for (const auto& node : graph.nodes) {
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
      return false;
  }
  return true;
}

std::unique_ptr<FakeGraph> Clone(const FakeGraph& graph) {
  auto clone = std::make_unique<FakeGraph>();
  std::map<const FakeNode*, FakeNode*> clones;
  for (const auto& node : graph.nodes) {
    auto fresh = std::make_unique<FakeNode>();
    fresh->type = node->type;
    fresh->graph = clone.get();
    fresh->origin = node.get();
    fresh->TakeParameters(*node);
    if (node->child != nullptr) fresh->child = Clone(*node->child);
    clones[node.get()] = fresh.get();
    clone->nodes.push_back(std::move(fresh));
  }
  for (const auto& node : graph.nodes)
    for (const FakeNode* dependency : node->dependencies)
      clones[node.get()]->dependencies.push_back(clones[dependency]);
  return clone;
}

void Pair(const FakeGraph& graph, FakeExec* exec) {
  for (const auto& node : graph.nodes) {
    exec->nodes[node->origin] = node.get();
    if (node->child != nullptr) Pair(*node->child, exec);
  }
}

FakeNode* Add(CUgraph graph, CUgraphNodeType type,
              const CUgraphNode* dependencies, size_t count) {
  auto node = std::make_unique<FakeNode>();
  node->type = type;
  node->graph = AsGraph(graph);
  for (size_t i = 0; i < count; ++i)
    node->dependencies.push_back(AsNode(dependencies[i]));
  AsGraph(graph)->nodes.push_back(std::move(node));
  return AsGraph(graph)->nodes.back().get();
}

CUresult Run(const FakeExec& exec, const FakeGraph& graph, CUstream stream);

CUresult RunNode(const FakeExec& exec, const FakeNode& node, CUstream stream) {
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS& k = node.kernel;
      return fake::RunKernel(
          k.func != nullptr ? k.func : reinterpret_cast<CUfunction>(k.kern),
          k.gridDimX * k.gridDimY * k.gridDimZ,
          k.blockDimX * k.blockDimY * k.blockDimZ, stream, k.kernelParams);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      memcpy(reinterpret_cast<void*>(node.copy.dstDevice),
             reinterpret_cast<void*>(node.copy.srcDevice),
             node.copy.WidthInBytes);
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      memset(reinterpret_cast<void*>(node.set.dst),
             static_cast<int>(node.set.value), node.set.width);
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_HOST:
      node.host.fn(node.host.userData);
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return Run(exec, *node.child, stream);
    default:
      return CUDA_SUCCESS;
  }
}

CUresult Run(const FakeExec& exec, const FakeGraph& graph, CUstream stream) {
  std::set<const FakeNode*> done;
  while (done.size() < graph.nodes.size()) {
    for (const auto& node : graph.nodes) {
      if (done.count(node.get()) > 0 ||
          !std::all_of(node->dependencies.begin(), node->dependencies.end(),
                       [&](FakeNode* other) { return done.count(other) > 0; }))
        continue;
      done.insert(node.get());
      if (exec.disabled.count(node.get()) > 0) continue;
      const CUresult result = RunNode(exec, *node, stream);
      if (result != CUDA_SUCCESS) return result;
    }
  }
  return CUDA_SUCCESS;
}

// The node of an executable graph that stands for one of the application's.
FakeNode* Of(CUgraphExec exec, CUgraphNode node) {
  const auto it = AsExec(exec)->nodes.find(AsNode(node));
  return it == AsExec(exec)->nodes.end() ? nullptr : it->second;
}

}  // namespace

namespace fake {

void Capture::Begin() {
  graph_ = nullptr;
  last_ = nullptr;
  auto* graph = new FakeGraph;
  g_graphs.insert(graph);
  graph_ = reinterpret_cast<CUgraph>(graph);
}

CUgraph Capture::End() {
  const CUgraph graph = graph_;
  graph_ = nullptr;
  return graph;
}

void Capture::AddOfKind(CUgraphNodeType type) {
  last_ = Handle(::Add(graph_, type, &last_, last_ != nullptr ? 1 : 0));
}
void Capture::AddKernel(const CUDA_KERNEL_NODE_PARAMS& parameters) {
  AddOfKind(CU_GRAPH_NODE_TYPE_KERNEL);
  AsNode(last_)->SetKernel(parameters);
}
void Capture::AddCopy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  AddOfKind(CU_GRAPH_NODE_TYPE_MEMCPY);
  AsNode(last_)->copy.dstDevice = to;
  AsNode(last_)->copy.srcDevice = from;
  AsNode(last_)->copy.WidthInBytes = bytes;
}
void Capture::AddMemset(CUdeviceptr to, unsigned char value, size_t bytes) {
  AddOfKind(CU_GRAPH_NODE_TYPE_MEMSET);
  AsNode(last_)->set = {to, 0, value, 1, bytes, 1};
}
void Capture::AddGraph(CUgraphExec exec) {
  AddOfKind(CU_GRAPH_NODE_TYPE_GRAPH);
  AsNode(last_)->child = Clone(*AsExec(exec)->graph);
}

std::function<void()> WorkOf(CUgraphExec exec, CUstream stream) {
  const auto it = g_execs.find(AsExec(exec));
  if (it == g_execs.end()) return nullptr;
  return [kept = it->second, stream] { Run(*kept, *kept->graph, stream); };
}

}  // namespace fake

#define EXPORT extern "C" __attribute__((visibility("default")))

// Graphs and executable graphs that nobody destroyed.
EXPORT long fakeLiveGraphs() {
  const Lock lock(fake::Mutex());
  return static_cast<long>(g_graphs.size() + g_execs.size());
}
// Adds a node of a kind that does nothing here.
EXPORT CUresult fakeAddNode(CUgraphNode* node, CUgraph graph,
                            CUgraphNodeType type) {
  const Lock lock(fake::Mutex());
  *node = Handle(Add(graph, type, nullptr, 0));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphCreate(CUgraph* graph, unsigned int) {
  const Lock lock(fake::Mutex());
  auto* fresh = new FakeGraph;
  g_graphs.insert(fresh);
  *graph = reinterpret_cast<CUgraph>(fresh);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  const Lock lock(fake::Mutex());
  if (g_graphs.erase(AsGraph(graph)) == 0) return CUDA_ERROR_INVALID_VALUE;
  delete AsGraph(graph);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphClone(CUgraph* clone, CUgraph graph) {
  const Lock lock(fake::Mutex());
  fake::Count("cuGraphClone");
  if (!IsCloneable(*AsGraph(graph))) return CUDA_ERROR_INVALID_VALUE;
  FakeGraph* fresh = Clone(*AsGraph(graph)).release();
  g_graphs.insert(fresh);
  *clone = reinterpret_cast<CUgraph>(fresh);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original,
                                       CUgraph clone) {
  const Lock lock(fake::Mutex());
  for (const auto& candidate : AsGraph(clone)->nodes) {
    if (candidate->origin != AsNode(original)) continue;
    *node = Handle(candidate.get());
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  const Lock lock(fake::Mutex());
  *type = AsNode(node)->type;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes,
                                size_t* count) {
  const Lock lock(fake::Mutex());
  const auto& all = AsGraph(graph)->nodes;
  for (size_t i = 0; nodes != nullptr && i < *count; ++i)
    nodes[i] = i < all.size() ? Handle(all[i].get()) : nullptr;
  *count = nodes != nullptr ? std::min(*count, all.size()) : all.size();
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from,
                                   CUgraphNode* to, CUgraphEdgeData*,
                                   size_t* count) {
  const Lock lock(fake::Mutex());
  size_t seen = 0;
  for (const auto& node : AsGraph(graph)->nodes) {
    for (FakeNode* dependency : node->dependencies) {
      if (from != nullptr && seen < *count) {
        from[seen] = Handle(dependency);
        to[seen] = Handle(node.get());
      }
      ++seen;
    }
  }
  *count = seen;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphAddDependencies_v2(CUgraph, const CUgraphNode* from,
                                          const CUgraphNode* to,
                                          const CUgraphEdgeData*,
                                          size_t count) {
  const Lock lock(fake::Mutex());
  for (size_t i = 0; i < count; ++i)
    AsNode(to[i])->dependencies.push_back(AsNode(from[i]));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphDestroyNode(CUgraphNode node) {
  const Lock lock(fake::Mutex());
  auto& nodes = AsNode(node)->graph->nodes;
  for (const auto& other : nodes) {
    std::vector<FakeNode*>& d = other->dependencies;
    d.erase(std::remove(d.begin(), d.end(), AsNode(node)), d.end());
  }
  nodes.erase(std::find_if(nodes.begin(), nodes.end(), [&](const auto& n) {
    return n.get() == AsNode(node);
  }));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphAddKernelNode_v2(
    CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
    size_t count, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  const Lock lock(fake::Mutex());
  FakeNode* added = Add(graph, CU_GRAPH_NODE_TYPE_KERNEL, dependencies, count);
  added->SetKernel(*parameters);
  *node = Handle(added);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphKernelNodeGetParams_v2(
    CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters) {
  const Lock lock(fake::Mutex());
  *parameters = AsNode(node)->kernel;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphKernelNodeSetParams_v2(
    CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  const Lock lock(fake::Mutex());
  AsNode(node)->SetKernel(*parameters);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to,
                                                CUgraphNode from) {
  const Lock lock(fake::Mutex());
  AsNode(to)->attributes = AsNode(from)->attributes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node,
                                              CUkernelNodeAttrID attribute,
                                              CUkernelNodeAttrValue* value) {
  const Lock lock(fake::Mutex());
  *value = AsNode(node)->attributes[attribute];
  return CUDA_SUCCESS;
}
EXPORT CUresult
cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                              const CUkernelNodeAttrValue* value) {
  const Lock lock(fake::Mutex());
  AsNode(node)->attributes[attribute] = *value;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph,
                                     const CUgraphNode* dependencies,
                                     size_t count,
                                     const CUDA_MEMCPY3D* parameters,
                                     CUcontext) {
  const Lock lock(fake::Mutex());
  FakeNode* added = Add(graph, CU_GRAPH_NODE_TYPE_MEMCPY, dependencies, count);
  added->copy = *parameters;
  *node = Handle(added);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node,
                                           const CUDA_MEMCPY3D* parameters) {
  const Lock lock(fake::Mutex());
  AsNode(node)->copy = *parameters;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph,
                                   const CUgraphNode* dependencies,
                                   size_t count,
                                   const CUDA_HOST_NODE_PARAMS* parameters) {
  const Lock lock(fake::Mutex());
  FakeNode* added = Add(graph, CU_GRAPH_NODE_TYPE_HOST, dependencies, count);
  added->host = *parameters;
  *node = Handle(added);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph,
                                          const CUgraphNode* dependencies,
                                          size_t count, CUevent) {
  const Lock lock(fake::Mutex());
  *node =
      Handle(Add(graph, CU_GRAPH_NODE_TYPE_EVENT_RECORD, dependencies, count));
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph,
                                         const CUgraphNode* dependencies,
                                         size_t count, CUgraph child) {
  const Lock lock(fake::Mutex());
  FakeNode* added = Add(graph, CU_GRAPH_NODE_TYPE_GRAPH, dependencies, count);
  added->child = Clone(*AsGraph(child));
  *node = Handle(added);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node,
                                              CUgraph* graph) {
  const Lock lock(fake::Mutex());
  *graph = reinterpret_cast<CUgraph>(AsNode(node)->child.get());
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                            unsigned long long flags) {
  const Lock lock(fake::Mutex());
  fake::Count("cuGraphInstantiateWithFlags");
  auto fresh = std::make_shared<FakeExec>();
  fresh->graph = Clone(*AsGraph(graph));
  fresh->flags = flags;
  Pair(*fresh->graph, fresh.get());
  *exec = reinterpret_cast<CUgraphExec>(fresh.get());
  g_execs[fresh.get()] = fresh;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphInstantiateWithParams(
    CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return cuGraphInstantiateWithFlags(exec, graph, params->flags);
}
EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  const Lock lock(fake::Mutex());
  return g_execs.erase(AsExec(exec)) > 0 ? CUDA_SUCCESS
                                         : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                     CUgraphExecUpdateResultInfo* result) {
  const Lock lock(fake::Mutex());
  auto& to = AsExec(exec)->graph->nodes;
  const auto& from = AsGraph(graph)->nodes;
  bool alike = to.size() == from.size();
  for (size_t i = 0; alike && i < to.size(); ++i)
    alike = to[i]->type == from[i]->type;
  result->result = alike ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                         : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (!alike) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  for (size_t i = 0; i < to.size(); ++i) to[i]->TakeParameters(*from[i]);
  return CUDA_SUCCESS;
}
EXPORT CUresult
cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                  const CUDA_KERNEL_NODE_PARAMS* parameters) {
  const Lock lock(fake::Mutex());
  FakeNode* at = Of(exec, node);
  if (at == nullptr) return CUDA_ERROR_INVALID_VALUE;
  at->SetKernel(*parameters);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec,
                                               CUgraphNode node,
                                               const CUDA_MEMCPY3D* parameters,
                                               CUcontext) {
  const Lock lock(fake::Mutex());
  FakeNode* at = Of(exec, node);
  if (at == nullptr) return CUDA_ERROR_INVALID_VALUE;
  at->copy = *parameters;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node,
                                      unsigned int enabled) {
  const Lock lock(fake::Mutex());
  const FakeNode* at = Of(exec, node);
  if (at == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (enabled != 0)
    AsExec(exec)->disabled.erase(at);
  else
    AsExec(exec)->disabled.insert(at);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGraphUpload(CUgraphExec, CUstream) { return CUDA_SUCCESS; }
