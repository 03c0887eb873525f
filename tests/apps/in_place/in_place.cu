// Red-black successive over-relaxation of a Poisson problem: every launch
// updates, in place, the grid that is its own input.
// --size: edge of the square grid.
#include "../common/app.h"

constexpr int kBlockX = 64;
constexpr int kBlockY = 4;
constexpr float kOmega = 1.5f;

// Updates the interior cells with (x + y) % 2 == colour. Cells of one colour
// read only cells of the other and themselves.
__global__ void RelaxKernel(REPRISE_TOLERANCE(1e-5) float* grid,
                            const float* source, int edge, int colour) {
  int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
  int x = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + 1;
  x += (x + y + colour) % 2;
  if (x >= edge - 1 || y >= edge - 1) return;
  size_t cell = static_cast<size_t>(y) * edge + x;
  float neighbours =
      grid[cell - 1] + grid[cell + 1] + grid[cell - edge] + grid[cell + edge];
  float target = 0.25f * (neighbours - source[cell]);
  grid[cell] += kOmega * (target - grid[cell]);
}

// The same sweep on the host, in double.
void Relax(std::vector<double>& grid, const std::vector<float>& source,
           int edge, int colour) {
  for (int y = 1; y < edge - 1; ++y) {
    for (int x = 1 + (1 + y + colour) % 2; x < edge - 1; x += 2) {
      const size_t cell = static_cast<size_t>(y) * edge + x;
      const double neighbours = grid[cell - 1] + grid[cell + 1] +
                                grid[cell - edge] + grid[cell + edge];
      const double target = 0.25 * (neighbours - source[cell]);
      grid[cell] += kOmega * (target - grid[cell]);
    }
  }
}

// A sweep rounds about five times at 6e-8 of values up to 4 and amplifies
// earlier errors by at most 1.5 + 0.5; in 20 sweeps they average out far below
// that bound.
constexpr apps::Tolerance kTolerance{2e-5, 1e-5};

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "in_place", {8192, 96, 32768, "edge of the square grid"});
  const int edge = static_cast<int>(options.size);
  const size_t cells = static_cast<size_t>(edge) * edge;
  const std::vector<float> start = apps::RandomFloats(cells, 1, -1.0f, 1.0f);
  const std::vector<float> source = apps::RandomFloats(cells, 2, -0.5f, 0.5f);
  apps::DeviceArray<float> grid(start);
  apps::DeviceArray<float> device_source(source);

  const dim3 block(kBlockX, kBlockY);
  const dim3 blocks(apps::BlocksFor((edge + 1) / 2, kBlockX),
                    apps::BlocksFor(edge, kBlockY));
  apps::RunIterations(options, [&] {
    for (int colour = 0; colour < 2; ++colour) {
      RelaxKernel<<<blocks, block>>>(grid.get(), device_source.get(), edge,
                                     colour);
    }
  });

  std::vector<double> expected(start.begin(), start.end());
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    Relax(expected, source, edge, 0);
    Relax(expected, source, edge, 1);
  }
  const std::vector<float> got = grid.ToHost();
  apps::Checker checker;
  for (size_t i = 0; i < cells; ++i) {
    checker.Expect("cell", i, got[i], expected[i], kTolerance);
  }
  return checker.Finish();
}
