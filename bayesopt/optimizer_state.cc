// Saving and restoring an optimizer. Layout, in the numbers and texts of
// state_codec.h: magic, format, a fingerprint of the space, the seed; clock and
// counters; queues; records; keys; which records each observation comes from;
// imported observations; the sampler's state.
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "bayesopt/configuration_codec.h"
#include "bayesopt/optimizer_impl.h"

namespace reprise::bayesopt {
namespace {

constexpr std::string_view kMagic = "reprise tuner state";
constexpr uint64_t kFormat = 1;

void WriteIds(const std::vector<uint64_t>& ids, StateWriter& writer) {
  writer.U64(ids.size());
  for (const uint64_t id : ids) writer.U64(id);
}

std::vector<uint64_t> ReadIds(StateReader& reader) {
  std::vector<uint64_t> ids(reader.Count(8));
  for (uint64_t& id : ids) id = reader.U64();
  return ids;
}

// Of names, kinds and sizes, and of the default configuration.
uint64_t Fingerprint(const Space& space) {
  uint64_t fingerprint = space.Hash(space.Default()).low;
  for (const Parameter& parameter : space.parameters()) {
    fingerprint = Random(fingerprint ^ parameter.Cardinality(),
                         static_cast<uint64_t>(parameter.kind))
                      .Next();
    for (const char c : parameter.name) {
      fingerprint = Random(fingerprint, static_cast<uint8_t>(c)).Next();
    }
  }
  return fingerprint;
}

}  // namespace

void OptimizerImpl::WriteRecord(const Record& record, StateWriter& writer) {
  writer.U64(record.trial.id);
  WriteConfiguration(record.trial.configuration, writer);
  writer.Text(record.trial.origin);
  writer.U64(static_cast<uint64_t>(record.trial.attempt));
  writer.U64(static_cast<uint64_t>(record.state));
  writer.U64(record.key ? 1 : 0);
  writer.Text(record.key.value_or(""));
  writer.U64(static_cast<uint64_t>(record.kind));
  writer.Doubles(record.samples);
  writer.F64(record.cost);
  writer.U64(record.deadline);
  writer.U64(record.retried_as);
}

OptimizerImpl::Record OptimizerImpl::ReadRecord(StateReader& reader) {
  Record record;
  record.trial.id = reader.U64();
  record.trial.configuration = ReadConfiguration(reader);
  record.trial.origin = reader.Text();
  record.trial.attempt = static_cast<int>(reader.U64());
  record.state = static_cast<State>(reader.U64());
  const bool has_key = reader.U64() != 0;
  std::string key = reader.Text();
  if (has_key) record.key = std::move(key);
  record.kind = static_cast<v1::OutcomeKind>(reader.U64());
  record.samples = reader.Doubles();
  record.cost = reader.F64();
  record.deadline = reader.U64();
  record.retried_as = reader.U64();
  return record;
}

void OptimizerImpl::WriteWaiting(const std::deque<Waiting>& queue,
                                 StateWriter& writer) {
  writer.U64(queue.size());
  for (const Waiting& waiting : queue) {
    WriteConfiguration(waiting.configuration, writer);
    writer.Text(waiting.origin);
    writer.U64(static_cast<uint64_t>(waiting.attempt));
    writer.U64(waiting.retry_of);
  }
}

std::deque<OptimizerImpl::Waiting> OptimizerImpl::ReadWaiting(
    StateReader& reader) {
  std::deque<Waiting> queue(reader.Count(32));
  for (Waiting& waiting : queue) {
    waiting.configuration = ReadConfiguration(reader);
    waiting.origin = reader.Text();
    waiting.attempt = static_cast<int>(reader.U64());
    waiting.retry_of = reader.U64();
  }
  return queue;
}

absl::StatusOr<std::string> OptimizerImpl::Save() const {
  const absl::StatusOr<std::string> sampler = sampler_->Save();
  if (!sampler.ok()) return sampler.status();
  StateWriter writer;
  writer.Text(kMagic);
  writer.U64(kFormat);
  writer.U64(Fingerprint(*space_));
  writer.U64(seed_);
  for (const uint64_t number :
       {now_, next_id_, best_, counts_.asked, counts_.ok, counts_.failed,
        counts_.duplicates, counts_.infrastructure, counts_.expired,
        counts_.pending}) {
    writer.U64(number);
  }
  WriteWaiting(urgent_, writer);
  WriteWaiting(waiting_, writer);
  writer.U64(records_.size());
  for (const auto& [id, record] : records_) WriteRecord(record, writer);
  WriteIds({pending_.begin(), pending_.end()}, writer);
  writer.U64(keys_.size());
  for (const auto& [name, key] : keys_) {
    writer.Text(name);
    writer.U64(key.owner);
    WriteIds(key.duplicates, writer);
  }
  writer.U64(sources_.size());
  for (const Source& source : sources_) {
    writer.U64(source.trial);
    writer.U64(source.outcome);
  }
  writer.U64(imported_.size());
  for (const ImportedObservation& imported : imported_) {
    WriteConfiguration(imported.configuration, writer);
    writer.F64(imported.cost);
    writer.F64(imported.weight);
  }
  writer.Text(*sampler);
  return writer.Take();
}

// Whether what was read names only trials and configurations that are there.
bool OptimizerImpl::Consistent() const {
  const auto known = [this](uint64_t id) { return records_.count(id) > 0; };
  const auto known_or_none = [&](uint64_t id) { return id == 0 || known(id); };
  bool consistent = known_or_none(best_);
  const auto check = [&](const Configuration& configuration) {
    consistent &= space_->Check(configuration).ok();
  };
  for (const auto& [id, record] : records_) {
    check(record.trial.configuration);
    consistent &= record.state <= State::kExpired && id < next_id_ &&
                  known_or_none(record.retried_as) &&
                  (!record.key || keys_.count(*record.key) > 0);
  }
  for (const std::deque<Waiting>* queue : {&urgent_, &waiting_}) {
    for (const Waiting& waiting : *queue) {
      check(waiting.configuration);
      consistent &= known_or_none(waiting.retry_of);
    }
  }
  for (const auto& [name, key] : keys_) {
    consistent &= known_or_none(key.owner);
    for (const uint64_t id : key.duplicates) consistent &= known(id);
  }
  for (const uint64_t id : pending_) consistent &= known(id);
  for (const Source& source : sources_) {
    consistent &= known(source.trial) && known(source.outcome);
  }
  for (const ImportedObservation& imported : imported_) {
    check(imported.configuration);
  }
  return consistent;
}

// Everything but what can be derived; false: the bytes end early or say what
// cannot be.
bool OptimizerImpl::Read(StateReader& reader) {
  for (uint64_t* number :
       {&now_, &next_id_, &best_, &counts_.asked, &counts_.ok, &counts_.failed,
        &counts_.duplicates, &counts_.infrastructure, &counts_.expired,
        &counts_.pending}) {
    *number = reader.U64();
  }
  urgent_ = ReadWaiting(reader);
  waiting_ = ReadWaiting(reader);
  for (uint64_t left = reader.Count(8); left > 0; --left) {
    Record record = ReadRecord(reader);
    records_.emplace(record.trial.id, std::move(record));
  }
  for (const uint64_t id : ReadIds(reader)) pending_.insert(id);
  for (uint64_t left = reader.Count(24); left > 0; --left) {
    Key& key = keys_[reader.Text()];
    key.owner = reader.U64();
    key.duplicates = ReadIds(reader);
  }
  sources_.resize(reader.Count(16));
  for (Source& source : sources_) {
    source.trial = reader.U64();
    source.outcome = reader.U64();
  }
  imported_.resize(reader.Count(24));
  for (ImportedObservation& imported : imported_) {
    imported.configuration = ReadConfiguration(reader);
    imported.cost = reader.F64();
    imported.weight = reader.F64();
  }
  return reader.ok() && Consistent();
}

absl::Status OptimizerImpl::Load(std::string_view bytes) {
  StateReader reader(bytes);
  const bool ours = reader.Text() == kMagic && reader.U64() == kFormat &&
                    reader.U64() == Fingerprint(*space_) &&
                    reader.U64() == seed_;
  const bool whole = ours && Read(reader);
  const std::string sampler = reader.Text();
  if (!whole || !reader.ok() || !reader.AtEnd()) {
    return absl::InvalidArgumentError(
        "optimizer: got bytes that are no state of a tuner of this space and "
        "seed, expected what Save gave");
  }
  for (const auto& [id, record] : records_) {
    seen_.insert(space_->Hash(record.trial.configuration));
  }
  for (const std::deque<Waiting>* queue : {&urgent_, &waiting_}) {
    for (const Waiting& waiting : *queue) {
      seen_.insert(space_->Hash(waiting.configuration));
    }
  }
  const Counts counts = counts_;
  std::vector<Source> sources;
  sources.swap(sources_);
  for (const Source& source : sources) {
    Observe(records_.at(source.trial), records_.at(source.outcome));
  }
  counts_ = counts;  // Observe counted once more
  return sampler_->Restore(MakeHistory(), sampler);
}

}  // namespace reprise::bayesopt
