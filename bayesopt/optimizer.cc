#include "bayesopt/optimizer.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bayesopt/model_sampler.h"
#include "bayesopt/random.h"

namespace reprise::bayesopt {
namespace {

// Bounds on the search for a configuration that was not asked for yet, when the
// sampler has none.
constexpr int kSampleTries = 64;
constexpr uint64_t kEnumerateLimit = 1'000'000;

double Median(std::vector<double> samples) {
  const size_t middle = samples.size() / 2;
  std::nth_element(samples.begin(), samples.begin() + middle, samples.end());
  const double upper = samples[middle];
  if (samples.size() % 2 == 1) return upper;
  return (*std::max_element(samples.begin(), samples.begin() + middle) +
          upper) /
         2;
}

// Of the logarithm of the median of `samples`; 0 where they do not tell.
double LogVariance(const std::vector<double>& samples) {
  if (samples.size() < 2) return 0;
  const auto count = static_cast<double>(samples.size());
  double mean = 0;
  for (const double sample : samples) mean += std::log(sample) / count;
  double squares = 0;
  for (const double sample : samples) {
    squares += (std::log(sample) - mean) * (std::log(sample) - mean);
  }
  // The median of normal samples varies pi/2 times as much as their mean.
  return std::numbers::pi / 2 * squares / (count - 1) / count;
}

class OptimizerImpl : public Optimizer {
 public:
  OptimizerImpl(std::shared_ptr<const Space> space, Options options)
      : space_(std::move(space)),
        seed_(options.seed),
        max_attempts_(options.max_attempts),
        sampler_(std::move(options.sampler)) {
    if (!sampler_) sampler_ = NewModelSampler();
    sampler_->Prepare(*space_);
  }

  absl::Status Start(const std::vector<Configuration>& seeds,
                     bool start_with_default) {
    if (start_with_default) {
      const Configuration first = space_->Default();
      seen_.insert(space_->Hash(first));
      waiting_.push_back({first, "default", 1});
    }
    for (const Configuration& seed : seeds) {
      if (absl::Status s = space_->Check(seed); !s.ok()) return s;
      if (!seen_.insert(space_->Hash(seed)).second) {
        return absl::InvalidArgumentError(
            "optimizer: got a seed twice, or the default configuration as a "
            "seed; expected distinct configurations");
      }
      waiting_.push_back({seed, "seed", 1});
    }
    return absl::OkStatus();
  }

  std::vector<Trial> Ask(int n) override;
  absl::Status Tell(uint64_t id, v1::OutcomeKind kind,
                    const std::vector<double>& samples) override;
  absl::StatusOr<KeyClaim> ClaimKey(uint64_t id, std::string_view key) override;
  absl::Status Inject(const Configuration& configuration) override;
  std::optional<BestTrial> Best() const override;
  Counts counts() const override { return counts_; }
  const Space& space() const override { return *space_; }

 private:
  struct Waiting {
    Configuration configuration;
    std::string origin;
    int attempt = 1;
  };
  enum class State { kPending, kTold, kDuplicate };
  struct Record {
    Trial trial;
    State state = State::kPending;
    std::optional<std::string> key;
    v1::OutcomeKind kind = v1::OUTCOME_KIND_UNSPECIFIED;
    std::vector<double> samples;
    double cost = 0;
  };
  struct Key {
    uint64_t owner = 0;  // 0: its owner was lost to INFRASTRUCTURE
    std::vector<uint64_t> duplicates;
  };

  std::optional<Waiting> Next();
  std::optional<Configuration> SearchUnseen(Random& random);
  void Observe(const Record& record, const Record& outcome, bool duplicate);
  void Settle(Record& record);
  void Lost(Record& record);
  bool Seen(const Configuration& configuration) const {
    return seen_.count(space_->Hash(configuration)) > 0;
  }

  const std::shared_ptr<const Space> space_;
  const uint64_t seed_;
  const int max_attempts_;
  std::unique_ptr<Sampler> sampler_;

