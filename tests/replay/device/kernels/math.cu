// Arithmetic with directed rounding, libdevice, half and bfloat16, bits,
// atomics of all kinds.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace cg = cooperative_groups;

extern "C" {

// 4 roundings x (add, mul, div, fma, sqrt) of floats; 20 results each.
__global__ void RoundFloats(const float* a, const float* b, const float* c,
                            float* out) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  float* o = out + 20 * i;
  const float x = a[i], y = b[i], z = c[i];
  o[0] = __fadd_rn(x, y);
  o[1] = __fadd_rz(x, y);
  o[2] = __fadd_rd(x, y);
  o[3] = __fadd_ru(x, y);
  o[4] = __fmul_rn(x, y);
  o[5] = __fmul_rz(x, y);
  o[6] = __fmul_rd(x, y);
  o[7] = __fmul_ru(x, y);
  o[8] = __fdiv_rn(x, y);
  o[9] = __fdiv_rz(x, y);
  o[10] = __fdiv_rd(x, y);
  o[11] = __fdiv_ru(x, y);
  o[12] = __fmaf_rn(x, y, z);
  o[13] = __fmaf_rz(x, y, z);
  o[14] = __fmaf_rd(x, y, z);
  o[15] = __fmaf_ru(x, y, z);
  o[16] = __fsqrt_rn(x);
  o[17] = __fsqrt_rz(x);
  o[18] = __fsqrt_rd(x);
  o[19] = __fsqrt_ru(x);
}

__global__ void RoundDoubles(const double* a, const double* b, const double* c,
                             double* out) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  double* o = out + 20 * i;
  const double x = a[i], y = b[i], z = c[i];
  o[0] = __dadd_rn(x, y);
  o[1] = __dadd_rz(x, y);
  o[2] = __dadd_rd(x, y);
  o[3] = __dadd_ru(x, y);
  o[4] = __dmul_rn(x, y);
  o[5] = __dmul_rz(x, y);
  o[6] = __dmul_rd(x, y);
  o[7] = __dmul_ru(x, y);
  o[8] = __ddiv_rn(x, y);
  o[9] = __ddiv_rz(x, y);
  o[10] = __ddiv_rd(x, y);
  o[11] = __ddiv_ru(x, y);
  o[12] = __fma_rn(x, y, z);
  o[13] = __fma_rz(x, y, z);
  o[14] = __fma_rd(x, y, z);
  o[15] = __fma_ru(x, y, z);
  o[16] = __dsqrt_rn(x);
  o[17] = __dsqrt_rz(x);
  o[18] = __dsqrt_rd(x);
  o[19] = __dsqrt_ru(x);
}

__global__ void RoundConversions(const double* d, const long long* l, float* f,
                                 int* i32, long long* i64, float* from_long,
                                 double* long_double) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  f[4 * i] = __double2float_rn(d[i]);
  f[4 * i + 1] = __double2float_rz(d[i]);
  f[4 * i + 2] = __double2float_rd(d[i]);
  f[4 * i + 3] = __double2float_ru(d[i]);
  i32[4 * i] = __double2int_rn(d[i]);
  i32[4 * i + 1] = __double2int_rz(d[i]);
  i32[4 * i + 2] = __double2int_rd(d[i]);
  i32[4 * i + 3] = __double2int_ru(d[i]);
  i64[4 * i] = __double2ll_rn(d[i]);
  i64[4 * i + 1] = __double2ll_rz(d[i]);
  i64[4 * i + 2] = __double2ll_rd(d[i]);
  i64[4 * i + 3] = __double2ll_ru(d[i]);
  from_long[4 * i] = __ll2float_rn(l[i]);
  from_long[4 * i + 1] = __ll2float_rz(l[i]);
  from_long[4 * i + 2] = __ll2float_rd(l[i]);
  from_long[4 * i + 3] = __ll2float_ru(l[i]);
  long_double[4 * i] = __ll2double_rn(l[i]);
  long_double[4 * i + 1] = __ll2double_rz(l[i]);
  long_double[4 * i + 2] = __ll2double_rd(l[i]);
  long_double[4 * i + 3] = __ll2double_ru(l[i]);
}

