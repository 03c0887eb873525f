// Host side of hydro_mesh: building the mesh, checking the result.
#include "mesh.h"

Mesh MakeMesh(int edge) {
  constexpr int kWindow = 512;
  const int nodes = edge + 1;
  const int node_count = nodes * nodes * nodes;
  std::vector<int> number(node_count);
  for (int i = 0; i < node_count; ++i) number[i] = i;
  for (int i = 0; i < node_count; ++i) {
    const int window = i / kWindow * kWindow;
    const int length = std::min(kWindow, node_count - window);
    std::swap(number[i],
              number[window + static_cast<int>(apps::HashBits(1, i) % length)]);
  }

  Mesh mesh;
  mesh.positions.resize(node_count);
  for (int i = 0; i < node_count; ++i) {
    const auto jitter = [&](int axis) {
      return apps::RandomFloat(2 + axis, i, -0.1f, 0.1f);
    };
    const float x = i % nodes + jitter(0);
    const float y = i / nodes % nodes + jitter(1);
    const float z = i / nodes / nodes + jitter(2);
    mesh.positions[number[i]] = {x, y, z};
  }
  std::vector<std::vector<int>> corners_of(node_count);
  for (int e = 0; e < edge * edge * edge; ++e) {
    const int ex = e % edge, ey = e / edge % edge, ez = e / edge / edge;
    for (int c = 0; c < 8; ++c) {
      const int node =
          number[((ez + c / 4) * nodes + ey + c / 2 % 2) * nodes + ex + c % 2];
      mesh.element_nodes.push_back(node);
      corners_of[node].push_back(8 * e + c);
    }
    const float dx = ex + 0.5f - 0.5f * edge, dy = ey + 0.5f - 0.5f * edge,
                dz = ez + 0.5f - 0.5f * edge;
    mesh.mass.push_back(apps::RandomFloat(5, e, 0.8f, 1.2f));
    mesh.energies.push_back(
        0.5f + 4.0f * std::exp(-(dx * dx + dy * dy + dz * dz) / edge));
  }
  mesh.node_starts.push_back(0);
  for (const std::vector<int>& corners : corners_of) {
    mesh.node_corners.insert(mesh.node_corners.end(), corners.begin(),
                             corners.end());
    mesh.node_starts.push_back(static_cast<int>(mesh.node_corners.size()));
  }
  return mesh;
}

namespace {

Vector<double> ToDouble(const Vector<float>& v) { return {v.x, v.y, v.z}; }

// One element's step in double.
struct ElementReference {
  Vector<double> forces[8];
  double energy;
};

ElementReference Reference(const Mesh& mesh, const State& before, size_t e,
                           double time_step) {
  Vector<double> x[8], v[8];
  for (int c = 0; c < 8; ++c) {
    const int node = mesh.element_nodes[e * 8 + c];
    x[c] = ToDouble(before.positions[node]);
    v[c] = ToDouble(before.velocities[node]);
  }
  ElementReference result;
  result.energy = ElementStep<double>(x, v, mesh.mass[e], before.energies[e],
                                      time_step, result.forces);
  return result;
}

void ExpectVector(const char* what, size_t index, const Vector<float>& got,
                  const Vector<double>& expected, apps::Tolerance tolerance,
                  apps::Checker& checker) {
  checker.Expect(what, index, got.x, expected.x, tolerance);
  checker.Expect(what, index, got.y, expected.y, tolerance);
  checker.Expect(what, index, got.z, expected.z, tolerance);
}

}  // namespace

void CheckLastStep(const apps::Options& options, const Mesh& mesh,
                   const State& before, const State& after,
                   const std::vector<float>& node_mass, double time_step,
                   apps::Checker& checker) {
  const size_t element_stride =
      apps::CheckStride(options, mesh.mass.size(), 1 << 16);
  for (size_t e = 0; e < mesh.mass.size(); e += element_stride) {
    checker.Expect("energy", e, after.energies[e],
                   Reference(mesh, before, e, time_step).energy, {0, 1e-5});
  }
  const size_t node_stride =
      apps::CheckStride(options, mesh.positions.size(), 1 << 14);
  for (size_t n = 0; n < mesh.positions.size(); n += node_stride) {
    Vector<double> force{0, 0, 0};
    double mass = 0;
    for (int k = mesh.node_starts[n]; k < mesh.node_starts[n + 1]; ++k) {
      const int corner = mesh.node_corners[k];
      force = force +
              Reference(mesh, before, corner / 8, time_step).forces[corner % 8];
      mass += 0.125 * mesh.mass[corner / 8];
    }
    const Vector<double> velocity =
        ToDouble(before.velocities[n]) + (time_step / mass) * force;
    const Vector<double> position =
        ToDouble(before.positions[n]) + time_step * velocity;
    checker.Expect("node mass", n, node_mass[n], mass, {0, 1e-6});
    ExpectVector("velocity", n, after.velocities[n], velocity, {1e-5, 1e-5},
                 checker);
    // Coordinates reach some 100, where a float's spacing is 8e-6.
    ExpectVector("position", n, after.positions[n], position, {1e-6, 2e-7},
                 checker);
  }
}

void CheckConservation(const Mesh& mesh, const State& after,
                       const std::vector<float>& node_mass, int steps,
                       apps::Checker& checker) {
  double mass = 0, energy_before = 0, energy_after = 0, kinetic = 0;
  for (size_t e = 0; e < mesh.mass.size(); ++e) {
    mass += mesh.mass[e];
    energy_before += static_cast<double>(mesh.mass[e]) * mesh.energies[e];
    energy_after += static_cast<double>(mesh.mass[e]) * after.energies[e];
  }
  double total_node_mass = 0, speed_sum = 0;
  Vector<double> momentum{0, 0, 0};
  for (size_t n = 0; n < node_mass.size(); ++n) {
    const Vector<double> velocity = ToDouble(after.velocities[n]);
    const double squared = Dot(velocity, velocity);
    total_node_mass += node_mass[n];
    kinetic += 0.5 * node_mass[n] * squared;
    speed_sum += node_mass[n] * std::sqrt(squared);
    momentum = momentum + static_cast<double>(node_mass[n]) * velocity;
  }
  checker.Expect("total mass", 0, total_node_mass, mass, {0, 1e-6});
  // Elements do the work of the old velocities, which over n steps from rest
  // under steady forces falls short of the kinetic energy by 1 / n of it.
  checker.Expect("total energy", 0, energy_after + kinetic, energy_before,
                 {1.5 / steps * kinetic, 1e-6});
  const apps::Tolerance rounding{1e-5 * speed_sum, 0};
  checker.Expect("momentum", 0, momentum.x, 0, rounding);
  checker.Expect("momentum", 1, momentum.y, 0, rounding);
  checker.Expect("momentum", 2, momentum.z, 0, rounding);
}
