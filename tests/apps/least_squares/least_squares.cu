// Linear least squares: the beta that minimizes |X beta - y|, by the normal
// equations (X^T X) beta = X^T y. One block per entry of the augmented matrix
// [X^T X | X^T y] adds up over the rows of X; one more block then solves the
// small system by Gaussian elimination.
// --size: number of rows of X.
#include "../common/app.h"

constexpr int kBlock = 128;
constexpr int kMaxFeatures = 32;

// Grid: features + 1 by features. The block size is a power of two, at most
// kBlock.
__global__ void GramKernel(const float* x, const float* y, float* gram,
                           int rows, int features) {
  __shared__ float scratch[kBlock];
  int i = blockIdx.y;
  int j = blockIdx.x;
  float sum = 0.0f;
  for (int row = threadIdx.x; row < rows; row += blockDim.x) {
    float right = j < features ? x[row * features + j] : y[row];
    sum += x[row * features + i] * right;
  }
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    gram[i * (features + 1) + j] = scratch[0];
  }
}

// One block. X^T X is positive definite, so no pivoting is needed. Requires
// features <= kMaxFeatures.
__global__ void SolveKernel(const float* gram, float* beta, int features) {
  __shared__ float m[kMaxFeatures][kMaxFeatures + 1];
  for (int r = threadIdx.x; r < features; r += blockDim.x) {
    for (int c = 0; c <= features; ++c) {
      m[r][c] = gram[r * (features + 1) + c];
    }
  }
  __syncthreads();
  for (int pivot = 0; pivot < features; ++pivot) {
    for (int r = pivot + 1 + threadIdx.x; r < features; r += blockDim.x) {
      float factor = m[r][pivot] / m[pivot][pivot];
      for (int c = pivot; c <= features; ++c) {
        m[r][c] -= factor * m[pivot][c];
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    for (int r = features - 1; r >= 0; --r) {
      float value = m[r][features];
      for (int c = r + 1; c < features; ++c) {
        value -= m[r][c] * beta[c];
      }
      beta[r] = value / m[r][r];
    }
  }
}

// Solves the host's augmented matrix the same way in double, in place.
std::vector<double> Solve(std::vector<double> m, int features) {
  const int width = features + 1;
  for (int pivot = 0; pivot < features; ++pivot) {
    for (int r = pivot + 1; r < features; ++r) {
      const double factor = m[r * width + pivot] / m[pivot * width + pivot];
      for (int c = pivot; c < width; ++c) {
        m[r * width + c] -= factor * m[pivot * width + c];
      }
    }
  }
  std::vector<double> beta(features);
  for (int r = features - 1; r >= 0; --r) {
    double value = m[r * width + features];
    for (int c = r + 1; c < features; ++c) value -= m[r * width + c] * beta[c];
    beta[r] = value / m[r * width + r];
  }
  return beta;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "least_squares", {1 << 17, 1001, 1 << 24, "number of rows"});
  const int rows = static_cast<int>(options.size);
  const int features = options.small ? 6 : kMaxFeatures;
  const int width = features + 1;

  // y is a known combination of the features and some noise.
  const std::vector<float> x =
      apps::RandomFloats(static_cast<size_t>(rows) * features, 30, -1.0f, 1.0f);
  std::vector<float> y = apps::RandomFloats(rows, 31, -0.1f, 0.1f);
  for (size_t row = 0; row < y.size(); ++row) {
    for (int f = 0; f < features; ++f) {
      y[row] += x[row * features + f] * apps::RandomFloat(32, f, -2.0f, 2.0f);
    }
  }
  apps::DeviceArray<float> device_x(x);
  apps::DeviceArray<float> device_y(y);
  apps::DeviceArray<float> device_gram(static_cast<size_t>(features) * width);
  apps::DeviceArray<float> device_beta(features);

  apps::RunIterations(options, [&] {
    GramKernel<<<dim3(width, features), kBlock>>>(
        device_x.get(), device_y.get(), device_gram.get(), rows, features);
    SolveKernel<<<1, 32>>>(device_gram.get(), device_beta.get(), features);
  });

  std::vector<double> gram(static_cast<size_t>(features) * width, 0.0);
  for (size_t row = 0; row < y.size(); ++row) {
    const float* x_row = x.data() + row * features;
    for (int i = 0; i < features; ++i) {
      for (int j = 0; j < features; ++j) {
        gram[i * width + j] += static_cast<double>(x_row[i]) * x_row[j];
      }
      gram[i * width + features] += static_cast<double>(x_row[i]) * y[row];
    }
  }
  // A thread adds rows / 128 terms, the tree seven sums. The longest chain of
  // the default size rounds 1,031 times: below 1e-5 of a diagonal entry, and of
  // the other entries less than that of the diagonal's size, rows / 3. The
  // system is well conditioned, so beta (within +-2) is right to about 1e-5.
  const apps::Tolerance gram_tolerance{1e-5 * rows / 3, 1e-5};
  const apps::Tolerance beta_tolerance{1e-4, 0};
  const std::vector<float> got_gram = device_gram.ToHost();
  const std::vector<float> got_beta = device_beta.ToHost();
  const std::vector<double> beta = Solve(gram, features);
  apps::Checker checker;
  for (size_t i = 0; i < gram.size(); ++i) {
    checker.Expect("gram", i, got_gram[i], gram[i], gram_tolerance);
  }
  for (int i = 0; i < features; ++i) {
    checker.Expect("beta", i, got_beta[i], beta[i], beta_tolerance);
  }
  return checker.Finish();
}
