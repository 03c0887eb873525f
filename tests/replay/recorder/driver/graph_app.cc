// An application of CUDA graphs for tests: runs the scenario that its first
// argument names, and prints what it sees. Exit code 0 unless a call failed
// that should not.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
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
  CHECK("cuGraphExecUpdate", exec, other, &information);
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

// One executable graph in two streams, while its last node still runs.
void Ordered() {
  CUdeviceptr cell = Zeros(4);
  void* memory = nullptr;
  CHECK("cuMemHostAlloc", &memory, size_t{64}, 0u);
  int* flag = static_cast<int*>(memory);
  *flag = 0;
  CUgraph graph = NewGraph();
  const CUgraphNode first = AddKernel(graph, {}, "increment", {&cell});
  AddKernel(graph, {first}, "spin", {&flag});
  const CUgraphExec exec = Instantiate(graph);
  const auto calls =
      reinterpret_cast<long (*)(const char*)>(dlsym(g_library, "fakeCalls"));
  const CUstream streams[] = {Stream(), Stream()};
  LaunchGraph(exec, streams[0]);
  LaunchGraph(exec, streams[1]);
  printf("waits %ld\n", calls("cuStreamWaitEvent"));
  *flag = 1;
  for (const CUstream stream : streams) CHECK("cuStreamSynchronize", stream);
  LaunchGraph(exec, streams[1]);
  printf("waits %ld\n", calls("cuStreamWaitEvent"));
  printf("values %d\n", ReadInt(cell));
  End(exec, graph);
}

// A kernel that waits for a node beside it, and one that follows it.
void Beside() {
  CUdeviceptr cell = Zeros(4);
  void* memory = nullptr;
  CHECK("cuMemHostAlloc", &memory, size_t{64}, 0u);
  int* flag = static_cast<int*>(memory);
  *flag = 0;
  int value = 1;
  int count = 1;
  CUgraph child = NewGraph();
  const CUgraphNode spin = AddKernel(child, {}, "spin", {&flag});
  AddKernel(child, {spin}, "increment", {&cell});
  CUgraph graph = NewGraph();
  CUgraphNode inner = nullptr;
  CHECK("cuGraphAddChildGraphNode", &inner, graph,
        static_cast<const CUgraphNode*>(nullptr), size_t{0}, child);
  AddKernel(graph, {inner}, "increment", {&cell});
  AddKernel(graph, {}, "fill", {&flag, &value, &count});
  const CUgraphExec exec = Instantiate(graph);
  const CUstream stream = Stream();
  LaunchGraph(exec, stream);
  CHECK("cuStreamSynchronize", stream);
  printf("values %d %d\n", *flag, ReadInt(cell));
  CHECK("cuGraphDestroy", child);
  End(exec, graph);
}

// A graph of random nodes on a few cells. Nodes that touch the same cell depend
// on each other, so that any order that the edges allow gives the same values.
class RandomGraph {
 public:
  RandomGraph(unsigned seed, std::vector<CUdeviceptr> cells)
      : random_(seed), cells_(std::move(cells)) {}

  // `depth` child graphs within each other.
  CUgraph Build(int depth) {
    CUgraph graph = NewGraph();
    std::vector<CUgraphNode> nodes;
    for (int i = 0; i < 12; ++i) nodes.push_back(AddNode(graph, depth));
    // Created in this order, but to run in another one.
    std::shuffle(nodes.begin(), nodes.end(), random_);
    for (size_t to = 0; to < nodes.size(); ++to) {
      for (size_t from = 0; from < to; ++from) {
        if ((cells_of_[nodes[from]] & cells_of_[nodes[to]]) == 0) continue;
        CHECK("cuGraphAddDependencies", graph, &nodes[from], &nodes[to],
              static_cast<const CUgraphEdgeData*>(nullptr), size_t{1});
      }
    }
    return graph;
  }

