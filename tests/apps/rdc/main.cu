// Relocatable device code: the kernel's device functions, the variables they
// read and the counter they add to are spread over three translation units.
// --size: number of particles.
#include "../common/app.h"
#include "field.h"

constexpr int kBlock = 128;
constexpr int kSteps = 16;

REPRISE_TOLERANCE(1e-4)
__global__ void MoveKernel(float* position, float* velocity, int count,
                           float time_step) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  for (int step = 0; step < kSteps; ++step) {
    LeapFrog(&position[i], &velocity[i], time_step);
  }
  if (threadIdx.x == 0) atomicAdd(&evaluations, 1ull * kSteps);
}

// The same steps in double. The motion is bound and not chaotic over 160 steps:
// rounding errors of 1e-7 a step grow to some 1e-5.
constexpr apps::Tolerance kTolerance{2e-4, 1e-4};

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "rdc", {1 << 21, 2003, 1 << 28, "number of particles"});
  const int count = static_cast<int>(options.size);
  const float time_step = 0.01f;
  const float kick = 0.125f;
  const float stiffness_value = 0.75f;
  const std::vector<float> centre_values =
      apps::RandomFloats(kCentres, 1, -4.0f, 4.0f);
  const std::vector<float> start = apps::RandomFloats(count, 2, -5.0f, 5.0f);
  apps::DeviceArray<float> position(start);
  apps::DeviceArray<float> velocity(count);
  velocity.Clear();
  SetField(centre_values.data(), stiffness_value);

  const int blocks = apps::BlocksFor(count, kBlock);
  apps::RunIterations(options, [&] {
    KickKernel<<<blocks, kBlock>>>(velocity.get(), count, kick);
    MoveKernel<<<blocks, kBlock>>>(position.get(), velocity.get(), count,
                                   time_step);
  });

  const std::vector<float> got_position = position.ToHost();
  const std::vector<float> got_velocity = velocity.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, start.size(), 1 << 14);
  for (size_t i = 0; i < start.size(); i += stride) {
    double x = start[i];
    double v = 0;
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      v += i % 2 == 0 ? kick : -kick;
      for (int step = 0; step < kSteps; ++step) {
        double force = 0;
        for (float centre : centre_values) {
          const double distance = centre - x;
          force += stiffness_value * distance / (1 + distance * distance);
        }
        v += time_step * force;
        x += time_step * v;
      }
    }
    checker.Expect("position", i, got_position[i], x, kTolerance);
    checker.Expect("velocity", i, got_velocity[i], v, kTolerance);
  }
  checker.Expect("evaluations", 0, static_cast<double>(Evaluations()),
                 static_cast<double>(blocks) * kSteps * options.iterations,
                 apps::kExact);
  return checker.Finish();
}
