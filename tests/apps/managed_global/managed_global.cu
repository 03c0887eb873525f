// Managed memory: __managed__ variables and cudaMallocManaged, both read and
// written by the host between launches; the variables hold a pointer to the
// allocation and a list is linked through it. Results are exact.
// --size: number of nodes.
#include "../common/app.h"

struct Node {
  Node* next;
  int value;
  int visits;
};

constexpr int kBlock = 128;
constexpr int kChains = 64;

__managed__ Node* nodes;
__managed__ int chain_sums[kChains];
__managed__ unsigned int launches = 7;  // counts on from its initial value

// One thread walks one chain, marks its nodes and writes the sum of their
// values.
__global__ void WalkChainsKernel() {
  const int chain = blockIdx.x * blockDim.x + threadIdx.x;
  if (chain >= kChains) return;
  int sum = 0;
  for (Node* node = &nodes[chain]; node != nullptr; node = node->next) {
    sum += node->value;
    node->visits += 1;
  }
  chain_sums[chain] = sum;
  if (chain == 0) ++launches;
}

// Node i's chain is i % kChains.
__global__ void RaiseKernel(Node* all, int count, const int* sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) all[i].value += sums[i % kChains] % 10;
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "managed_global",
                         {1 << 16, 1003, 1 << 24, "number of nodes"});
  const int count = static_cast<int>(std::max<int64_t>(options.size, kChains));
  Node* allocated = nullptr;
  CUDA_CHECK(cudaMallocManaged(&allocated, count * sizeof(Node)));
  std::vector<int> values = apps::RandomInts(count, 1, 1000);
  for (int i = 0; i < count; ++i) {
    allocated[i].next = i + kChains < count ? &allocated[i + kChains] : nullptr;
    allocated[i].value = values[i];
    allocated[i].visits = 0;
  }
  nodes = allocated;

  apps::Checker checker;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    WalkChainsKernel<<<apps::BlocksFor(kChains, kBlock), kBlock>>>();
    CUDA_CHECK(cudaGetLastError());
    RaiseKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(allocated, count,
                                                            chain_sums);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<int> sums(kChains);
    for (int i = 0; i < count; ++i) sums[i % kChains] += values[i];
    for (int c = 0; c < kChains; ++c) {
      checker.Expect("chain sum", c, chain_sums[c], sums[c], apps::kExact);
    }
    // The host's turn: it changes the first node of every chain.
    for (int i = 0; i < count; ++i) values[i] += sums[i % kChains] % 10;
    for (int c = 0; c < kChains; ++c) {
      values[c] += iteration;
      nodes[c].value += iteration;
    }
  }
  for (int i = 0; i < count; ++i) {
    checker.Expect("value", i, allocated[i].value, values[i], apps::kExact);
    checker.Expect("visits", i, allocated[i].visits, options.iterations,
                   apps::kExact);
  }
  checker.Expect("launches", 0, launches, 7 + options.iterations, apps::kExact);
  CUDA_CHECK(cudaFree(allocated));
  return checker.Finish();
}
