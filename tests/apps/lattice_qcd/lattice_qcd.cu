// A staggered Dslash as in lattice QCD: on a periodic 4-D lattice every site
// gathers eight neighbours' colour vectors, each multiplied by the SU(3) matrix
// of the link between, and normalises the sum by a / sqrt(b).
// --size: edge of the lattice, rounded up to an even number.
#include "../common/app.h"

constexpr int kBlock = 128;

struct Complex {
  float re, im;
};
struct ColourVector {
  Complex c[3];
};
struct ColourMatrix {
  Complex e[3][3];
};

// sum += sign * (matrix * vector).
__host__ __device__ inline void AddProduct(ColourVector& sum, float sign,
                                           const ColourMatrix& matrix,
                                           const ColourVector& vector) {
  for (int row = 0; row < 3; ++row) {
    for (int col = 0; col < 3; ++col) {
      Complex u = matrix.e[row][col];
      Complex v = vector.c[col];
      sum.c[row].re += sign * (u.re * v.re - u.im * v.im);
      sum.c[row].im += sign * (u.re * v.im + u.im * v.re);
    }
  }
}

// sum += sign * (conjugate transpose of matrix * vector).
__host__ __device__ inline void AddAdjointProduct(ColourVector& sum, float sign,
                                                  const ColourMatrix& matrix,
                                                  const ColourVector& vector) {
  for (int row = 0; row < 3; ++row) {
    for (int col = 0; col < 3; ++col) {
      Complex u = matrix.e[col][row];
      Complex v = vector.c[col];
      sum.c[row].re += sign * (u.re * v.re + u.im * v.im);
      sum.c[row].im += sign * (u.re * v.im - u.im * v.re);
    }
  }
}

// The result at one site. links: [4][edge^4], direction by direction.
__host__ __device__ inline ColourVector DslashAt(const ColourMatrix* links,
                                                 const ColourVector* input,
                                                 const float* density, int edge,
                                                 int site) {
  int volume = edge * edge * edge * edge;
  ColourVector sum = {};
  int parity = 0;  // of the coordinates before direction mu
  int stride = 1;
  for (int mu = 0; mu < 4; ++mu) {
    int coordinate = site / stride % edge;
    int forward =
        coordinate + 1 == edge ? site - coordinate * stride : site + stride;
    int backward = coordinate == 0 ? site + (edge - 1) * stride : site - stride;
    float phase = parity % 2 == 0 ? 1.0f : -1.0f;
    AddProduct(sum, phase, links[mu * volume + site], input[forward]);
    AddAdjointProduct(sum, -phase, links[mu * volume + backward],
                      input[backward]);
    parity += coordinate;
    stride *= edge;
  }
  for (int colour = 0; colour < 3; ++colour) {
    sum.c[colour].re = sum.c[colour].re / sqrtf(density[site]);
    sum.c[colour].im = sum.c[colour].im / sqrtf(density[site]);
  }
  return sum;
}

__global__ void DslashKernel(const ColourMatrix* links,
                             const ColourVector* input, const float* density,
                             REPRISE_TOLERANCE(1e-5) ColourVector* output,
                             int edge) {
  int site = blockIdx.x * blockDim.x + threadIdx.x;
  if (site >= edge * edge * edge * edge) return;
  output[site] = DslashAt(links, input, density, edge, site);
}

