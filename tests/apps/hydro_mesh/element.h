// The physics of one element, shared by the kernel (in float) and the host's
// reference (in double).
#ifndef REPRISE_TESTS_APPS_HYDRO_MESH_ELEMENT_H_
#define REPRISE_TESTS_APPS_HYDRO_MESH_ELEMENT_H_

#include <cuda_runtime.h>

template <typename Real>
struct Vector {
  Real x, y, z;
};

template <typename Real>
__host__ __device__ inline Vector<Real> operator+(Vector<Real> a,
                                                  Vector<Real> b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <typename Real>
__host__ __device__ inline Vector<Real> operator-(Vector<Real> a,
                                                  Vector<Real> b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <typename Real>
__host__ __device__ inline Vector<Real> operator*(Real s, Vector<Real> a) {
  return {s * a.x, s * a.y, s * a.z};
}
template <typename Real>
__host__ __device__ inline Real Dot(Vector<Real> a, Vector<Real> b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <typename Real>
__host__ __device__ inline Vector<Real> Cross(Vector<Real> a, Vector<Real> b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// Computes the forces on the corners of one hexahedron from the pressure of an
// ideal gas and a linear-quadratic artificial viscosity; returns the specific
// energy after the step, reduced by the work the forces do. Bit 0, 1 and 2 of a
// corner's number say on which side in x, y and z it lies.
template <typename Real>
__host__ __device__ inline Real ElementStep(const Vector<Real>* x,
                                            const Vector<Real>* v, Real mass,
                                            Real energy, Real time_step,
                                            Vector<Real>* forces) {
  // The corners of each face, anticlockwise seen from outside.
  const int faces[6][4] = {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4},
                           {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}};
  for (int c = 0; c < 8; ++c) forces[c] = {Real(0), Real(0), Real(0)};
  Real volume = 0;
  for (int f = 0; f < 6; ++f) {
    const int a = faces[f][0], b = faces[f][1], c = faces[f][2],
              d = faces[f][3];
    // A quarter of the face's area vector belongs to each of its corners.
    const Vector<Real> quarter = Real(0.125) * Cross(x[c] - x[a], x[d] - x[b]);
    const Vector<Real> corner_sum = (x[a] + x[b]) + (x[c] + x[d]);
    volume += Dot(corner_sum, quarter) / Real(3);
    forces[a] = forces[a] + quarter;
    forces[b] = forces[b] + quarter;
    forces[c] = forces[c] + quarter;
    forces[d] = forces[d] + quarter;
  }
  // So far `forces` is the gradient of the volume.
  Real volume_rate = 0;
  for (int c = 0; c < 8; ++c) volume_rate += Dot(forces[c], v[c]);
  const Real density = mass / volume;
  Real pressure = Real(0.4) * density * energy;
  if (volume_rate < 0) {
    const Real jump = -volume_rate / volume * cbrt(volume);
    const Real sound = sqrt(Real(1.4) * pressure / density);
    pressure += density * jump * (Real(0.5) * sound + Real(1.5) * jump);
  }
  for (int c = 0; c < 8; ++c) forces[c] = pressure * forces[c];
  return energy - time_step * pressure * volume_rate / mass;
}

#endif  // REPRISE_TESTS_APPS_HYDRO_MESH_ELEMENT_H_
