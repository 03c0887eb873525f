// Matrix product C = A * B in float. One thread per element of C walks along a
// row of A and a column of B.
// --size N: A is N x N, B and C are N x N/2.
#include "../common/app.h"

REPRISE_TOLERANCE(1e-4)
__global__ void MatmulKernel(const float* a, const float* b, float* c, int m,
                             int n, int k) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < m && column < n) {
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) {
      sum += a[row * k + i] * b[i * n + column];
    }
    c[row * n + column] = sum;
  }
}

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "matmul",
                         {2048, 100, 16384, "A is N x N, B and C are N x N/2"});
  const int m = static_cast<int>(options.size);
  const int k = m;
  const int n = std::max(1, m / 2);
  const size_t c_count = static_cast<size_t>(m) * n;

  const std::vector<float> a =
      apps::RandomFloats(static_cast<size_t>(m) * k, 6, -1.0f, 1.0f);
  const std::vector<float> b =
      apps::RandomFloats(static_cast<size_t>(k) * n, 7, -1.0f, 1.0f);
  apps::DeviceArray<float> device_a(a);
  apps::DeviceArray<float> device_b(b);
  apps::DeviceArray<float> device_c(c_count);

  const dim3 block(16, 16);
  const dim3 grid(apps::BlocksFor(n, 16), apps::BlocksFor(m, 16));
  apps::RunIterations(options, [&] {
    MatmulKernel<<<grid, block>>>(device_a.get(), device_b.get(),
                                  device_c.get(), m, n, k);
  });

  // A product has variance 1/9, so a partial sum stays near sqrt(k)/3, and each
  // of the k additions rounds it by at most 2^-24 of itself, with random sign:
  // an error near k * 2^-24 / 7. Allow ten times that.
  const apps::Tolerance tolerance{k * 0x1p-24 * 10 / 7, 0};
  const std::vector<float> c = device_c.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, c_count, 4096);
  for (size_t i = 0; i < c_count; i += stride) {
    const size_t row = i / n;
    const size_t column = i % n;
    double expected = 0;
    for (int j = 0; j < k; ++j) {
      expected += static_cast<double>(a[row * k + j]) * b[j * n + column];
    }
    checker.Expect("c", i, c[i], expected, tolerance);
  }
  return checker.Finish();
}
