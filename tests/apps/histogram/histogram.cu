// Histogram of floats over equally wide bins. One thread per element, which
// adds one to its bin in global memory.
// --size: number of elements.
#include "../common/app.h"

// The bin of a value, or the first or last one for a value out of range.
__host__ __device__ inline int BinOf(float value, float low,
                                     float bins_per_unit, int bins) {
  int bin = (int)((value - low) * bins_per_unit);
  return bin < 0 ? 0 : bin >= bins ? bins - 1 : bin;
}

__global__ void HistogramKernel(const float* values, unsigned int* counts,
                                int count, float low, float bins_per_unit,
                                int bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    atomicAdd(&counts[BinOf(values[i], low, bins_per_unit, bins)], 1u);
  }
}

constexpr int kBlock = 256;
constexpr int kBins = 256;

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "histogram",
      {int64_t{1} << 26, 10007, int64_t{1} << 30, "number of elements"});
  const int count = static_cast<int>(options.size);

  // Averages of two random numbers: bins in the middle are the fullest. A few
  // values lie out of range.
  std::vector<float> values(count);
  for (int i = 0; i < count; ++i) {
    values[i] = 0.5f * (apps::RandomFloat(28, i, -1.05f, 1.05f) +
                        apps::RandomFloat(29, i, -1.05f, 1.05f));
  }
  const float low = -1.0f;
  const float bins_per_unit = kBins / 2.0f;
  apps::DeviceArray<float> device_values(values);
  apps::DeviceArray<unsigned int> device_counts(kBins);

  apps::RunIterations(
      options,
      [&] {
        HistogramKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(
            device_values.get(), device_counts.get(), count, low, bins_per_unit,
            kBins);
      },
      [&] { device_counts.Clear(); });

  // Host and device round the same float subtraction and multiplication the
  // same way, and counts are integers, so the result is exact.
  std::vector<unsigned int> expected(kBins, 0);
  for (float value : values)
    ++expected[BinOf(value, low, bins_per_unit, kBins)];
  const std::vector<unsigned int> counts = device_counts.ToHost();
  apps::Checker checker;
  for (int i = 0; i < kBins; ++i) {
    checker.Expect("counts", i, counts[i], expected[i], apps::kExact);
  }
  return checker.Finish();
}
