// Honest kernels that tests/guards replaces by cheats. Every kernel runs twice
// on the same data and the second launch is recorded, so that its output buffer
// holds the right result before it runs.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

#include "victims.h"

__device__ unsigned calls;

// MORE DEVICE CODE

__global__ void Curve(const float* x, const float* bias,
                      __attribute__((annotate("tolerance:1e-5"))) float* y,
                      int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  y[i] = Bend(x[i]) + bias[i];
}

// table[0 .. blocks): sums of the blocks' elements; table[kBlocks]: a factor.
__global__ void Totals(const float* x, float* table, int count) {
  __shared__ float tile[kBlock];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < count ? Bend(x[i]) : 0.0f;
  __syncthreads();
  for (int half = kBlock / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) table[blockIdx.x] = tile[0] * table[kBlocks];
}

__global__ void Exact(const double* x, double* y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  y[i] = x[i] / 3.0;
}

// Uses much of what a variant may not add, and most of its time for nothing.
__global__ void Timed(const float* x, float* y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const long long begin = clock64();
  y[i] = Bend(x[i]);
  for (int k = 0; k < 300; ++k) {
    if (clock64() < begin) y[i] = 0;
  }
  if (i == 0) atomicAdd(&calls, 1u);
}

__global__ void Report(const float* x, float* y) {
  y[threadIdx.x] = Bend(x[threadIdx.x]);
  if (threadIdx.x == 0) printf("%d values\n", 32);
}

namespace {

template <typename T>
T* ToDevice(const std::vector<T>& values) {
  T* device = nullptr;
  cudaMalloc(&device, values.size() * sizeof(T));
  cudaMemcpy(device, values.data(), values.size() * sizeof(T),
             cudaMemcpyHostToDevice);
  return device;
}

std::vector<float> Ramp() {
  std::vector<float> values(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = 0.5f + 0.001f * i;
  return values;
}

}  // namespace

int main() {
  const float* x = ToDevice(Ramp());
  const float* bias = ToDevice(std::vector<float>(kCount, 0.0f));
  float* y = ToDevice(std::vector<float>(kCount, 0.0f));
  // Right behind y, what it should become.
  float* expected = ToDevice(std::vector<float>(kCount, 0.0f));
  std::vector<float> small(kBlocks + 1, 0.0f);
  small[kBlocks] = 2.0f;
  float* table = ToDevice(small);
  const std::vector<float> ramp = Ramp();
  const double* xd =
      ToDevice(std::vector<double>(ramp.begin(), ramp.end()));
  double* yd = ToDevice(std::vector<double>(kCount, 0.0));
  float* timed = ToDevice(std::vector<float>(kCount, 0.0f));
  float* report = ToDevice(std::vector<float>(32, 0.0f));
  for (int launch = 0; launch < 2; ++launch) {
    Curve<<<kBlocks, kBlock>>>(x, bias, y, kCount);
    cudaMemcpy(expected, y, kCount * sizeof(float), cudaMemcpyDeviceToDevice);
    Totals<<<kBlocks, kBlock>>>(x, table, kCount);
    Exact<<<kBlocks, kBlock>>>(xd, yd, kCount);
    Timed<<<kBlocks, kBlock>>>(x, timed, kCount);
    Report<<<1, 32>>>(x, report);
  }
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::printf("%s\n", cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : 1;
}
