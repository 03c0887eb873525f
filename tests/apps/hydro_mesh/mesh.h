// The mesh of hydro_mesh and the checks of its result; host code only.
#ifndef REPRISE_TESTS_APPS_HYDRO_MESH_MESH_H_
#define REPRISE_TESTS_APPS_HYDRO_MESH_MESH_H_

#include "../common/app.h"
#include "element.h"

struct Mesh {
  std::vector<int> element_nodes;  // eight to an element
  std::vector<int> node_starts;    // into node_corners; one more than nodes
  std::vector<int> node_corners;   // 8 * element + corner
  std::vector<Vector<float>> positions;
  std::vector<float> mass;
  std::vector<float> energies;
};

struct State {
  std::vector<Vector<float>> positions;
  std::vector<Vector<float>> velocities;
  std::vector<float> energies;
};

// A distorted cube of edge^3 elements around a hot centre. Nodes are numbered
// at random within windows, so that neighbours are near but in no order.
Mesh MakeMesh(int edge);

// Compares nodes and elements after the step with a double-precision step from
// the state before.
void CheckLastStep(const apps::Options& options, const Mesh& mesh,
                   const State& before, const State& after,
                   const std::vector<float>& node_mass, double time_step,
                   apps::Checker& checker);

// Total mass and energy stay what they were and total momentum zero, after
// `steps` steps from rest.
void CheckConservation(const Mesh& mesh, const State& after,
                       const std::vector<float>& node_mass, int steps,
                       apps::Checker& checker);

#endif  // REPRISE_TESTS_APPS_HYDRO_MESH_MESH_H_
