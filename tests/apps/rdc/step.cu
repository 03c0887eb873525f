// Uses the field of field.cu, and is used by main.cu in turn.
#include "field.h"

__device__ void LeapFrog(float* position, float* velocity, float time_step) {
  *velocity += time_step * ForceAt(*position);
  *position += time_step * *velocity;
}

// A kernel that another translation unit launches.
__global__ void KickKernel(float* velocity, int count, float amount) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) velocity[i] += i % 2 == 0 ? amount : -amount;
}
