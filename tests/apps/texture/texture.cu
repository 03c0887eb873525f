// A texture object over a CUDA array, read with wrapping coordinates, and a
// kernel without textures that uses the result. A recorder that cannot keep
// textures must say so of the first kernel and still record the second.
// Results are exact: the texture is read point by point.
// --size: width of the image; the height is 3/4 of it.
#include "../common/app.h"

constexpr int kBlock = 16;

// output(x, y) = texel of the image moved by (shift, 2 shift), which wraps.
__global__ void SampleTextureKernel(cudaTextureObject_t texture, int* output,
                                    int width, int height, int shift) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const float u = (x + shift + 0.5f) / width;
  const float v = (y + 2 * shift + 0.5f) / height;
  output[y * width + x] = tex2D<int>(texture, u, v);
}

// totals[x] += column x of the image, modulo 2^32.
__global__ void AddColumnsKernel(const int* image, int width, int height,
                                 unsigned int* totals) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= width) return;
  for (int y = 0; y < height; ++y) {
    totals[x] += static_cast<unsigned int>(image[y * width + x]);
  }
}

cudaTextureObject_t MakeTexture(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description = {};
  description.addressMode[0] = cudaAddressModeWrap;
  description.addressMode[1] = cudaAddressModeWrap;
  description.filterMode = cudaFilterModePoint;
  description.readMode = cudaReadModeElementType;
  description.normalizedCoords = 1;
  cudaTextureObject_t texture = 0;
  CUDA_CHECK(
      cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "texture", {2001, 101, 8000, "width of the image"});
  const int width = static_cast<int>(options.size);
  const int height = std::max(1, width * 3 / 4);
  std::vector<int> image(static_cast<size_t>(width) * height);
  for (size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<int>(apps::HashBits(1, i) >> 1);
  }
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr;
  CUDA_CHECK(cudaMallocArray(&array, &format, width, height));
  CUDA_CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), width * sizeof(int),
                                 width * sizeof(int), height,
                                 cudaMemcpyHostToDevice));
  const cudaTextureObject_t texture = MakeTexture(array);
  apps::DeviceArray<int> output(image.size());
  apps::DeviceArray<unsigned int> totals(width);
  totals.Clear();

  int shift = 0;
  apps::RunIterations(options, [&] {
    SampleTextureKernel<<<dim3(apps::BlocksFor(width, kBlock),
                               apps::BlocksFor(height, kBlock)),
                          dim3(kBlock, kBlock)>>>(texture, output.get(), width,
                                                  height, shift++);
    AddColumnsKernel<<<apps::BlocksFor(width, kBlock * kBlock),
                       kBlock * kBlock>>>(output.get(), width, height,
                                          totals.get());
  });

  std::vector<unsigned int> expected_totals(width);
  for (int s = 0; s < options.iterations; ++s) {
    for (int x = 0; x < width; ++x) {
      for (int y = 0; y < height; ++y) {
        expected_totals[x] += static_cast<unsigned int>(
            image[(y + 2 * s) % height * width + (x + s) % width]);
      }
    }
  }
  const int last = options.iterations - 1;
  apps::Checker checker;
  const std::vector<int> got = output.ToHost();
  for (size_t i = 0; i < got.size(); ++i) {
    const int x = static_cast<int>(i % width) + last;
    const int y = static_cast<int>(i / width) + 2 * last;
    checker.Expect("output", i, got[i], image[y % height * width + x % width],
                   apps::kExact);
  }
  const std::vector<unsigned int> got_totals = totals.ToHost();
  for (int x = 0; x < width; ++x) {
    checker.Expect("total", x, got_totals[x], expected_totals[x], apps::kExact);
  }
  CUDA_CHECK(cudaDestroyTextureObject(texture));
  CUDA_CHECK(cudaFreeArray(array));
  return checker.Finish();
}
