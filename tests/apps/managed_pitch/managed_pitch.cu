// Memory from everything but plain cudaMalloc: managed memory that host and
// device update in turn, a pitched image with 2-D copies, a pitched volume with
// 3-D copies, and stream-ordered allocations.
// --size: width of the image, whose height is 3/4 of it.
#include "../common/app.h"

constexpr int kBlock = 16;

struct Totals {  // lives in managed memory
  unsigned long long sum;
  unsigned int launches;
};

// Sums each pixel with its right and lower neighbours, modulo 256, and all
// results in totals. Rows are `pitch` bytes apart.
__global__ void CombineKernel(const unsigned char* image, size_t pitch,
                              unsigned char* result, size_t result_pitch,
                              int width, int height, Totals* totals) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  unsigned int sum = image[y * pitch + x];
  if (x + 1 < width) sum += image[y * pitch + x + 1];
  if (y + 1 < height) sum += image[(y + 1) * pitch + x];
  unsigned char pixel = static_cast<unsigned char>(sum);
  result[y * result_pitch + x] = pixel;
  atomicAdd(&totals->sum, static_cast<unsigned long long>(pixel));
  if (x == 0 && y == 0) totals->launches += 1;
}

// column_sums[x] = sum of the image's column x plus the managed bias[x].
__global__ void ColumnKernel(const unsigned char* image, size_t pitch,
                             int width, int height, const int* bias,
                             int* column_sums) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= width) return;
  int sum = bias[x];
  for (int y = 0; y < height; ++y) sum += image[y * pitch + x];
  column_sums[x] = sum;
}

// Adds each column sum to every layer of the volume, layer + 1 times.
__global__ void AddToVolumeKernel(cudaPitchedPtr volume, const int* column_sums,
                                  int width, int height, int depth) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y;
  int z = blockIdx.z;
  if (x >= width || y >= height || z >= depth) return;
  char* row = static_cast<char*>(volume.ptr) +
              (static_cast<size_t>(z) * height + y) * volume.pitch;
  reinterpret_cast<int*>(row)[x] += (z + 1) * column_sums[x];
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "managed_pitch", {2001, 101, 20000, "width of the image"});
  const int width = static_cast<int>(options.size);
  const int height = std::max(1, width * 3 / 4);
  constexpr int kRows = 5, kLayers = 3;  // of the volume
  std::vector<unsigned char> pixels(static_cast<size_t>(width) * height);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<unsigned char>(apps::HashBits(1, i));
  }

  unsigned char* image = nullptr;
  unsigned char* result = nullptr;
  size_t pitch = 0, result_pitch = 0;
  CUDA_CHECK(cudaMallocPitch(&image, &pitch, width, height));
  CUDA_CHECK(cudaMallocPitch(&result, &result_pitch, width, height));
  CUDA_CHECK(cudaMemcpy2D(image, pitch, pixels.data(), width, width, height,
                          cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset2D(result, result_pitch, 0xff, width, height));
  const cudaExtent extent =
      make_cudaExtent(width * sizeof(int), kRows, kLayers);
  cudaPitchedPtr volume;
  CUDA_CHECK(cudaMalloc3D(&volume, extent));
  CUDA_CHECK(cudaMemset3D(volume, 0, extent));
  Totals* totals = nullptr;
  int* bias = nullptr;
  CUDA_CHECK(cudaMallocManaged(&totals, sizeof(Totals)));
  CUDA_CHECK(cudaMallocManaged(&bias, width * sizeof(int)));
  for (int x = 0; x < width; ++x) bias[x] = x % 1000;
  totals->launches = 0;

  const dim3 image_blocks(apps::BlocksFor(width, kBlock),
                          apps::BlocksFor(height, kBlock));
  const int row_blocks = apps::BlocksFor(width, kBlock * kBlock);
  apps::RunIterations(
      options,
      [&] {
        int* column_sums = nullptr;
        CUDA_CHECK(cudaMallocAsync(&column_sums, width * sizeof(int), nullptr));
        CombineKernel<<<image_blocks, dim3(kBlock, kBlock)>>>(
            image, pitch, result, result_pitch, width, height, totals);
        ColumnKernel<<<row_blocks, kBlock * kBlock>>>(
            result, result_pitch, width, height, bias, column_sums);
        AddToVolumeKernel<<<dim3(row_blocks, kRows, kLayers),
                            kBlock * kBlock>>>(volume, column_sums, width,
                                               kRows, kLayers);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaFreeAsync(column_sums, nullptr));
      },
      [&] {
        // The host may touch managed memory only while the device is idle.
        CUDA_CHECK(cudaDeviceSynchronize());
        totals->sum = 0;
        for (int x = 0; x < width; ++x) bias[x] += 1;
      });

  std::vector<unsigned char> got(pixels.size());
  CUDA_CHECK(cudaMemcpy2D(got.data(), width, result, result_pitch, width,
                          height, cudaMemcpyDeviceToHost));
  std::vector<int> got_volume(static_cast<size_t>(width) * kRows * kLayers);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = volume;
  copy.dstPtr = make_cudaPitchedPtr(got_volume.data(), width * sizeof(int),
                                    width * sizeof(int), kRows);
  copy.extent = extent;
  copy.kind = cudaMemcpyDeviceToHost;
  CUDA_CHECK(cudaMemcpy3D(&copy));

  apps::Checker checker;
  std::vector<int> column_sums(width, 0);
  double total = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const size_t i = static_cast<size_t>(y) * width + x;
      int expected = pixels[i];
      if (x + 1 < width) expected += pixels[i + 1];
      if (y + 1 < height) expected += pixels[i + width];
      expected %= 256;
      column_sums[x] += expected;
      total += expected;
      checker.Expect("pixel", i, got[i], expected, apps::kExact);
    }
  }
  checker.Expect("managed sum", 0, static_cast<double>(totals->sum), total,
                 apps::kExact);
  checker.Expect("managed launches", 0, totals->launches, options.iterations,
                 apps::kExact);
  for (size_t i = 0; i < got_volume.size(); ++i) {
    const int x = static_cast<int>(i % width);
    const int layer = static_cast<int>(i / width / kRows);
    // The bias was x % 1000 + 1, + 2, ... in the iterations, wrapping like int.
    const int64_t n = options.iterations;
    const int64_t sum = n * (column_sums[x] + x % 1000) + n * (n + 1) / 2;
    checker.Expect("volume", i, got_volume[i],
                   static_cast<int>((layer + 1) * sum), apps::kExact);
  }
  CUDA_CHECK(cudaFree(image));
  CUDA_CHECK(cudaFree(result));
  CUDA_CHECK(cudaFree(volume.ptr));
  CUDA_CHECK(cudaFree(totals));
  CUDA_CHECK(cudaFree(bias));
  return checker.Finish();
}
