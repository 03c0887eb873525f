// 3-D max pooling over a batch of volumes (window 3, stride 2, padding 1).
// One thread per output element, found from a flat index.
// --size: height and width of a volume; its depth is half of that.
#include "../common/app.h"

// `planes` is batch x channels. Padding never wins: it is left out.
__global__ void MaxPool3dKernel(const float* input, float* output, int planes,
                                int depth, int height, int width, int out_depth,
                                int out_height, int out_width, int window,
                                int stride, int padding) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= planes * out_depth * out_height * out_width) {
    return;
  }
  int out_x = i % out_width;
  int out_y = i / out_width % out_height;
  int out_z = i / (out_width * out_height) % out_depth;
  int plane = i / (out_width * out_height * out_depth);

  float best = -INFINITY;
  for (int dz = 0; dz < window; ++dz) {
    for (int dy = 0; dy < window; ++dy) {
      for (int dx = 0; dx < window; ++dx) {
        int z = out_z * stride - padding + dz;
        int y = out_y * stride - padding + dy;
        int x = out_x * stride - padding + dx;
        if (z >= 0 && z < depth && y >= 0 && y < height && x >= 0 &&
            x < width) {
          best = fmaxf(best,
                       input[((plane * depth + z) * height + y) * width + x]);
        }
      }
    }
  }
  output[i] = best;
}

struct Shape {
  int planes, depth, height, width;
  size_t Count() const {
    return static_cast<size_t>(planes) * depth * height * width;
  }
};

constexpr int kWindow = 3;
constexpr int kStride = 2;
constexpr int kPadding = 1;
constexpr int kBlock = 256;

int PooledSize(int size) {
  return (size + 2 * kPadding - kWindow) / kStride + 1;
}

float ExpectedMax(const std::vector<float>& input, const Shape& in, int plane,
                  int out_z, int out_y, int out_x) {
  // The window, cut to the volume.
  const int z0 = std::max(0, out_z * kStride - kPadding);
  const int y0 = std::max(0, out_y * kStride - kPadding);
  const int x0 = std::max(0, out_x * kStride - kPadding);
  const int z1 = std::min(in.depth, out_z * kStride - kPadding + kWindow);
  const int y1 = std::min(in.height, out_y * kStride - kPadding + kWindow);
  const int x1 = std::min(in.width, out_x * kStride - kPadding + kWindow);
  float best = -INFINITY;
  for (int z = z0; z < z1; ++z) {
    for (int y = y0; y < y1; ++y) {
      const size_t row =
          ((static_cast<size_t>(plane) * in.depth + z) * in.height + y) *
          in.width;
      for (int x = x0; x < x1; ++x) best = std::max(best, input[row + x]);
    }
  }
  return best;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "max_pool3d",
      {128, 13, 320, "height and width of a volume; its depth is half of it"});
  const int size = static_cast<int>(options.size);
  const Shape in{options.small ? 6 : 128, (size + 1) / 2, size, size};
  const Shape out{in.planes, PooledSize(in.depth), PooledSize(in.height),
                  PooledSize(in.width)};

  const std::vector<float> input =
      apps::RandomFloats(in.Count(), 8, -1.0f, 1.0f);
  apps::DeviceArray<float> device_input(input);
  apps::DeviceArray<float> device_output(out.Count());

  apps::RunIterations(options, [&] {
    MaxPool3dKernel<<<apps::BlocksFor(out.Count(), kBlock), kBlock>>>(
        device_input.get(), device_output.get(), in.planes, in.depth, in.height,
        in.width, out.depth, out.height, out.width, kWindow, kStride, kPadding);
  });

  // Nothing is rounded, so the result is exact.
  const std::vector<float> output = device_output.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, out.Count(), 1 << 18);
  for (size_t i = 0; i < out.Count(); i += stride) {
    size_t rest = i;
    const int x = rest % out.width;
    rest /= out.width;
    const int y = rest % out.height;
    rest /= out.height;
    const int z = rest % out.depth;
    const int plane = rest / out.depth;
    checker.Expect("output", i, output[i],
                   ExpectedMax(input, in, plane, z, y, x), apps::kExact);
  }
  return checker.Finish();
}
