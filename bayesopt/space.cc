#include "bayesopt/space.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bayesopt/permutation.h"

namespace reprise::bayesopt {
namespace {

// Tries before a search that may fail gives up.
constexpr int kValueTries = 16;
constexpr int kConfigurationTries = 64;

bool IsInactive(const Value& value) {
  return std::holds_alternative<std::monostate>(value);
}

bool IsOneOf(const Value& value, const std::vector<Value>& values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Two independent 64-bit sponges, byte by byte.
class Hasher {
 public:
  void Byte(uint8_t byte) {
    high_ = (high_ ^ byte) * 0x100000001b3ull;
    low_ = std::rotl(low_ + byte + 0x9e3779b97f4a7c15ull, 23) *
           0xbf58476d1ce4e5b9ull;
  }
  void U64(uint64_t value) {
    for (int i = 0; i < 8; ++i) Byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  void Text(std::string_view text) {
    U64(text.size());
    for (const char c : text) Byte(static_cast<uint8_t>(c));
  }
  void Of(const Value& value) {
    Byte(static_cast<uint8_t>(value.index()));
    if (const auto* b = std::get_if<bool>(&value)) Byte(*b ? 1 : 0);
    if (const auto* i = std::get_if<int64_t>(&value)) {
      U64(static_cast<uint64_t>(*i));
    }
    if (const auto* d = std::get_if<double>(&value)) {
      U64(std::bit_cast<uint64_t>(*d));
    }
    if (const auto* s = std::get_if<std::string>(&value)) Text(*s);
  }
  ConfigurationHash Finish() const {
    // Stream 0 of a Random is a good finalizer.
    return {Random(high_).Next(), Random(low_, 1).Next()};
  }

 private:
  uint64_t high_ = 0xcbf29ce484222325ull;
  uint64_t low_ = 0x2545f4914f6cdd1dull;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Space>> Space::Create(
    std::vector<Parameter> parameters, std::vector<Constraint> constraints) {
  std::shared_ptr<Space> space(new Space());
  space->parameters_ = std::move(parameters);
  space->constraints_ = std::move(constraints);
  if (absl::Status status = space->Bind(); !status.ok()) return status;
  return std::shared_ptr<const Space>(std::move(space));
}

absl::Status Space::Bind() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (absl::Status s = parameter.Check(); !s.ok()) return s;
    std::vector<BoundCondition> bound;
    for (const Condition& condition : parameter.conditions) {
      const auto parent = index_.find(condition.parameter);
      if (parent == index_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "space: parameter ", parameter.name, ": got a condition on ",
            condition.parameter, ", expected a parameter declared before it"));
      }
      bound.push_back({parent->second, condition.values});
    }
    conditions_.push_back(std::move(bound));
    if (!index_.emplace(parameter.name, i).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("space: got parameter ", parameter.name, " twice"));
    }
    if (parameter.kind == ParameterKind::kPipeline) finite_ = false;
  }
  for (const Constraint& constraint : constraints_) {
    BoundConstraint bound{{}, 0};
    for (const std::string& name : constraint.parameters) {
      const auto index = Find(name);
      if (!index) {
        return absl::InvalidArgumentError(
            absl::StrCat("space: constraint \"", constraint.description,
                         "\": got unknown parameter ", name));
      }
      bound.parameters.push_back(*index);
      bound.last = std::max(bound.last, *index);
    }
    bound_.push_back(std::move(bound));
  }
  return Check(Default());
}

