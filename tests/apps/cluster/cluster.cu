// Thread block clusters: a histogram whose bins are spread over the shared
// memory of a cluster's blocks (the cluster's size is given at the launch), and
// a kernel with a cluster size fixed at compile time whose blocks pass values
// around. Needs compute capability 9.0. Results are exact.
// --size: number of keys.
#include <cooperative_groups.h>

#include "../common/app.h"

namespace cg = cooperative_groups;

constexpr int kBlock = 256;
constexpr int kBinsPerBlock = 512;
constexpr int kCluster = 4;
constexpr int kBins = kBinsPerBlock * kCluster;
constexpr int kPair = 2;

// bins[k] += number of keys equal to k. Each cluster counts in the shared
// memory of its blocks, kBinsPerBlock bins apiece.
__global__ void ClusterHistogramKernel(const int* keys, int count,
                                       unsigned int* bins) {
  __shared__ unsigned int local[kBinsPerBlock];
  cg::cluster_group cluster = cg::this_cluster();
  for (int b = threadIdx.x; b < kBinsPerBlock; b += blockDim.x) local[b] = 0;
  cluster.sync();
  const int threads = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
    const int owner = keys[i] / kBinsPerBlock;
    unsigned int* remote = cluster.map_shared_rank(local, owner);
    atomicAdd(&remote[keys[i] % kBinsPerBlock], 1u);
  }
  cluster.sync();
  unsigned int* own = bins + cluster.block_rank() * kBinsPerBlock;
  for (int b = threadIdx.x; b < kBinsPerBlock; b += blockDim.x) {
    if (local[b] != 0) atomicAdd(&own[b], local[b]);
  }
}

// Two blocks swap their halves of each pair of tiles: the result is keys with
// neighbouring tiles of kBlock exchanged. Elements beyond the last whole pair
// stay as they are.
__global__ void __cluster_dims__(kPair, 1, 1)
    SwapTilesKernel(const int* keys, int count, int* swapped) {
  __shared__ int tile[kBlock];
  cg::cluster_group cluster = cg::this_cluster();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < count ? keys[i] : 0;
  cluster.sync();
  const int pair_end = (i / (kPair * kBlock) + 1) * kPair * kBlock;
  const int* other = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1);
  const int value = pair_end <= count ? other[threadIdx.x] : tile[threadIdx.x];
  if (i < count) swapped[i] = value;
  cluster.sync();  // the tile must live until the other block has read it
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "cluster", {1 << 22, 10007, 1 << 28, "number of keys"});
  const int count = static_cast<int>(options.size);
  const std::vector<int> keys = apps::RandomInts(count, 1, kBins);
  apps::DeviceArray<int> device_keys(keys), swapped(count);
  apps::DeviceArray<unsigned int> bins(kBins);

  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = kCluster;
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kCluster * 16);
  config.blockDim = dim3(kBlock);
  config.attrs = &attribute;
  config.numAttrs = 1;
  const int tiles = apps::BlocksFor(count, kBlock);
  const int even_tiles = (tiles + kPair - 1) / kPair * kPair;
  bins.Clear();
  apps::RunIterations(options, [&] {
    CUDA_CHECK(cudaLaunchKernelEx(&config, ClusterHistogramKernel,
                                  static_cast<const int*>(device_keys.get()),
                                  count, bins.get()));
    SwapTilesKernel<<<even_tiles, kBlock>>>(device_keys.get(), count,
                                            swapped.get());
  });

  std::vector<double> expected(kBins);
  for (int key : keys) expected[key] += options.iterations;
  apps::Checker checker;
  const std::vector<unsigned int> got = bins.ToHost();
  for (int b = 0; b < kBins; ++b) {
    checker.Expect("bin", b, got[b], expected[b], apps::kExact);
  }
  const std::vector<int> got_swapped = swapped.ToHost();
  const int whole = count / (kPair * kBlock) * kPair * kBlock;
  for (int i = 0; i < count; ++i) {
    const int from = i < whole ? (i / kBlock ^ 1) * kBlock + i % kBlock : i;
    checker.Expect("swapped", i, got_swapped[i], keys[from], apps::kExact);
  }
  return checker.Finish();
}
