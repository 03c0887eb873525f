// A tensor map (the descriptor of the tensor memory accelerator) passed by
// value: one bulk tensor copy brings each block's tile into shared memory, the
// block transposes it. The tiles at the matrix's edges reach beyond it and are
// filled with zeros. Needs compute capability 9.0. Results are exact.
// --size: number of columns; there are 3/4 as many rows.
#include <cuda.h>  // types only: the one driver call is looked up

#include "../common/app.h"

constexpr int kTile = 32;
constexpr unsigned int kTileBytes = kTile * kTile * sizeof(int);

__device__ unsigned int SharedAddress(const void* pointer) {
  return static_cast<unsigned int>(__cvta_generic_to_shared(pointer));
}

// Makes a barrier in shared memory that one thread arrives at.
__device__ void InitBarrier(unsigned long long* barrier) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SharedAddress(barrier))
      : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Starts the copy of the tile at (column, row); the barrier's phase completes
// once all its bytes have arrived. For one thread.
__device__ void CopyTile(int* tile, const CUtensorMap* map, int column, int row,
                         unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   SharedAddress(barrier)),
               "r"(kTileBytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier"
      "::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          SharedAddress(tile)),
      "l"(map), "r"(column), "r"(row), "r"(SharedAddress(barrier))
      : "memory");
}

// Waits for the barrier's first phase.
__device__ void WaitForTile(unsigned long long* barrier) {
  unsigned int done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred complete;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], 0;\n"
        "selp.u32 %0, 1, 0, complete; }"
        : "=r"(done)
        : "r"(SharedAddress(barrier))
        : "memory");
  }
}

// transposed[x * pitch + y] = matrix(y, x) + 1 for every x and y of the tiles,
// beyond the matrix too; pitch in elements.
__global__ void TransposeTilesKernel(const __grid_constant__ CUtensorMap map,
                                     int* transposed, int pitch) {
  __shared__ alignas(128) int tile[kTile][kTile];
  __shared__ alignas(8) unsigned long long barrier;
  const int column = blockIdx.x * kTile;
  const int row = blockIdx.y * kTile;
  const bool first = threadIdx.x == 0 && threadIdx.y == 0;
  if (first) InitBarrier(&barrier);
  __syncthreads();
  if (first) CopyTile(&tile[0][0], &map, column, row, &barrier);
  WaitForTile(&barrier);
  for (int x = threadIdx.y; x < kTile; x += blockDim.y) {
    transposed[(column + x) * pitch + row + threadIdx.x] =
        tile[threadIdx.x][x] + 1;
  }
}

// `pitch_bytes` must be a multiple of 16.
CUtensorMap MakeTensorMap(int* matrix, int width, int height,
                          size_t pitch_bytes) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion(
      "cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
  decltype(&cuTensorMapEncodeTiled) encode =
      reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(width),
                              static_cast<cuuint64_t>(height)};
  const cuuint64_t strides[] = {
      pitch_bytes};  // of all dimensions but the first
  const cuuint32_t box[] = {kTile, kTile};
  const cuuint32_t element_strides[] = {1, 1};
  CUtensorMap map;
  const CUresult status =
      found != cudaDriverEntryPointSuccess
          ? CUDA_ERROR_NOT_FOUND
          : encode(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, matrix, sizes,
                   strides, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status == CUDA_SUCCESS) return map;
  std::printf("tma: FAIL cuTensorMapEncodeTiled: CUresult %d\n", status);
  std::exit(1);
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "tma", {4001, 101, 20000, "number of columns"});
  const int width = static_cast<int>(options.size);
  const int height = std::max(1, width * 3 / 4);
  const int row_pitch = (width + 3) / 4 * 4;
  const dim3 tiles(apps::BlocksFor(width, kTile),
                   apps::BlocksFor(height, kTile));
  const int pitch = static_cast<int>(tiles.y) * kTile;
  std::vector<int> matrix(static_cast<size_t>(row_pitch) * height);
  for (size_t i = 0; i < matrix.size(); ++i) {
    matrix[i] = static_cast<int>(apps::HashBits(1, i) >> 2);
  }
  apps::DeviceArray<int> device_matrix(matrix);
  apps::DeviceArray<int> transposed(static_cast<size_t>(tiles.x) * kTile *
                                    pitch);
  const CUtensorMap map = MakeTensorMap(device_matrix.get(), width, height,
                                        row_pitch * sizeof(int));
  apps::RunIterations(options, [&] {
    TransposeTilesKernel<<<tiles, dim3(kTile, 8)>>>(map, transposed.get(),
                                                    pitch);
  });

  apps::Checker checker;
  const std::vector<int> got = transposed.ToHost();
  for (size_t i = 0; i < got.size(); ++i) {
    const size_t x = i / pitch, y = i % pitch;
    const bool inside =
        x < static_cast<size_t>(width) && y < static_cast<size_t>(height);
    checker.Expect("transposed", i, got[i],
                   inside ? matrix[y * row_pitch + x] + 1 : 1, apps::kExact);
  }
  return checker.Finish();
}