std::optional<size_t> Space::Find(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

bool Space::Active(const Configuration& configuration, size_t index) const {
  for (const BoundCondition& condition : conditions_[index]) {
    if (!IsOneOf(configuration.values[condition.parameter], condition.values)) {
      return false;
    }
  }
  return true;
}

bool Space::Holds(const Configuration& configuration, size_t constraint) const {
  std::vector<Value> values;
  for (const size_t index : bound_[constraint].parameters) {
    if (IsInactive(configuration.values[index])) return true;
    values.push_back(configuration.values[index]);
  }
  return constraints_[constraint].holds(values);
}

bool Space::ConstraintsHold(const Configuration& configuration,
                            size_t last) const {
  for (size_t i = 0; i < bound_.size(); ++i) {
    if (bound_[i].last == last && !Holds(configuration, i)) return false;
  }
  return true;
}

bool Space::AllConstraintsHold(const Configuration& configuration) const {
  for (size_t i = 0; i < bound_.size(); ++i) {
    if (!Holds(configuration, i)) return false;
  }
  return true;
}

void Space::Settle(Configuration& configuration, size_t from) const {
  for (size_t i = from; i < parameters_.size(); ++i) {
    Value& value = configuration.values[i];
    if (!Active(configuration, i)) {
      value = std::monostate();
    } else if (IsInactive(value)) {
      value = parameters_[i].initial;
    }
  }
}

Configuration Space::Default() const {
  Configuration configuration;
  configuration.values.resize(parameters_.size());
  Settle(configuration, 0);
  return configuration;
}

absl::Status Space::Check(const Configuration& configuration) const {
  if (configuration.values.size() != parameters_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "space: got a configuration of ", configuration.values.size(),
        " values, expected ", parameters_.size()));
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Value& value = configuration.values[i];
    if (Active(configuration, i) == IsInactive(value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "space: parameter ", parameters_[i].name, ": got ",
          IsInactive(value) ? "no value" : ValueToString(value), ", but it is ",
          IsInactive(value) ? "active" : "inactive", " in this configuration"));
    }
    if (!IsInactive(value) && !parameters_[i].Contains(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("space: parameter ", parameters_[i].name, ": got \"",
                       ValueToString(value), "\", expected one of its values"));
    }
  }
  for (size_t i = 0; i < bound_.size(); ++i) {
    if (Holds(configuration, i)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("space: the configuration breaks \"",
                     constraints_[i].description, "\""));
  }
  return absl::OkStatus();
}

absl::StatusOr<Configuration> Space::FromAssignment(
    const Assignment& assignment) const {
  Configuration configuration;
  configuration.values.resize(parameters_.size());
  for (const auto& [name, value] : assignment) {
    const auto index = Find(name);
    if (!index) {
      return absl::InvalidArgumentError(
          absl::StrCat("space: got unknown parameter ", name));
    }
    configuration.values[*index] = value;
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (IsInactive(configuration.values[i]) && Active(configuration, i)) {
      configuration.values[i] = parameters_[i].initial;
    }
  }
  if (absl::Status status = Check(configuration); !status.ok()) return status;
  return configuration;
}

Assignment Space::ToAssignment(const Configuration& configuration) const {
  Assignment assignment;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!IsInactive(configuration.values[i])) {
      assignment[parameters_[i].name] = configuration.values[i];
    }
  }
  return assignment;
}

ConfigurationHash Space::Hash(const Configuration& configuration) const {
  Hasher hasher;
  for (const auto& [name, index] : index_) {
    const Value& value = configuration.values[index];
    if (IsInactive(value)) continue;
    hasher.Text(name);
    hasher.Of(value);
  }
  return hasher.Finish();
}

std::optional<Configuration> Space::Sample(Random& random) const {
  for (int attempt = 0; attempt < kConfigurationTries; ++attempt) {
    Configuration configuration;
    configuration.values.resize(parameters_.size());
    bool valid = true;
    for (size_t i = 0; i < parameters_.size() && valid; ++i) {
      if (!Active(configuration, i)) continue;
      const Parameter& parameter = parameters_[i];
      valid = false;
      for (int draw = 0; draw < kValueTries && !valid; ++draw) {
        configuration.values[i] =
            parameter.kind == ParameterKind::kPipeline
                ? Value(parameter.pipelines->Sample(random))
                : parameter.At(random.Below(parameter.Cardinality()));
        valid = ConstraintsHold(configuration, i);
      }
    }
    if (valid) return configuration;
  }
  return std::nullopt;
}