  // Disables some nodes that kernels or copies are.
  void Disable(CUgraph graph, CUgraphExec exec) {
    size_t count = 12;
    CUgraphNode nodes[12];
    CHECK("cuGraphGetNodes", graph, static_cast<CUgraphNode*>(nodes), &count);
    for (const CUgraphNode node : nodes) {
      CUgraphNodeType type;
      CHECK("cuGraphNodeGetType", node, &type);
      if (type != CU_GRAPH_NODE_TYPE_GRAPH && Below(4) == 0)
        CHECK("cuGraphNodeSetEnabled", exec, node, 0u);
    }
  }

 private:
  unsigned Below(unsigned bound) { return random_() % bound; }

  CUgraphNode AddNode(CUgraph graph, int depth) {
    const unsigned at = Below(cells_.size());
    const unsigned from = Below(cells_.size());
    CUdeviceptr cell = cells_[at];
    CUgraphNode node = nullptr;
    unsigned touched = 1u << at;
    int value = static_cast<int>(Below(100));
    int count = 1;
    switch (Below(depth > 0 ? 6 : 5)) {
      case 0:
        node = AddKernel(graph, {}, "fill", {&cell, &value, &count});
        break;
      case 1:
      case 2:
        node = AddCopy(graph, {}, cell, cells_[from]);
        touched |= 1u << from;
        break;
      case 5: {
        CUgraph child = Build(depth - 1);
        CHECK("cuGraphAddChildGraphNode", &node, graph,
              static_cast<const CUgraphNode*>(nullptr), size_t{0}, child);
        CHECK("cuGraphDestroy", child);
        touched = ~0u;
        break;
      }
      default:
        node = AddKernel(graph, {}, "increment", {&cell});
    }
    cells_of_[node] = touched;
    return node;
  }

  std::minstd_rand random_;
  std::vector<CUdeviceptr> cells_;
  std::map<CUgraphNode, unsigned> cells_of_;  // bits
};

void Random(unsigned seed) {
  std::vector<CUdeviceptr> cells;
  for (int i = 0; i < 6; ++i) cells.push_back(Zeros(4));
  RandomGraph random(seed, cells);
  CUgraph graph = random.Build(2);
  CUgraph other = random.Build(2);
  const CUgraphExec exec = Instantiate(graph);
  const CUgraphExec second = Instantiate(other);
  for (int i = 0; i < 2; ++i) {
    LaunchGraph(exec, nullptr);
    LaunchGraph(second, nullptr);
    random.Disable(graph, exec);
  }
  printf("values");
  for (const CUdeviceptr cell : cells) printf(" %d", ReadInt(cell));
  printf("\n");
  End(exec, graph);
  End(second, other);
}

// What was made in a context ends with it.
void Reset() {
  const CUdeviceptr a = Zeros(4);
  CUgraph graph = Capture(a, Zeros(4), 7);
  LaunchGraph(Instantiate(graph), nullptr);
  CHECK("cuDevicePrimaryCtxReset", CUdevice{0});
  const CUdeviceptr b = Zeros(4);
  CUgraph again = Capture(Zeros(4), b, 3);
  const CUgraphExec exec = Instantiate(again);
  LaunchGraph(exec, nullptr);
  printf("values %d\n", ReadInt(b));
  End(exec, again);
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

int main(int, char** arguments) {
  const std::string scenario = arguments[1];
  Start();
  if (scenario == "captured") Captured();
  if (scenario == "changed") Changed();
  if (scenario == "updated") Updated();
  if (scenario == "several") Several();
  if (scenario == "nested") Nested();
  if (scenario == "refused") Refused();
  if (scenario == "fails") Fails();
  if (scenario == "reset") Reset();
  if (scenario == "beside") Beside();
  if (scenario == "ordered") Ordered();
  if (scenario == "random")
    Random(static_cast<unsigned>(std::stoul(arguments[2])));
  if (scenario == "threads") Threads();
  const auto live =
      reinterpret_cast<long (*)()>(dlsym(g_library, "fakeLiveGraphs"));
  const auto calls =
      reinterpret_cast<long (*)(const char*)>(dlsym(g_library, "fakeCalls"));
  printf("left %ld\nat end: clones %ld\nat end: launches %ld\n", live(),
         calls("cuGraphClone"), calls("cuGraphLaunch"));
  return 0;
}
