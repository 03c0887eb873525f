// The k largest elements of every row with their columns, largest first; of
// equal elements the one further left comes first. One block per row searches
// the row k times for the largest element that was not taken yet.
// --size: number of rows.
#include <numeric>

#include "../common/app.h"

constexpr int kBlock = 256;

// Whether element (value, index) comes before element (other, other_index).
__device__ bool ComesBefore(float value, int index, float other,
                            int other_index) {
  return value > other || (value == other && index < other_index);
}

// Requires k <= columns and finite elements. The block size is a power of two,
// at most kBlock.
__global__ void TopKKernel(const float* input, float* values, int* indices,
                           int columns, int k) {
  __shared__ float best_values[kBlock];
  __shared__ int best_indices[kBlock];
  const float* row = input + blockIdx.x * columns;
  float taken_value = INFINITY;
  int taken_index = -1;

  for (int pick = 0; pick < k; ++pick) {
    float value = -INFINITY;
    int index = columns;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
      if (ComesBefore(taken_value, taken_index, row[i], i) &&
          ComesBefore(row[i], i, value, index)) {
        value = row[i];
        index = i;
      }
    }
    best_values[threadIdx.x] = value;
    best_indices[threadIdx.x] = index;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) {
        int other = threadIdx.x + half;
        if (ComesBefore(best_values[other], best_indices[other],
                        best_values[threadIdx.x], best_indices[threadIdx.x])) {
          best_values[threadIdx.x] = best_values[other];
          best_indices[threadIdx.x] = best_indices[other];
        }
      }
      __syncthreads();
    }
    taken_value = best_values[0];
    taken_index = best_indices[0];
    if (threadIdx.x == 0) {
      values[blockIdx.x * k + pick] = taken_value;
      indices[blockIdx.x * k + pick] = taken_index;
    }
    __syncthreads();  // before the next search overwrites the shared arrays
  }
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "topk", {4096, 19, 65536, "number of rows"});
  const int rows = static_cast<int>(options.size);
  const int columns = options.small ? 500 : 16384;
  const int k = options.small ? 5 : 16;

  // Multiples of 1/1024, so that rows hold equal elements.
  std::vector<float> input =
      apps::RandomFloats(static_cast<size_t>(rows) * columns, 24, 0.0f, 1.0f);
  for (float& value : input) value = std::floor(value * 1024) / 1024;
  apps::DeviceArray<float> device_input(input);
  apps::DeviceArray<float> device_values(static_cast<size_t>(rows) * k);
  apps::DeviceArray<int> device_indices(static_cast<size_t>(rows) * k);

  apps::RunIterations(options, [&] {
    TopKKernel<<<rows, kBlock>>>(device_input.get(), device_values.get(),
                                 device_indices.get(), columns, k);
  });

  // Only comparisons, so the result is exact.
  const std::vector<float> values = device_values.ToHost();
  const std::vector<int> indices = device_indices.ToHost();
  apps::Checker checker;
  std::vector<int> order(columns);
  const size_t stride = apps::CheckStride(options, rows, 512);
  for (size_t row = 0; row < static_cast<size_t>(rows); row += stride) {
    const float* x = input.data() + row * columns;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(
        order.begin(), order.begin() + k, order.end(),
        [x](int a, int b) { return x[a] != x[b] ? x[a] > x[b] : a < b; });
    for (int i = 0; i < k; ++i) {
      const size_t at = row * k + i;
      checker.Expect("values", at, values[at], x[order[i]], apps::kExact);
      checker.Expect("indices", at, indices[at], order[i], apps::kExact);
    }
  }
  return checker.Finish();
}