// A random SU(3) matrix: two random rows made orthonormal, and the conjugate of
// their cross product.
ColourMatrix RandomLink(uint64_t index) {
  ColourMatrix m;
  float* numbers = &m.e[0][0].re;
  for (int k = 0; k < 12; ++k) {
    numbers[k] = apps::RandomFloat(1, index * 12 + k, -1.0f, 1.0f);
  }
  for (int row = 0; row < 2; ++row) {
    if (row == 1) {  // takes out the part along row 0
      Complex dot = {0, 0};
      for (int k = 0; k < 3; ++k) {
        const Complex a = m.e[0][k], b = m.e[1][k];
        dot.re += a.re * b.re + a.im * b.im;
        dot.im += a.re * b.im - a.im * b.re;
      }
      for (int k = 0; k < 3; ++k) {
        const Complex a = m.e[0][k];
        m.e[1][k].re -= dot.re * a.re - dot.im * a.im;
        m.e[1][k].im -= dot.re * a.im + dot.im * a.re;
      }
    }
    float norm = 0;
    for (const Complex& z : m.e[row]) norm += z.re * z.re + z.im * z.im;
    const float scale = 1.0f / std::sqrt(norm);
    for (Complex& z : m.e[row]) z = {z.re * scale, z.im * scale};
  }
  for (int k = 0; k < 3; ++k) {
    const Complex a = m.e[0][(k + 1) % 3], b = m.e[1][(k + 2) % 3];
    const Complex c = m.e[0][(k + 2) % 3], d = m.e[1][(k + 1) % 3];
    m.e[2][k] = {(a.re * b.re - a.im * b.im) - (c.re * d.re - c.im * d.im),
                 -((a.re * b.im + a.im * b.re) - (c.re * d.im + c.im * d.re))};
  }
  return m;
}

// 24 terms below 1.2 (three colours, eight neighbours), divided by at least 2.
constexpr apps::Tolerance kTolerance{5e-6, 1e-6};

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "lattice_qcd", {40, 6, 64, "edge of the lattice"});
  const int edge = static_cast<int>(options.size + options.size % 2);
  const int volume = edge * edge * edge * edge;
  std::vector<ColourMatrix> links(static_cast<size_t>(volume) * 4);
  for (size_t i = 0; i < links.size(); ++i) links[i] = RandomLink(i);
  std::vector<ColourVector> source(volume);
  for (int site = 0; site < volume; ++site) {
    float* numbers = &source[site].c[0].re;
    for (int k = 0; k < 6; ++k) {
      numbers[k] = apps::RandomFloat(2, site * 6 + k, -0.5f, 0.5f);
    }
  }
  const std::vector<float> density = apps::RandomFloats(volume, 3, 4.0f, 12.0f);
  apps::DeviceArray<ColourMatrix> device_links(links);
  apps::DeviceArray<ColourVector> device_source(source);
  apps::DeviceArray<float> device_density(density);
  apps::DeviceArray<ColourVector> once(volume);
  apps::DeviceArray<ColourVector> twice(volume);

  // As in a solver, the operator is applied to its own result.
  const int blocks = apps::BlocksFor(volume, kBlock);
  apps::RunIterations(options, [&] {
    DslashKernel<<<blocks, kBlock>>>(device_links.get(), device_source.get(),
                                     device_density.get(), once.get(), edge);
    DslashKernel<<<blocks, kBlock>>>(device_links.get(), once.get(),
                                     device_density.get(), twice.get(), edge);
  });

  const std::vector<ColourVector> got_once = once.ToHost();
  const std::vector<ColourVector> got_twice = twice.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, volume, 1 << 16);
  const auto check = [&](const char* what, const std::vector<ColourVector>& got,
                         const std::vector<ColourVector>& input, size_t site) {
    const ColourVector expected =
        DslashAt(links.data(), input.data(), density.data(), edge, site);
    for (int k = 0; k < 6; ++k) {
      checker.Expect(what, site * 6 + k, (&got[site].c[0].re)[k],
                     (&expected.c[0].re)[k], kTolerance);
    }
  };
  for (size_t site = 0; site < got_once.size(); site += stride) {
    check("once", got_once, source, site);
    check("twice", got_twice, got_once, site);
  }
  // Without the normalisation the operator is anti-Hermitian: the real part of
  // <source, D source> is zero but for rounding.
  double inner_product = 0;
  for (int site = 0; site < volume; ++site) {
    double at_site = 0;
    for (int k = 0; k < 6; ++k) {
      at_site += static_cast<double>((&source[site].c[0].re)[k]) *
                 (&got_once[site].c[0].re)[k];
    }
    inner_product += at_site * std::sqrt(density[site]);
  }
  checker.Expect("real part of <source, D source>", 0, inner_product, 0,
                 {1e-6 * std::sqrt(6.0 * volume), 0});
  return checker.Finish();
}
