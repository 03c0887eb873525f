#include "replay/recorder/driver/graph_parts.h"

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/driver.h"

namespace reprise::driver {
namespace {

CUresult Instantiate(const ExecutableGraph& graph, CUgraph part_graph,
                     CUgraphExec* part) {
  const unsigned long long flags =
      graph.flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  const CUresult result = WithTrim([&] {
    return CUDA_CALL(cuGraphInstantiateWithFlags, part, part_graph, flags);
  });
  if (result != CUDA_SUCCESS) *part = nullptr;
  return result;
}

// Takes the nodes that are not chosen out of a clone of the level.
CUresult TakeOut(const ExecutableGraph& graph, const GraphLevel& level,
                 const unsigned char* choice, unsigned char chosen,
                 CUgraph clone) {
  CUresult result = CUDA_SUCCESS;
  for (uint32_t i = level.first; i < level.end && result == CUDA_SUCCESS; ++i) {
    if (choice[i] == chosen) continue;
    CUgraphNode here = nullptr;
    result =
        CUDA_CALL(cuGraphNodeFindInClone, &here, graph.nodes[i].node, clone);
    if (result == CUDA_SUCCESS) result = CUDA_CALL(cuGraphDestroyNode, here);
  }
  return result;
}

// A disabled node still orders those around it, so it stays.
CUresult Disable(const ExecutableGraph& graph, const GraphLevel& level,
                 const unsigned char* choice, unsigned char chosen,
                 CUgraph clone, CUgraphExec part) {
  CUresult result = CUDA_SUCCESS;
  for (uint32_t i = level.first; i < level.end && result == CUDA_SUCCESS; ++i) {
    if (choice[i] != chosen || !graph.nodes[i].disabled) continue;
    CUgraphNode here = nullptr;
    result =
        CUDA_CALL(cuGraphNodeFindInClone, &here, graph.nodes[i].node, clone);
    if (result == CUDA_SUCCESS)
      result = CUDA_CALL(cuGraphNodeSetEnabled, part, here, 0u);
  }
  return result;
}

// Records an event after a node, if there is one.
CUresult AddEvent(CUgraph graph, CUevent event, CUgraphNode* last) {
  const CUgraphNode before = *last;
  return CUDA_CALL(cuGraphAddEventRecordNode, last, graph, &before,
                   size_t{before != nullptr}, event);
}

}  // namespace

CUresult MakePart(const ExecutableGraph& graph, const GraphLevel& level,
                  const unsigned char* choice, unsigned char chosen,
                  CUgraphExec* part) {
  *part = nullptr;
  bool any = false;
  for (uint32_t i = level.first; i < level.end && !any; ++i)
    any = choice[i] == chosen;
  if (!any) return CUDA_SUCCESS;
  CUgraph clone = nullptr;
  CUresult result = CUDA_CALL(cuGraphClone, &clone, level.graph);
  if (result != CUDA_SUCCESS) return result;
  result = TakeOut(graph, level, choice, chosen, clone);
  if (result == CUDA_SUCCESS) result = Instantiate(graph, clone, part);
  if (result == CUDA_SUCCESS)
    result = Disable(graph, level, choice, chosen, clone, *part);
  if (result != CUDA_SUCCESS) DestroyPart(part);
  CUDA_CALL(cuGraphDestroy, clone);
  return result;
}

CUresult MakeKernelPart(const ExecutableGraph& graph, const GraphNode& node,
                        CUevent begin, CUevent end, CUgraphExec* part) {
  *part = nullptr;
  CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
  CUresult result =
      CUDA_CALL(cuGraphKernelNodeGetParams_v2, node.node, &parameters);
  CUgraph alone = nullptr;
  if (result == CUDA_SUCCESS) result = CUDA_CALL(cuGraphCreate, &alone, 0u);
  if (result != CUDA_SUCCESS) return result;
  CUgraphNode last = nullptr;
  if (begin != nullptr) result = AddEvent(alone, begin, &last);
  if (result == CUDA_SUCCESS) {
    const CUgraphNode before = last;
    result = CUDA_CALL(cuGraphAddKernelNode_v2, &last, alone, &before,
                       size_t{before != nullptr}, &parameters);
  }
  if (result == CUDA_SUCCESS)
    result = CUDA_CALL(cuGraphKernelNodeCopyAttributes, last, node.node);
  if (result == CUDA_SUCCESS && end != nullptr)
    result = AddEvent(alone, end, &last);
  if (result == CUDA_SUCCESS) result = Instantiate(graph, alone, part);
  CUDA_CALL(cuGraphDestroy, alone);
  return result;
}

bool LaunchOf(const GraphNode& node, LaunchCall* launch, CUcontext* context) {
  CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
  if (CUDA_CALL(cuGraphKernelNodeGetParams_v2, node.node, &parameters) !=
      CUDA_SUCCESS)
    return false;
  launch->function = FunctionOf(parameters);
  launch->grid[0] = parameters.gridDimX;
  launch->grid[1] = parameters.gridDimY;
  launch->grid[2] = parameters.gridDimZ;
  launch->block[0] = parameters.blockDimX;
  launch->block[1] = parameters.blockDimY;
  launch->block[2] = parameters.blockDimZ;
  launch->dynamic_shared_bytes = parameters.sharedMemBytes;
  launch->parameters = parameters.kernelParams;
  launch->extra = parameters.extra;
  *context = parameters.ctx;
  CUkernelNodeAttrValue value{};
  if (CUDA_CALL(cuGraphKernelNodeGetAttribute, node.node,
                CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS)
    launch->cooperative = value.cooperative != 0;
  value = {};
  if (CUDA_CALL(cuGraphKernelNodeGetAttribute, node.node,
                CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                &value) == CUDA_SUCCESS &&
      value.clusterDim.x * value.clusterDim.y * value.clusterDim.z > 1) {
    launch->cluster[0] = value.clusterDim.x;
    launch->cluster[1] = value.clusterDim.y;
    launch->cluster[2] = value.clusterDim.z;
  }
  return true;
}

void DestroyPart(CUgraphExec* part) {
  if (*part != nullptr) CUDA_CALL(cuGraphExecDestroy, *part);
  *part = nullptr;
}

}  // namespace reprise::driver
