// The example that `reprise demo` records: the potential of charges at many points, summed directly.
// Written plainly; it checks its own result against the host.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

struct Charge {
  float x, y, z, q;
};

#ifdef __clang__
#define TOLERANCE(text) __attribute__((annotate("tolerance:" text)))
#else
#define TOLERANCE(text)
#endif

__global__ void PotentialKernel(const Charge* charges, int charge_count, const float* px, const float* py,
                                const float* pz, float softening, TOLERANCE("abs=1e-4,rel=1e-4") float* potential,
                                int point_count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= point_count) return;
  float sum = 0.0f;
  for (int j = 0; j < charge_count; ++j) {
    float dx = px[i] - charges[j].x;
    float dy = py[i] - charges[j].y;
    float dz = pz[i] - charges[j].z;
    float r2 = dx * dx + dy * dy + dz * dz + softening;
    sum += charges[j].q / sqrtf(r2);
  }
  potential[i] = sum;
}

#define CHECK_CUDA(call)                                                          \
  do {                                                                            \
    cudaError_t error = (call);                                                   \
    if (error != cudaSuccess) {                                                   \
      std::printf("potential: FAIL %s: %s\n", #call, cudaGetErrorString(error)); \
      return 1;                                                                   \
    }                                                                             \
  } while (false)

// Deterministic numbers in [-1, 1).
static float Number(unsigned index) {
  unsigned h = index * 2654435761u;
  h ^= h >> 16;
  h *= 2246822519u;
  h ^= h >> 13;
  return static_cast<float>(h) / 2147483648.0f - 1.0f;
}

int main() {
  const int points = 4000, charges = 1024, steps = 5;
  std::vector<Charge> charge(charges);
  std::vector<float> x(points), y(points), z(points), result(points);
  for (int i = 0; i < charges; ++i) charge[i] = {Number(4 * i), Number(4 * i + 1), Number(4 * i + 2), Number(4 * i + 3)};
  for (int i = 0; i < points; ++i) {
    x[i] = Number(100000 + 3 * i);
    y[i] = Number(100001 + 3 * i);
    z[i] = Number(100002 + 3 * i);
  }
  Charge* device_charges;
  float *dx, *dy, *dz, *potential;
  CHECK_CUDA(cudaMalloc(&device_charges, charges * sizeof(Charge)));
  CHECK_CUDA(cudaMalloc(&dx, points * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&dy, points * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&dz, points * sizeof(float)));
  CHECK_CUDA(cudaMalloc(&potential, points * sizeof(float)));
  CHECK_CUDA(cudaMemcpy(device_charges, charge.data(), charges * sizeof(Charge), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(dx, x.data(), points * sizeof(float), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(dy, y.data(), points * sizeof(float), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(dz, z.data(), points * sizeof(float), cudaMemcpyHostToDevice));
  for (int step = 0; step < steps; ++step) {
    PotentialKernel<<<(points + 127) / 128, 128>>>(device_charges, charges, dx, dy, dz, 1e-3f, potential, points);
    CHECK_CUDA(cudaGetLastError());
  }
  CHECK_CUDA(cudaMemcpy(result.data(), potential, points * sizeof(float), cudaMemcpyDeviceToHost));
  double worst = 0;
  for (int i = 0; i < points; i += 17) {
    double sum = 0;
    for (const Charge& c : charge) {
      const double ex = x[i] - c.x, ey = y[i] - c.y, ez = z[i] - c.z;
      sum += c.q / std::sqrt(ex * ex + ey * ey + ez * ez + 1e-3);
    }
    worst = std::fmax(worst, std::fabs(sum - result[i]));
  }
  std::printf("potential: %s (largest error %.1e)\n", worst < 1e-2 ? "PASS" : "FAIL", worst);
  return worst < 1e-2 ? 0 : 1;
}
