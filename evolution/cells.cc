#include "evolution/cells.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "evolution/random.h"

namespace reprise::evolution {
namespace {

constexpr double kMostGridCells = 1e9;
constexpr int kMostCvtCells = 10'000;
constexpr size_t kSamplesPerCell = 50;
constexpr size_t kFewestSamples = 2'000;
constexpr int kMostIterations = 30;

absl::Status CheckDimensions(const std::vector<Dimension>& dimensions) {
  if (dimensions.empty()) {
    return absl::InvalidArgumentError(
        "got an archive without measures, expected one or more");
  }
  for (const Dimension& dimension : dimensions) {
    if (!std::isfinite(dimension.low) || !std::isfinite(dimension.high) ||
        !(dimension.low < dimension.high)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "measure ", dimension.name, ": got the range ", dimension.low, " to ",
          dimension.high, ", expected two numbers, the smaller first"));
    }
    if (dimension.cells < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("measure ", dimension.name, ": got ", dimension.cells,
                       " cells, expected 1 or more"));
    }
  }
  return absl::OkStatus();
}

// The place of a value in its range, 0 to 1.
double PlaceOf(const Dimension& dimension, double value) {
  const double range = dimension.high - dimension.low;
  const double from_low = std::clamp(value - dimension.low, 0.0, range);
  return dimension.logarithmic ? std::log1p(from_low) / std::log1p(range)
                               : from_low / range;
}

absl::StatusOr<std::vector<double>> PlacesOf(
    const std::vector<Dimension>& dimensions,
    const std::vector<double>& measures) {
  if (measures.size() != dimensions.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", measures.size(), " measures, expected ", dimensions.size()));
  }
  std::vector<double> places(measures.size());
  for (size_t i = 0; i < measures.size(); ++i) {
    if (std::isnan(measures[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("measure ", dimensions[i].name, " is not a number"));
    }
    places[i] = PlaceOf(dimensions[i], measures[i]);
  }
  return places;
}

class KindCells : public Cells {
 public:
  absl::StatusOr<std::string> CellOf(
      const std::vector<std::string>& kinds,
      const std::vector<double>&) const override {
    return absl::StrJoin(kinds, "+");
  }
  size_t count() const override { return 0; }
  const std::vector<Dimension>& dimensions() const override { return none_; }

 private:
  const std::vector<Dimension> none_;
};

class GridCells : public Cells {
 public:
  explicit GridCells(std::vector<Dimension> dimensions)
      : dimensions_(std::move(dimensions)) {}

  absl::StatusOr<std::string> CellOf(
      const std::vector<std::string>&,
      const std::vector<double>& measures) const override {
    const auto places = PlacesOf(dimensions_, measures);
    if (!places.ok()) return places.status();
    std::vector<int> cell(places->size());
    for (size_t i = 0; i < cell.size(); ++i) {
      const int cells = dimensions_[i].cells;
      cell[i] = std::min(static_cast<int>((*places)[i] * cells), cells - 1);
    }
    return absl::StrJoin(cell, "/");
  }
  size_t count() const override {
    size_t count = 1;
    for (const Dimension& dimension : dimensions_)
      count *= static_cast<size_t>(dimension.cells);
    return count;
  }
  const std::vector<Dimension>& dimensions() const override {
    return dimensions_;
  }

 private:
  const std::vector<Dimension> dimensions_;
};

// Points of the unit cube, one after another.
class Points {
 public:
  Points(size_t dimensions, size_t count)
      : dimensions_(dimensions), values_(dimensions * count) {}

  size_t size() const { return values_.size() / dimensions_; }
  double* operator[](size_t i) { return &values_[i * dimensions_]; }
  const double* operator[](size_t i) const { return &values_[i * dimensions_]; }

  // The nearest one; of equally near ones the first.
  size_t NearestTo(const double* point) const {
    size_t nearest = 0;
    double least = INFINITY;
    for (size_t i = 0; i < size(); ++i) {
      double distance = 0;
      for (size_t d = 0; d < dimensions_; ++d) {
        const double apart = (*this)[i][d] - point[d];
        distance += apart * apart;
      }
      if (distance >= least) continue;
      least = distance;
      nearest = i;
    }
    return nearest;
  }

 private:
  size_t dimensions_;
  std::vector<double> values_;
};

Points UniformPoints(size_t dimensions, size_t count, Random& random) {
  Points points(dimensions, count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t d = 0; d < dimensions; ++d) points[i][d] = random.Unit();
  }
  return points;
}

// Moves every centroid to the middle of the samples that are nearest to it; one
// without samples stays. False: none moved.
bool Iterate(const Points& samples, size_t dimensions, Points* centroids) {
  Points sums(dimensions, centroids->size());
  std::vector<size_t> counts(centroids->size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t nearest = centroids->NearestTo(samples[i]);
    ++counts[nearest];
    for (size_t d = 0; d < dimensions; ++d) sums[nearest][d] += samples[i][d];
  }
  bool moved = false;
  for (size_t i = 0; i < centroids->size(); ++i) {
    if (counts[i] == 0) continue;
    for (size_t d = 0; d < dimensions; ++d) {
      const double mean = sums[i][d] / static_cast<double>(counts[i]);
      moved = moved || (*centroids)[i][d] != mean;
      (*centroids)[i][d] = mean;
    }
  }
  return moved;
}

class CvtCells : public Cells {
 public:
  CvtCells(std::vector<Dimension> dimensions, Points centroids)
      : dimensions_(std::move(dimensions)), centroids_(std::move(centroids)) {}

  absl::StatusOr<std::string> CellOf(
      const std::vector<std::string>&,
      const std::vector<double>& measures) const override {
    const auto places = PlacesOf(dimensions_, measures);
    if (!places.ok()) return places.status();
    return absl::StrCat(centroids_.NearestTo(places->data()));
  }
  size_t count() const override { return centroids_.size(); }
  const std::vector<Dimension>& dimensions() const override {
    return dimensions_;
  }

 private:
  const std::vector<Dimension> dimensions_;
  const Points centroids_;
};

}  // namespace

std::unique_ptr<Cells> NewKindCells() { return std::make_unique<KindCells>(); }

absl::StatusOr<std::unique_ptr<Cells>> NewGridCells(
    std::vector<Dimension> dimensions) {
  if (absl::Status status = CheckDimensions(dimensions); !status.ok())
    return status;
  double count = 1;
  for (const Dimension& dimension : dimensions) count *= dimension.cells;
  if (count > kMostGridCells) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got a grid of ", count, " cells, expected at most ", kMostGridCells,
        "; a CVT archive has as many cells as one likes"));
  }
  return std::make_unique<GridCells>(std::move(dimensions));
}

absl::StatusOr<std::unique_ptr<Cells>> NewCvtCells(
    std::vector<Dimension> dimensions, int count, uint64_t seed) {
  if (absl::Status status = CheckDimensions(dimensions); !status.ok())
    return status;
  if (count < 2 || count > kMostCvtCells) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", count, " CVT cells, expected 2 to ", kMostCvtCells));
  }
  const size_t cells = static_cast<size_t>(count);
  Random random(seed);
  const Points samples =
      UniformPoints(dimensions.size(),
                    std::max(kSamplesPerCell * cells, kFewestSamples), random);
  Points centroids = UniformPoints(dimensions.size(), cells, random);
  for (int i = 0; i < kMostIterations; ++i) {
    if (!Iterate(samples, dimensions.size(), &centroids)) break;
  }
  return std::make_unique<CvtCells>(std::move(dimensions),
                                    std::move(centroids));
}

}  // namespace reprise::evolution
