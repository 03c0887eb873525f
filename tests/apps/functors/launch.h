// Launching functors the way performance-portability libraries do: one kernel
// template per place where the functor travels. Every .cu that includes this
// gets its own constant buffer.
#ifndef REPRISE_TESTS_APPS_FUNCTORS_LAUNCH_H_
#define REPRISE_TESTS_APPS_FUNCTORS_LAUNCH_H_

#include "../common/app.h"

namespace launch {

constexpr int kBlock = 128;
constexpr size_t kConstantBytes = 32768;

// Holds the functor of the launch that runs.
static __constant__ unsigned long long constant_buffer[kConstantBytes / 8];

// Calls functor(i) for i in [0, count).
template <typename Functor>
__global__ void ParameterKernel(int count, const Functor functor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) functor(i);
}

template <typename Functor>
static __global__ void ConstantKernel(int count) {
  const Functor& functor = *reinterpret_cast<const Functor*>(constant_buffer);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) functor(i);
}

template <typename Functor>
__global__ void GlobalKernel(int count, const Functor* functor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) (*functor)(i);
}

template <typename Functor>
void ByParameter(int count, const Functor& functor) {
  ParameterKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(count, functor);
  CUDA_CHECK(cudaGetLastError());
}

// Copies the functor to the constant buffer on the default stream, after the
// kernel before has read the buffer.
template <typename Functor>
void ByConstant(int count, const Functor& functor) {
  static_assert(sizeof(Functor) <= kConstantBytes);
  CUDA_CHECK(
      cudaMemcpyToSymbolAsync(constant_buffer, &functor, sizeof(Functor)));
  ConstantKernel<Functor><<<apps::BlocksFor(count, kBlock), kBlock>>>(count);
  CUDA_CHECK(cudaGetLastError());
}

// Copies the functor to device memory that lives for this launch.
template <typename Functor>
void ByGlobal(int count, const Functor& functor) {
  Functor* copy = nullptr;
  CUDA_CHECK(cudaMalloc(&copy, sizeof(Functor)));
  CUDA_CHECK(
      cudaMemcpy(copy, &functor, sizeof(Functor), cudaMemcpyHostToDevice));
  GlobalKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(count, copy);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaFree(copy));
}

}  // namespace launch

#endif  // REPRISE_TESTS_APPS_FUNCTORS_LAUNCH_H_
