#include "tests/benchmarks/tuner_sim/measured_space.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "replay/base/check.h"
#include "replay/base/status_macros.h"

namespace reprise::tuner_sim {
namespace {

using bayesopt::Configuration;
using bayesopt::Level;
using bayesopt::Parameter;
using bayesopt::Value;

std::optional<double> Number(const Value& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
  if (const auto* i = std::get_if<int64_t>(&value)) {
    return static_cast<double>(*i);
  }
  if (const auto* d = std::get_if<double>(&value)) return *d;
  return std::nullopt;
}

// How unevenly increasing numbers lie: deviation of the gaps over their mean.
double Unevenness(const std::vector<double>& numbers) {
  std::vector<double> gaps;
  for (size_t i = 1; i < numbers.size(); ++i) {
    gaps.push_back(numbers[i] - numbers[i - 1]);
  }
  const double mean = std::accumulate(gaps.begin(), gaps.end(), 0.0) /
                      static_cast<double>(gaps.size());
  double squares = 0;
  for (const double gap : gaps) squares += (gap - mean) * (gap - mean);
  return std::sqrt(squares / static_cast<double>(gaps.size())) / mean;
}

// Where levels of these increasing numbers lie.
std::vector<double> Positions(const std::vector<double>& numbers) {
  if (numbers.front() <= 0 || numbers.size() < 3) return numbers;
  std::vector<double> logarithms;
  for (const double number : numbers) logarithms.push_back(std::log2(number));
  return Unevenness(logarithms) < Unevenness(numbers) ? logarithms : numbers;
}

bool AreCodes(const std::vector<double>& numbers) {
  if (numbers.size() < 3) return false;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != static_cast<double>(i)) return false;
  }
  return true;
}

// `values` are distinct and in order; the parameter has them in that order.
Parameter Infer(const std::string& name, const std::vector<Value>& values) {
  std::vector<double> numbers;
  for (const Value& value : values) {
    if (const auto number = Number(value)) numbers.push_back(*number);
  }
  const bool numeric = numbers.size() == values.size();
  if (numeric && numbers == std::vector<double>{0, 1}) {
    return Parameter::Boolean(name, false);
  }
  if (!numeric || AreCodes(numbers)) {
    return Parameter::Categorical(name, values, values.front());
  }
  const std::vector<double> positions = Positions(numbers);
  std::vector<Level> levels;
  for (size_t i = 0; i < values.size(); ++i) {
    levels.push_back({values[i], positions[i]});
  }
  return Parameter::OrdinalLevels(name, std::move(levels), values.front());
}

// A column of the table that varies, and the parameter it became.
struct Column {
  size_t index = 0;
  std::vector<Value> values;
  Parameter parameter;

  uint64_t LevelOf(const Value& value) const {
    return static_cast<uint64_t>(
        std::lower_bound(values.begin(), values.end(), value) - values.begin());
  }
};

std::vector<Column> VaryingColumns(const Table& table) {
  std::vector<Column> columns;
  for (size_t i = 0; i < table.names.size(); ++i) {
    std::set<Value> distinct;
    for (const Table::Row& row : table.rows) distinct.insert(row.values[i]);
    if (distinct.size() < 2) continue;
    Column column{i, {distinct.begin(), distinct.end()}, {}};
    column.parameter = Infer(table.names[i], column.values);
    columns.push_back(std::move(column));
  }
  return columns;
}

// The constraint that a configuration is in the table.
bayesopt::Constraint InTable(const std::vector<Column>& columns,
                             std::unordered_set<uint64_t> keys) {
  bayesopt::Constraint constraint;
  constraint.description = "the configuration was measured";
  std::vector<Parameter> parameters;
  for (const Column& column : columns) {
    constraint.parameters.push_back(column.parameter.name);
    parameters.push_back(column.parameter);
  }
  constraint.holds = [parameters = std::move(parameters),
                      keys = std::move(keys)](const std::vector<Value>& at) {
    uint64_t key = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      key = key * parameters[i].Cardinality() + *parameters[i].IndexOf(at[i]);
    }
    return keys.contains(key);
  };
  return constraint;
}

uint64_t KeyOf(const std::vector<Column>& columns, const Table::Row& row) {
  uint64_t key = 0;
  for (const Column& column : columns) {
    key = key * column.values.size() + column.LevelOf(row.values[column.index]);
  }
  return key;
}

Configuration ConfigurationOf(const std::vector<Column>& columns,
                              const Table::Row& row) {
  Configuration configuration;
  for (const Column& column : columns) {
    configuration.values.push_back(
        column.parameter.At(column.LevelOf(row.values[column.index])));
  }
  return configuration;
}

