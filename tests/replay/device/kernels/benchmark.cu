// Kernels of cpu_device_benchmark.cc. Those named ...Loop are the same work as
// one serial loop in one thread.
extern "C" {

__global__ void Saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void Polynomial(int n, const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = in[i];
  float p = 0.5f;
#pragma unroll
  for (int k = 0; k < 16; ++k) p = p * x + 0.25f;
  out[i] = p;
}

__global__ void Stencil(int width, int height, const float* in, float* out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  int i = y * width + x;
  out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - width] +
                                    in[i + width]);
}

__global__ void Sigmoid(int n, const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 1.0f / (1.0f + expf(-in[i]));
}
__global__ void SigmoidLoop(int n, const float* __restrict__ in,
                            float* __restrict__ out) {
  for (int i = 0; i < n; ++i) out[i] = 1.0f / (1.0f + expf(-in[i]));
}

__global__ void Barriers(int count, float* out) {
  __shared__ float value;
  for (int i = 0; i < count; ++i) {
    if (threadIdx.x == (i & 31)) value = i;
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = value;
}

__global__ void Shuffles(int count, float* out) {
  float v = threadIdx.x;
  for (int i = 0; i < count; ++i) v += __shfl_xor_sync(~0u, v, 1 + (i & 15));
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

}  // extern "C"
