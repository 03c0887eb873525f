// The device code of dlsym_user, embedded in the program as a file.

// values[i] = 3 values[i] + i, modulo 2^32.
extern "C" __global__ void AdvanceLoadedKernel(unsigned int* values,
                                               int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 3u + static_cast<unsigned int>(i);
}
