// Prints ptx_cases.truth: what the GPU at hand gives for every instruction of
// kernels/ptx_cases.inc. On a machine with a GPU:
//   nvcc -arch=sm_90 -std=c++17 -o ptx_truth tests/replay/device/ptx_truth.cu
//   ./ptx_truth > tests/replay/device/ptx_cases.truth
// Exit code 1 after a CUDA error.
#include <cstdio>

#include "kernels/ptx_cases.cu"

namespace {

struct Case {
  const char* id;
  void (*kernel)(u64*, u64*);
  bool exact;
};

#undef PTX_EXACT1
#undef PTX_EXACT2
#undef PTX_EXACT3
#undef PTX_EXACT4
#undef PTX_APPROXIMATE1
#undef PTX_APPROXIMATE2
#define PTX_EXACT1(id, ...) {#id, PtxCase_##id, true},
#define PTX_EXACT2 PTX_EXACT1
#define PTX_EXACT3 PTX_EXACT1
#define PTX_EXACT4 PTX_EXACT1
#define PTX_APPROXIMATE1(id, ...) {#id, PtxCase_##id, false},
#define PTX_APPROXIMATE2 PTX_APPROXIMATE1
const Case kCases[] = {
#include "kernels/ptx_cases.inc"
};

bool Succeeded(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return true;
  std::fprintf(stderr, "ptx_truth: %s: %s\n", what, cudaGetErrorString(error));
  return false;
}

// One line: the digest of an exact instruction, picked results of another.
bool Print(const Case& one, u64* rows, u64* picks) {
  for (u32 i = 0; i < kPtxRows; ++i) rows[i] = picks[i] = 0;
  one.kernel<<<256, 128>>>(rows, picks);
  if (!Succeeded(cudaDeviceSynchronize(), one.id)) return false;
  u64 digest = 0;
  for (u32 i = 0; i < kPtxRows; ++i)
    digest = digest * 0x9e3779b97f4a7c15ull + rows[i];
  std::printf("%s", one.id);
  if (one.exact) std::printf(" %016llx", digest);
  for (u32 i = 0; i < kPtxRows && !one.exact; ++i)
    std::printf(" %llx", picks[i]);
  std::printf("\n");
  return true;
}

}  // namespace

int main() {
  u64* rows = nullptr;
  u64* picks = nullptr;
  if (!Succeeded(cudaMallocManaged(&rows, kPtxRows * 8), "memory") ||
      !Succeeded(cudaMallocManaged(&picks, kPtxRows * 8), "memory"))
    return 1;
  for (const Case& one : kCases) {
    if (!Print(one, rows, picks)) return 1;
  }
  return 0;
}
