// A space of which every configuration was measured, so that a tuner can be
// run against the record instead of the machine.
//
//   Table          what a file says: names, and one row per configuration
//   MeasuredSpace  the bayesopt::Space made of it, and the rows by
//                  configuration
//
// Immutable once built; may be shared by threads.
#ifndef REPRISE_TESTS_BENCHMARKS_TUNER_SIM_MEASURED_SPACE_H_
#define REPRISE_TESTS_BENCHMARKS_TUNER_SIM_MEASURED_SPACE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bayesopt/space.h"
#include "reprise/v1/types.pb.h"

namespace reprise::tuner_sim {

struct Measurement {
  v1::OutcomeKind kind = v1::OUTCOME_KIND_OK;
  double time_ms = 0;             // where kind is OK
  std::vector<float> samples_ms;  // repeated timings; may be empty
};

struct Table {
  struct Row {
    std::vector<bayesopt::Value> values;  // in the order of `names`
    Measurement measurement;
  };
  std::vector<std::string> names;
  std::vector<Row> rows;
};

class MeasuredSpace {
 public:
  // One parameter per column of more than one value: two values 0 and 1 are a
  // boolean; text, and 0, 1, ..., k-1 with k >= 3 (codes of alternatives), are
  // categorical; other numbers are ordinal, on a logarithmic scale where they
  // lie more evenly on one. Configurations without a row break a constraint.
  // INVALID_ARGUMENT: no row that is OK, or a configuration twice.
  static absl::StatusOr<std::shared_ptr<const MeasuredSpace>> FromTable(
      std::string name, const Table& table);

  // All valid configurations of `space` and what `measure` gives for each.
  static absl::StatusOr<std::shared_ptr<const MeasuredSpace>> FromFunction(
      std::string name, std::shared_ptr<const bayesopt::Space> space,
      const std::function<Measurement(const bayesopt::Configuration&)>&
          measure);

  const std::string& name() const { return name_; }
  const std::shared_ptr<const bayesopt::Space>& space() const { return space_; }
  // `configuration` must be valid in space().
  const Measurement& At(const bayesopt::Configuration& configuration) const;

  // Times of those that are OK, slowest first.
  const std::vector<double>& times_ms() const { return times_ms_; }
  double optimum_ms() const { return times_ms_.back(); }
  // Failed ones too.
  size_t size() const { return measurements_.size(); }

  // Whether samples may be replayed as noise: there are some, and in at least
  // 99 % of the rows their mean is within 2 % of the time.
  bool replayable() const { return replayable_; }

  // The fastest `count` configurations, fastest first.
  std::vector<bayesopt::Configuration> Fastest(size_t count) const;

 private:
  MeasuredSpace() = default;
  absl::Status Add(const bayesopt::Configuration& configuration,
                   Measurement measurement);
  absl::Status Finish();

  std::string name_;
  std::shared_ptr<const bayesopt::Space> space_;
  std::map<bayesopt::ConfigurationHash, size_t> index_;
  std::vector<bayesopt::Configuration> configurations_;
  std::vector<Measurement> measurements_;
  std::vector<double> times_ms_;
  bool replayable_ = false;
};

}  // namespace reprise::tuner_sim

#endif  // REPRISE_TESTS_BENCHMARKS_TUNER_SIM_MEASURED_SPACE_H_
