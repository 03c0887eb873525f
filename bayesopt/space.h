// What a tuner may choose from: parameters, conditions between them, and known
// constraints.
//
//   Configuration  one value per parameter of a space; inactive ones are empty
//   Assignment     the same by name, active parameters only; what leaves the
//                  tuner (parameter_mapper.h)
//   Space          immutable once built; enumerated lazily, so that its size
//                  costs nothing
//
// A parameter is active when all its conditions hold; a condition names a
// parameter declared earlier and the values under which it holds, and does not
// hold while that one is inactive. A constraint is asked only when all the
// parameters it names are active.
//
// Thread-safety: a built Space is const and may be shared by threads.
#ifndef REPRISE_BAYESOPT_SPACE_H_
#define REPRISE_BAYESOPT_SPACE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bayesopt/parameter.h"
#include "bayesopt/random.h"

namespace reprise::bayesopt {

struct Configuration {
  // In the order of the space's parameters.
  std::vector<Value> values;
  friend bool operator==(const Configuration&, const Configuration&) = default;
};

using Assignment = std::map<std::string, Value>;

struct Constraint {
  std::string description;  // for messages: "block has at most 1024 threads"
  std::vector<std::string> parameters;
  // Values in the order of `parameters`, all active. Must be pure.
  std::function<bool(const std::vector<Value>&)> holds;
};

// 128 bits over the configuration's active parameters by name and value, equal
// in every process and version that keeps names and values.
struct ConfigurationHash {
  uint64_t high = 0;
  uint64_t low = 0;
  friend auto operator<=>(const ConfigurationHash&,
                          const ConfigurationHash&) = default;
};

class Space {
 public:
  // INVALID_ARGUMENT: an empty or repeated name, no values, an initial value
  // that is none, a condition or constraint on an unknown or later parameter,
  // or a default configuration that breaks a constraint.
  static absl::StatusOr<std::shared_ptr<const Space>> Create(
      std::vector<Parameter> parameters,
      std::vector<Constraint> constraints = {});

  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Index in parameters(); nullopt: unknown.
  std::optional<size_t> Find(std::string_view name) const;

  // Every parameter at its initial value.
  Configuration Default() const;

  // OK when every parameter is active or inactive as the conditions say, every
  // value is one of its parameter's, and the constraints hold.
  absl::Status Check(const Configuration& configuration) const;

  // Parameters that `assignment` leaves out are at their initial value where
  // active. INVALID_ARGUMENT: unknown or inactive names, or as Check.
  absl::StatusOr<Configuration> FromAssignment(
      const Assignment& assignment) const;
  Assignment ToAssignment(const Configuration& configuration) const;

  ConfigurationHash Hash(const Configuration& configuration) const;

  // A valid configuration, values drawn one parameter after another, uniformly
  // over those that the values drawn so far leave. Not uniform over valid
  // configurations: a value that few others go with is about as likely as one
  // that goes with many. nullopt: none was found in the bounded search, or none
  // exists.
  std::optional<Configuration> Sample(Random& random) const;

  // A valid configuration that differs from `from` by one step: an ordinal or
  // integer moves by one or two places, a categorical to any other value, a
  // pipeline by one edit, of a permutation two items change places or one
  // moves; parameters that become active are at their initial value. nullopt:
  // none was found in the bounded search.
  std::optional<Configuration> Neighbor(const Configuration& from,
                                        Random& random) const;

  // `from` with one parameter, active there, at another of its values, and
  // those that this switches on at their initial values. nullopt: a constraint
  // does not hold.
  std::optional<Configuration> With(const Configuration& from, size_t index,
                                    Value value) const;

  // Visits valid configurations, each once, in an order that `seed` permutes,
  // until `visit` returns false. Constraints prune as soon as their parameters
  // are set; memory is that of one configuration. Of a pipeline, only the base
  // pipelines are visited. Returns false when `visit` stopped it.
  bool Enumerate(uint64_t seed,
                 const std::function<bool(const Configuration&)>& visit) const;

  // Product of cardinalities before conditions and constraints; UINT64_MAX when
  // it does not fit or a pipeline parameter is there.
  uint64_t SizeBound() const;
  bool finite() const { return finite_; }

 private:
  struct BoundCondition {
    size_t parameter;
    std::vector<Value> values;
  };
  struct BoundConstraint {
    std::vector<size_t> parameters;
    size_t last;  // the latest of them
  };

  Space() = default;
  absl::Status Bind();
  bool Active(const Configuration& configuration, size_t index) const;
  bool Holds(const Configuration& configuration, size_t constraint) const;
  bool ConstraintsHold(const Configuration& configuration, size_t last) const;
  bool AllConstraintsHold(const Configuration& configuration) const;
  void Settle(Configuration& configuration, size_t from) const;
  bool Step(Configuration& configuration, size_t index, Random& random) const;
  bool EnumerateFrom(
      Configuration& configuration, size_t index, uint64_t seed,
      const std::function<bool(const Configuration&)>& visit) const;

  std::vector<Parameter> parameters_;
  std::vector<Constraint> constraints_;
  std::vector<std::vector<BoundCondition>> conditions_;
  std::vector<BoundConstraint> bound_;
  std::map<std::string, size_t, std::less<>> index_;
  bool finite_ = true;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_SPACE_H_
