// Much device memory, filled with values that repeat, a kernel that reads a part
// of one piece of it and writes a part of another, and one that reads all of it
// and writes sums beside it. Pieces are 1/60 of the whole.
// --size: bytes in all, in MiB.
#include "../common/app.h"

constexpr int kBlock = 256;
constexpr int kPieces = 60;
constexpr int kSource = 7;
constexpr int kTarget = 41;
constexpr size_t kPeriod = 1 << 20;  // values after which they repeat

__host__ __device__ unsigned int HashOf(size_t i) {
  return static_cast<unsigned int>(i % kPeriod) * 2654435761u;
}

__global__ void FillPieceKernel(unsigned int* values, size_t count,
                                unsigned int seed) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
       i < count; i += step) {
    values[i] = HashOf(i) ^ seed;
  }
}

__global__ void TouchPartKernel(const unsigned int* source,
                                unsigned int* target, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) target[i] = target[i] * 5u + source[i];
}

__global__ void SumPiecesKernel(const unsigned int* const* pieces,
                                unsigned int* sums, size_t count) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
       i < count; i += step) {
    unsigned int sum = 0;
    for (int piece = 0; piece < kPieces; ++piece) sum += pieces[piece][i];
    sums[i] = sum;
  }
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
  const auto fetch = [](const unsigned int* values, size_t number) {
    std::vector<unsigned int> got(number);
    CUDA_CHECK(cudaMemcpy(got.data(), values, number * sizeof(unsigned int),
                          cudaMemcpyDeviceToHost));
    return got;
  };
  const std::vector<unsigned int> got = fetch(pieces[kTarget], touched);
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, got.size(), 1 << 20);
  const auto expected = [&](int piece, size_t i) {
    unsigned int value = HashOf(i) ^ piece;
    if (piece != kTarget || i >= static_cast<size_t>(touched)) return value;
    for (int iteration = 0; iteration < options.iterations; ++iteration)
      value = value * 5u + (HashOf(i) ^ kSource);
    return value;
  };
  for (size_t i = 0; i < got.size(); i += stride)
    checker.Expect("value", i, got[i], expected(kTarget, i), apps::kExact);

  unsigned int** list = nullptr;
  unsigned int* sums = nullptr;
  CUDA_CHECK(cudaMalloc(&list, kPieces * sizeof(*list)));
  CUDA_CHECK(cudaMalloc(&sums, piece_bytes));
  CUDA_CHECK(cudaMemcpy(list, pieces.data(), kPieces * sizeof(*list),
                        cudaMemcpyHostToDevice));
  SumPiecesKernel<<<8 * 132, kBlock>>>(list, sums, count);
  const size_t looked_at = std::min(count, 4 * kPeriod);
  const std::vector<unsigned int> summed = fetch(sums, looked_at);
  const size_t step = apps::CheckStride(options, looked_at, 1 << 16);
  for (size_t i = 0; i < looked_at; i += step) {
    unsigned int sum = 0;
    for (int piece = 0; piece < kPieces; ++piece) sum += expected(piece, i);
    checker.Expect("sum", i, summed[i], sum, apps::kExact);
  }
  CUDA_CHECK(cudaFree(sums));
  CUDA_CHECK(cudaFree(list));
  for (unsigned int* piece : pieces) CUDA_CHECK(cudaFree(piece));
  return checker.Finish();
}
