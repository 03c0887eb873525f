#include "evolution/measures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "evolution/tokens.h"

namespace reprise::evolution {
namespace {

using Counts = google::protobuf::Map<std::string, uint64_t>;

double CountOf(const Counts& counts, std::initializer_list<const char*> names) {
  double sum = 0;
  for (const char* name : names) {
    const auto found = counts.find(name);
    if (found != counts.end()) sum += static_cast<double>(found->second);
  }
  return sum;
}

double Intensity(const MeasuredVariant& variant) {
  const Counts& counts = variant.code.ir_features();
  const double memory =
      CountOf(counts, {"load", "store", "atomicrmw", "cmpxchg"});
  return CountOf(counts, {"fadd", "fsub", "fmul", "fdiv", "frem", "fneg"}) /
         std::max(memory, 1.0);
}

double Length(const std::map<std::string, double>& logs) {
  double square = 0;
  for (const auto& [name, log] : logs) square += log * log;
  return std::sqrt(square);
}

double IrDistance(const MeasuredVariant& variant) {
  std::map<std::string, double> a, b;
  for (const auto& [name, count] : variant.code.ir_features())
    a[name] = std::log1p(static_cast<double>(count));
  for (const auto& [name, count] : variant.recorded.ir_features())
    b[name] = std::log1p(static_cast<double>(count));
  const double lengths = Length(a) * Length(b);
  // Of one of them nothing is known.
  if (!(lengths > 0)) return 0;
  double product = 0;
  for (const auto& [name, log] : a) {
    const auto other = b.find(name);
    if (other != b.end()) product += log * other->second;
  }
  return std::clamp(1 - product / lengths, 0.0, 1.0);
}

struct Measure {
  Dimension dimension;
  double (*of)(const MeasuredVariant&);
};

const std::vector<Measure>& Measures() {
  static const auto* const measures = new std::vector<Measure>{
      {{.name = "tokens", .high = 20'000, .logarithmic = true},
       [](const MeasuredVariant& v) { return static_cast<double>(v.tokens); }},
      {{.name = "registers", .high = 256, .cells = 8},
       [](const MeasuredVariant& v) -> double { return v.code.registers(); }},
      {{.name = "occupancy", .cells = 8},
       [](const MeasuredVariant& v) { return v.code.occupancy(); }},
      {{.name = "shared_bytes",
        .high = 232'448,
        .logarithmic = true,
        .cells = 8},
       [](const MeasuredVariant& v) -> double {
         return v.code.static_shared_bytes();
       }},
      {{.name = "intensity", .high = 64, .logarithmic = true, .cells = 8},
       Intensity},
      // Few variants are very unlike the code they come from.
      {{.name = "ir_distance", .high = 0.5}, IrDistance},
  };
  return *measures;
}

std::string MeasureNames() {
  std::vector<std::string> names;
  for (const Measure& measure : Measures())
    names.push_back(measure.dimension.name);
  return absl::StrJoin(names, ", ");
}

absl::StatusOr<const Measure*> FindMeasure(const std::string& name) {
  for (const Measure& measure : Measures()) {
    if (measure.dimension.name == name) return &measure;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "got measure '", name, "', expected one of ", MeasureNames()));
}

}  // namespace

absl::StatusOr<Dimension> StandardDimension(const std::string& name) {
  const absl::StatusOr<const Measure*> measure = FindMeasure(name);
  if (!measure.ok()) return measure.status();
  return (*measure)->dimension;
}

absl::StatusOr<std::shared_ptr<const Cells>> ParseCells(const std::string& text,
                                                        uint64_t seed) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  const bool grid = parts[0] == "grid" && parts.size() == 2;
  const bool cvt = parts[0] == "cvt" && parts.size() == 3;
  if (text == "kinds") return NewKindCells();
  int count = 0;
  if ((!grid && !cvt) || (cvt && !absl::SimpleAtoi(parts[1], &count))) {
    return absl::InvalidArgumentError(
        absl::StrCat("got cells '", text,
                     "', expected kinds, grid:MEASURE,... or "
                     "cvt:NUMBER:MEASURE,...; measures: ",
                     MeasureNames()));
  }
  std::vector<Dimension> dimensions;
  for (const auto name : absl::StrSplit(parts.back(), ',')) {
    absl::StatusOr<Dimension> dimension = StandardDimension(std::string(name));
    if (!dimension.ok()) return dimension.status();
    dimensions.push_back(*std::move(dimension));
  }
  if (grid) return NewGridCells(std::move(dimensions));
  return NewCvtCells(std::move(dimensions), count, seed);
}

size_t CountTokens(std::string_view code) {
  Lexer lexer(code);
  size_t count = 0;
  while (lexer.Next()) ++count;
  return count;
}

size_t EvolvableTokens(const EvolvableSource& source,
                       const FileContents& changed) {
  size_t inside = 0;
  for (const auto& [path, recorded] : source.files()) {
    const auto found = changed.find(path);
    const std::string& now = found == changed.end() ? recorded : found->second;
    // What is outside regions is the same in both.
    const size_t whole = CountTokens(now), before = CountTokens(recorded);
    size_t regions = 0;
    for (const Region& region : source.regions()) {
      if (region.path != path) continue;
      regions += CountTokens(std::string_view(recorded).substr(
          region.begin, region.end - region.begin));
    }
    const size_t outside = before - std::min(before, regions);
    inside += whole - std::min(whole, outside);
  }
  return inside;
}

absl::StatusOr<std::vector<double>> MeasuresOf(
    const std::vector<Dimension>& dimensions, const MeasuredVariant& variant) {
  std::vector<double> measures;
  for (const Dimension& dimension : dimensions) {
    const absl::StatusOr<const Measure*> measure = FindMeasure(dimension.name);
    if (!measure.ok()) return measure.status();
    measures.push_back((*measure)->of(variant));
  }
  return measures;
}

}  // namespace reprise::evolution
