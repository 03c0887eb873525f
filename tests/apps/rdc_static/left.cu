// The first stage. right.cu has kernels of the same names.
#include "stages.h"

#include "../common/app.h"

__device__ unsigned int Mix(unsigned int value);

static __global__ void StageKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 3u + 1u;
}

namespace {

__device__ unsigned int rounds;

__global__ void MixKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = Mix(values[i]);
  if (i == 0) ++rounds;
}

}  // namespace

void RunLeft(unsigned int* values, int count) {
  const int blocks = apps::BlocksFor(count, 256);
  StageKernel<<<blocks, 256>>>(values, count);
  MixKernel<<<blocks, 256>>>(values, count);
}
