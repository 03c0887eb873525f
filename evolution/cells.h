// How an archive divides the space of what variants are like into cells.
//
//   kinds of change   a cell for each set of them; needs no measures
//   grid              equal intervals of each dimension (MAP-Elites)
//   CVT               cells around centroids that lie evenly in a space of any
//                     number of dimensions (Vassiliades et al., "Using
//                     Centroidal Voronoi Tessellations to Scale Up the
//                     Multidimensional Archive of Phenotypic Elites", 2018)
//
// Names follow pyribs (measures, GridArchive, CVTArchive, CategoricalArchive).
// Immutable; thread-safe.
#ifndef REPRISE_EVOLUTION_CELLS_H_
#define REPRISE_EVOLUTION_CELLS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise::evolution {

// One measure. What lies outside its range counts as its nearest end.
struct Dimension {
  std::string name = "";
  double low = 0;
  double high = 1;  // above low
  // Equal intervals of log(1 + value - low) rather than of the value: for
  // counts and sizes.
  bool logarithmic = false;
  int cells = 10;  // of a grid, along this dimension
};

class Cells {
 public:
  virtual ~Cells() = default;

  // A printable name of the cell, the same for the same arguments. `kinds`:
  // sorted kinds of change; `measures`: one per dimension. INVALID_ARGUMENT:
  // another number of measures, or one that is not a number.
  virtual absl::StatusOr<std::string> CellOf(
      const std::vector<std::string>& kinds,
      const std::vector<double>& measures) const = 0;

  // How many there are; 0: as many as there are sets of kinds.
  virtual size_t count() const = 0;
  virtual const std::vector<Dimension>& dimensions() const = 0;
};

std::unique_ptr<Cells> NewKindCells();

// Cells are named "3/0/7". INVALID_ARGUMENT names the dimension: no range, no
// cells, or more than 10^9 cells in all; or there are no dimensions.
absl::StatusOr<std::unique_ptr<Cells>> NewGridCells(
    std::vector<Dimension> dimensions);

// `count` cells (2 to 10,000), named by number. The same seed gives the same
// centroids: k-means over uniform samples, 50 per cell and at least 2,000, by
// Lloyd's iterations until they rest, at most 30. Takes time in proportion to
// count^2: 0.1 s for 100 cells of 3 dimensions.
absl::StatusOr<std::unique_ptr<Cells>> NewCvtCells(
    std::vector<Dimension> dimensions, int count, uint64_t seed);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_CELLS_H_