  std::deque<Waiting> urgent_;   // injected and retried
  std::deque<Waiting> waiting_;  // default and seeds
  std::set<ConfigurationHash> seen_;
  std::map<uint64_t, Record> records_;
  std::set<uint64_t> pending_;  // not told, and no duplicate of another
  std::map<std::string, Key, std::less<>> keys_;
  std::vector<Observation> observations_;
  std::vector<ImportedObservation> imported_;
  uint64_t next_id_ = 1;
  uint64_t best_ = 0;
  Counts counts_;
};

std::optional<Configuration> OptimizerImpl::SearchUnseen(Random& random) {
  for (int i = 0; i < kSampleTries; ++i) {
    auto sample = space_->Sample(random);
    if (sample && !Seen(*sample)) return sample;
  }
  std::optional<Configuration> found;
  uint64_t visited = 0;
  space_->Enumerate(random.Next(), [&](const Configuration& candidate) {
    if (!Seen(candidate)) found = candidate;
    return !found && ++visited < kEnumerateLimit;
  });
  return found;
}

std::optional<OptimizerImpl::Waiting> OptimizerImpl::Next() {
  for (std::deque<Waiting>* queue : {&urgent_, &waiting_}) {
    if (queue->empty()) continue;
    Waiting next = std::move(queue->front());
    queue->pop_front();
    return next;
  }
  Random random(seed_, next_id_);
  History history{
      space_.get(), &observations_,
      &imported_,   [this](const Configuration& c) { return Seen(c); },
      {},           next_id_};
  for (const uint64_t id : pending_) {
    history.pending.push_back(&records_.at(id).trial.configuration);
  }
  std::optional<Suggestion> suggestion = sampler_->Suggest(history, random);
  if (!suggestion || Seen(suggestion->configuration) ||
      !space_->Check(suggestion->configuration).ok()) {
    auto unseen = SearchUnseen(random);
    if (!unseen) return std::nullopt;
    suggestion = Suggestion{*std::move(unseen), "search"};
  }
  seen_.insert(space_->Hash(suggestion->configuration));
  return Waiting{std::move(suggestion->configuration),
                 std::move(suggestion->origin), 1};
}

std::vector<Trial> OptimizerImpl::Ask(int n) {
  std::vector<Trial> trials;
  for (int i = 0; i < n; ++i) {
    auto next = Next();
    if (!next) break;
    Record record;
    record.trial = {next_id_++, std::move(next->configuration),
                    std::move(next->origin), next->attempt};
    trials.push_back(record.trial);
    pending_.insert(record.trial.id);
    records_.emplace(record.trial.id, std::move(record));
    ++counts_.asked;
    ++counts_.pending;
  }
  return trials;
}

void OptimizerImpl::Observe(const Record& record, const Record& outcome,
                            bool duplicate) {
  observations_.push_back({record.trial.id, record.trial.configuration,
                           outcome.kind, outcome.cost, duplicate,
                           LogVariance(outcome.samples), record.trial.origin});
  --counts_.pending;
  if (duplicate) {
    ++counts_.duplicates;
  } else if (outcome.kind == v1::OUTCOME_KIND_OK) {
    ++counts_.ok;
  } else {
    ++counts_.failed;
  }
}

// A trial's outcome is in: it and the duplicates that wait for it are observed.
void OptimizerImpl::Settle(Record& record) {
  Observe(record, record, false);
  if (record.kind == v1::OUTCOME_KIND_OK) {
    const Record* best = best_ == 0 ? nullptr : &records_.at(best_);
    if (best == nullptr || record.cost < best->cost ||
        (record.cost == best->cost && record.trial.id < best_)) {
      best_ = record.trial.id;
    }
  }
  if (!record.key) return;
  Key& key = keys_.find(*record.key)->second;
  for (const uint64_t id : key.duplicates) {
    Observe(records_.at(id), record, true);
  }
  key.duplicates.clear();
}

// INFRASTRUCTURE: the configuration goes back, or is given up.
void OptimizerImpl::Lost(Record& record) {
  --counts_.pending;
  ++counts_.infrastructure;
  const bool retry = record.trial.attempt < max_attempts_;
  if (retry) {
    urgent_.push_back(
        {record.trial.configuration, "retry", record.trial.attempt + 1});
  }
  if (!record.key) return;
  Key& key = keys_.find(*record.key)->second;
  key.owner = 0;
  if (retry) return;
  counts_.pending -= key.duplicates.size();
  counts_.infrastructure += key.duplicates.size();
  key.duplicates.clear();
}

absl::Status OptimizerImpl::Tell(uint64_t id, v1::OutcomeKind kind,
                                 const std::vector<double>& samples) {
  const auto found = records_.find(id);
  if (found == records_.end()) {
    return absl::NotFoundError(
        absl::StrCat("optimizer: got an outcome for trial ", id,
                     ", expected the id of a trial that was asked for"));
  }
  Record& record = found->second;
  if (record.state == State::kTold && record.kind == kind &&
      record.samples == samples) {
    return absl::OkStatus();
  }
  if (record.state != State::kPending) {
    return absl::AlreadyExistsError(absl::StrCat(
        "optimizer: got another outcome for trial ", id, ", which ",
        record.state == State::kTold ? "was told before"
                                     : "duplicates an earlier trial"));
  }
  if (kind == v1::OUTCOME_KIND_UNSPECIFIED ||
      (kind == v1::OUTCOME_KIND_OK && samples.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer: trial ", id, ": expected a kind, and samples with OK"));
  }
  for (const double sample : samples) {
    if (std::isfinite(sample) && sample > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer: trial ", id, ": got sample ", sample,
                     ", expected a positive finite number"));
  }
  record.state = State::kTold;
  pending_.erase(id);
  record.kind = kind;
  record.samples = samples;
  if (kind == v1::OUTCOME_KIND_OK) record.cost = Median(samples);
  if (kind == v1::OUTCOME_KIND_INFRASTRUCTURE) {
    Lost(record);
  } else {
    Settle(record);
  }
  return absl::OkStatus();
}

absl::StatusOr<Optimizer::KeyClaim> OptimizerImpl::ClaimKey(
    uint64_t id, std::string_view text) {
  const auto found = records_.find(id);
  if (found == records_.end()) {
    return absl::NotFoundError(
        absl::StrCat("optimizer: got a key for trial ", id,
                     ", expected the id of a trial that was asked for"));
  }
  Record& record = found->second;
  auto& [name, key] = *keys_.try_emplace(std::string(text)).first;
  if (record.key) {
    if (*record.key != name) {
      return absl::InvalidArgumentError(absl::StrCat(
          "optimizer: got a second key for trial ", id, ", expected one"));
    }
    return KeyClaim{record.state != State::kDuplicate,
                    key.owner == 0 ? id : key.owner};
  }
  if (record.state != State::kPending) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer: got a key for trial ", id,
                     " after its outcome, expected it before"));
  }
  record.key = name;
  if (key.owner == 0) {
    key.owner = id;
    return KeyClaim{true, id};
  }
  record.state = State::kDuplicate;
  pending_.erase(id);
  const Record& owner = records_.at(key.owner);
  if (owner.state == State::kTold) {
    Observe(record, owner, true);
  } else {
    key.duplicates.push_back(id);
  }
  return KeyClaim{false, key.owner};
}

absl::Status OptimizerImpl::Inject(const Configuration& configuration) {
  if (absl::Status s = space_->Check(configuration); !s.ok()) return s;
  if (!seen_.insert(space_->Hash(configuration)).second) {
    return absl::AlreadyExistsError(
        "optimizer: got a configuration that was asked for before or waits to "
        "be");
  }
  urgent_.push_back({configuration, "injected", 1});
  return absl::OkStatus();
}

std::optional<BestTrial> OptimizerImpl::Best() const {
  if (best_ == 0) return std::nullopt;
  const Record& record = records_.at(best_);
  return BestTrial{record.trial, record.cost, record.samples};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> Optimizer::Create(
    std::shared_ptr<const Space> space, Options options) {
  if (!space || options.max_attempts < 1) {
    return absl::InvalidArgumentError(
        "optimizer: expected a space and at least one attempt");
  }
  const std::vector<Configuration> seeds = std::move(options.seeds);
  const bool start_with_default = options.start_with_default;
  auto optimizer =
      std::make_unique<OptimizerImpl>(std::move(space), std::move(options));
  if (absl::Status s = optimizer->Start(seeds, start_with_default); !s.ok()) {
    return s;
  }
  return optimizer;
}

}  // namespace reprise::bayesopt
