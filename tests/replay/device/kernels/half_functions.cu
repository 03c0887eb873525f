// Mathematical functions of halves and bfloats on every value. Of each function
// the 65,536 results stand together.
#include "half_functions.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T>
__device__ void Evaluate(T x, unsigned i, T* out) {
  T* o = out + i;
  o[kExp * 65536] = hexp(x);
  o[kExp2 * 65536] = hexp2(x);
  o[kExp10 * 65536] = hexp10(x);
  o[kLog * 65536] = hlog(x);
  o[kLog2 * 65536] = hlog2(x);
  o[kLog10 * 65536] = hlog10(x);
  o[kSin * 65536] = hsin(x);
  o[kCos * 65536] = hcos(x);
  o[kTanh * 65536] = htanh(x);
  o[kReciprocal * 65536] = hrcp(x);
  o[kRoot * 65536] = hsqrt(x);
  o[kReciprocalRoot * 65536] = hrsqrt(x);
}

extern "C" {

__global__ void HalfFunctions(unsigned short* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  Evaluate(__ushort_as_half((unsigned short)i), i, (__half*)out);
}

__global__ void BFloatFunctions(unsigned short* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  Evaluate(__ushort_as_bfloat16((unsigned short)i), i, (__nv_bfloat16*)out);
}

}  // extern "C"
