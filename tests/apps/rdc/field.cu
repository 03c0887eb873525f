// Defines the field: what the other translation units only declare.
#include "field.h"

#include "../common/app.h"

__constant__ float centres[kCentres];
__device__ float stiffness;
__device__ unsigned long long evaluations;

// A soft spring towards each centre.
__device__ float ForceAt(float position) {
  float force = 0.0f;
  for (int k = 0; k < kCentres; ++k) {
    float distance = centres[k] - position;
    force += stiffness * distance / (1.0f + distance * distance);
  }
  return force;
}

void SetField(const float* host_centres, float host_stiffness) {
  const unsigned long long none = 0;
  CUDA_CHECK(cudaMemcpyToSymbol(centres, host_centres, sizeof(centres)));
  CUDA_CHECK(cudaMemcpyToSymbol(stiffness, &host_stiffness, sizeof(float)));
  CUDA_CHECK(cudaMemcpyToSymbol(evaluations, &none, sizeof(none)));
}

unsigned long long Evaluations() {
  unsigned long long count = 0;
  CUDA_CHECK(cudaMemcpyFromSymbol(&count, evaluations, sizeof(count)));
  return count;
}
