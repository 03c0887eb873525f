// Cross-entropy loss of every row of logits against its label: log(sum over
// classes of exp(logit)) - logit[label]. One thread per row.
// --size: number of rows.
#include "../common/app.h"

REPRISE_TOLERANCE(2e-5)
__global__ void CrossEntropyKernel(const float* logits, const int* labels,
                                   float* losses, int rows, int classes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) {
    return;
  }
  const float* row = logits + i * classes;
  float largest = row[0];
  for (int c = 1; c < classes; ++c) {
    largest = fmaxf(largest, row[c]);
  }
  float sum = 0.0f;
  for (int c = 0; c < classes; ++c) {
    sum += expf(row[c] - largest);
  }
  losses[i] = logf(sum) + largest - row[labels[i]];
}

// The sum of 1,000 positive terms is right to about sqrt(1000) * 2^-24 = 2e-6
// of itself, which is the absolute error of its logarithm; losses lie below 20.
constexpr apps::Tolerance kTolerance{1e-5, 1e-6};
constexpr int kBlock = 128;

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "cross_entropy", {65536, 301, 1 << 20, "number of rows"});
  const int rows = static_cast<int>(options.size);
  const int classes = options.small ? 37 : 1000;

  const std::vector<float> logits =
      apps::RandomFloats(static_cast<size_t>(rows) * classes, 26, -5.0f, 5.0f);
  const std::vector<int> labels = apps::RandomInts(rows, 27, classes);
  apps::DeviceArray<float> device_logits(logits);
  apps::DeviceArray<int> device_labels(labels);
  apps::DeviceArray<float> device_losses(rows);

  apps::RunIterations(options, [&] {
    CrossEntropyKernel<<<apps::BlocksFor(rows, kBlock), kBlock>>>(
        device_logits.get(), device_labels.get(), device_losses.get(), rows,
        classes);
  });

  const std::vector<float> losses = device_losses.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, rows, 8192);
  for (size_t row = 0; row < static_cast<size_t>(rows); row += stride) {
    const float* x = logits.data() + row * classes;
    double sum = 0;
    for (int c = 0; c < classes; ++c)
      sum += std::exp(static_cast<double>(x[c]));
    checker.Expect("losses", row, losses[row], std::log(sum) - x[labels[row]],
                   kTolerance);
  }
  return checker.Finish();
}
