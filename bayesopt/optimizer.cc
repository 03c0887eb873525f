#include "bayesopt/optimizer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bayesopt/model_sampler.h"
#include "bayesopt/optimizer_impl.h"
#include "bayesopt/random.h"

namespace reprise::bayesopt {
namespace {

// Bounds on the search for a configuration that was not asked for yet, when the
// sampler has none.
constexpr int kSampleTries = 64;
constexpr uint64_t kEnumerateLimit = 1'000'000;
// Of one Import.
constexpr size_t kMostImported = 60;

absl::Status CheckOptions(const Space* space,
                          const Optimizer::Options& options) {
  if (space != nullptr && options.max_attempts >= 1 &&
      options.samples.least >= 1 &&
      options.samples.most >= options.samples.least) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "optimizer: expected a space, at least one attempt and one sample, and "
      "no fewer samples at most than at least");
}

bool IsPositive(double number) { return std::isfinite(number) && number > 0; }

}  // namespace

OptimizerImpl::OptimizerImpl(std::shared_ptr<const Space> space,
                             Options options)
    : space_(std::move(space)),
      seed_(options.seed),
      max_attempts_(options.max_attempts),
      lease_(options.lease),
      policy_(options.samples),
      sampler_(std::move(options.sampler)) {
  if (!sampler_) sampler_ = NewModelSampler();
  sampler_->Prepare(*space_);
}

absl::Status OptimizerImpl::Start(const std::vector<Configuration>& seeds,
                                  bool start_with_default) {
  if (start_with_default) {
    const Configuration first = space_->Default();
    seen_.insert(space_->Hash(first));
    waiting_.push_back({first, "default"});
  }
  for (const Configuration& seed : seeds) {
    if (absl::Status s = space_->Check(seed); !s.ok()) return s;
    if (!seen_.insert(space_->Hash(seed)).second) {
      return absl::InvalidArgumentError(
          "optimizer: got a seed twice, or the default configuration as a "
          "seed; expected distinct configurations");
    }
    waiting_.push_back({seed, "seed"});
  }
  return absl::OkStatus();
}

History OptimizerImpl::MakeHistory() const {
  History history;
  history.space = space_.get();
  history.observations = &observations_;
  history.imported = &imported_;
  history.seen = [this](const Configuration& c) { return Seen(c); };
  history.next_id = next_id_;
  for (const uint64_t id : pending_) {
    const Trial& trial = records_.at(id).trial;
    history.pending.push_back({&trial.configuration, trial.origin});
  }
  return history;
}

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
  const History history = MakeHistory();
  std::optional<Suggestion> suggestion = sampler_->Suggest(history, random);
  if (!suggestion || Seen(suggestion->configuration) ||
      !space_->Check(suggestion->configuration).ok()) {
    auto unseen = SearchUnseen(random);
    if (!unseen) return std::nullopt;
    suggestion = Suggestion{*std::move(unseen), "search"};
  }
  seen_.insert(space_->Hash(suggestion->configuration));
  return Waiting{std::move(suggestion->configuration),
                 std::move(suggestion->origin)};
}

std::vector<Trial> OptimizerImpl::Ask(int n) {
  std::vector<Trial> trials;
  for (int i = 0; i < n; ++i) {
    auto next = Next();
    if (!next) break;
    Record record;
    record.trial = {next_id_++, std::move(next->configuration),
                    std::move(next->origin), next->attempt};
    if (lease_ > 0) record.deadline = now_ + lease_;
    if (next->retry_of != 0) {
      records_.at(next->retry_of).retried_as = record.trial.id;
    }
    trials.push_back(record.trial);
    pending_.insert(record.trial.id);
    records_.emplace(record.trial.id, std::move(record));
    ++counts_.asked;
    ++counts_.pending;
  }
  return trials;
}

void OptimizerImpl::Observe(const Record& record, const Record& outcome) {
  const bool duplicate = record.trial.id != outcome.trial.id;
  sources_.push_back({record.trial.id, outcome.trial.id});
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
  Observe(record, record);
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
    Observe(records_.at(id), record);
  }
  key.duplicates.clear();
}

// The outcome of a trial that was taken for lost. It counts unless that of the
// trial that took its place came first.
void OptimizerImpl::TellLate(Record& record) {
  if (record.kind == v1::OUTCOME_KIND_INFRASTRUCTURE) return;
  if (record.retried_as != 0 &&
      records_.at(record.retried_as).state == State::kTold) {
    return;
  }
  std::erase_if(urgent_, [&](const Waiting& waiting) {
    return waiting.retry_of == record.trial.id;
  });
  ++counts_.pending;
  Settle(record);
}

