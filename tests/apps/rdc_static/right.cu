// The second stage. left.cu has kernels of the same names.
#include "stages.h"

#include "../common/app.h"

__device__ unsigned int Mix(unsigned int value);

static __global__ void StageKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 5u + 2u;
}

namespace {

__device__ unsigned int rounds;

__global__ void MixKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = Mix(values[i]);
  if (i == 0) ++rounds;
}

}  // namespace

void RunRight(unsigned int* values, int count) {
  const int blocks = apps::BlocksFor(count, 128);
  StageKernel<<<blocks, 128>>>(values, count);
  MixKernel<<<blocks, 128>>>(values, count);
}
