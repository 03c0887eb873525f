// Hooks of calls that make, change, launch or end executable graphs.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_HOOKS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_HOOKS_H_

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/gate.h"
#include "replay/recorder/driver/graph_launch.h"
#include "replay/recorder/driver/graphs.h"
#include "replay/recorder/driver/hooks.h"
#include "replay/recorder/driver/process.h"

namespace reprise::driver {

// Makes the driver's own call, and `follow` where it went well.
template <typename Call, typename Follow>
CUresult Followed(Call real, Follow follow) {
  if (!Active()) return real();
  SharedGate gate;
  const CUresult result = WithTrim(real);
  if (result == CUDA_SUCCESS) follow();
  return result;
}

// The older two forms of cuGraphInstantiate.
template <Hook kHook>
CUresult CUDAAPI GraphInstantiate(CUgraphExec* exec, CUgraph graph,
                                  CUgraphNode* error_node, char* log,
                                  size_t log_bytes) {
  return Followed(
      [&] { return CallReal<kHook>(exec, graph, error_node, log, log_bytes); },
      [&] { AddGraph(*exec, graph, 0); });
}

template <Hook kHook>
CUresult CUDAAPI GraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                           unsigned long long flags) {
  return Followed([&] { return CallReal<kHook>(exec, graph, flags); },
                  [&] { AddGraph(*exec, graph, flags); });
}

template <Hook kHook>
CUresult CUDAAPI
GraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                           CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  return Followed([&] { return CallReal<kHook>(exec, graph, parameters); },
                  [&] { AddGraph(*exec, graph, parameters->flags); });
}

template <Hook kHook>
CUresult CUDAAPI GraphExecUpdate1(CUgraphExec exec, CUgraph graph,
                                  CUgraphNode* error_node,
                                  CUgraphExecUpdateResult* update_result) {
  return Followed(
      [&] { return CallReal<kHook>(exec, graph, error_node, update_result); },
      [&] { UpdateGraph(exec, graph); });
}

template <Hook kHook>
CUresult CUDAAPI GraphExecUpdate2(CUgraphExec exec, CUgraph graph,
                                  CUgraphExecUpdateResultInfo* information) {
  return Followed([&] { return CallReal<kHook>(exec, graph, information); },
                  [&] { UpdateGraph(exec, graph); });
}

template <Hook kHook>
CUresult CUDAAPI GraphExecDestroy(CUgraphExec exec) {
  if (!Active()) return CallReal<kHook>(exec);
  SharedGate gate;
  ForgetGraph(exec);  // its handle may come back for another
  return CallReal<kHook>(exec);
}

// Follows a change of a node that is no kernel.
template <Hook kHook, typename Change, typename... Arguments>
CUresult FollowedChange(const Change& change, CUgraphExec exec,
                        CUgraphNode node, Arguments... arguments) {
  return Followed([&] { return CallReal<kHook>(exec, node, arguments...); },
                  [&] { FollowNode(exec, node, AsNodeChange(change)); });
}

template <Hook kHook>
CUresult CUDAAPI
GraphExecKernelNodeSetParams1(CUgraphExec exec, CUgraphNode node,
                              const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  const auto change = [&](CUgraphNode other) {
    return CUDA_CALL(cuGraphKernelNodeSetParams, other, parameters);
  };
  return Followed(
      [&] { return CallReal<kHook>(exec, node, parameters); },
      [&] { FollowNode(exec, node, AsNodeChange(change), parameters->func); });
}

template <Hook kHook>
CUresult CUDAAPI
GraphExecKernelNodeSetParams2(CUgraphExec exec, CUgraphNode node,
                              const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  const auto change = [&](CUgraphNode other) {
    return CUDA_CALL(cuGraphKernelNodeSetParams_v2, other, parameters);
  };
  return Followed([&] { return CallReal<kHook>(exec, node, parameters); },
                  [&] {
                    FollowNode(exec, node, AsNodeChange(change),
                               FunctionOf(*parameters));
                  });
}

template <Hook kHook>
CUresult CUDAAPI GraphExecMemcpyNodeSetParams(
    CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D_v2* parameters,
    CUcontext context) {
  const auto change = [&](CUgraphNode other) {
    return CUDA_CALL(cuGraphMemcpyNodeSetParams, other, parameters);
  };
  return FollowedChange<kHook>(change, exec, node, parameters, context);
}

template <Hook kHook>
CUresult CUDAAPI GraphExecMemsetNodeSetParams(
    CUgraphExec exec, CUgraphNode node,
    const CUDA_MEMSET_NODE_PARAMS_v1* parameters, CUcontext context) {
  const auto change = [&](CUgraphNode other) {
    return CUDA_CALL(cuGraphMemsetNodeSetParams, other, parameters);
  };
  return FollowedChange<kHook>(change, exec, node, parameters, context);
}

template <Hook kHook>
CUresult CUDAAPI
GraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                           const CUDA_HOST_NODE_PARAMS_v1* parameters) {
  const auto change = [&](CUgraphNode other) {
    return CUDA_CALL(cuGraphHostNodeSetParams, other, parameters);
  };
  return FollowedChange<kHook>(change, exec, node, parameters);
}

// No call does this to a graph that is not executable.
template <Hook kHook>
CUresult CUDAAPI GraphExecChildGraphNodeSetParams(CUgraphExec exec,
                                                  CUgraphNode node,
                                                  CUgraph child) {
  const auto change = [](CUgraphNode) { return CUDA_ERROR_NOT_SUPPORTED; };
  return FollowedChange<kHook>(change, exec, node, child);
}

template <Hook kHook>
CUresult CUDAAPI GraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        CUgraphNodeParams* parameters) {
  const auto change = [&](CUgraphNode other) {
    return CUDA_CALL(cuGraphNodeSetParams, other, parameters);
  };
  return Followed([&] { return CallReal<kHook>(exec, node, parameters); },
                  [&] {
                    CUfunction kernel = nullptr;
                    if (parameters->type == CU_GRAPH_NODE_TYPE_KERNEL)
                      kernel = FunctionOf(parameters->kernel);
                    FollowNode(exec, node, AsNodeChange(change), kernel);
                  });
}

template <Hook kHook>
CUresult CUDAAPI GraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node,
                                     unsigned int enabled) {
  return Followed([&] { return CallReal<kHook>(exec, node, enabled); },
                  [&] { FollowEnabled(exec, node, enabled != 0); });
}

template <Hook kHook>
CUresult CUDAAPI GraphLaunch(CUgraphExec exec, CUstream stream) {
  const auto real = [&] { return CallReal<kHook>(exec, stream); };
  if (!Active()) return real();
  return LaunchGraph(exec, Explicit(stream, HookType<kHook>::kPerThread),
                     AsRealLaunch(real));
}

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_HOOKS_H_
