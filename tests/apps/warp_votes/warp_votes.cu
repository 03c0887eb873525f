// Warp-level votes, matches and shuffles, with full and partial masks, on both
// sides of a branch and in a last warp that is not full; and the voting forms
// of __syncthreads. Results are exact.
// --size: number of elements, rounded up to whole blocks of 96.
#include "../common/app.h"

constexpr int kFull = 96;    // three warps
constexpr int kRagged = 80;  // two warps and a half
constexpr unsigned int kAll = 0xffffffffu;

struct Report {              // one per warp
  unsigned int odd;          // ballot
  unsigned int low_or_high;  // ballot of the lower half, then the upper half
  int any_large;
  int all_small;
  unsigned int same_as_all;  // match_all: the mask or 0
  unsigned int active_threes;
};

struct Lane {         // one per thread
  unsigned int same;  // match_any
  int from_below;     // shfl_up by 3
  int from_above;     // shfl_down by 5 within 16 lanes
  int mirrored;       // shfl_xor with 31
  long long wide;     // 64-bit shfl from lane i * 7 % 32
  double fraction;    // double shfl from lane 9
};

__global__ void WarpKernel(const int* input, Report* reports, Lane* lanes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x % warpSize;
  int value = input[i];

  Lane out;
  out.same = __match_any_sync(kAll, value % 4);
  out.from_below = __shfl_up_sync(kAll, value, 3);
  out.from_above = __shfl_down_sync(kAll, value, 5, 16);
  out.mirrored = __shfl_xor_sync(kAll, value, 31);
  out.wide = __shfl_sync(kAll, (1LL << 40) + value, lane * 7 % 32);
  out.fraction = __shfl_sync(kAll, 0.5 * value, 9);
  lanes[i] = out;

  Report report;
  report.odd = __ballot_sync(kAll, value % 2);
  report.any_large = __any_sync(kAll, value >= 990);
  report.all_small = __all_sync(kAll, value < 970);
  int unanimous = 0;
  report.same_as_all = __match_all_sync(kAll, value / 1000, &unanimous);
  if (!unanimous) report.same_as_all = 1;  // never: all are below 1000
  if (lane < 16) {
    report.low_or_high = __ballot_sync(0x0000ffffu, value < 300);
  } else {
    report.low_or_high = __ballot_sync(0xffff0000u, value >= 600);
  }
  __syncwarp();
  report.low_or_high |= __shfl_sync(kAll, report.low_or_high, 16);

  // Each group of lanes that is active together counts itself once.
  report.active_threes = 0;
  if (value % 3 == 0) {
    unsigned int active = __activemask();
    bool leader = lane == __ffs(static_cast<int>(active)) - 1;
    if (leader) report.active_threes = __popc(active);
  }
  __syncwarp();
  for (int step = 16; step > 0; step /= 2) {
    report.active_threes += __shfl_xor_sync(kAll, report.active_threes, step);
  }
  if (lane == 0) reports[i / 32] = report;
}

// sums[b]: the sum of block b, whose last warp has 16 lanes.
__global__ void RaggedSumKernel(const int* input, int* sums) {
  __shared__ int warp_sums[(kRagged + 31) / 32];
  int lane = threadIdx.x % 32;
  int warp = threadIdx.x / 32;
  int lanes = min(32, kRagged - warp * 32);
  unsigned int mask = lanes == 32 ? kAll : (1u << lanes) - 1;
  int sum = input[blockIdx.x * kRagged + threadIdx.x];
  for (int step = lanes / 2; step > 0; step /= 2) {
    int other = __shfl_down_sync(mask, sum, step);
    if (lane < step) sum += other;
  }
  if (lane == 0) warp_sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w * 32 < kRagged; ++w) sum += warp_sums[w];
    sums[blockIdx.x] = sum;
  }
}

// Per block: how many are odd, whether all are positive, whether any is zero.
__global__ void BlockVotesKernel(const int* input, int3* votes) {
  int value = input[blockIdx.x * blockDim.x + threadIdx.x];
  int odd = __syncthreads_count(value % 2);
  int all_positive = __syncthreads_and(value > 0);
  int any_zero = __syncthreads_or(value == 0);
  if (threadIdx.x == 0) {
    votes[blockIdx.x] = make_int3(odd, all_positive != 0, any_zero != 0);
  }
}

