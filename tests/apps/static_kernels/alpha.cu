// The first stage. beta.cu has kernels and globals of the same names.
#include "stages.h"

#include "../common/app.h"

static __device__ int step_count;
static __constant__ unsigned int offset = 1;

static __global__ void StepKernel(unsigned int* values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  values[i] = values[i] * 3u + offset;
  if (i == 0) ++step_count;
}

namespace {

constexpr int kBlock = 256;

__global__ void MixKernel(unsigned int* values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] ^= values[i] >> 7;
}

}  // namespace

void RunAlpha(unsigned int* values, int count) {
  const int blocks = apps::BlocksFor(count, kBlock);
  StepKernel<<<blocks, kBlock>>>(values, count);
  MixKernel<<<blocks, kBlock>>>(values, count);
}

int AlphaSteps() {
  int steps = 0;
  CUDA_CHECK(cudaMemcpyFromSymbol(&steps, step_count, sizeof(steps)));
  return steps;
}
