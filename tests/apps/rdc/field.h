// The force field of the rdc application: device functions and device variables
// that are defined in one translation unit and used in others.
#ifndef REPRISE_TESTS_APPS_RDC_FIELD_H_
#define REPRISE_TESTS_APPS_RDC_FIELD_H_

#include <cuda_runtime.h>

constexpr int kCentres = 8;

// Defined in field.cu.
extern __constant__ float centres[kCentres];
extern __device__ float stiffness;
extern __device__ unsigned long long evaluations;
__device__ float ForceAt(float position);

// Defined in step.cu, which calls ForceAt of field.cu.
__device__ void LeapFrog(float* position, float* velocity, float time_step);
__global__ void KickKernel(float* velocity, int count, float amount);

// Host side of field.cu: sets the device variables, reads the counter.
void SetField(const float* host_centres, float host_stiffness);
unsigned long long Evaluations();

#endif  // REPRISE_TESTS_APPS_RDC_FIELD_H_
