// Kernels that go wrong, each in one way, when told to.
#include <cassert>
#include <cstdint>
#include <cstdio>

extern "C" {

__global__ void Fine(int* out) { out[threadIdx.x] = 42; }

__global__ void WriteAt(int* out, long long index) { out[index] = 1; }
__global__ void ReadAt(const int* in, int* out, long long index) {
  out[0] = in[index];
}
// One thread of a block with barriers.
__global__ void WriteAtAfterBarrier(int* out, long long index) {
  __syncthreads();
  if (threadIdx.x == 37) out[index] = 1;
}

__global__ void SharedOutOfBounds(int* out, int index) {
  __shared__ volatile int tile[64];
  tile[threadIdx.x] = 1;
  if (index != 0) tile[index] = 2;
  out[0] = tile[0];
}

__global__ void Forever(volatile int* flag) {
  while (*flag == 0) {
  }
}
// No effect at all: must hang, not vanish.
__global__ void ForeverWithoutEffect(int* out, int stop) {
  int i = 1;
  while (i != stop) i = i * 3 + 1 == stop ? stop : i | 1;
  out[0] = i;
}

__device__ int Deep(int n, volatile int* sink) {
  int pad[64];
  for (int i = 0; i < 64; ++i) pad[i] = n + i;
  sink[0] = pad[n & 63];
  return n == 0 ? 0 : Deep(n - 1, sink) + pad[(n + 1) & 63];
}
__global__ void Recurse(int* out, int depth) {
  __syncthreads();
  out[1] = Deep(depth, out);
}

__global__ void Divide(int* out, int by) { out[0] = 100 / by; }

__global__ void Trap(int* out) {
  if (threadIdx.x == 5) __trap();
  out[threadIdx.x] = 1;
}
__global__ void Assertion(int* out) {
  assert(threadIdx.x != 3);
  out[threadIdx.x] = 1;
}

__global__ void DivergentBarrier(int* out) {
  __shared__ int value;
  if (threadIdx.x < 16) {
    value = 1;
    __syncthreads();
  } else {
    value = 2;
    __syncthreads();
  }
  out[threadIdx.x] = value;
}
// Some threads are at a shuffle, the others at a barrier.
__global__ void ShuffleAgainstBarrier(int* out) {
  int v = threadIdx.x;
  if (threadIdx.x == 7) {
    __syncthreads();
  } else {
    v = __shfl_sync(~0u, v, 0);
  }
  out[threadIdx.x] = v;
}
__global__ void NotInOwnMask(int* out) {
  out[threadIdx.x] = __shfl_sync(0x1u, int(threadIdx.x), 0);
}

__global__ void Print(int n, const char* text) {
  if (threadIdx.x == 0) {
    printf("block %d of %u: %s %5.2f %lld %c%% %-4d| %x %p\n", blockIdx.x,
           gridDim.x, text, 1.5 * blockIdx.x, 1ll << 40, 'z', n, 255u,
           (void*)0x10);
  }
}
__global__ void PrintStar(int* out) {
  out[0] = printf("%*d|%.*f|%s\n", 6, 42, 2, 3.14159, "end");
}

}  // extern "C"