void CheckWarp(size_t warp, const int* values, const Report& report,
               const Lane* lanes, apps::Checker& checker) {
  unsigned int odd = 0, halves = 0, threes = 0, same[4] = {};
  int largest = 0;
  for (int l = 0; l < 32; ++l) {
    const int value = values[l];
    if (value % 2 != 0) odd |= 1u << l;
    if (l < 16 ? value < 300 : value >= 600) halves |= 1u << l;
    if (value % 3 == 0) ++threes;
    same[value % 4] |= 1u << l;
    largest = std::max(largest, value);
  }
  const auto expect = [&](const char* what, size_t index, double got,
                          double expected) {
    checker.Expect(what, index, got, expected, apps::kExact);
  };
  expect("odd", warp, report.odd, odd);
  expect("low_or_high", warp, report.low_or_high, halves);
  expect("any_large", warp, report.any_large != 0, largest >= 990);
  expect("all_small", warp, report.all_small != 0, largest < 970);
  expect("same_as_all", warp, report.same_as_all, kAll);
  expect("active_threes", warp, report.active_threes, threes);
  for (int l = 0; l < 32; ++l) {
    const Lane& lane = lanes[l];
    const size_t i = warp * 32 + l;
    expect("same", i, lane.same, same[values[l] % 4]);
    expect("from_below", i, lane.from_below, values[l < 3 ? l : l - 3]);
    expect("from_above", i, lane.from_above, values[l % 16 > 10 ? l : l + 5]);
    expect("mirrored", i, lane.mirrored, values[31 - l]);
    expect("wide", i, static_cast<double>(lane.wide),
           static_cast<double>((1LL << 40) + values[l * 7 % 32]));
    expect("fraction", i, lane.fraction, 0.5 * values[9]);
  }
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "warp_votes",
      {int64_t{1} << 24, 4800, int64_t{1} << 26, "number of elements"});
  const int blocks = apps::BlocksFor(options.size, kFull);
  const int count = blocks * kFull;
  const int ragged_blocks = count / kRagged;
  const std::vector<int> input = apps::RandomInts(count, 1, 1000);
  apps::DeviceArray<int> device_input(input);
  apps::DeviceArray<Report> reports(count / 32);
  apps::DeviceArray<Lane> lanes(count);
  apps::DeviceArray<int> sums(ragged_blocks + 1);  // a spare: never empty
  apps::DeviceArray<int3> votes(blocks);

  apps::RunIterations(options, [&] {
    WarpKernel<<<blocks, kFull>>>(device_input.get(), reports.get(),
                                  lanes.get());
    RaggedSumKernel<<<ragged_blocks, kRagged>>>(device_input.get(), sums.get());
    BlockVotesKernel<<<blocks, kFull>>>(device_input.get(), votes.get());
  });

  const std::vector<Report> got_reports = reports.ToHost();
  const std::vector<Lane> got_lanes = lanes.ToHost();
  const std::vector<int> got_sums = sums.ToHost();
  const std::vector<int3> got_votes = votes.ToHost();
  apps::Checker checker;
  for (size_t w = 0; w < got_reports.size(); ++w) {
    CheckWarp(w, &input[w * 32], got_reports[w], &got_lanes[w * 32], checker);
  }
  for (int b = 0; b < ragged_blocks; ++b) {
    int sum = 0;
    for (int t = 0; t < kRagged; ++t) sum += input[b * kRagged + t];
    checker.Expect("ragged sum", b, got_sums[b], sum, apps::kExact);
  }
  for (int b = 0; b < blocks; ++b) {
    const int* first = &input[b * kFull];
    const auto odd = [](int v) { return v % 2 != 0; };
    const auto zeros = std::count(first, first + kFull, 0);
    checker.Expect("odd in block", b, got_votes[b].x,
                   std::count_if(first, first + kFull, odd), apps::kExact);
    checker.Expect("all positive", b, got_votes[b].y, zeros == 0, apps::kExact);
    checker.Expect("any zero", b, got_votes[b].z, zeros != 0, apps::kExact);
  }
  return checker.Finish();
}