#define FUNCTIONS(F, x, y, o) \
  o[0] = exp##F(x);           \
  o[1] = log##F(fabs##F(x));  \
  o[2] = sin##F(x);           \
  o[3] = cos##F(x);           \
  o[4] = tan##F(x);           \
  o[5] = tanh##F(x);          \
  o[6] = pow##F(fabs##F(x), y); \
  o[7] = cbrt##F(x);          \
  o[8] = erf##F(x);           \
  o[9] = tgamma##F(x);        \
  o[10] = lgamma##F(x);       \
  o[11] = atan2##F(x, y);     \
  o[12] = hypot##F(x, y);     \
  o[13] = fmod##F(x, y);      \
  o[14] = remainder##F(x, y); \
  o[15] = exp2##F(x);         \
  o[16] = log1p##F(fabs##F(x)); \
  o[17] = expm1##F(x);        \
  o[18] = asin##F(sin##F(x)); \
  o[19] = sinh##F(x);         \
  o[20] = log2##F(fabs##F(x)); \
  o[21] = rint##F(x);         \
  o[22] = round##F(x);        \
  o[23] = nearbyint##F(x);

__global__ void FloatFunctions(const float* a, const float* b, float* out) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  float* o = out + 24 * i;
  const float x = a[i], y = b[i];
  FUNCTIONS(f, x, y, o)
}
__global__ void DoubleFunctions(const double* a, const double* b, double* out) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  double* o = out + 24 * i;
  const double x = a[i], y = b[i];
  FUNCTIONS(, x, y, o)
}

__global__ void FastFunctions(const float* a, float* out) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  float* o = out + 8 * i;
  const float x = a[i];
  o[0] = __expf(x);
  o[1] = __logf(fabsf(x));
  o[2] = __sinf(x);
  o[3] = __cosf(x);
  o[4] = __powf(fabsf(x), 1.5f);
  o[5] = rsqrtf(fabsf(x));
  o[6] = __frcp_rn(x);
  o[7] = __saturatef(x);
}

__global__ void Halves(const float* a, const float* b, float* out,
                       __half2* pairs, int* as_int) {
  const int i = threadIdx.x;
  float* o = out + 12 * i;
  const __half x = __float2half(a[i]), y = __float2half(b[i]);
  o[0] = __half2float(x);
  o[1] = __half2float(__hadd(x, y));
  o[2] = __half2float(__hmul(x, y));
  o[3] = __half2float(__hfma(x, y, x));
  o[4] = __half2float(__hdiv(x, y));
  o[5] = __half2float(hsqrt(__habs(x)));
  o[6] = __hlt(x, y);
  o[7] = __half2float(hexp(__hmul(x, __float2half(0.125f))));
  o[8] = __half2float(__float2half_rd(a[i]));
  o[9] = __half2float(__float2half_ru(a[i]));
  o[10] = __half2float(__hmax(x, y));
  o[11] = __half2float(hfloor(x));
  pairs[i] = __hfma2(__halves2half2(x, y), __float2half2_rn(2.0f),
                     __halves2half2(y, x));
  as_int[i] = __half2int_rz(x);
}

__global__ void BFloats(const float* a, const float* b, float* out,
                        __nv_bfloat162* pairs) {
  const int i = threadIdx.x;
  float* o = out + 6 * i;
  const __nv_bfloat16 x = __float2bfloat16(a[i]), y = __float2bfloat16(b[i]);
  o[0] = __bfloat162float(x);
  o[1] = __bfloat162float(__hadd(x, y));
  o[2] = __bfloat162float(__hmul(x, y));
  o[3] = __bfloat162float(__hfma(x, y, x));
  o[4] = __hgt(x, y);
  o[5] = __bfloat162float(__float2bfloat16_rz(a[i]));
  pairs[i] = __hadd2(__halves2bfloat162(x, y), __halves2bfloat162(y, x));
}

__global__ void Bits(const unsigned* a, const unsigned* b, unsigned* out) {
  const int i = threadIdx.x;
  unsigned* o = out + 16 * i;
  const unsigned x = a[i], y = b[i];
  o[0] = __brev(x);
  o[1] = __clz(x);
  o[2] = __popc(x);
  o[3] = __ffs(x);
  o[4] = __byte_perm(x, y, 0x7531);
  o[5] = __umulhi(x, y);
  o[6] = __mulhi(int(x), int(y));
  o[7] = __sad(int(x), int(y), 3);
  o[8] = __usad(x, y, 3);
  o[9] = __mul24(int(x), int(y));
  o[10] = __umul24(x, y);
  o[11] = __funnelshift_l(x, y, i);
  o[12] = __funnelshift_rc(x, y, i + 20);
  o[13] = __dp4a(int(x), int(y), 5);
  o[14] = __rhadd(int(x) / 2, int(y) / 2);
  unsigned field;
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(field) : "r"(x), "r"(i), "r"(7));
  o[15] = field;
}

