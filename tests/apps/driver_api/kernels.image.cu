// The device code of driver_api, embedded in the program as a file.

// The weights of a point; the layout is also main.cc's.
struct Weights {
  double scale;
  int stride;
  float offset;
};

__device__ unsigned long long steps;  // of ScaleKernel, over all launches

// values[i] *= factor, in integers modulo 2^32.
extern "C" __global__ void ScaleKernel(unsigned int* values, int count,
                                       unsigned int factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  values[i] *= factor;
  atomicAdd(&steps, 1ull);
}

// output[i] = scale * input[i * stride % count] + offset; exact for the small
// whole numbers that the caller chooses. The parameters leave gaps.
extern "C" __global__ void GatherKernel(char shift, const unsigned int* input,
                                        double* output, int count,
                                        Weights weights) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  long long from = static_cast<long long>(i) * weights.stride % count;
  output[i] = weights.scale * (input[from] >> shift) + weights.offset;
}
