// A 27-point smoothing stencil on a 3-D box, with three-dimensional grid and
// blocks. The start is a sum of two eigenvectors of the stencil, so that the
// result after any number of steps is known in closed form.
// --size: longest edge of the box; the others are 3/4 and 1/2 of it.
#include "../common/app.h"

constexpr int kBlockX = 32;
constexpr int kBlockY = 4;
constexpr int kBlockZ = 2;

// The weight of a neighbour at distance -1, 0 or 1 along one axis.
__device__ inline float AxisWeight(int distance) {
  return distance == 0 ? 0.5f : 0.25f;
}

// output = the weighted mean of the 27 cells around; cells outside are 0.
__global__ void SmoothKernel(const float* input,
                             REPRISE_TOLERANCE(1e-6) float* output, int nx,
                             int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x >= nx || y >= ny || z >= nz) return;
  float sum = 0.0f;
  for (int dz = -1; dz <= 1; ++dz) {
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) {
        int cx = x + dx, cy = y + dy, cz = z + dz;
        if (cx < 0 || cx >= nx || cy < 0 || cy >= ny || cz < 0 || cz >= nz) {
          continue;
        }
        float weight = AxisWeight(dx) * AxisWeight(dy) * AxisWeight(dz);
        sum += weight * input[(static_cast<size_t>(cz) * ny + cy) * nx + cx];
      }
    }
  }
  output[(static_cast<size_t>(z) * ny + y) * nx + x] = sum;
}

// The k-th eigenvector along an axis of n cells with zeros outside: sin(pi k (i
// + 1) / (n + 1)), and its eigenvalue.
struct AxisMode {
  AxisMode(int n, int k) : values(n) {
    const double angle = std::acos(-1.0) * k / (n + 1);
    for (int i = 0; i < n; ++i) values[i] = std::sin(angle * (i + 1));
    eigenvalue = 0.5 + 0.5 * std::cos(angle);
  }
  std::vector<double> values;
  double eigenvalue;
};

struct BoxMode {
  double At(int i, int j, int k) const {
    return x.values[i] * y.values[j] * z.values[k];
  }
  double Eigenvalue() const {
    return x.eigenvalue * y.eigenvalue * z.eigenvalue;
  }
  AxisMode x, y, z;
};

// Weights are powers of two; 27 additions of values below 2 a step.
constexpr apps::Tolerance kTolerance{1e-5, 0};

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "grid_3d", {512, 20, 1024, "longest edge of the box"});
  const int nx = static_cast<int>(options.size);
  const int ny = std::max(1, nx * 3 / 4);
  const int nz = std::max(1, nx / 2);
  const BoxMode slow{AxisMode(nx, 1), AxisMode(ny, 1), AxisMode(nz, 1)};
  const BoxMode fast{AxisMode(nx, nx / 4 + 1), AxisMode(ny, ny / 3 + 1),
                     AxisMode(nz, 2)};

  std::vector<float> start;
  start.reserve(static_cast<size_t>(nx) * ny * nz);
  for (int z = 0; z < nz; ++z) {
    for (int y = 0; y < ny; ++y) {
      for (int x = 0; x < nx; ++x) {
        start.push_back(
            static_cast<float>(slow.At(x, y, z) + fast.At(x, y, z)));
      }
    }
  }
  apps::DeviceArray<float> even(start);
  apps::DeviceArray<float> odd(start.size());
  const float* input = even.get();
  float* output = odd.get();
  bool result_is_odd = false;

  const dim3 block(kBlockX, kBlockY, kBlockZ);
  const dim3 blocks(apps::BlocksFor(nx, kBlockX), apps::BlocksFor(ny, kBlockY),
                    apps::BlocksFor(nz, kBlockZ));
  apps::RunIterations(options, [&] {
    SmoothKernel<<<blocks, block>>>(input, output, nx, ny, nz);
    result_is_odd = !result_is_odd;
    input = result_is_odd ? odd.get() : even.get();
    output = result_is_odd ? even.get() : odd.get();
  });

  const std::vector<float> got = (result_is_odd ? odd : even).ToHost();
  const double slow_factor = std::pow(slow.Eigenvalue(), options.iterations);
  const double fast_factor = std::pow(fast.Eigenvalue(), options.iterations);
  apps::Checker checker;
  size_t cell = 0;
  for (int z = 0; z < nz; ++z) {
    for (int y = 0; y < ny; ++y) {
      for (int x = 0; x < nx; ++x, ++cell) {
        const double expected =
            slow_factor * slow.At(x, y, z) + fast_factor * fast.At(x, y, z);
        checker.Expect("cell", cell, got[cell], expected, kTolerance);
      }
    }
  }
  return checker.Finish();
}
