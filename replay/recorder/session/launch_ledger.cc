#include "replay/recorder/session/launch_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/kernel_symbols.h"

namespace reprise {
namespace {

constexpr uint64_t kMostFailures = 3;
constexpr size_t kMostKernelsListed = 20;
// Of names. The matcher calls itself for every character.
constexpr size_t kMostMatchedBytes = 4 << 10;

// Equal for launches of the same shape.
std::string ShapeOf(const v1::LaunchConfig& launch) {
  return absl::StrCat(launch.grid().x(), ",", launch.grid().y(), ",",
                      launch.grid().z(), ";", launch.block().x(), ",",
                      launch.block().y(), ",", launch.block().z(), ";",
                      launch.dynamic_shared_bytes());
}

bool Matches(const std::string& name, const std::regex& pattern) {
  return std::regex_search(name.substr(0, kMostMatchedBytes), pattern);
}

}  // namespace

int RecordResult::ExitCode() const {
  if (application_exit_code != 0) return application_exit_code;
  return problem.empty() ? 0 : 1;
}

absl::StatusOr<std::unique_ptr<LaunchLedger>> LaunchLedger::Create(
    Options options) {
  std::regex pattern;
  try {
    pattern.assign(options.kernel_regex, std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.kernel_regex,
                     "' is no regular expression: ", error.what()));
  }
  return std::unique_ptr<LaunchLedger>(
      new LaunchLedger(std::move(options), std::move(pattern)));
}

size_t LaunchLedger::Find(const std::string& symbol,
                          const std::string& image_digest) {
  const auto [entry, fresh] =
      index_.emplace(absl::StrCat(symbol, " ", image_digest), kernels_.size());
  if (fresh) {
    Kernel kernel;
    kernel.symbol = symbol;
    kernel.display_name = DemangledName(symbol);
    const std::set<std::string>& symbols = options_.kernel_symbols;
    kernel.matched = (symbols.empty() || symbols.count(symbol) > 0) &&
                     (Matches(kernel.symbol, pattern_) ||
                      Matches(kernel.display_name, pattern_));
    kernels_.push_back(std::move(kernel));
  }
  return entry->second;
}

bool LaunchLedger::WantsMore(const Kernel& kernel) const {
  return options_.record && kernel.matched &&
         std::max<uint64_t>(kernel.captured, kernel.instances.size()) <
             options_.count &&
         kernel.failures < kMostFailures;
}

LaunchTicket LaunchLedger::Count(size_t number,
                                 const v1::LaunchConfig& launch) {
  Kernel& kernel = kernels_[number];
  LaunchTicket ticket;
  ticket.kernel = number;
  ticket.occurrence = kernel.launches++;
  ++kernel.shapes[ShapeOf(launch)];
  ticket.record = WantsMore(kernel) && ticket.occurrence >= options_.skip;
  return ticket;
}

LaunchTicket LaunchLedger::Begin(const std::string& symbol,
                                 const std::string& image_digest,
                                 const v1::LaunchConfig& launch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return Count(Find(symbol, image_digest), launch);
}

LaunchTicket LaunchLedger::Meet(const std::string& symbol,
                                const std::string& image_digest) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LaunchTicket ticket;
  ticket.kernel = Find(symbol, image_digest);
  ticket.record = WantsMore(kernels_[ticket.kernel]);
  return ticket;
}

LaunchTicket LaunchLedger::BeginKnown(size_t kernel,
                                      const v1::LaunchConfig& launch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LaunchTicket ticket = Count(kernel, launch);
  Kernel& known = kernels_[kernel];
  if (known.captured + known.underway >= options_.count) ticket.record = false;
  if (ticket.record) ++known.underway;
  return ticket;
}

bool LaunchLedger::IsDone(size_t kernel) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !WantsMore(kernels_[kernel]);
}

void LaunchLedger::NoteCaptured(const LaunchTicket& ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Kernel& kernel = kernels_[ticket.kernel];
  --kernel.underway;
  ++kernel.captured;
}

void LaunchLedger::NoteGivenUp(const LaunchTicket& ticket,
                               const std::string& problem) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    --kernels_[ticket.kernel].underway;
  }
  if (!problem.empty()) NoteProblem(ticket, problem);
}

