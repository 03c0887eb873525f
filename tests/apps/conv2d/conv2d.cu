// 2-D convolution over a batch of images with several channels (NCHW layout,
// 3 x 3 filters, zero padding, same size). One thread per output element.
// --size: width of an image; its height is three quarters of that.
#include "../common/app.h"

__global__ void Conv2dKernel(const float* input, const float* weights,
                             const float* bias,
                             REPRISE_TOLERANCE(1e-5) float* output,
                             int in_channels, int out_channels, int height,
                             int width, int filter, int padding) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int image = blockIdx.z / out_channels;
  int out_channel = blockIdx.z % out_channels;
  if (x >= width || y >= height) {
    return;
  }
  float sum = bias[out_channel];
  for (int c = 0; c < in_channels; ++c) {
    for (int dy = 0; dy < filter; ++dy) {
      for (int dx = 0; dx < filter; ++dx) {
        int in_y = y + dy - padding;
        int in_x = x + dx - padding;
        if (in_y >= 0 && in_y < height && in_x >= 0 && in_x < width) {
          sum +=
              input[((image * in_channels + c) * height + in_y) * width +
                    in_x] *
              weights[((out_channel * in_channels + c) * filter + dy) * filter +
                      dx];
        }
      }
    }
  }
  output[((image * out_channels + out_channel) * height + y) * width + x] = sum;
}

struct Shape {
  int images, in_channels, out_channels, height, width;
};

constexpr int kFilter = 3;
constexpr int kPadding = 1;
// Inputs lie within +-1 and weights within +-0.1: a sum of 288 products stays
// near 0.6 with a rounding error near 1e-6.
constexpr apps::Tolerance kTolerance{1e-5, 0};

double ExpectedAt(const std::vector<float>& input,
                  const std::vector<float>& weights,
                  const std::vector<float>& bias, const Shape& shape,
                  size_t index) {
  const int x = index % shape.width;
  const int y = index / shape.width % shape.height;
  const size_t plane = index / shape.width / shape.height;
  const size_t image = plane / shape.out_channels;
  const size_t out_channel = plane % shape.out_channels;
  double sum = bias[out_channel];
  for (int c = 0; c < shape.in_channels; ++c) {
    const float* pixels = input.data() + (image * shape.in_channels + c) *
                                             shape.height * shape.width;
    const float* taps = weights.data() + (out_channel * shape.in_channels + c) *
                                             kFilter * kFilter;
    for (int in_y = std::max(0, y - 1); in_y <= y + 1; ++in_y) {
      for (int in_x = std::max(0, x - 1); in_x <= x + 1; ++in_x) {
        if (in_y >= shape.height || in_x >= shape.width) continue;
        sum += static_cast<double>(pixels[in_y * shape.width + in_x]) *
               taps[(in_y - y + 1) * kFilter + in_x - x + 1];
      }
    }
  }
  return sum;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "conv2d",
      {128, 37, 1024, "width of an image; its height is three quarters of it"});
  const int width = static_cast<int>(options.size);
  const int height = (width * 3 + 3) / 4;
  const Shape shape = options.small ? Shape{2, 3, 4, height, width}
                                    : Shape{8, 32, 64, height, width};
  const size_t pixels = static_cast<size_t>(height) * width;
  const size_t out_count = shape.images * shape.out_channels * pixels;

  const std::vector<float> input = apps::RandomFloats(
      shape.images * shape.in_channels * pixels, 12, -1.0f, 1.0f);
  const std::vector<float> weights = apps::RandomFloats(
      shape.out_channels * shape.in_channels * kFilter * kFilter, 13, -0.1f,
      0.1f);
  const std::vector<float> bias =
      apps::RandomFloats(shape.out_channels, 14, -0.1f, 0.1f);
  apps::DeviceArray<float> device_input(input);
  apps::DeviceArray<float> device_weights(weights);
  apps::DeviceArray<float> device_bias(bias);
  apps::DeviceArray<float> device_output(out_count);

  const dim3 block(16, 16);
  const dim3 grid(apps::BlocksFor(width, 16), apps::BlocksFor(height, 16),
                  shape.images * shape.out_channels);
  apps::RunIterations(options, [&] {
    Conv2dKernel<<<grid, block>>>(device_input.get(), device_weights.get(),
                                  device_bias.get(), device_output.get(),
                                  shape.in_channels, shape.out_channels, height,
                                  width, kFilter, kPadding);
  });

  const std::vector<float> output = device_output.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, out_count, 1 << 14);
  for (size_t i = 0; i < out_count; i += stride) {
    checker.Expect("output", i, output[i],
                   ExpectedAt(input, weights, bias, shape, i), kTolerance);
  }
  return checker.Finish();
}