absl::StatusOr<std::shared_ptr<const bayesopt::Space>> SpaceOf(
    std::vector<Column> columns, const Table& table) {
  std::unordered_set<uint64_t> keys;
  double product = 1;
  for (const Column& column : columns) {
    product *= static_cast<double>(column.values.size());
  }
  if (product > 1e18) {
    return absl::InvalidArgumentError("the space has more than 1e18 points");
  }
  const Table::Row* first = nullptr;
  uint64_t first_key = UINT64_MAX;
  for (const Table::Row& row : table.rows) {
    const uint64_t key = KeyOf(columns, row);
    keys.insert(key);
    if (key > first_key) continue;
    first_key = key;
    first = &row;
  }
  const Configuration initial = ConfigurationOf(columns, *first);
  for (size_t i = 0; i < columns.size(); ++i) {
    columns[i].parameter.initial = initial.values[i];
  }
  std::vector<bayesopt::Constraint> constraints;
  if (static_cast<double>(keys.size()) < product) {
    constraints.push_back(InTable(columns, std::move(keys)));
  }
  std::vector<Parameter> parameters;
  for (Column& column : columns) {
    parameters.push_back(std::move(column.parameter));
  }
  return bayesopt::Space::Create(std::move(parameters), std::move(constraints));
}

bool SamplesAgree(const Measurement& measurement) {
  if (measurement.samples_ms.empty()) return false;
  const double mean = std::accumulate(measurement.samples_ms.begin(),
                                      measurement.samples_ms.end(), 0.0) /
                      static_cast<double>(measurement.samples_ms.size());
  return std::abs(mean / measurement.time_ms - 1) <= 0.02;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MeasuredSpace>> MeasuredSpace::FromTable(
    std::string name, const Table& table) {
  const std::vector<Column> columns = VaryingColumns(table);
  if (columns.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": got no parameter that varies"));
  }
  std::shared_ptr<MeasuredSpace> measured(new MeasuredSpace());
  measured->name_ = std::move(name);
  ASSIGN_OR_RETURN(measured->space_, SpaceOf(columns, table));
  for (const Table::Row& row : table.rows) {
    RETURN_IF_ERROR(
        measured->Add(ConfigurationOf(columns, row), row.measurement));
  }
  RETURN_IF_ERROR(measured->Finish());
  return std::shared_ptr<const MeasuredSpace>(std::move(measured));
}

absl::StatusOr<std::shared_ptr<const MeasuredSpace>>
MeasuredSpace::FromFunction(
    std::string name, std::shared_ptr<const bayesopt::Space> space,
    const std::function<Measurement(const Configuration&)>& measure) {
  std::shared_ptr<MeasuredSpace> measured(new MeasuredSpace());
  measured->name_ = std::move(name);
  measured->space_ = std::move(space);
  absl::Status status;
  measured->space_->Enumerate(0, [&](const Configuration& configuration) {
    status = measured->Add(configuration, measure(configuration));
    return status.ok();
  });
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(measured->Finish());
  return std::shared_ptr<const MeasuredSpace>(std::move(measured));
}

absl::Status MeasuredSpace::Add(const Configuration& configuration,
                                Measurement measurement) {
  if (!index_.emplace(space_->Hash(configuration), configurations_.size())
           .second) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": got a configuration twice"));
  }
  configurations_.push_back(configuration);
  measurements_.push_back(std::move(measurement));
  return absl::OkStatus();
}

absl::Status MeasuredSpace::Finish() {
  size_t agree = 0;
  for (const Measurement& measurement : measurements_) {
    if (measurement.kind != v1::OUTCOME_KIND_OK) continue;
    times_ms_.push_back(measurement.time_ms);
    if (SamplesAgree(measurement)) ++agree;
  }
  if (times_ms_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": got no configuration that is OK"));
  }
  std::sort(times_ms_.begin(), times_ms_.end(), std::greater<>());
  replayable_ = static_cast<double>(agree) >=
                0.99 * static_cast<double>(times_ms_.size());
  return absl::OkStatus();
}

const Measurement& MeasuredSpace::At(const Configuration& configuration) const {
  const auto found = index_.find(space_->Hash(configuration));
  CHECK(found != index_.end());
  return measurements_[found->second];
}

std::vector<Configuration> MeasuredSpace::Fastest(size_t count) const {
  std::vector<size_t> order;
  for (size_t i = 0; i < measurements_.size(); ++i) {
    if (measurements_[i].kind == v1::OUTCOME_KIND_OK) order.push_back(i);
  }
  count = std::min(count, order.size());
  std::partial_sort(order.begin(),
                    order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    [this](size_t a, size_t b) {
                      return std::pair(measurements_[a].time_ms, a) <
                             std::pair(measurements_[b].time_ms, b);
                    });
  std::vector<Configuration> fastest;
  for (size_t i = 0; i < count; ++i) {
    fastest.push_back(configurations_[order[i]]);
  }
  return fastest;
}

}  // namespace reprise::tuner_sim
