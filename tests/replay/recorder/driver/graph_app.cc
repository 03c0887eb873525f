// An application of CUDA graphs for tests: runs the scenario that its first
// argument names, and prints what it sees. Exit code 0 unless a call failed
// that should not.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/replay/recorder/driver/app_calls.h"

namespace {

CUstream Stream() {
  CUstream stream = nullptr;
  CHECK("cuStreamCreate", &stream, 0u);
  return stream;
}

CUdeviceptr Zeros(size_t bytes) {
  const CUdeviceptr pointer = Alloc(bytes);
  CHECK("cuMemsetD8", pointer, static_cast<unsigned char>(0), bytes);
  return pointer;
}

CUgraphExec Instantiate(CUgraph graph, unsigned long long flags = 0) {
  CUgraphExec exec = nullptr;
  CHECK("cuGraphInstantiate", &exec, graph, flags);
  return exec;
}

void LaunchGraph(CUgraphExec exec, CUstream stream) {
  CHECK("cuGraphLaunch", exec, stream);
}

// A graph of `value` filled into a, a copied to b, b incremented.
CUgraph Capture(CUdeviceptr a, CUdeviceptr b, int value) {
  const CUstream stream = Stream();
  CUgraph graph = nullptr;
  int count = 1;
  CHECK("cuStreamBeginCapture", stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  Check(Launch(Kernel("fill"), stream, {&a, &value, &count}), "launch");
  CHECK("cuMemcpyDtoDAsync", b, a, size_t{4}, stream);
  Check(Launch(Kernel("increment"), stream, {&b}), "launch");
  CHECK("cuStreamEndCapture", stream, &graph);
  return graph;
}

void End(CUgraphExec exec, CUgraph graph) {
  CHECK("cuGraphExecDestroy", exec);
  CHECK("cuGraphDestroy", graph);
}

void Captured() {
  const CUdeviceptr a = Zeros(4);
  const CUdeviceptr b = Zeros(4);
  printf("at b %llx\n", b);
  CUgraph graph = Capture(a, b, 7);
  const CUgraphExec exec = Instantiate(graph);
  CHECK("cuMemsetD8", a, static_cast<unsigned char>(1), size_t{4});
  const CUstream stream = Stream();
  for (int i = 0; i < 3; ++i) LaunchGraph(exec, stream);
  printf("values %d %d\n", ReadInt(a), ReadInt(b));
  End(exec, graph);
}

// Kernel node of one pointer, or of fill's three arguments.
CUgraphNode AddKernel(CUgraph graph, const std::vector<CUgraphNode>& after,
                      const char* kernel, std::vector<void*> parameters) {
  CUDA_KERNEL_NODE_PARAMS node{};
  node.kern = reinterpret_cast<CUkernel>(Kernel(kernel));
  node.gridDimX = 5;
  node.gridDimY = node.gridDimZ = 1;
  node.blockDimX = 64;
  node.blockDimY = node.blockDimZ = 1;
  node.sharedMemBytes = 48;
  node.kernelParams = parameters.data();
  CUgraphNode added = nullptr;
  CHECK("cuGraphAddKernelNode", &added, graph, after.data(), after.size(),
        static_cast<const CUDA_KERNEL_NODE_PARAMS*>(&node));
  return added;
}

CUDA_MEMCPY3D Copy(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D copy;
  memset(&copy, 0, sizeof(copy));
  copy.dstMemoryType = copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.srcDevice = from;
  copy.WidthInBytes = 4;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUgraphNode AddCopy(CUgraph graph, const std::vector<CUgraphNode>& after,
                    CUdeviceptr to, CUdeviceptr from) {
  const CUDA_MEMCPY3D copy = Copy(to, from);
  CUgraphNode added = nullptr;
  CHECK("cuGraphAddMemcpyNode", &added, graph, after.data(), after.size(),
        &copy, g_context);
  return added;
}

CUgraph NewGraph() {
  CUgraph graph = nullptr;
  CHECK("cuGraphCreate", &graph, 0u);
  return graph;
}

// Built node by node, the last one first, then changed after instantiation.
void Changed() {
  CUdeviceptr a = Zeros(4);
  CUdeviceptr b = Zeros(4);
  CUdeviceptr c = Zeros(4);
  printf("at b %llx\nat c %llx\n", b, c);
  int value = 7;
  int count = 1;
  CUgraph graph = NewGraph();
  const CUgraphNode last = AddKernel(graph, {}, "increment", {&b});
  const CUgraphNode copy = AddCopy(graph, {}, b, a);
  const CUgraphNode first = AddKernel(graph, {}, "fill", {&a, &value, &count});
  const CUgraphNode from[] = {first, copy};
  const CUgraphNode to[] = {copy, last};
  CHECK("cuGraphAddDependencies", graph, from, to,
        static_cast<const CUgraphEdgeData*>(nullptr), size_t{2});
  CUkernelNodeAttrValue cluster{};
  cluster.clusterDim = {5, 1, 1};
  CHECK("cuGraphKernelNodeSetAttribute", last,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        static_cast<const CUkernelNodeAttrValue*>(&cluster));
  const CUgraphExec exec = Instantiate(graph);
  // The graph itself no longer matters.
  value = 100;
  const CUstream stream = Stream();
  LaunchGraph(exec, stream);
  printf("values %d %d %d\n", ReadInt(a), ReadInt(b), ReadInt(c));

  value = 20;
  void* filled[] = {&a, &value, &count};
  void* incremented[] = {&c};
  CUDA_KERNEL_NODE_PARAMS node{};
  node.kern = reinterpret_cast<CUkernel>(Kernel("fill"));
  node.gridDimX = node.gridDimY = node.gridDimZ = 1;
  node.blockDimX = node.blockDimY = node.blockDimZ = 1;
  node.kernelParams = filled;
  CHECK("cuGraphExecKernelNodeSetParams", exec, first,
        static_cast<const CUDA_KERNEL_NODE_PARAMS*>(&node));
  const CUDA_MEMCPY3D other = Copy(c, a);
  CHECK("cuGraphExecMemcpyNodeSetParams", exec, copy, &other, g_context);
  node.kern = reinterpret_cast<CUkernel>(Kernel("increment"));
  node.kernelParams = incremented;
  CHECK("cuGraphExecKernelNodeSetParams", exec, last,
        static_cast<const CUDA_KERNEL_NODE_PARAMS*>(&node));
  LaunchGraph(exec, stream);
  printf("values %d %d %d\n", ReadInt(a), ReadInt(b), ReadInt(c));

  // Without the copy, c goes on from what it is.
  CHECK("cuGraphNodeSetEnabled", exec, copy, 0u);
  CHECK("cuGraphNodeSetEnabled", exec, first, 0u);
  LaunchGraph(exec, stream);
  printf("values %d %d %d\n", ReadInt(a), ReadInt(b), ReadInt(c));
  End(exec, graph);
}

void Updated() {
  const CUdeviceptr a = Zeros(4);
  const CUdeviceptr b = Zeros(4);
  const CUdeviceptr c = Zeros(4);
  printf("at b %llx\nat c %llx\n", b, c);
  CUgraph graph = Capture(a, b, 7);
  CUgraph other = Capture(a, c, 30);
  const CUgraphExec exec = Instantiate(graph);
  const CUstream stream = Stream();
  LaunchGraph(exec, stream);
  CUgraphExecUpdateResultInfo information{};
  CHECK("cuGraphExecUpdate", exec, other, &information);
  LaunchGraph(exec, stream);
  CUgraph unlike = NewGraph();
  printf("unlike %d\n", Call("cuGraphExecUpdate", exec, unlike, &information));
  LaunchGraph(exec, stream);
  // Then a node of the first graph: only the driver knows which one it is now.
  size_t count = 3;
  CUgraphNode nodes[3];
  CHECK("cuGraphGetNodes", graph, static_cast<CUgraphNode*>(nodes), &count);
  CHECK("cuGraphNodeSetEnabled", exec, nodes[2], 0u);
  LaunchGraph(exec, stream);
  printf("values %d %d %d\n", ReadInt(a), ReadInt(b), ReadInt(c));
  CHECK("cuGraphDestroy", other);
  CHECK("cuGraphDestroy", unlike);
  End(exec, graph);
}

// Two branches of increments that join in a third.
void Several() {
  CUdeviceptr a = Zeros(4);
  CUdeviceptr b = Zeros(4);
  printf("at a %llx\nat b %llx\n", a, b);
  CUgraph graph = NewGraph();
  const CUgraphNode left = AddKernel(graph, {}, "increment", {&a});
  const CUgraphNode right = AddKernel(graph, {}, "increment", {&b});
  const CUgraphNode join = AddCopy(graph, {left, right}, a, b);
  AddKernel(graph, {join}, "increment", {&a});
  const CUgraphExec exec = Instantiate(graph);
  for (int i = 0; i < 3; ++i) LaunchGraph(exec, nullptr);
  printf("values %d %d\n", ReadInt(a), ReadInt(b));
  End(exec, graph);
}

// A child graph between two nodes.
void Nested() {
  CUdeviceptr a = Zeros(4);
  CUdeviceptr b = Zeros(4);
  printf("at b %llx\n", b);
  int value = 7;
  int count = 1;
  CUgraph child = NewGraph();
  const CUgraphNode copy = AddCopy(child, {}, b, a);
  const CUgraphNode increment = AddKernel(child, {copy}, "increment", {&b});
  AddKernel(child, {increment}, "increment", {&b});
  CUgraph graph = NewGraph();
  const CUgraphNode first = AddKernel(graph, {}, "fill", {&a, &value, &count});
  CUgraphNode inner = nullptr;
  CHECK("cuGraphAddChildGraphNode", &inner, graph, &first, size_t{1}, child);
  AddCopy(graph, {inner}, a, b);
  const CUgraphExec exec = Instantiate(graph);
  for (int i = 0; i < 2; ++i) LaunchGraph(exec, nullptr);
  printf("values %d %d\n", ReadInt(a), ReadInt(b));
  CHECK("cuGraphDestroy", child);
  End(exec, graph);
}

void Refused() {
  const auto add =
      reinterpret_cast<CUresult (*)(CUgraphNode*, CUgraph, CUgraphNodeType)>(
          dlsym(g_library, "fakeAddNode"));
  const CUdeviceptr a = Zeros(4);
  const CUdeviceptr b = Zeros(4);
  const CUstream stream = Stream();
  for (const CUgraphNodeType type :
       {CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_CONDITIONAL,
        CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
        CU_GRAPH_NODE_TYPE_BATCH_MEM_OP}) {
    CUgraph graph = Capture(a, b, static_cast<int>(type));
    CUgraphNode node = nullptr;
    Check(add(&node, graph, type), "add");
    const CUgraphExec exec = Instantiate(graph);
    LaunchGraph(exec, stream);
    LaunchGraph(exec, stream);
    printf("b %d\n", ReadInt(b));
    End(exec, graph);
  }
  CUgraph graph = Capture(a, b, 50);
  const CUgraphExec exec =
      Instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
  LaunchGraph(exec, stream);
  printf("b %d\n", ReadInt(b));
  // Into a capture: no launch.
  CHECK("cuStreamBeginCapture", stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  LaunchGraph(exec, stream);
  CUgraph outer = nullptr;
  CHECK("cuStreamEndCapture", stream, &outer);
  const CUgraphExec outer_exec = Instantiate(outer);
  LaunchGraph(outer_exec, stream);
  End(outer_exec, outer);
  End(exec, graph);
}

// The second kernel fails by itself.
void Fails() {
  CUdeviceptr a = Zeros(4);
  CUgraph graph = NewGraph();
  const CUgraphNode first = AddKernel(graph, {}, "increment", {&a});
  const CUgraphNode second = AddKernel(graph, {first}, "fail", {});
  AddKernel(graph, {second}, "increment", {&a});
  const CUgraphExec exec = Instantiate(graph);
  printf("launch %d\n",
         Call("cuGraphLaunch", exec, static_cast<CUstream>(nullptr)));
  printf("synchronize %d\n", Call("cuCtxSynchronize"));
  End(exec, graph);
}

void HostFunction(void* data) { ++*static_cast<int*>(data); }

// As many executable graphs as iterations, each with a host node, on threads.
void Threads() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      CHECK("cuCtxSetCurrent", g_context);
      CUdeviceptr cell = Zeros(4);
      int calls = 0;
      for (int i = 0; i < 20; ++i) {
        CUgraph graph = NewGraph();
        const CUgraphNode first = AddKernel(graph, {}, "increment", {&cell});
        const CUDA_HOST_NODE_PARAMS host{HostFunction, &calls};
        CUgraphNode node = nullptr;
        CHECK("cuGraphAddHostNode", &node, graph, &first, size_t{1}, &host);
        AddKernel(graph, {node}, "increment", {&cell});
        const CUgraphExec exec = Instantiate(graph);
        for (int k = 0; k < 5; ++k) LaunchGraph(exec, nullptr);
        End(exec, graph);
      }
      if (ReadInt(cell) != 200 || calls != 100) printf("lost a node\n");
    });
  }
  for (std::thread& thread : threads) thread.join();
  printf("done\n");
}

}  // namespace

int main(int, char** argv) {
  const std::string scenario = argv[1];
  Start();
  if (scenario == "captured") Captured();
  if (scenario == "changed") Changed();
  if (scenario == "updated") Updated();
  if (scenario == "several") Several();
  if (scenario == "nested") Nested();
  if (scenario == "refused") Refused();
  if (scenario == "fails") Fails();
  if (scenario == "threads") Threads();
  const auto live =
      reinterpret_cast<long (*)()>(dlsym(g_library, "fakeLiveGraphs"));
  const auto calls =
      reinterpret_cast<long (*)(const char*)>(dlsym(g_library, "fakeCalls"));
  printf("left %ld\nat end: clones %ld\nat end: launches %ld\n", live(),
         calls("cuGraphClone"), calls("cuGraphLaunch"));
  return 0;
}
