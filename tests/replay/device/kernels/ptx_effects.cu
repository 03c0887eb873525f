// Inline PTX that is more than a function of registers: memory, guards, warps,
// barriers, cooperative launches.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_awbarrier_primitives.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>

namespace cg = cooperative_groups;

extern "C" {

// Loads and stores where a predicate holds.
__global__ void Guarded(const int* in, int* out) {
  const int i = threadIdx.x;
  int value = -5;
  asm volatile(
      "{.reg .pred %%p; setp.ne.s32 %%p, %2, 0;\n"
      " @%%p ld.global.s32 %0, [%1];\n"
      " @!%%p st.global.s32 [%3], %4;}"
      : "+r"(value)
      : "l"(in + i), "r"(i % 3), "l"(out + 64 + i), "r"(i * 7)
      : "memory");
  out[i] = value;
  // A byte into a register of its own, which is wider.
  asm volatile(
      "{.reg .pred p; .reg .u32 r; setp.ne.s32 p, %2, 0; mov.u32 r, 777;\n"
      " @p ld.global.s8 r, [%1]; mov.u32 %0, r;}"
      : "=r"(value)
      : "l"((const char*)(in + i) + 3), "r"(i % 3));
  out[128 + i] = value;
}

// Warp operations by their names; results of 32 threads, 12 each.
__global__ void Warps(unsigned* out) {
  const unsigned i = threadIdx.x;
  unsigned* o = out + 12 * i;
  asm volatile("shfl.sync.up.b32 %0, %1, 3, 0, -1;" : "=r"(o[0]) : "r"(i));
  asm volatile(
      "{.reg .pred p; shfl.sync.down.b32 %0|p, %2, 5, 31, -1;"
      " selp.u32 %1, 1, 0, p;}"
      : "=r"(o[1]), "=r"(o[2])
      : "r"(i));
  asm volatile(
      "{.reg .pred p; setp.lt.u32 p, %1, 7; vote.sync.ballot.b32 %0, p, -1;}"
      : "=r"(o[3])
      : "r"(i));
  asm volatile(
      "{.reg .pred p, q; setp.lt.u32 p, %1, 32; vote.sync.all.pred q, p, -1;"
      " selp.u32 %0, 1, 0, q;}"
      : "=r"(o[4])
      : "r"(i));
  asm volatile(
      "{.reg .pred p, q; setp.eq.u32 p, %1, 9; vote.sync.any.pred q, !p, -1;"
      " selp.u32 %0, 1, 0, q;}"
      : "=r"(o[5])
      : "r"(i));
  asm volatile("match.any.sync.b32 %0, %1, -1;" : "=r"(o[6]) : "r"(i % 4));
  asm volatile(
      "{.reg .pred p; match.all.sync.b64 %0|p, %2, -1; selp.u32 %1, 1, 0, p;}"
      : "=r"(o[7]), "=r"(o[8])
      : "l"(1ull << 40));
  asm volatile("redux.sync.min.s32 %0, %1, -1;" : "=r"(o[9]) : "r"(-int(i)));
  asm volatile("redux.sync.max.u32 %0, %1, -1;" : "=r"(o[10]) : "r"(i * 3));
  asm volatile(
      "{.reg .pred p; elect.sync _|p, -1; selp.u32 %0, 1, 0, p;}"
      : "=r"(o[11]));
}

__global__ void BlockBarriers(const int* in, int* out) {
  const int i = threadIdx.x;
  int count, all;
  asm volatile(
      "{.reg .pred p, q; setp.ne.s32 p, %2, 0;\n"
      " bar.red.popc.u32 %0, 1, p;\n"
      " barrier.cta.red.and.pred q, 2, 64, p; selp.s32 %1, 1, 0, q;}"
      : "=r"(count), "=r"(all)
      : "r"(in[i])
      : "memory");
  out[i] = count * 2 + all;
}

__global__ void Atomics(float* f32, __half* f16, __nv_bfloat16* bf16) {
  float old[2];
  asm volatile("atom.global.v2.f32.add {%0, %1}, [%2], {%3, %4};"
               : "=f"(old[0]), "=f"(old[1])
               : "l"(f32), "f"(0.5f), "f"(2.0f)
               : "memory");
  atomicAdd(f16, __float2half(1.0f));
  atomicAdd((__half2*)(f16 + 2), __float2half2_rn(0.5f));
  atomicAdd(bf16, __float2bfloat16(1.0f));
  atomicAdd((__nv_bfloat162*)(bf16 + 2), __float2bfloat162_rn(0.5f));
}

// Copies of 16 and 8 bytes; the second fills its last 4 with zeros.
__global__ void CopiesAsync(const int4* in, int* out) {
  __shared__ int4 wide[32];
  __shared__ int2 narrow[32];
  const int i = threadIdx.x;
  __pipeline_memcpy_async(&wide[i], &in[i], 16);
  __pipeline_memcpy_async(&narrow[i], &in[i], 8, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  const int other = 31 - i;
  out[2 * i] = wide[other].w;
  out[2 * i + 1] = narrow[other].x * 10 + narrow[other].y;
}

// A producer's and a consumer's warps meet at two barriers, round after round.
__global__ void PassesOn(const int* in, int* out, int rounds) {
  __shared__ __mbarrier_t full, empty;
  __shared__ int slot[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    __mbarrier_init(&full, 32);
    __mbarrier_init(&empty, 32);
  }
  __syncthreads();
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x < 32) {
      while (round > 0 && !__mbarrier_test_wait_parity(&empty, (round - 1) & 1)) {
      }
      slot[lane] = in[round * 32 + lane];
      __mbarrier_arrive(&full);
    } else {
      while (!__mbarrier_test_wait_parity(&full, round & 1)) {
      }
      sum = sum * 3 + slot[31 - lane];
      __mbarrier_arrive(&empty);
    }
  }
  if (threadIdx.x >= 32) out[lane] = sum;
}

