// One step of Lagrangian hydrodynamics on an unstructured hexahedral mesh, like
// LULESH: elements gather their eight nodes, compute pressure, artificial
// viscosity and corner forces; nodes gather the forces of their elements and
// move, in place. Node masses are scattered with atomics at the start.
// --size: elements along each edge of the cube.
#include "../common/app.h"
#include "element.h"
#include "mesh.h"

constexpr int kBlock = 128;
constexpr float kTimeStep = 0.01f;

using Vec = Vector<float>;

REPRISE_TOLERANCE(1e-6)
__global__ void ScatterMassKernel(const int* element_nodes,
                                  const float* element_mass, float* node_mass,
                                  int element_count) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= element_count) return;
  for (int c = 0; c < 8; ++c) {
    atomicAdd(&node_mass[element_nodes[e * 8 + c]], 0.125f * element_mass[e]);
  }
}

// Writes corner_forces[8 e + c] and updates the element's specific energy.
REPRISE_TOLERANCE(1e-4)
__global__ void ElementForceKernel(const int* element_nodes,
                                   const Vec* positions, const Vec* velocities,
                                   const float* element_mass, float* energies,
                                   Vec* corner_forces, int element_count) {
  int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= element_count) return;
  Vec x[8], v[8], forces[8];
  for (int c = 0; c < 8; ++c) {
    int node = element_nodes[e * 8 + c];
    x[c] = positions[node];
    v[c] = velocities[node];
  }
  energies[e] =
      ElementStep(x, v, element_mass[e], energies[e], kTimeStep, forces);
  for (int c = 0; c < 8; ++c) corner_forces[e * 8 + c] = forces[c];
}

// Node n's corners are node_corners[node_starts[n]] up to node_starts[n + 1].
REPRISE_TOLERANCE(1e-5)
__global__ void MoveNodesKernel(const int* node_starts, const int* node_corners,
                                const Vec* corner_forces,
                                const float* node_mass, Vec* velocities,
                                Vec* positions, int node_count) {
  int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= node_count) return;
  Vec force = {0.0f, 0.0f, 0.0f};
  for (int k = node_starts[n]; k < node_starts[n + 1]; ++k) {
    force = force + corner_forces[node_corners[k]];
  }
  velocities[n] = velocities[n] + (kTimeStep / node_mass[n]) * force;
  positions[n] = positions[n] + kTimeStep * velocities[n];
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "hydro_mesh", {96, 7, 256, "elements along each edge"});
  const Mesh mesh = MakeMesh(static_cast<int>(options.size));
  const int element_count = static_cast<int>(mesh.mass.size());
  const int node_count = static_cast<int>(mesh.positions.size());
  apps::DeviceArray<int> element_nodes(mesh.element_nodes);
  apps::DeviceArray<int> node_starts(mesh.node_starts);
  apps::DeviceArray<int> node_corners(mesh.node_corners);
  apps::DeviceArray<float> mass(mesh.mass);
  apps::DeviceArray<float> energies(mesh.energies);
  apps::DeviceArray<Vec> positions(mesh.positions);
  apps::DeviceArray<Vec> velocities(node_count);
  apps::DeviceArray<float> node_mass(node_count);
  apps::DeviceArray<Vec> corner_forces(mesh.element_nodes.size());
  velocities.Clear();
  node_mass.Clear();
  // What the last step started from.
  apps::DeviceArray<float> old_energies(element_count);
  apps::DeviceArray<Vec> old_positions(node_count);
  apps::DeviceArray<Vec> old_velocities(node_count);

  const int element_blocks = apps::BlocksFor(element_count, kBlock);
  ScatterMassKernel<<<element_blocks, kBlock>>>(element_nodes.get(), mass.get(),
                                                node_mass.get(), element_count);
  CUDA_CHECK(cudaGetLastError());
  apps::RunIterations(
      options,
      [&] {
        ElementForceKernel<<<element_blocks, kBlock>>>(
            element_nodes.get(), positions.get(), velocities.get(), mass.get(),
            energies.get(), corner_forces.get(), element_count);
        MoveNodesKernel<<<apps::BlocksFor(node_count, kBlock), kBlock>>>(
            node_starts.get(), node_corners.get(), corner_forces.get(),
            node_mass.get(), velocities.get(), positions.get(), node_count);
      },
      [&] {
        old_energies.CopyFrom(energies);
        old_positions.CopyFrom(positions);
        old_velocities.CopyFrom(velocities);
      });

  const State before{old_positions.ToHost(), old_velocities.ToHost(),
                     old_energies.ToHost()};
  const State after{positions.ToHost(), velocities.ToHost(), energies.ToHost()};
  const std::vector<float> got_mass = node_mass.ToHost();
  apps::Checker checker;
  CheckLastStep(options, mesh, before, after, got_mass, kTimeStep, checker);
  CheckConservation(mesh, after, got_mass, options.iterations, checker);
  return checker.Finish();
}
