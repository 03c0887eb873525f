// Kernels whose accesses and operations are counted by hand in
// instrument_test.cc.
#include <cstdint>

extern "C" {

// Reads x[0, n), writes y[0, n); 2 operations an element.
__global__ void Axpb(const float* x, float* y, float a, float b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + b;
}

// In place: every element is read before it is written.
__global__ void Increment(int* data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += 1;
}

// Writes tmp[i], then reads it: written before read.
__global__ void ThroughMemory(double* tmp, const double* in, double* out) {
  volatile double* t = tmp;
  int i = threadIdx.x;
  t[i] = in[i] * 2;
  out[i] = t[i];
}

// Every other byte.
__global__ void Bytes(uint8_t* out) { out[2 * threadIdx.x] = 1; }

// Local and shared memory do not count.
__global__ void PrivateMemory(const int* in, int* out) {
  __shared__ int tile[32];
  int local[4];
  const int t = threadIdx.x;
  for (int k = 0; k < 4; ++k) local[k] = t * k;
  tile[t] = in[t];
  __syncthreads();
  out[t] = tile[31 - t] + local[in[t] & 3];
}

__device__ int histogram[4];
__global__ void Atomics(const int* in, int* flags, float* sum) {
  const int t = threadIdx.x;
  atomicAdd(&histogram[in[t] & 3], 1);
  atomicCAS(&flags[t], 5, 6);
  atomicAdd(sum, 1.0f);
}

struct Particle {
  float x, y;
  int id;
};
__global__ void CopyStruct(const Particle* in, Particle* out) {
  out[threadIdx.x] = in[threadIdx.x];
}

__global__ void Mathematics(const float* in, float* out) {
  const int t = threadIdx.x;
  out[t] = __fmaf_rn(in[t], in[t], sqrtf(in[t]) / 3.0f);
}

__global__ void Vectors(const float4* in, float4* out) {
  float4 v = in[threadIdx.x];
  v.x += 1;
  out[threadIdx.x] = v;
}

}  // extern "C"
