// Everything with inline PTX that CUDA's headers give Clang, compiled with
// -femit-all-decls; what are templates is used here.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_awbarrier_primitives.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <cuda_pipeline_primitives.h>

namespace cg = cooperative_groups;

__global__ void Templates(int* out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  cg::invoke_one(tile, [&] { out[0] = tile.size(); });
  out[1] = cg::invoke_one_broadcast(cg::coalesced_threads(), [] { return 1; });
  __shared__ cg::block_tile_memory<1024> memory;
  cg::thread_block multi = cg::this_thread_block(memory);
  auto wide = cg::tiled_partition<64>(multi);
  out[2] = cg::reduce(wide, out[2], cg::plus<int>());
  out[3] = cg::inclusive_scan(wide, out[3]);
  cg::this_grid().sync();
}
