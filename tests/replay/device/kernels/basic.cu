// Kernels without barriers: indexing, arguments, globals, control flow.
#include <cstdint>

extern "C" {

__global__ void Saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

// Every coordinate of every thread, in a 3-D grid of 3-D blocks.
__global__ void Coordinates(uint32_t* out) {
  const uint32_t block =
      (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const uint32_t thread =
      (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const uint32_t threads = blockDim.x * blockDim.y * blockDim.z;
  uint32_t* mine = out + 6 * (block * threads + thread);
  mine[0] = threadIdx.x;
  mine[1] = threadIdx.y;
  mine[2] = threadIdx.z;
  mine[3] = blockIdx.x;
  mine[4] = blockIdx.y;
  mine[5] = blockIdx.z;
}

// Bounds on both sides, in two dimensions, with size_t indices.
__global__ void Interior(const float* in, float* out, size_t width,
                         size_t height) {
  size_t x = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  size_t y = size_t(blockIdx.y) * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x >= width - 1 || y >= height - 1) return;
  out[y * width + x] = in[y * width + x - 1] + in[y * width + x + 1] +
                       in[(y - 1) * width + x] + in[(y + 1) * width + x];
}

__global__ void GuardForms(int* out, int low, int high, unsigned limit) {
  int i = int(blockIdx.x * blockDim.x + threadIdx.x) - 100;
  if (i > low && i <= high && unsigned(threadIdx.x) < limit) out[i + 100] = i;
}

__global__ void GridStride(int* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x) {
    out[i] = 3 * i;
  }
}

struct Mixed {
  char c;
  double d;
  short s[3];
  int* p;
};
__global__ void Arguments(bool flag, Mixed mixed, short s, long long l,
                          float4 v, double* out) {
  out[0] = flag;
  out[1] = mixed.c;
  out[2] = mixed.d;
  out[3] = mixed.s[2];
  out[4] = *mixed.p;
  out[5] = s;
  out[6] = double(l);
  out[7] = v.x + 10 * v.y + 100 * v.z + 1000 * v.w;
}

// A struct parameter that every thread changes for itself.
__global__ void OwnCopy(Mixed mixed, int* out) {
  mixed.s[threadIdx.x % 3] += threadIdx.x;
  mixed.c += 1;
  out[threadIdx.x] = mixed.s[0] + mixed.s[1] + mixed.s[2] + mixed.c;
}

__device__ int counter = 5;
__device__ float table[4] = {1, 2, 3, 4};
__device__ float* into_table = &table[2];
__device__ int zeros[8];
__constant__ int scale = 7;
__global__ void Globals(float* out) {
  if (threadIdx.x == 0) {
    counter += scale;
    zeros[3] = 9;
  }
  out[threadIdx.x] = into_table[0] + table[threadIdx.x % 4] + scale;
}

__device__ __noinline__ int OutOfLine(int x) {
  return x + threadIdx.x + 1000 * blockIdx.x;
}
__device__ int Factorial(int n) { return n <= 1 ? 1 : n * Factorial(n - 1); }
__device__ int Twice(int x) { return 2 * x + threadIdx.x; }
__device__ int Thrice(int x) { return 3 * x + threadIdx.x; }
__global__ void Calls(int* out) {
  int (*pick)(int) = threadIdx.x % 2 ? Twice : Thrice;
  out[blockIdx.x * blockDim.x + threadIdx.x] =
      OutOfLine(Factorial(3)) + 100000 * pick(threadIdx.x);
}

// Local arrays belong to one thread.
__global__ void LocalArray(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int local[8];
  for (int k = 0; k < 8; ++k) local[k] = in[i] * k;
  int sum = 0;
  for (int k = 0; k < 8; ++k) sum += local[(in[i] + k) & 7] * (k + 1);
  out[i] = sum;
}

__global__ void EarlyExit(int* out) {
  if (threadIdx.x % 2) asm volatile("exit;");
  out[threadIdx.x] = 1;
}

__global__ void Conversions(const double* in, int* as_int, unsigned* as_unsigned,
                            long long* as_long) {
  int i = threadIdx.x;
  as_int[i] = int(in[i]);
  as_unsigned[i] = unsigned(float(in[i]));
  as_long[i] = (long long)(in[i]);
}

}  // extern "C"