bool Space::Step(Configuration& configuration, size_t index,
                 Random& random) const {
  const Parameter& parameter = parameters_[index];
  Value& value = configuration.values[index];
  if (parameter.kind == ParameterKind::kPipeline) {
    value = parameter.pipelines->Neighbor(std::get<std::string>(value), random);
    return true;
  }
  if (parameter.kind == ParameterKind::kPermutation) {
    value = parameter.InOrder(
        PermutationNeighbor(parameter.OrderOf(value).value(), random));
    return true;
  }
  const uint64_t count = parameter.Cardinality();
  if (count < 2) return false;
  const auto now = static_cast<int64_t>(parameter.IndexOf(value).value());
  const bool ordered = parameter.kind == ParameterKind::kOrdinal ||
                       parameter.kind == ParameterKind::kInteger;
  if (!ordered) {
    const uint64_t other = random.Below(count - 1);
    value =
        parameter.At(other < static_cast<uint64_t>(now) ? other : other + 1);
    return true;
  }
  int64_t distance = random.Chance(0.7) ? 1 : 2;
  if (parameter.log_scale) {
    // A step on a logarithmic range is a factor of up to two.
    distance = 1 + static_cast<int64_t>(random.Below(now + 1));
  }
  const int64_t next = now + (random.Chance(0.5) ? distance : -distance);
  if (next < 0 || next >= static_cast<int64_t>(count)) return false;
  value = parameter.At(static_cast<uint64_t>(next));
  return true;
}

std::optional<Configuration> Space::Neighbor(const Configuration& from,
                                             Random& random) const {
  if (parameters_.empty()) return std::nullopt;
  for (int attempt = 0; attempt < kConfigurationTries; ++attempt) {
    const size_t index = random.Below(parameters_.size());
    if (IsInactive(from.values[index])) continue;
    Configuration neighbor = from;
    if (!Step(neighbor, index, random)) continue;
    Settle(neighbor, index + 1);
    if (AllConstraintsHold(neighbor)) return neighbor;
  }
  return std::nullopt;
}

std::optional<Configuration> Space::With(const Configuration& from,
                                         size_t index, Value value) const {
  Configuration changed = from;
  changed.values[index] = std::move(value);
  Settle(changed, index + 1);
  if (!AllConstraintsHold(changed)) return std::nullopt;
  return changed;
}

bool Space::EnumerateFrom(
    Configuration& configuration, size_t index, uint64_t seed,
    const std::function<bool(const Configuration&)>& visit) const {
  if (index == parameters_.size()) return visit(configuration);
  Value& value = configuration.values[index];
  if (!Active(configuration, index)) {
    value = std::monostate();
    return EnumerateFrom(configuration, index + 1, seed, visit);
  }
  const Parameter& parameter = parameters_[index];
  const bool pipeline = parameter.kind == ParameterKind::kPipeline;
  const uint64_t count =
      pipeline ? parameter.pipelines->bases().size() : parameter.Cardinality();
  // A walk of all indices from any start: strides coprime to the count.
  Random random(seed, index);
  const uint64_t start = random.Below(count);
  uint64_t stride = 1 + random.Below(count);
  while (std::gcd(stride, count) != 1) ++stride;
  for (uint64_t i = 0, at = start; i < count; ++i) {
    value =
        pipeline ? Value(parameter.pipelines->bases()[at]) : parameter.At(at);
    at = static_cast<uint64_t>((static_cast<unsigned __int128>(at) + stride) %
                               count);
    if (!ConstraintsHold(configuration, index)) continue;
    if (!EnumerateFrom(configuration, index + 1, seed, visit)) return false;
  }
  value = std::monostate();
  return true;
}

bool Space::Enumerate(
    uint64_t seed,
    const std::function<bool(const Configuration&)>& visit) const {
  Configuration configuration;
  configuration.values.resize(parameters_.size());
  return EnumerateFrom(configuration, 0, seed, visit);
}

uint64_t Space::SizeBound() const {
  uint64_t size = 1;
  for (const Parameter& parameter : parameters_) {
    const uint64_t count = parameter.Cardinality();
    if (count > UINT64_MAX / size) return UINT64_MAX;
    size *= count;
  }
  return size;
}

}  // namespace reprise::bayesopt
