// A cooperative launch: a grid as large as the device holds at once smooths an
// array in place over several sweeps and waits for the whole grid between them.
// Integers, so that the result is exact and does not depend on the grid.
// --size: number of cells.
#include <cooperative_groups.h>

#include "../common/app.h"

constexpr int kBlock = 256;
constexpr int kSweeps = 8;

// In each sweep every cell becomes itself plus its neighbours (a ring), modulo
// 2^32. `cells` and `scratch` take turns; an even number of sweeps ends in
// `cells`. The last block's first thread counts the grid's barriers.
__global__ void SmoothRingKernel(unsigned int* cells, unsigned int* scratch,
                                 int count, unsigned int* barriers) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  const int threads = static_cast<int>(grid.size());
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    const unsigned int* from = sweep % 2 == 0 ? cells : scratch;
    unsigned int* to = sweep % 2 == 0 ? scratch : cells;
    for (int i = static_cast<int>(grid.thread_rank()); i < count;
         i += threads) {
      const int left = i == 0 ? count - 1 : i - 1;
      const int right = i == count - 1 ? 0 : i + 1;
      to[i] = from[left] + from[i] + from[right];
    }
    if (grid.thread_rank() == grid.size() - 1) *barriers += 1;
    grid.sync();
  }
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "cooperative_grid",
                         {1 << 22, 10007, 1 << 28, "number of cells"});
  int count = static_cast<int>(options.size);
  int device = 0, supported = 0, processors = 0, resident = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(
      cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                    device));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &resident, SmoothRingKernel, kBlock, 0));
  if (supported == 0) {
    std::printf(
        "cooperative_grid: FAIL the device has no cooperative launch\n");
    return 1;
  }
  const int blocks =
      std::min(resident * processors, apps::BlocksFor(count, kBlock));

  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  apps::DeviceArray<unsigned int> cells(values), scratch(count), barriers(1);
  barriers.Clear();
  apps::RunIterations(options, [&] {
    unsigned int* pointers[] = {cells.get(), scratch.get(), barriers.get()};
    void* arguments[] = {&pointers[0], &pointers[1], &count, &pointers[2]};
    CUDA_CHECK(cudaLaunchCooperativeKernel(
        SmoothRingKernel, dim3(blocks), dim3(kBlock), arguments, 0, nullptr));
  });

  const int sweeps = kSweeps * options.iterations;
  std::vector<unsigned int> next(count);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (int i = 0; i < count; ++i) {
      next[i] = values[i == 0 ? count - 1 : i - 1] + values[i] +
                values[i == count - 1 ? 0 : i + 1];
    }
    values.swap(next);
  }
  apps::Checker checker;
  const std::vector<unsigned int> got = cells.ToHost();
  for (int i = 0; i < count; ++i) {
    checker.Expect("cell", i, got[i], values[i], apps::kExact);
  }
  checker.Expect("barriers", 0, barriers.ToHost()[0], sweeps, apps::kExact);
  return checker.Finish();
}
