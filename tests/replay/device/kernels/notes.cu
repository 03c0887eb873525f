// Kernels whose accesses the two instrumented builds (for the cpu device, for
// cubins) must see alike: noted_code_test.cc.
#include <cstdint>

struct Big {
  float values[12];
  int id;
};

__constant__ float weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ int counters[4];
__device__ const int kTable[4] = {3, 1, 2, 0};  // nobody's memory

// Out of line, of memory of any kind.
__device__ __noinline__ int Sum(const int* values, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];
  return sum;
}

__device__ __noinline__ void Fill(int* values, int first, int count) {
  if (count == 0) return;
  values[first] = first;
  Fill(values, first + 1, count - 1);
}

__device__ __noinline__ float Scale(float x, const float* factor) {
  return x * *factor + 1.0f;
}

extern "C" {

// One function reads local, shared and global memory.
__global__ void AnyMemory(const int* in, int* out) {
  __shared__ int tile[64];
  int local[4];
  const int t = threadIdx.x;
  for (int k = 0; k < 4; ++k) local[k] = in[k] + t;
  tile[t] = t;
  __syncthreads();
  out[t] = Sum(local, 4) + Sum(tile, 8) + Sum(in + 4, 2) + kTable[in[t] & 3];
}

__global__ void Recursive(int* out, int count) {
  Fill(out + 100 * blockIdx.x, threadIdx.x, count);
}

__global__ void EarlyReturns(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (i % 3 == 0) {
    out[i] = 1;
    return;
  }
  float sum = 0;
  for (int k = 0; k < i % 5; ++k) {
    if (in[i + k] < 0) return;
    sum += in[i + k];
  }
  out[i] = sum;
}

// Constants and variables; a constant's address as a plain pointer.
__global__ void Constants(const float* in, float* out) {
  const int t = threadIdx.x;
  out[t] = in[t] * weights[t & 3] + Scale(in[t], &weights[7]);
  if (t % 2 == 0) atomicAdd(&counters[t & 3], 1);
}

__global__ void Structs(const Big* in, Big* out, Big parameter) {
  Big big = in[threadIdx.x];
  big.values[big.id & 7] += parameter.values[in[0].id & 7];
  out[threadIdx.x] = big;
}

__global__ void Copies(const char* in, char* out, int bytes) {
  memcpy(out + threadIdx.x * 64, in + threadIdx.x, bytes);
  memset(out + 1024 + threadIdx.x * 8, 1, 5);
}

// Reads of what other threads wrote, before and after barriers.
__global__ void Exchange(int* data, int* out) {
  const int t = threadIdx.x;
  const int other = blockDim.x - 1 - t;
  if (t < 8) out[t] = data[other];
  __syncthreads();
  data[t] = t;
  __syncthreads();
  out[t + 32] = data[other] + data[other + 64];
}

__global__ void AllAtomics(int* ints, unsigned long long* longs, float* floats) {
  const int t = threadIdx.x;
  atomicMax(&ints[0], t);
  atomicExch(&ints[1], t);
  atomicInc(reinterpret_cast<unsigned*>(&ints[2]), 7u);
  atomicCAS(&ints[4 + t], t % 2, 9);
  atomicAdd(longs, 3ull);
  atomicAdd(floats + 1, 2.0f);
  atomicAdd_block(&ints[40], 1);
  atomicCAS(&longs[2], 100ull, 1ull);
}

__global__ void Widths(const double2* in, uint16_t* shorts, uint8_t* bytes, uint64_t* longs) {
  const int t = threadIdx.x;
  const double2 pair = __ldg(&in[t]);
  shorts[3 * t] = static_cast<uint16_t>(pair.x);
  bytes[5 * t] = static_cast<uint8_t>(pair.y);
  longs[t] = __ldcg(reinterpret_cast<const unsigned long long*>(in) + 1);
}

// Addresses that are no multiple of their type's size do not occur; ranges
// that begin anywhere do.
__global__ void Triples(const float3* in, float3* out) {
  const float3 v = in[threadIdx.x];
  out[threadIdx.x] = make_float3(v.z, v.y, v.x);
}

__global__ void InlinePtx(const float* in, float* out) {
  const int t = threadIdx.x;
  float value;
  asm volatile("ld.global.nc.f32 %0, [%1+4];" : "=f"(value) : "l"(in + t));
  asm volatile("st.global.f32 [%0], %1;" ::"l"(out + t), "f"(value) : "memory");
  float a = 0, b = 0;
  asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "l"(in + 2 * t));
  out[64 + t] = a + b;
  unsigned old = 0;
  asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(out + 200) : "memory");
}

__global__ void AsyncCopy(const float4* in, float4* out) {
  __shared__ float4 tile[32];
  const int t = threadIdx.x;
  __nvvm_cp_async_cg_shared_global_16(
      (__attribute__((address_space(3))) void*)&tile[t],
      (__attribute__((address_space(1))) const void*)&in[t]);
  __nvvm_cp_async_commit_group();
  __nvvm_cp_async_wait_all();
  __syncthreads();
  out[t] = tile[31 - t];
}

// Pointers from memory, a loop that threads leave at different times.
struct Node {
  Node* next;
  int value;
};
__global__ void Walk(Node* const* heads, int* out) {
  int sum = 0;
  for (const Node* at = heads[threadIdx.x]; at != nullptr; at = at->next)
    sum += at->value;
  out[threadIdx.x] = sum;
}

}  // extern "C"