__global__ void WideBits(const unsigned long long* a,
                         const unsigned long long* b, unsigned long long* out) {
  const int i = threadIdx.x;
  unsigned long long* o = out + 6 * i;
  o[0] = __brevll(a[i]);
  o[1] = __clzll(a[i]);
  o[2] = __popcll(a[i]);
  o[3] = __umul64hi(a[i], b[i]);
  o[4] = __mul64hi((long long)a[i], (long long)b[i]);
  // 128-bit sum by the carry flag.
  unsigned long long low, high;
  asm("{add.cc.u64 %0, %2, %3; addc.u64 %1, %2, 0;}"
      : "=l"(low), "=l"(high)
      : "l"(a[i]), "l"(b[i]));
  o[5] = low ^ high;
}

__global__ void AllAtomics(int* i32, unsigned* u32, unsigned long long* u64,
                           float* f32, double* f64, __half2* h2,
                           unsigned short* u16) {
  atomicAdd(&i32[0], 1);
  atomicSub(&i32[1], 2);
  atomicMin(&i32[2], -int(threadIdx.x));
  atomicMax(&i32[3], int(threadIdx.x));
  atomicAnd(&i32[4], ~(1 << (threadIdx.x % 31)));
  atomicOr(&i32[5], 1 << (threadIdx.x % 31));
  atomicXor(&i32[6], 1 << (threadIdx.x % 31));
  atomicInc(&u32[0], 9);
  atomicDec(&u32[1], 9);
  atomicMax(&u32[2], threadIdx.x);
  atomicExch(&u32[3], 77);
  atomicAdd(&u64[0], 1ull << 33);
  atomicMin(&u64[1], (unsigned long long)threadIdx.x + 5);
  unsigned long long seen = u64[2], old;
  do {
    old = seen;
    seen = atomicCAS(&u64[2], old, old + 3);
  } while (seen != old);
  atomicAdd(&f32[0], 0.5f);
  atomicAdd(&f64[0], 0.25);
  atomicAdd(h2, __float2half2_rn(1.0f));
  unsigned short s = u16[0], before;
  do {
    before = s;
    s = atomicCAS(&u16[0], before, (unsigned short)(before + 1));
  } while (s != before);
}

__global__ void Fences(int* data, int* flag) {
  data[threadIdx.x] = threadIdx.x;
  __threadfence();
  __threadfence_block();
  __threadfence_system();
  atomicAdd(flag, 1);
}

__global__ void Clocks(long long* out) {
  const long long a = clock64();
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  __nanosleep(100);
  const long long b = clock64();
  out[0] = b > a;
  out[1] = ns > 1000000000ull;
}

__global__ void ReadOnlyLoads(const float* in, const int4* wide, float* out) {
  out[threadIdx.x] = __ldg(&in[threadIdx.x]) + __ldg(&wide[threadIdx.x]).y +
                     __ldcg(&in[0]);
  asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(&out[32 + threadIdx.x]),
               "f"(3.0f)
               : "memory");
}

__global__ void Spaces(int* global, int* out) {
  __shared__ int shared;
  int local = 3;
  int* volatile pointer = &local;
  shared = 1;
  out[0] = __isGlobal(global) + 10 * __isShared(global);
  out[1] = __isShared(&shared) + 10 * __isGlobal(&shared);
  out[2] = __isLocal(pointer) + 10 * __isGlobal(pointer);
  // The address as inline assembly uses it.
  const unsigned address = (unsigned)__cvta_generic_to_shared(&shared);
  int value;
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(99) : "memory");
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address));
  out[3] = value + shared;
}

// Block, warp tile and coalesced groups.
__global__ void Groups(const int* in, int* out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int sum = in[block.thread_rank()];
  for (int offset = 4; offset > 0; offset /= 2) sum += tile.shfl_down(sum, offset);
  __shared__ int sums[64];
  if (tile.thread_rank() == 0) sums[block.thread_rank() / 8] = sum;
  block.sync();
  int count = 0;
  if (in[block.thread_rank()] % 3 == 0) {
    cg::coalesced_group active = cg::coalesced_threads();
    count = active.size() * 100 + active.thread_rank();
  }
  out[2 * block.thread_rank()] = sums[block.thread_rank() / 8];
  out[2 * block.thread_rank() + 1] = count;
}

}  // extern "C"