void LaunchLedger::AddLaunches(size_t kernel, uint64_t launches,
                               absl::Duration duration) {
  const std::lock_guard<std::mutex> lock(mutex_);
  kernels_[kernel].launches += launches;
  kernels_[kernel].total += duration;
}

void LaunchLedger::End(const LaunchTicket& ticket, absl::Duration duration) {
  const std::lock_guard<std::mutex> lock(mutex_);
  kernels_[ticket.kernel].total += duration;
}

void LaunchLedger::NoteProblem(const LaunchTicket& ticket,
                               const std::string& problem) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Kernel& kernel = kernels_[ticket.kernel];
  kernel.problem = problem;
  ++kernel.failures;
}

void LaunchLedger::NoteRefusal(const std::string& symbol,
                               const std::string& image_digest,
                               const std::string& problem) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Kernel& kernel = kernels_[Find(symbol, image_digest)];
  kernel.refused = true;
  kernel.problem = problem;
}

std::vector<RecordedInstance> LaunchLedger::Instances(size_t kernel) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return kernels_[kernel].instances;
}

void LaunchLedger::AddUnit(const LaunchTicket& ticket, v1::Unit unit,
                           RecordedInstance instance) {
  const std::lock_guard<std::mutex> lock(mutex_);
  unit.mutable_provenance()->set_occurrence(ticket.occurrence);
  kernels_[ticket.kernel].instances.push_back(std::move(instance));
  pending_.push_back({ticket.kernel, std::move(unit)});
}

absl::Status LaunchLedger::Keep(UnitStore& store, PendingUnit& pending,
                                RecordResult* result) {
  Kernel& kernel = kernels_[pending.kernel];
  v1::Provenance* provenance = pending.unit.mutable_provenance();
  provenance->set_occurrence_count(kernel.launches);
  provenance->set_same_shape_count(
      kernel.shapes[ShapeOf(pending.unit.launch())]);
  provenance->set_total_kernel_ms(absl::ToDoubleMilliseconds(kernel.total));
  const std::string ours = provenance->SerializeAsString();
  ASSIGN_OR_RETURN(const std::string id, store.Add(std::move(pending.unit)));
  kernel.units.push_back(id);
  result->units.push_back(id);
  // The store keeps the unit that it has; its provenance tells whose it is.
  const absl::StatusOr<UnitReader> kept = store.Open(id);
  if (kept.ok() && kept->manifest().provenance().SerializeAsString() != ours)
    kernel.known_units.push_back(id);
  return absl::OkStatus();
}

absl::Status LaunchLedger::Finish(UnitStore* store, RecordResult* result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Status first_error;
  for (PendingUnit& pending : pending_)
    first_error.Update(Keep(*store, pending, result));
  pending_.clear();
  Describe(result);
  return first_error;
}

void LaunchLedger::Describe(RecordResult* result) const {
  for (const Kernel& kernel : kernels_) {
    result->kernels.push_back(
        {kernel.symbol, kernel.display_name, kernel.launches,
         absl::ToDoubleMilliseconds(kernel.total), kernel.matched,
         kernel.refused, kernel.units, kernel.known_units, kernel.problem});
  }
  if (options_.record && result->units.empty()) result->problem = Problem();
}

std::string LaunchLedger::Problem() const {
  if (kernels_.empty()) return "the application launched no kernel";
  bool matched = false;
  for (const Kernel& kernel : kernels_) matched = matched || kernel.matched;
  std::string text =
      matched ? "no unit was made of the launches seen:"
              : absl::StrCat("no kernel matches '", options_.kernel_regex,
                             "'; the application launched:");
  size_t listed = 0;
  for (const Kernel& kernel : kernels_) {
    if (listed++ == kMostKernelsListed) {
      absl::StrAppend(&text, "\n  and ", kernels_.size() - kMostKernelsListed,
                      " more");
      break;
    }
    if (kernel.refused)
      absl::StrAppend(&text, "\n   refused ", kernel.display_name);
    else
      absl::StrAppendFormat(&text, "\n  %6d x %s", kernel.launches,
                            kernel.display_name);
    if (!kernel.problem.empty())
      absl::StrAppend(&text, "\n           ", kernel.problem);
    else if (kernel.matched && kernel.launches <= options_.skip)
      absl::StrAppend(&text, "\n           all were skipped (--skip ",
                      options_.skip, ")");
  }
  return text;
}

}  // namespace reprise
