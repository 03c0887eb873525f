// Pitched allocations: an image from cudaMallocPitch and a volume from
// cudaMalloc3D. A kernel projects the volume onto the image, another adds the
// image to every layer. What lies between the rows belongs to nobody and must
// stay as it was. Results are exact.
// --size: width; the height is 3/4 of it, the depth 1/8.
#include "../common/app.h"

constexpr int kBlock = 32;
constexpr unsigned char kGap = 0xa5;

__device__ unsigned int* Row(cudaPitchedPtr volume, int y, int z) {
  return reinterpret_cast<unsigned int*>(
      static_cast<char*>(volume.ptr) +
      (static_cast<size_t>(z) * volume.ysize + y) * volume.pitch);
}

// image(x, y) = sum of the volume's cells (x, y, z) over all z, modulo 2^16.
__global__ void ProjectKernel(cudaPitchedPtr volume, int depth,
                              unsigned short* image, size_t pitch, int width,
                              int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  unsigned int sum = 0;
  for (int z = 0; z < depth; ++z) sum += Row(volume, y, z)[x];
  char* row = reinterpret_cast<char*>(image) + y * pitch;
  reinterpret_cast<unsigned short*>(row)[x] = static_cast<unsigned short>(sum);
}

// volume(x, y, z) += (z + 1) image(x, y), modulo 2^32.
__global__ void ExtrudeKernel(const unsigned short* image, size_t pitch,
                              int width, int height, cudaPitchedPtr volume) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z;
  if (x >= width || y >= height) return;
  const char* row = reinterpret_cast<const char*>(image) + y * pitch;
  Row(volume, y, z)[x] +=
      (z + 1) * reinterpret_cast<const unsigned short*>(row)[x];
}

// Copies the volume from or to `cells`, which has no gaps between its rows.
void CopyVolume(cudaPitchedPtr volume, std::vector<unsigned int>& cells,
                cudaExtent extent, cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy = {};
  const cudaPitchedPtr host = make_cudaPitchedPtr(cells.data(), extent.width,
                                                  extent.width, extent.height);
  copy.srcPtr = kind == cudaMemcpyHostToDevice ? host : volume;
  copy.dstPtr = kind == cudaMemcpyHostToDevice ? volume : host;
  copy.extent = extent;
  copy.kind = kind;
  CUDA_CHECK(cudaMemcpy3D(&copy));
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "pitched_3d", {801, 101, 4000, "width of image and volume"});
  const int width = static_cast<int>(options.size);
  const int height = std::max(1, width * 3 / 4);
  const int depth = std::max(1, width / 8);
  const size_t pixels = static_cast<size_t>(width) * height;

  unsigned short* image = nullptr;
  size_t pitch = 0;
  CUDA_CHECK(
      cudaMallocPitch(&image, &pitch, width * sizeof(unsigned short), height));
  CUDA_CHECK(cudaMemset(image, kGap, pitch * height));
  const cudaExtent extent =
      make_cudaExtent(width * sizeof(unsigned int), height, depth);
  cudaPitchedPtr volume;
  CUDA_CHECK(cudaMalloc3D(&volume, extent));
  std::vector<unsigned int> cells(pixels * depth);
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = apps::HashBits(1, i);
  CopyVolume(volume, cells, extent, cudaMemcpyHostToDevice);

  const dim3 block(kBlock, 8);
  const dim3 blocks(apps::BlocksFor(width, kBlock), apps::BlocksFor(height, 8));
  apps::RunIterations(options, [&] {
    ProjectKernel<<<blocks, block>>>(volume, depth, image, pitch, width,
                                     height);
    ExtrudeKernel<<<dim3(blocks.x, blocks.y, depth), block>>>(
        image, pitch, width, height, volume);
  });

  std::vector<unsigned int> got(cells.size());
  CopyVolume(volume, got, extent, cudaMemcpyDeviceToHost);
  std::vector<unsigned char> got_image(pitch * height);
  CUDA_CHECK(cudaMemcpy(got_image.data(), image, got_image.size(),
                        cudaMemcpyDeviceToHost));
  apps::Checker checker;
  for (size_t i = 0; i < pixels; ++i) {
    unsigned short pixel = 0;
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      pixel = 0;
      for (int z = 0; z < depth; ++z) {
        pixel = static_cast<unsigned short>(pixel + cells[z * pixels + i]);
      }
      for (int z = 0; z < depth; ++z) cells[z * pixels + i] += (z + 1) * pixel;
    }
    unsigned short got_pixel = 0;
    std::memcpy(&got_pixel,
                &got_image[i / width * pitch + i % width * sizeof(got_pixel)],
                sizeof(got_pixel));
    checker.Expect("pixel", i, got_pixel, pixel, apps::kExact);
  }
  for (size_t i = 0; i < got.size(); ++i) {
    checker.Expect("cell", i, got[i], cells[i], apps::kExact);
  }
  int spoilt = 0;
  for (size_t i = 0; i < got_image.size(); ++i) {
    const bool gap = i % pitch >= width * sizeof(unsigned short);
    spoilt += gap && got_image[i] != kGap;
  }
  checker.Expect("spoilt bytes between rows", 0, spoilt, 0, apps::kExact);
  CUDA_CHECK(cudaFree(image));
  CUDA_CHECK(cudaFree(volume.ptr));
  return checker.Finish();
}
