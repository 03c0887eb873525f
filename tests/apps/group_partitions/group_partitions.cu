// Cooperative groups beyond tiles of a warp: groups by label, by predicate and
// by branch, tiles of several warps that reduce and scan through shared memory,
// and one thread chosen from a group. Integers, so that results are exact.
// --size: number of elements.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <numeric>

#include "../common/app.h"

namespace cg = cooperative_groups;

constexpr int kBlock = 256;
constexpr int kTile = 64;
constexpr int kLabels = 5;

// Threads of a warp with one label find how many they are, their sum and their
// place; those with odd keys their largest; a leader counts each label's group.
// out: four for each element.
__global__ void LabelGroupsKernel(const int* keys, int* out, int* groups,
                                  int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int key = i < count ? keys[i] : -1;
  auto same = cg::labeled_partition(warp, key < 0 ? kLabels : key % kLabels);
  const int sum = cg::reduce(same, key, cg::plus<int>());
  auto parity = cg::binary_partition(warp, (key & 1) != 0);
  const int largest = cg::reduce(parity, key, cg::greater<int>());
  if (key < 0) return;
  cg::coalesced_group active = cg::coalesced_threads();
  cg::invoke_one(same, [&] { atomicAdd(&groups[key % kLabels], 1); });
  out[4 * i] = same.size() * 100 + same.thread_rank();
  out[4 * i + 1] = sum;
  out[4 * i + 2] = largest;
  out[4 * i + 3] = active.size();
}

// The block's elements come by an asynchronous copy; tiles of kTile threads
// scan them and find the smallest.
__global__ void TileScanKernel(const int* keys, int* out) {
  __shared__ cg::block_tile_memory<kBlock> memory;
  __shared__ int staged[kBlock];
  cg::thread_block block = cg::this_thread_block(memory);
  cg::memcpy_async(block, staged, keys + blockIdx.x * kBlock,
                   sizeof(int) * kBlock);
  cg::wait(block);
  auto tile = cg::tiled_partition<kTile>(block);
  const int value = staged[block.thread_rank()];
  const int before = cg::exclusive_scan(tile, value, cg::plus<int>());
  const int smallest = cg::reduce(tile, value, cg::less<int>());
  const int last = tile.shfl(before + value, kTile - 1);
  int* o = out + 3 * (blockIdx.x * kBlock + block.thread_rank());
  o[0] = before;
  o[1] = smallest;
  o[2] = last;
}

// What LabelGroupsKernel makes of element i.
struct Labelled {
  int size = 0, rank = 0, sum = 0, largest = 0, active = 0;
};
Labelled ExpectedLabels(const std::vector<int>& keys, size_t i) {
  Labelled result;
  for (size_t k = i / 32 * 32; k < std::min(keys.size(), i / 32 * 32 + 32);
       ++k) {
    ++result.active;
    if (keys[k] % 2 == keys[i] % 2)
      result.largest = std::max(result.largest, keys[k]);
    if (keys[k] % kLabels != keys[i] % kLabels) continue;
    ++result.size;
    result.rank += k < i;
    result.sum += keys[k];
  }
  return result;
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "group_partitions",
                         {1 << 20, 3001, 1 << 26, "number of elements"});
  const int count = static_cast<int>(options.size);
  const int blocks = apps::BlocksFor(count, kBlock);
  const std::vector<int> keys = apps::RandomInts(count, 31, 10000);
  const std::vector<int> padded =
      apps::RandomInts(static_cast<size_t>(blocks) * kBlock, 31, 10000);
  apps::DeviceArray<int> device_keys(padded), labels(4 * keys.size());
  apps::DeviceArray<int> scans(3 * padded.size()), groups(kLabels);
  groups.Clear();
  apps::RunIterations(options, [&] {
    LabelGroupsKernel<<<blocks, kBlock>>>(device_keys.get(), labels.get(),
                                          groups.get(), count);
    TileScanKernel<<<blocks, kBlock>>>(device_keys.get(), scans.get());
  });

  apps::Checker checker;
  const std::vector<int> got = labels.ToHost(), tiles = scans.ToHost();
  const size_t stride = apps::CheckStride(options, keys.size(), 10000);
  for (size_t i = 0; i < keys.size(); i += stride) {
    const Labelled expected = ExpectedLabels(keys, i);
    checker.Expect("label", i, got[4 * i], expected.size * 100 + expected.rank,
                   apps::kExact);
    checker.Expect("sum", i, got[4 * i + 1], expected.sum, apps::kExact);
    checker.Expect("largest", i, got[4 * i + 2], expected.largest,
                   apps::kExact);
    checker.Expect("active", i, got[4 * i + 3], expected.active, apps::kExact);
  }
  int before = 0;
  for (size_t i = 0; i < padded.size(); ++i) {
    if (i % kTile == 0) before = 0;
    const auto tile = padded.begin() + i / kTile * kTile;
    checker.Expect("before", i, tiles[3 * i], before, apps::kExact);
    checker.Expect("smallest", i, tiles[3 * i + 1],
                   *std::min_element(tile, tile + kTile), apps::kExact);
    checker.Expect("last", i, tiles[3 * i + 2],
                   std::accumulate(tile, tile + kTile, 0), apps::kExact);
    before += padded[i];
  }
  std::vector<int> expected_groups(kLabels);
  for (size_t i = 0; i < keys.size(); ++i)
    expected_groups[keys[i] % kLabels] +=
        ExpectedLabels(keys, i).rank == 0 ? options.iterations : 0;
  const std::vector<int> got_groups = groups.ToHost();
  for (int label = 0; label < kLabels; ++label)
    checker.Expect("groups", label, got_groups[label], expected_groups[label],
                   apps::kExact);
  return checker.Finish();
}