// INFRASTRUCTURE, or no outcome in time: the configuration goes back, or is
// given up.
void OptimizerImpl::GiveUp(Record& record) {
  --counts_.pending;
  pending_.erase(record.trial.id);
  const bool retry = record.trial.attempt < max_attempts_;
  if (retry) {
    urgent_.push_back({record.trial.configuration, "retry",
                       record.trial.attempt + 1, record.trial.id});
  }
  if (!record.key) return;
  Key& key = keys_.find(*record.key)->second;
  key.owner = 0;
  if (retry) return;
  counts_.pending -= key.duplicates.size();
  counts_.infrastructure += key.duplicates.size();
  key.duplicates.clear();
}

void OptimizerImpl::AdvanceTo(uint64_t now) {
  now_ = std::max(now_, now);
  if (lease_ == 0) return;
  const std::set<uint64_t> pending = pending_;
  for (const uint64_t id : pending) {
    Record& record = records_.at(id);
    if (record.deadline > now_) continue;
    ++counts_.expired;
    GiveUp(record);
    record.state = State::kExpired;
  }
}

int OptimizerImpl::WantedSamples(const std::vector<double>& samples) const {
  std::optional<double> best;
  if (best_ != 0) best = records_.at(best_).cost;
  return MoreSamples(policy_, samples, best);
}

absl::StatusOr<OptimizerImpl::Record*> OptimizerImpl::Find(
    uint64_t id, std::string_view what) {
  const auto found = records_.find(id);
  if (found != records_.end()) return &found->second;
  return absl::NotFoundError(
      absl::StrCat("optimizer: got ", std::string(what), " for trial ", id,
                   ", expected the id of a trial that was asked for"));
}

absl::Status OptimizerImpl::Tell(uint64_t id, v1::OutcomeKind kind,
                                 const std::vector<double>& samples) {
  auto found = Find(id, "an outcome");
  if (!found.ok()) return found.status();
  Record& record = **found;
  if (record.state == State::kTold && record.kind == kind &&
      record.samples == samples) {
    return absl::OkStatus();
  }
  if (record.state == State::kTold || record.state == State::kDuplicate) {
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
    if (IsPositive(sample)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer: trial ", id, ": got sample ", sample,
                     ", expected a positive finite number"));
  }
  const bool late = record.state == State::kExpired;
  record.state = State::kTold;
  pending_.erase(id);
  record.kind = kind;
  record.samples = samples;
  if (kind == v1::OUTCOME_KIND_OK) record.cost = Median(samples);
  if (late) {
    TellLate(record);
  } else if (kind == v1::OUTCOME_KIND_INFRASTRUCTURE) {
    ++counts_.infrastructure;
    GiveUp(record);
  } else {
    Settle(record);
  }
  return absl::OkStatus();
}

absl::StatusOr<Optimizer::KeyClaim> OptimizerImpl::ClaimKey(
    uint64_t id, std::string_view text) {
  auto found = Find(id, "a key");
  if (!found.ok()) return found.status();
  Record& record = **found;
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
    Observe(record, owner);
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
  urgent_.push_back({configuration, "injected"});
  return absl::OkStatus();
}

absl::Status OptimizerImpl::Import(
    std::vector<ImportedObservation> observations) {
  for (const ImportedObservation& observation : observations) {
    if (absl::Status s = space_->Check(observation.configuration); !s.ok()) {
      return s;
    }
    if (IsPositive(observation.cost) && observation.weight > 0 &&
        observation.weight <= 1) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer: got an imported cost of ", observation.cost, " of weight ",
        observation.weight,
        ", expected a positive finite cost and a weight in (0, 1]"));
  }
  std::stable_sort(
      observations.begin(), observations.end(),
      [](const auto& a, const auto& b) { return a.cost < b.cost; });
  observations.resize(std::min(observations.size(), kMostImported));
  imported_.insert(imported_.end(), observations.begin(), observations.end());
  return absl::OkStatus();
}

std::optional<BestTrial> OptimizerImpl::Best() const {
  if (best_ == 0) return std::nullopt;
  const Record& record = records_.at(best_);
  return BestTrial{record.trial, record.cost, record.samples};
}

absl::StatusOr<std::unique_ptr<Optimizer>> Optimizer::Create(
    std::shared_ptr<const Space> space, Options options) {
  if (absl::Status s = CheckOptions(space.get(), options); !s.ok()) return s;
  const std::vector<Configuration> seeds = std::move(options.seeds);
  const bool start_with_default = options.start_with_default;
  auto optimizer =
      std::make_unique<OptimizerImpl>(std::move(space), std::move(options));
  if (absl::Status s = optimizer->Start(seeds, start_with_default); !s.ok()) {
    return s;
  }
  return optimizer;
}

absl::StatusOr<std::unique_ptr<Optimizer>> Optimizer::Restore(
    std::shared_ptr<const Space> space, Options options,
    std::string_view bytes) {
  if (absl::Status s = CheckOptions(space.get(), options); !s.ok()) return s;
  auto optimizer =
      std::make_unique<OptimizerImpl>(std::move(space), std::move(options));
  if (absl::Status s = optimizer->Load(bytes); !s.ok()) return s;
  return optimizer;
}

}  // namespace reprise::bayesopt
