// Red-black successive over-relaxation of a Poisson problem: every launch
// updates, in place, the grid that is its own input.
// --size: edge of the square grid.
#include "../common/app.h"

constexpr int kBlockX = 64;
constexpr int kBlockY = 4;
constexpr float kOmega = 1.5f;
constexpr int kCheckedRows = 256;

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

// A band of whole rows of the grid, from first_row on.
struct Band {
  int first_row;
  int row_count;
  std::vector<double> cells;
};

// The same sweep on the host, in double. The band's first and last row stay as
// they are.
void Relax(Band& band, const std::vector<float>& source, int edge, int colour) {
  for (int row = 1; row < band.row_count - 1; ++row) {
    const int y = band.first_row + row;
    for (int x = 1 + (1 + y + colour) % 2; x < edge - 1; x += 2) {
      double* cell = &band.cells[static_cast<size_t>(row) * edge + x];
      const double neighbours = cell[-1] + cell[1] + cell[-edge] + cell[edge];
      const double target =
          0.25 * (neighbours - source[static_cast<size_t>(y) * edge + x]);
      *cell += kOmega * (target - *cell);
    }
  }
}

// What rows `first` to `last` - 1 hold after the iterations, within a band that
// has them. A row feels another one at most two rows away per iteration, so
// that many rows more on either side make these right.
Band ExpectedBand(const std::vector<float>& start,
                  const std::vector<float>& source, int edge, int first,
                  int last, int iterations) {
  const int64_t halo = 2 * static_cast<int64_t>(iterations);
  const int begin = static_cast<int>(std::max<int64_t>(0, first - halo));
  const int end = static_cast<int>(std::min<int64_t>(edge, last + halo));
  const float* cells = start.data();
  Band band{begin, end - begin,
            std::vector<double>(cells + static_cast<size_t>(begin) * edge,
                                cells + static_cast<size_t>(end) * edge)};
  for (int iteration = 0; iteration < iterations; ++iteration) {
    Relax(band, source, edge, 0);
    Relax(band, source, edge, 1);
  }
  return band;
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

  // A large grid is checked in bands: the top, the middle and the bottom.
  const std::vector<float> got = grid.ToHost();
  const int rows = options.small ? edge : std::min(edge, kCheckedRows);
  apps::Checker checker;
  for (const int first : {0, (edge - rows) / 2, edge - rows}) {
    const Band expected = ExpectedBand(start, source, edge, first, first + rows,
                                       options.iterations);
    const size_t offset = static_cast<size_t>(expected.first_row) * edge;
    for (size_t i = static_cast<size_t>(first) * edge;
         i < static_cast<size_t>(first + rows) * edge; ++i) {
      checker.Expect("cell", i, got[i], expected.cells[i - offset], kTolerance);
    }
    if (rows == edge) break;
  }
  return checker.Finish();
}
