// Much device memory, filled with values, and a kernel that reads a part of one
// piece of it and writes a part of another. Pieces are 1/60 of the whole.
// --size: bytes in all, in MiB.
#include "../common/app.h"

constexpr int kBlock = 256;
constexpr int kPieces = 60;
constexpr int kSource = 7;
constexpr int kTarget = 41;

__global__ void FillPieceKernel(unsigned int* values, size_t count,
                                unsigned int seed) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
       i < count; i += step) {
    values[i] = static_cast<unsigned int>(i) * 2654435761u ^ seed;
  }
}

__global__ void TouchPartKernel(const unsigned int* source,
                                unsigned int* target, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) target[i] = target[i] * 5u + source[i];
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "large_live",
      {60 * 1024, 240, 130 * 1024, "mebibytes of device memory"});
  const size_t piece_bytes =
      static_cast<size_t>(options.size) * (1 << 20) / kPieces;
  const size_t count = piece_bytes / sizeof(unsigned int);
  const int touched = static_cast<int>(count / 4);
  std::vector<unsigned int*> pieces(kPieces);
  for (int i = 0; i < kPieces; ++i) {
    CUDA_CHECK(cudaMalloc(&pieces[i], piece_bytes));
    FillPieceKernel<<<1024, kBlock>>>(pieces[i], count,
                                      static_cast<unsigned int>(i));
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  apps::RunIterations(options, [&] {
    TouchPartKernel<<<apps::BlocksFor(touched, kBlock), kBlock>>>(
        pieces[kSource], pieces[kTarget], touched);
  });
  std::vector<unsigned int> got(touched);
  CUDA_CHECK(cudaMemcpy(got.data(), pieces[kTarget],
                        got.size() * sizeof(unsigned int),
                        cudaMemcpyDeviceToHost));
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, got.size(), 1 << 20);
  for (size_t i = 0; i < got.size(); i += stride) {
    const unsigned int hash = static_cast<unsigned int>(i) * 2654435761u;
    unsigned int value = hash ^ kTarget;
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      value = value * 5u + (hash ^ kSource);
    }
    checker.Expect("value", i, got[i], value, apps::kExact);
  }
  for (unsigned int* piece : pieces) CUDA_CHECK(cudaFree(piece));
  return checker.Finish();
}
