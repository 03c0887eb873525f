// Transposes a matrix: output[column][row] = input[row][column]. One thread
// per element, straight from and to global memory.
// --size: number of rows; there are three quarters as many columns.
#include "../common/app.h"

__global__ void TransposeKernel(const float* input, float* output, int rows,
                                int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && column < columns) {
    output[column * rows + row] = input[row * columns + column];
  }
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "transpose",
      {10240, 100, 32768,
       "number of rows; there are three quarters as many columns"});
  const int rows = static_cast<int>(options.size);
  const int columns = std::max(1, rows * 3 / 4);
  const size_t count = static_cast<size_t>(rows) * columns;

  const std::vector<float> input = apps::RandomFloats(count, 5, -1.0f, 1.0f);
  apps::DeviceArray<float> device_input(input);
  apps::DeviceArray<float> device_output(count);

  const dim3 block(16, 16);
  const dim3 grid(apps::BlocksFor(columns, 16), apps::BlocksFor(rows, 16));
  apps::RunIterations(options, [&] {
    TransposeKernel<<<grid, block>>>(device_input.get(), device_output.get(),
                                     rows, columns);
  });

  const std::vector<float> output = device_output.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, count, 1 << 20);
  for (size_t i = 0; i < count; i += stride) {
    const size_t column = i / rows;
    const size_t row = i % rows;
    checker.Expect("output", i, output[i], input[row * columns + column],
                   apps::kExact);
  }
  return checker.Finish();
}