// The grid meets `rounds` times; every block reads what the next one wrote.
__global__ void MeetsAcrossBlocks(int* cells, int rounds) {
  cg::grid_group grid = cg::this_grid();
  for (int round = 0; round < rounds; ++round) {
    const int next = (blockIdx.x + 1) % gridDim.x;
    const int value = cells[next * blockDim.x + threadIdx.x];
    grid.sync();
    cells[blockIdx.x * blockDim.x + threadIdx.x] = value + 1;
    grid.sync();
  }
}

// Blocks that wait for the one before them by flags of their own.
__global__ void WaitsForTheBlockBefore(int* flags, int* out) {
  __shared__ int seen;
  if (threadIdx.x == 0) {
    int value = 0;
    while (blockIdx.x + 1 < gridDim.x && value == 0)
      asm volatile("ld.acquire.gpu.s32 %0, [%1];"
                   : "=r"(value)
                   : "l"(flags + blockIdx.x + 1)
                   : "memory");
    seen = value + 1;
  }
  __syncthreads();
  if (threadIdx.x == 1) {
    out[blockIdx.x] = seen;
    asm volatile("st.release.gpu.s32 [%0], %1;" ::"l"(flags + blockIdx.x),
                 "r"(seen)
                 : "memory");
  }
}

__global__ void NeedsCooperation(int* out) {
  cg::this_grid().sync();
  out[0] = 1;
}

// Groups of cooperative_groups; 8 results of each thread.
__global__ void AllGroups(const int* in, int* out) {
  __shared__ cg::block_tile_memory<128> memory;
  cg::thread_block block = cg::this_thread_block(memory);
  const int i = block.thread_rank();
  int* o = out + 8 * i;
  auto tile = cg::tiled_partition<16>(block);
  o[0] = cg::reduce(tile, in[i], cg::plus<int>());
  o[1] = cg::inclusive_scan(tile, in[i]);
  auto wide = cg::tiled_partition<64>(block);
  o[2] = cg::reduce(wide, in[i], cg::greater<int>());
  o[3] = cg::exclusive_scan(wide, in[i]);
  auto labelled = cg::labeled_partition(cg::tiled_partition<32>(block), in[i] % 3);
  o[4] = labelled.size() * 100 + labelled.thread_rank();
  auto binary = cg::binary_partition(cg::tiled_partition<32>(block), in[i] % 2);
  o[5] = cg::reduce(binary, in[i], cg::bit_xor<int>());
  o[6] = o[7] = 0;
  if (in[i] % 3 == 1) {
    cg::coalesced_group active = cg::coalesced_threads();
    o[6] = cg::reduce(active, 1, cg::plus<int>());
    cg::invoke_one(active, [&] { o[7] = active.size(); });
  }
}

}  // extern "C"
