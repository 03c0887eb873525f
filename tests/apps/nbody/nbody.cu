// Gravity between all pairs of bodies: positions and masses as float4,
// rsqrtf with softening, and a leap-frog step that moves the bodies in place.
// --size: number of bodies.
#include "../common/app.h"

constexpr int kBlock = 128;
constexpr float kSoftening = 0.01f;

// acceleration[i] = sum over j of mass_j (r_j - r_i) / (|r_j - r_i|^2 +
// softening)^(3/2). bodies: x, y, z, mass.
__global__ void AccelerationKernel(const float4* bodies,
                                   REPRISE_TOLERANCE(1e-4) float3* acceleration,
                                   int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float4 self = bodies[i];
  float3 sum = make_float3(0.0f, 0.0f, 0.0f);
  for (int j = 0; j < count; ++j) {
    float4 other = bodies[j];
    float dx = other.x - self.x;
    float dy = other.y - self.y;
    float dz = other.z - self.z;
    float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + kSoftening);
    float weight = other.w * inverse * inverse * inverse;
    sum.x += weight * dx;
    sum.y += weight * dy;
    sum.z += weight * dz;
  }
  acceleration[i] = sum;
}

__global__ void MoveKernel(float4* bodies, float3* velocities,
                           const float3* acceleration, int count,
                           float time_step) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float3 velocity = velocities[i];
  velocity.x += time_step * acceleration[i].x;
  velocity.y += time_step * acceleration[i].y;
  velocity.z += time_step * acceleration[i].z;
  velocities[i] = velocity;
  bodies[i].x += time_step * velocity.x;
  bodies[i].y += time_step * velocity.y;
  bodies[i].z += time_step * velocity.z;
}

struct Vector {
  double x, y, z;
};

Vector AccelerationOf(size_t i, const std::vector<float4>& bodies) {
  Vector sum{0, 0, 0};
  for (const float4& other : bodies) {
    const double dx = static_cast<double>(other.x) - bodies[i].x;
    const double dy = static_cast<double>(other.y) - bodies[i].y;
    const double dz = static_cast<double>(other.z) - bodies[i].z;
    const double squared = dx * dx + dy * dy + dz * dz + kSoftening;
    const double weight = other.w / (squared * std::sqrt(squared));
    sum.x += weight * dx;
    sum.y += weight * dy;
    sum.z += weight * dz;
  }
  return sum;
}

// The masses sum to one and no term is above mass * 0.385 / softening = mass *
// 39; a sum over up to 1e5 bodies in float loses some 1e-5 of its terms.
constexpr apps::Tolerance kTolerance{2e-4, 2e-4};
// Total momentum stays zero but for rounding.
constexpr apps::Tolerance kMomentumTolerance{1e-5, 0};

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "nbody", {1 << 16, 500, 1 << 20, "number of bodies"});
  const int count = static_cast<int>(options.size);
  std::vector<float4> start(count);
  for (int i = 0; i < count; ++i) {
    start[i] = make_float4(apps::RandomFloat(1, i, -1.0f, 1.0f),
                           apps::RandomFloat(2, i, -1.0f, 1.0f),
                           apps::RandomFloat(3, i, -1.0f, 1.0f),
                           apps::RandomFloat(4, i, 0.5f, 1.5f) / count);
  }
  apps::DeviceArray<float4> bodies(start);
  apps::DeviceArray<float4> bodies_before(count);
  apps::DeviceArray<float3> velocities(count);
  apps::DeviceArray<float3> acceleration(count);
  velocities.Clear();

  const float time_step = 0.002f;
  const int blocks = apps::BlocksFor(count, kBlock);
  apps::RunIterations(
      options,
      [&] {
        AccelerationKernel<<<blocks, kBlock>>>(bodies.get(), acceleration.get(),
                                               count);
        MoveKernel<<<blocks, kBlock>>>(bodies.get(), velocities.get(),
                                       acceleration.get(), count, time_step);
      },
      [&] { bodies_before.CopyFrom(bodies); });

  // The last step is checked against the positions that it started from.
  const std::vector<float4> before = bodies_before.ToHost();
  const std::vector<float4> after = bodies.ToHost();
  const std::vector<float3> got_velocity = velocities.ToHost();
  const std::vector<float3> got = acceleration.ToHost();
  apps::Checker checker;
  const size_t stride = apps::CheckStride(options, got.size(), 500);
  for (size_t i = 0; i < got.size(); i += stride) {
    const Vector expected = AccelerationOf(i, before);
    checker.Expect("acceleration x", i, got[i].x, expected.x, kTolerance);
    checker.Expect("acceleration y", i, got[i].y, expected.y, kTolerance);
    checker.Expect("acceleration z", i, got[i].z, expected.z, kTolerance);
    checker.Expect("position x", i, after[i].x,
                   before[i].x + time_step * got_velocity[i].x, {1e-6, 0});
    checker.Expect("position y", i, after[i].y,
                   before[i].y + time_step * got_velocity[i].y, {1e-6, 0});
    checker.Expect("position z", i, after[i].z,
                   before[i].z + time_step * got_velocity[i].z, {1e-6, 0});
    checker.Expect("mass", i, after[i].w, start[i].w, apps::kExact);
  }
  Vector momentum{0, 0, 0};
  for (int i = 0; i < count; ++i) {
    momentum.x += static_cast<double>(start[i].w) * got_velocity[i].x;
    momentum.y += static_cast<double>(start[i].w) * got_velocity[i].y;
    momentum.z += static_cast<double>(start[i].w) * got_velocity[i].z;
  }
  checker.Expect("momentum", 0, momentum.x, 0, kMomentumTolerance);
  checker.Expect("momentum", 1, momentum.y, 0, kMomentumTolerance);
  checker.Expect("momentum", 2, momentum.z, 0, kMomentumTolerance);
  return checker.Finish();
}
