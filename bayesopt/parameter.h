// One thing a tuner may choose: its name, its values, and when it counts.
// Plain values; thread-safe as such.
#ifndef REPRISE_BAYESOPT_PARAMETER_H_
#define REPRISE_BAYESOPT_PARAMETER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "bayesopt/pipeline_space.h"

namespace reprise::bayesopt {

// std::monostate: inactive. Values of different types are different values.
using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;

// For people and for keys: true, 32, 0.5, default<O3>.
std::string ValueToString(const Value& value);

enum class ParameterKind {
  kCategorical,  // levels without order
  kOrdinal,      // levels in order; distances are those of Level::position
  kInteger,      // minimum, minimum + step, ..., maximum
  kBoolean,
  kPipeline,     // text of an LLVM pipeline, from a PipelineSpace
  kPermutation,  // an order of the levels: their texts, "b,a,c"
};

struct Level {
  Value value;
  // Where an ordinal's level lies; increasing over the levels. A level that is
  // not a number ("default") has the position of the number it amounts to.
  double position = 0;
};

struct Condition {
  std::string parameter;
  std::vector<Value> values;  // holds for any of them
};

struct Parameter {
  std::string name;
  ParameterKind kind = ParameterKind::kCategorical;
  std::vector<Level> levels;  // categorical, ordinal, boolean, permutation
  int64_t minimum = 0;        // integer
  int64_t maximum = 0;
  int64_t step = 1;
  bool log_scale = false;  // integer: distances are those of the logarithm
  std::shared_ptr<const PipelineSpace> pipelines;  // pipeline
  Value initial;                                   // the default value
  std::vector<Condition> conditions;               // all must hold

  // Builders. `initial` must be one of the values.
  static Parameter Categorical(std::string name, std::vector<Value> values,
                               Value initial);
  // Positions are the numbers, or their base-2 logarithms (0 counts as 1/2).
  static Parameter Ordinal(std::string name, std::vector<int64_t> values,
                           int64_t initial, bool log_scale);
  static Parameter OrdinalLevels(std::string name, std::vector<Level> levels,
                                 Value initial);
  static Parameter Integer(std::string name, int64_t minimum, int64_t maximum,
                           int64_t initial, int64_t step = 1,
                           bool log_scale = false);
  static Parameter Boolean(std::string name, bool initial);
  static Parameter Pipeline(std::string name,
                            std::shared_ptr<const PipelineSpace> pipelines);

  // The initial order is that of `items`.
  static Parameter Permutation(std::string name, std::vector<Value> items);

  // This parameter, active only under `parent` = one of `values`.
  Parameter When(std::string parent, std::vector<Value> values) &&;

  // How many values; UINT64_MAX where they cannot be counted (pipelines).
  uint64_t Cardinality() const;
  // The i-th value, i < Cardinality(). Not for pipelines.
  Value At(uint64_t index) const;
  // Position of a value among At's; nullopt: not a value of this parameter.
  std::optional<uint64_t> IndexOf(const Value& value) const;
  bool Contains(const Value& value) const;

  // Of a permutation: the levels' indices in the order that a value says
  // (nullopt: not a value of this parameter), and the value of an order.
  std::optional<std::vector<size_t>> OrderOf(const Value& value) const;
  Value InOrder(const std::vector<size_t>& order) const;

  // INVALID_ARGUMENT: no name, no or repeated values, an ordinal's positions
  // out of order, an empty range, a permutation of fewer than 2 or more than 20
  // items or of such as hold a comma, or an initial value that is none.
  absl::Status Check() const;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_PARAMETER_H_
