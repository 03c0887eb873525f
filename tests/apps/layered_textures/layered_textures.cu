// A layered array and a cubemap read through textures, an array written through
// a surface, and a texture whose handle a kernel finds in device memory. A
// recorder that cannot keep arrays must say so of all four kernels. Results are
// exact: textures are read point by point. --size: width of a layer.
#include "../common/app.h"

constexpr int kBlock = 16;
constexpr int kLayers = 3;
constexpr int kFaces = 6;

// output = texels of all layers, + 1.
__global__ void SampleLayersKernel(cudaTextureObject_t texture, int* output,
                                   int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= width) return;
  const int layer = blockIdx.z;
  output[(layer * width + y) * width + x] =
      tex2DLayered<int>(texture, x + 0.5f, y + 0.5f, layer) + 1;
}

// output[face] = the one texel of each face of the cube.
__global__ void SampleCubeKernel(cudaTextureObject_t texture, int* output) {
  const int face = threadIdx.x;
  const float sign = face % 2 == 0 ? 1.0f : -1.0f;
  output[face] =
      texCubemap<int>(texture, face / 2 == 0 ? sign : 0.0f,
                      face / 2 == 1 ? sign : 0.0f, face / 2 == 2 ? sign : 0.0f);
}

// texel(x, y) = 2 texel(x, y) + x.
__global__ void AdvanceSurfaceKernel(cudaSurfaceObject_t surface, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= width) return;
  int texel = 0;
  surf2Dread(&texel, surface, x * static_cast<int>(sizeof(int)), y);
  surf2Dwrite(2 * texel + x, surface, x * static_cast<int>(sizeof(int)), y);
}

// The same texels as SampleLayersKernel's, + 2.
__global__ void SampleTableKernel(const cudaTextureObject_t* table, int* output,
                                  int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= width) return;
  const int layer = blockIdx.z;
  output[(layer * width + y) * width + x] =
      tex2DLayered<int>(table[0], x + 0.5f, y + 0.5f, layer) + 2;
}

// An array of `depth` layers or faces that holds `values`.
cudaArray_t MakeArray(const std::vector<int>& values, int width, int depth,
                      unsigned int flags) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  const cudaExtent extent = make_cudaExtent(width, width, depth);
  cudaArray_t array = nullptr;
  CUDA_CHECK(cudaMalloc3DArray(&array, &format, extent, flags));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(const_cast<int*>(values.data()),
                                    width * sizeof(int), width, width);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(width, width, std::max(1, depth));
  copy.kind = cudaMemcpyHostToDevice;
  CUDA_CHECK(cudaMemcpy3D(&copy));
  return array;
}

cudaResourceDesc ResourceOf(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

cudaTextureObject_t MakeTexture(cudaArray_t array) {
  const cudaResourceDesc resource = ResourceOf(array);
  cudaTextureDesc description = {};
  for (cudaTextureAddressMode& mode : description.addressMode)
    mode = cudaAddressModeClamp;
  description.filterMode = cudaFilterModePoint;
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture = 0;
  CUDA_CHECK(
      cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

std::vector<int> Values(uint32_t seed, size_t count) {
  std::vector<int> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<int>(apps::HashBits(seed, i) >> 8);
  return values;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "layered_textures", {501, 51, 2000, "width of a layer"});
  const int width = static_cast<int>(options.size);
  const std::vector<int> layers =
      Values(1, static_cast<size_t>(kLayers) * width * width);
  const std::vector<int> faces = Values(2, kFaces);
  const std::vector<int> plane = Values(3, static_cast<size_t>(width) * width);
  const cudaArray_t layered =
      MakeArray(layers, width, kLayers, cudaArrayLayered);
  const cudaArray_t cube = MakeArray(faces, 1, kFaces, cudaArrayCubemap);
  const cudaArray_t written =
      MakeArray(plane, width, 0, cudaArraySurfaceLoadStore);
  const cudaTextureObject_t layered_texture = MakeTexture(layered);
  const cudaTextureObject_t cube_texture = MakeTexture(cube);
  const cudaResourceDesc resource = ResourceOf(written);
  cudaSurfaceObject_t surface = 0;
  CUDA_CHECK(cudaCreateSurfaceObject(&surface, &resource));
  apps::DeviceArray<cudaTextureObject_t> table(
      std::vector<cudaTextureObject_t>{layered_texture});
  apps::DeviceArray<int> from_layers(layers.size());
  apps::DeviceArray<int> from_faces(kFaces);
  apps::DeviceArray<int> from_table(layers.size());

  const int blocks = apps::BlocksFor(width, kBlock);
  const dim3 grid(blocks, blocks, kLayers), block(kBlock, kBlock);
  apps::RunIterations(options, [&] {
    SampleLayersKernel<<<grid, block>>>(layered_texture, from_layers.get(),
                                        width);
    SampleCubeKernel<<<1, kFaces>>>(cube_texture, from_faces.get());
    AdvanceSurfaceKernel<<<dim3(blocks, blocks), block>>>(surface, width);
    SampleTableKernel<<<grid, block>>>(table.get(), from_table.get(), width);
  });

  apps::Checker checker;
  const std::vector<int> got_layers = from_layers.ToHost();
  const std::vector<int> got_table = from_table.ToHost();
  for (size_t i = 0; i < layers.size(); ++i) {
    checker.Expect("layer", i, got_layers[i], layers[i] + 1, apps::kExact);
    checker.Expect("by table", i, got_table[i], layers[i] + 2, apps::kExact);
  }
  const std::vector<int> got_faces = from_faces.ToHost();
  for (int i = 0; i < kFaces; ++i)
    checker.Expect("face", i, got_faces[i], faces[i], apps::kExact);
  std::vector<int> got_plane(plane.size());
  CUDA_CHECK(cudaMemcpy2DFromArray(got_plane.data(), width * sizeof(int),
                                   written, 0, 0, width * sizeof(int), width,
                                   cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < plane.size(); ++i) {
    unsigned int value = static_cast<unsigned int>(plane[i]);
    for (int iteration = 0; iteration < options.iterations; ++iteration)
      value = 2u * value + static_cast<unsigned int>(i % width);
    checker.Expect("surface", i, got_plane[i], static_cast<int>(value),
                   apps::kExact);
  }
  CUDA_CHECK(cudaDestroyTextureObject(layered_texture));
  CUDA_CHECK(cudaDestroyTextureObject(cube_texture));
  CUDA_CHECK(cudaDestroySurfaceObject(surface));
  for (cudaArray_t array : {layered, cube, written})
    CUDA_CHECK(cudaFreeArray(array));
  return checker.Finish();
}
