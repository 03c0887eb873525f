// Sorts every row of integers, in place, by odd-even transposition: the
// parallel form of bubble sort. One block per row; neighbours are compared and
// swapped in shared memory, even pairs and odd pairs by turns.
// --size: number of rows.
#include "../common/app.h"

constexpr int kMaxLength = 1024;

// Requires length <= kMaxLength.
__global__ void BubbleSortKernel(int* data, int length) {
  __shared__ int row[kMaxLength];
  int* global_row = data + blockIdx.x * length;
  for (int i = threadIdx.x; i < length; i += blockDim.x) {
    row[i] = global_row[i];
  }
  __syncthreads();
  for (int phase = 0; phase < length; ++phase) {
    int first = phase % 2 + 2 * threadIdx.x;
    for (int i = first; i + 1 < length; i += 2 * blockDim.x) {
      if (row[i] > row[i + 1]) {
        int larger = row[i];
        row[i] = row[i + 1];
        row[i + 1] = larger;
      }
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < length; i += blockDim.x) {
    global_row[i] = row[i];
  }
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "bubble_sort", {4096, 9, 1 << 20, "number of rows"});
  const int rows = static_cast<int>(options.size);
  const int length = options.small ? 101 : kMaxLength;
  const int block = options.small ? 32 : 512;

  const std::vector<int> input =
      apps::RandomInts(static_cast<size_t>(rows) * length, 25, 100000);
  apps::DeviceArray<int> device_input(input);
  apps::DeviceArray<int> device_data(input.size());

  apps::RunIterations(
      options,
      [&] { BubbleSortKernel<<<rows, block>>>(device_data.get(), length); },
      [&] { device_data.CopyFrom(device_input); });

  const std::vector<int> data = device_data.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, rows, 512);
  for (size_t row = 0; row < static_cast<size_t>(rows); row += stride) {
    const auto begin = input.begin() + row * length;
    std::vector<int> expected(begin, begin + length);
    std::sort(expected.begin(), expected.end());
    for (int i = 0; i < length; ++i) {
      const size_t at = row * length + i;
      checker.Expect("data", at, data[at], expected[i], apps::kExact);
    }
  }
  return checker.Finish();
}
