// One kernel for each thing the cpu device cannot run.
#include <cuda_runtime.h>

extern "C" {

__global__ void Fine(int* out) { out[0] = 1; }

__global__ void TensorCore(float* d) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, 0, 0, "
      "1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]));
}

__device__ void Inner(unsigned* out) {
  asm("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
      : "=r"(out[0])
      : "r"(0));
}
__global__ void Matrix(unsigned* out) { Inner(out); }

__device__ void Missing(int*);
__global__ void CallsMissing(int* out) { Missing(out); }

__global__ void Branches(int* out) {
  asm volatile("{ .reg .pred p; setp.eq.s32 p, %0, 0; @p bra L; L: }" ::"r"(out[0]));
}

__global__ void Heap(int** out) { out[0] = new int[4]; }

__global__ void Texture(cudaTextureObject_t texture, float* out) {
  out[0] = tex1Dfetch<float>(texture, 0);
}

}  // extern "C"
