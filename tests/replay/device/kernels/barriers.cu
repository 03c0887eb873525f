// Kernels whose threads work together: barriers, warps, shared memory.
#include <cstdint>

extern "C" {

__global__ void Reduce(const float* in, float* out) {
  __shared__ float sums[256];
  const int t = threadIdx.x;
  sums[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}

// Static and dynamic shared memory, two variables of different alignment.
__global__ void SharedLayout(double* out) {
  __shared__ char first[3];
  __shared__ double second[64];
  extern __shared__ double dynamic[];
  const int t = threadIdx.x;
  if (t < 3) first[t] = 'a' + t;
  second[t] = t;
  dynamic[t] = 100 * t;
  __syncthreads();
  const int other = blockDim.x - 1 - t;
  out[t] = second[other] + dynamic[other] + first[t % 3];
}

__global__ void BarrierCounts(const int* in, int* count, int* all, int* any) {
  const int t = threadIdx.x;
  const int c = __syncthreads_count(in[t]);
  const int a = __syncthreads_and(in[t]);
  const int o = __syncthreads_or(in[t]);
  count[t] = c;
  all[t] = a;
  any[t] = o;
}

// Threads that have ended count as arrived.
__global__ void SomeLeaveEarly(int* out) {
  __shared__ int value;
  if (threadIdx.x >= 40) return;
  if (threadIdx.x == 3) value = 77;
  __syncthreads();
  out[threadIdx.x] = value;
}

__global__ void Shuffles(const int* in, int* index, int* up, int* down,
                         int* butterfly, float* floats) {
  const int t = threadIdx.x;
  const int v = in[t];
  index[t] = __shfl_sync(~0u, v, 5);
  up[t] = __shfl_up_sync(~0u, v, 3);
  down[t] = __shfl_down_sync(~0u, v, 4, 16);
  butterfly[t] = __shfl_xor_sync(~0u, v, 9);
  floats[t] = __shfl_sync(~0u, float(v) / 2, t + 1, 8);
}

__global__ void LongShuffles(long long* out, double* reals) {
  const int t = threadIdx.x;
  out[t] = __shfl_sync(~0u, (1ll << 40) + t, 31 - t);
  reals[t] = __shfl_down_sync(~0u, t * 0.25, 1);
}

__global__ void Votes(const int* in, unsigned* out) {
  const int t = threadIdx.x;
  const bool p = in[t] != 0;
  out[4 * t] = __all_sync(~0u, p);
  out[4 * t + 1] = __any_sync(~0u, p);
  out[4 * t + 2] = __ballot_sync(~0u, p);
  out[4 * t + 3] = __uni_sync(~0u, p);
}

__global__ void Matches(const int* in, unsigned* any, unsigned* all, int* all_predicate) {
  const int t = threadIdx.x;
  any[t] = __match_any_sync(~0u, in[t]);
  int predicate = 0;
  all[t] = __match_all_sync(~0u, (long long)(in[t / 32 * 32]), &predicate);
  all_predicate[t] = predicate;
}

__global__ void Reductions(const int* in, int* out) {
  const int t = threadIdx.x;
  out[6 * t] = __reduce_add_sync(~0u, in[t]);
  out[6 * t + 1] = __reduce_min_sync(~0u, in[t]);
  out[6 * t + 2] = __reduce_max_sync(~0u, unsigned(in[t]));
  out[6 * t + 3] = __reduce_and_sync(~0u, unsigned(in[t]));
  out[6 * t + 4] = __reduce_or_sync(~0u, unsigned(in[t]));
  out[6 * t + 5] = __reduce_xor_sync(~0u, unsigned(in[t]));
}

// Halves of a warp shuffle among themselves, in any order.
__global__ void HalfWarps(int* out) {
  const int t = threadIdx.x;
  if (t % 32 < 16) {
    out[t] = __shfl_sync(0x0000ffffu, t, 3);
  } else {
    out[t] = __shfl_sync(0xffff0000u, t, 19);
  }
  __syncwarp();
}

__global__ void ActiveMasks(unsigned* out) {
  const int t = threadIdx.x;
  if (t % 3 == 0) {
    out[t] = __activemask();
  } else {
    out[t] = ~__activemask();
  }
}

// One atomic per warp instead of one per thread, as cooperative groups do it.
__global__ void Aggregated(int* counter, const int* in) {
  if (in[threadIdx.x] == 0) return;
  const unsigned mask = __activemask();
  const int leader = __ffs(mask) - 1;
  if (threadIdx.x % 32 == leader) atomicAdd(counter, __popc(mask));
}

__global__ void NamedBarriers(int* out) {
  __shared__ int values[64];
  const int t = threadIdx.x;
  const int group = t / 32;
  values[t] = t;
  asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "r"(32) : "memory");
  out[t] = values[group * 32 + (31 - t % 32)];
}

__device__ __noinline__ int SharedOutOfLine(int x) {
  __shared__ int exchange[128];
  exchange[threadIdx.x] = x;
  __syncthreads();
  const int result = exchange[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  return result;
}
__global__ void BarrierOutOfLine(int* out) {
  __shared__ int own[128];
  own[threadIdx.x] = 1000;
  const int a = SharedOutOfLine(threadIdx.x);
  const int b = SharedOutOfLine(a + 1);
  out[threadIdx.x] = a + 1000000 * b + own[threadIdx.x];
}

// Tiles of a matrix product through shared memory, 2-D blocks.
__global__ void TiledProduct(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[8][8], tb[8][9];
  const int row = blockIdx.y * 8 + threadIdx.y;
  const int column = blockIdx.x * 8 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 8) {
    ta[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < 8; ++i) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void LaneRegisters(unsigned* out) {
  unsigned lane, lt, warp;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
  asm("mov.u32 %0, %%warpid;" : "=r"(warp));
  const unsigned t = threadIdx.x + blockDim.x * threadIdx.y;
  out[3 * t] = lane;
  out[3 * t + 1] = lt;
  out[3 * t + 2] = warp;
}

}  // extern "C"
