// A ragged matrix behind three levels of pointers: a struct in device memory
// points at arrays of row pointers, and every row is an allocation of its own.
// One kernel writes the next rows, the other exchanges the row pointers.
// --size: number of rows.
#include "../common/app.h"

constexpr int kBlock = 256;
constexpr int kMinLength = 500;
constexpr int kMaxLength = 40000;

struct Ragged {
  float** rows;
  float** next_rows;
  const int* lengths;
  int row_count;
};

// Averages every element with the elements at the same column of the rows above
// and below (around the edge); a row too short for the column counts as zero.
// One block per row.
__global__ void SmoothRowsKernel(const Ragged* matrix) {
  int row = blockIdx.x;
  int above = (row + matrix->row_count - 1) % matrix->row_count;
  int below = (row + 1) % matrix->row_count;
  for (int column = threadIdx.x; column < matrix->lengths[row];
       column += blockDim.x) {
    float sum = 2.0f * matrix->rows[row][column];
    if (column < matrix->lengths[above]) sum += matrix->rows[above][column];
    if (column < matrix->lengths[below]) sum += matrix->rows[below][column];
    matrix->next_rows[row][column] = 0.25f * sum;
  }
}

__global__ void ExchangeRowsKernel(const Ragged* matrix) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= matrix->row_count) return;
  float* old_row = matrix->rows[row];
  matrix->rows[row] = matrix->next_rows[row];
  matrix->next_rows[row] = old_row;
}

using Rows = std::vector<std::vector<float>>;

// SmoothRowsKernel on the host, with the same operations in the same order.
Rows Smooth(const Rows& rows) {
  Rows result(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::vector<float>& above = rows[(r + rows.size() - 1) % rows.size()];
    const std::vector<float>& below = rows[(r + 1) % rows.size()];
    const size_t length = rows[r].size();
    std::vector<float>& sum = result[r];
    sum.resize(length);
    for (size_t c = 0; c < length; ++c) sum[c] = 2.0f * rows[r][c];
    for (size_t c = 0; c < std::min(length, above.size()); ++c)
      sum[c] += above[c];
    for (size_t c = 0; c < std::min(length, below.size()); ++c)
      sum[c] += below[c];
    for (float& value : sum) value *= 0.25f;
  }
  return result;
}

// Doubling and quartering are exact, so a fused multiply-add changes nothing.
constexpr apps::Tolerance kTolerance = apps::kExact;

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "nested_pointers", {3072, 24, 16384, "number of rows"});
  const int row_count = static_cast<int>(options.size);
  const int max_length = options.small ? 2 * kMinLength : kMaxLength;

  Rows rows(row_count);
  std::vector<int> lengths(row_count);
  std::vector<float*> row_pointers(row_count);
  std::vector<float*> next_row_pointers(row_count);
  for (int r = 0; r < row_count; ++r) {
    lengths[r] = kMinLength + static_cast<int>(apps::HashBits(1, r) %
                                               (max_length - kMinLength));
    rows[r] = apps::RandomFloats(lengths[r], 2 + r, -1.0f, 1.0f);
    const size_t bytes = lengths[r] * sizeof(float);
    CUDA_CHECK(cudaMalloc(&row_pointers[r], bytes));
    CUDA_CHECK(cudaMalloc(&next_row_pointers[r], bytes));
    CUDA_CHECK(cudaMemcpy(row_pointers[r], rows[r].data(), bytes,
                          cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(next_row_pointers[r], 0xff, bytes));
  }
  apps::DeviceArray<float*> device_rows(row_pointers);
  apps::DeviceArray<float*> device_next_rows(next_row_pointers);
  apps::DeviceArray<int> device_lengths(lengths);
  apps::DeviceArray<Ragged> matrix(
      std::vector<Ragged>{{device_rows.get(), device_next_rows.get(),
                           device_lengths.get(), row_count}});

  apps::RunIterations(options, [&] {
    SmoothRowsKernel<<<row_count, kBlock>>>(matrix.get());
    ExchangeRowsKernel<<<apps::BlocksFor(row_count, kBlock), kBlock>>>(
        matrix.get());
  });

  for (int i = 0; i < options.iterations; ++i) rows = Smooth(rows);
  const std::vector<float*> got_rows = device_rows.ToHost();
  apps::Checker checker;
  for (int r = 0; r < row_count; ++r) {
    // An odd number of exchanges leaves the second allocation in front.
    float* expected_row =
        options.iterations % 2 == 0 ? row_pointers[r] : next_row_pointers[r];
    checker.Expect("row pointer is the expected one", r,
                   got_rows[r] == expected_row, 1, apps::kExact);
    std::vector<float> got(lengths[r]);
    CUDA_CHECK(cudaMemcpy(got.data(), expected_row, got.size() * sizeof(float),
                          cudaMemcpyDeviceToHost));
    for (size_t c = 0; c < got.size(); ++c) {
      checker.Expect("row element", c, got[c], rows[r][c], kTolerance);
    }
  }
  for (int r = 0; r < row_count; ++r) {
    CUDA_CHECK(cudaFree(row_pointers[r]));
    CUDA_CHECK(cudaFree(next_row_pointers[r]));
  }
  return checker.Finish();
}
