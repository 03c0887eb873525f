// Cooperative groups within a block: thread_block, tiles of 32 and of 8 with
// shuffles and votes, a tile of a tile, and coalesced groups after a branch.
// Results are exact.
// --size: number of elements, rounded up to whole blocks of 256.
#include <cooperative_groups.h>

#include "../common/app.h"

namespace cg = cooperative_groups;

constexpr int kBlock = 256;
constexpr int kWarps = kBlock / 32;

// scans: inclusive sums within each run of 8 elements. warp_largest: the
// largest of each run of 32. block_sums: the sum of each run of 256.
__global__ void ScanTilesKernel(const int* input, int* scans, int* warp_largest,
                                int* block_sums) {
  __shared__ int warp_sums[kWarps];
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto tile = cg::tiled_partition<8>(warp);
  unsigned int i = block.group_index().x * block.size() + block.thread_rank();

  int scan = input[i];
  for (unsigned int step = 1; step < tile.size(); step *= 2) {
    int before = tile.shfl_up(scan, step);
    if (tile.thread_rank() >= step) scan += before;
  }
  scans[i] = scan;

  int largest = input[i];
  for (unsigned int step = warp.size() / 2; step > 0; step /= 2) {
    int other = warp.shfl_xor(largest, step);
    largest = other > largest ? other : largest;
  }
  // The last thread of each tile holds the tile's sum; four tiles to a warp.
  int sum = 0;
  for (unsigned int last = 7; last < 32; last += 8)
    sum += warp.shfl(scan, last);
  if (warp.thread_rank() == 0) {
    warp_largest[i / 32] = largest;
    warp_sums[block.thread_rank() / 32] = sum;
  }
  block.sync();
  if (block.thread_rank() == 0) {
    int total = 0;
    for (int w = 0; w < kWarps; ++w) total += warp_sums[w];
    block_sums[block.group_index().x] = total;
  }
}

struct Votes {
  unsigned int odd_ballot;  // bit t: thread t of the tile holds an odd number
  int any_negative;
  int all_small;  // below 900
  int matches;    // threads of the tile whose element equals the first one's
};

// One Votes per run of 8 elements; counts[0] gets the number of multiples of
// three.
__global__ void VoteTilesKernel(const int* input, Votes* votes, int* counts) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int value = input[i];

  Votes result;
  result.odd_ballot = tile.ballot(value & 1);
  result.any_negative = tile.any(value < 0);
  result.all_small = tile.all(value < 900);
  result.matches = __popc(tile.match_any(value));
  if (tile.thread_rank() == 0) votes[i / 8] = result;
  tile.sync();

  if (value % 3 == 0) {
    cg::coalesced_group threes = cg::coalesced_threads();
    int largest_rank = threes.shfl(static_cast<int>(threes.thread_rank()),
                                   static_cast<int>(threes.size()) - 1);
    if (threes.thread_rank() == 0) atomicAdd(&counts[0], largest_rank + 1);
  }
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "cooperative_block",
      {int64_t{1} << 25, 8192, int64_t{1} << 29, "number of elements"});
  const int blocks = apps::BlocksFor(options.size, kBlock);
  const int count = blocks * kBlock;
  // -10 to 989, and runs of equal elements.
  std::vector<int> input = apps::RandomInts(count, 1, 1000);
  for (int i = 0; i < count; ++i) {
    input[i] = i % 3 == 0 || i == 0 ? input[i] - 10 : input[i - 1];
  }
  apps::DeviceArray<int> device_input(input);
  apps::DeviceArray<int> scans(count);
  apps::DeviceArray<int> warp_largest(count / 32);
  apps::DeviceArray<int> block_sums(blocks);
  apps::DeviceArray<Votes> votes(count / 8);
  apps::DeviceArray<int> counts(1);

  apps::RunIterations(
      options,
      [&] {
        ScanTilesKernel<<<blocks, kBlock>>>(device_input.get(), scans.get(),
                                            warp_largest.get(),
                                            block_sums.get());
        VoteTilesKernel<<<blocks, kBlock>>>(device_input.get(), votes.get(),
                                            counts.get());
      },
      [&] { counts.Clear(); });

  const std::vector<int> got_scans = scans.ToHost();
  const std::vector<int> got_largest = warp_largest.ToHost();
  const std::vector<int> got_sums = block_sums.ToHost();
  const std::vector<Votes> got_votes = votes.ToHost();
  apps::Checker checker;
  int threes = 0;
  for (int first = 0; first < count; first += 8) {
    const int* run = &input[first];
    unsigned int odd = 0;
    int scan = 0;
    for (int t = 0; t < 8; ++t) {
      scan += run[t];
      if (run[t] % 2 != 0) odd |= 1u << t;
      if (run[t] % 3 == 0) ++threes;
      checker.Expect("scan", first + t, got_scans[first + t], scan,
                     apps::kExact);
    }
    const Votes& vote = got_votes[first / 8];
    checker.Expect("ballot", first / 8, vote.odd_ballot, odd, apps::kExact);
    checker.Expect("any", first / 8, vote.any_negative != 0,
                   std::any_of(run, run + 8, [](int v) { return v < 0; }),
                   apps::kExact);
    checker.Expect("all", first / 8, vote.all_small != 0,
                   std::all_of(run, run + 8, [](int v) { return v < 900; }),
                   apps::kExact);
    checker.Expect("matches", first / 8, vote.matches,
                   std::count(run, run + 8, run[0]), apps::kExact);
  }
  for (int w = 0; w < count / 32; ++w) {
    checker.Expect("largest", w, got_largest[w],
                   *std::max_element(&input[w * 32], &input[w * 32] + 32),
                   apps::kExact);
  }
  for (int b = 0; b < blocks; ++b) {
    int sum = 0;
    for (int t = 0; t < kBlock; ++t) sum += input[b * kBlock + t];
    checker.Expect("block sum", b, got_sums[b], sum, apps::kExact);
  }
  checker.Expect("multiples of three", 0, counts.ToHost()[0], threes,
                 apps::kExact);
  return checker.Finish();
}
