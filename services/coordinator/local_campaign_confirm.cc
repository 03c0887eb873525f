// Of a LocalCampaign: what of the search's best is a win.
#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "evolution/unified_diff.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/engine/perturb.h"
#include "services/coordinator/local_campaign.h"
#include "services/coordinator/local_campaign_internal.h"

namespace reprise {
namespace {

constexpr size_t kConfirmed = 4;
// Of the best, so many are measured again in search of kConfirmed.
constexpr size_t kMeasuredAgain = 8;
// Somebody waits: the time for each confirmation.
constexpr absl::Duration kHurriedConfirmation = absl::Seconds(1);
// A simpler winner may be this much slower.
constexpr double kAsFast = 0.99;

bool SurelyFaster(const v1::Outcome& outcome) {
  if (outcome.kind() != v1::OUTCOME_KIND_OK) return false;
  const std::vector<double> a(outcome.baseline_ns().begin(),
                              outcome.baseline_ns().end());
  const std::vector<double> b(outcome.variant_ns().begin(),
                              outcome.variant_ns().end());
  const RatioEstimate estimate = EstimateRatio(a, b, kDecisionConfidence);
  return estimate.low > 1 && estimate.ratio >= kLeastRatio;
}

void Keep(const char* phase, const std::string& description,
          const v1::Outcome& outcome, v1::Result* result) {
  v1::Remeasurement* measured = result->add_remeasurements();
  measured->set_phase(phase);
  measured->set_description(description);
  *measured->mutable_outcome() = outcome;
}

// What verification allows in a range, as UnitMemory::Verify does.
v1::Tolerance AllowedIn(const v1::RangeErrors& errors, const v1::Unit& unit,
                        const v1::Tolerance& default_tolerance) {
  const bool floating = errors.element_type() >= v1::ELEMENT_TYPE_F16 &&
                        errors.element_type() <= v1::ELEMENT_TYPE_F64;
  if (!floating) return v1::Tolerance();
  for (const v1::MemoryRange& range : unit.memory()) {
    if (range.address() == errors.address() && range.has_tolerance())
      return range.tolerance();
  }
  return default_tolerance;
}

}  // namespace

absl::Status LocalCampaign::FillWinner(const Candidate& winner,
                                       const v1::Outcome& outcome,
                                       v1::Result* result) {
  result->set_better(true);
  result->set_verified(true);
  *result->mutable_variant() = winner.variant;
  *result->mutable_outcome() = outcome;
  if (!Stopped()) {
    *result->mutable_outcome()->mutable_counters() =
        evaluator_->Count(winner.variant);
  }
  for (const v1::RangeErrors& range : outcome.errors()) {
    *result->add_range_tolerances() = AllowedIn(
        range, evaluator_->unit().manifest(), evaluator_->baseline().tolerance);
  }
  *result->mutable_tuned_launch() = evaluator_->LaunchOf(winner.variant);
  ASSIGN_OR_RETURN(*result->mutable_code(),
                   evaluator_->Compile(winner.variant));
  evolution::FileContents files;
  for (const v1::SourceOverlay& overlay : winner.variant.sources())
    files[overlay.path()] = overlay.content();
  evolution::DiffOptions diff;
  std::vector<std::string> paths;
  for (const auto& [path, content] : files) paths.push_back(path);
  diff.root = evolution::CommonDirectory(paths);
  result->set_patch_root(diff.root);
  result->set_patch(evolution::UnifiedDiff(evolvable_, files, diff));
  result->add_changes(winner.description);
  return absl::OkStatus();
}

// Leaves out rewrites that the winner is as fast without: a patch should hold
// what matters and nothing else.
void LocalCampaign::Simplify(const StoppingRule& rule,
                             absl::Duration time_limit, Candidate* winner,
                             v1::Outcome* outcome, v1::Result* result) {
  if (emitter_ == nullptr || winner->proposal.id == 0 || Stopped()) return;
  const absl::Time start = absl::Now();
  for (bool simpler_found = true; simpler_found;) {
    simpler_found = false;
    absl::StatusOr<std::vector<evolution::Proposal>> simpler =
        emitter_->Simplify(winner->proposal);
    if (!simpler.ok()) return;
    for (evolution::Proposal& proposal : *simpler) {
      if (absl::Now() - start > time_limit || Stopped()) return;
      Report("simplify");
      Candidate candidate = *winner;
      candidate.proposal = std::move(proposal);
      candidate.proposal.id = winner->proposal.id;
      *candidate.variant.mutable_sources() =
          WithSources(candidate.proposal.files).sources();
      candidate.description = JoinDescriptions(
          candidate.proposal.description, mapper_->Describe(candidate.variant));
      v1::Outcome measured =
          evaluator_->EvaluateWith(candidate.variant, rule, time_limit / 8);
      Keep("simplify", candidate.description, measured, result);
      const bool as_fast =
          measured.speedup().ratio() >= kAsFast * outcome->speedup().ratio();
      if (!SurelyFaster(measured) || !as_fast) continue;
      *winner = std::move(candidate);
      *outcome = std::move(measured);
      simpler_found = true;
      break;
    }
  }
}

// The best of the search that stand up to a second look, the surest first.
std::vector<std::pair<v1::Outcome, LocalCampaign::Candidate>>
LocalCampaign::ConfirmBest(const StoppingRule& rule, v1::Result* result) {
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.log_low > b.log_low;
                   });
  const absl::Duration each =
      std::max(options_.budget / (4.0 * kConfirmed), absl::Seconds(1));
  std::vector<std::pair<v1::Outcome, Candidate>> confirmed;
  for (size_t i = 0; i < std::min(candidates_.size(), kMeasuredAgain); ++i) {
    const Candidate& candidate = candidates_[i];
    if (confirmed.size() >= kConfirmed || candidate.log_low <= 0) break;
    Report("confirm");
    v1::Outcome outcome = evaluator_->EvaluateWith(
        candidate.variant, rule,
        Stopped() ? std::min(each, kHurriedConfirmation) : each);
    Keep("confirm", candidate.description, outcome, result);
    if (!SurelyFaster(outcome)) continue;
    confirmed.emplace_back(std::move(outcome), candidate);
  }
  std::stable_sort(
      confirmed.begin(), confirmed.end(), [](const auto& a, const auto& b) {
        return a.first.speedup().ci95_low() > b.first.speedup().ci95_low();
      });
  return confirmed;
}

// All samples so far took part in choosing the winner, which flatters it.
v1::Outcome LocalCampaign::MeasureFinally(const char* phase,
                                          const Candidate& winner,
                                          std::optional<v1::L2Policy> l2,
                                          v1::Result* result) {
  Report("final");
  FinalMeasurement measurement;
  const absl::Duration limit =
      Stopped() ? kHurriedConfirmation
                : std::max(options_.budget / 10, absl::Seconds(2));
  measurement.time_per_round = limit / measurement.rounds;
  measurement.l2 = l2;
  v1::Outcome outcome = evaluator_->Remeasure(winner.variant, measurement);
  Keep(phase, winner.description, outcome, result);
  return outcome;
}

// In a program the cache holds some of the kernel's data: neither all of what
// the kernel left there nor nothing of it.
bool LocalCampaign::MeasureOtherL2(const Candidate& winner,
                                   v1::Result* result) {
  const v1::L2Policy usual = device_.facts().l2;
  if (usual == v1::L2_POLICY_UNSPECIFIED) return true;
  result->clear_other_l2();  // of a winner that was dropped
  for (const v1::L2Policy other :
       {v1::L2_POLICY_COLD, v1::L2_POLICY_WARM, v1::L2_POLICY_DIRTY}) {
    if (other == usual) continue;
    const v1::Outcome outcome =
        MeasureFinally("other L2", winner, other, result);
    if (outcome.kind() == v1::OUTCOME_KIND_INFRASTRUCTURE) continue;
    if (outcome.kind() != v1::OUTCOME_KIND_OK) {
      LOG_WARNING("a winner was dropped: under {} it is {}: {}",
                  v1::L2Policy_Name(other), OutcomeName(outcome.kind()),
                  outcome.diagnostics());
      return false;
    }
    v1::PolicySpeedup* measured = result->add_other_l2();
    measured->set_l2(other);
    *measured->mutable_speedup() = outcome.speedup();
  }
  return true;
}

absl::Status LocalCampaign::Confirm(v1::Result* result) {
  StoppingRule careful;
  careful.minimum_pairs = 12;
  careful.maximum_pairs = 60;
  careful.relative_width = 0.01;
  for (auto& [confirmed, candidate] : ConfirmBest(careful, result)) {
    Simplify(careful, options_.budget / 8, &candidate, &confirmed, result);
    const v1::Outcome outcome =
        MeasureFinally("final", candidate, std::nullopt, result);
    if (!SurelyFaster(outcome)) continue;
    PerturbOptions perturb;
    perturb.seed = options_.seed;
    perturb.claimed_ratio = outcome.speedup().ratio();
    ASSIGN_OR_RETURN(const PerturbedVerdict verdict,
                     VerifyOnPerturbedInputs(evaluator_->unit(), device_, pool_,
                                             evaluator_->baseline(),
                                             candidate.variant, perturb));
    result->set_perturbed(!verdict.applicable ? "not applicable"
                          : verdict.verified  ? "verified"
                                              : verdict.diagnostics);
    if (verdict.applicable && !verdict.verified) {
      LOG_WARNING("a winner was dropped: {}", verdict.diagnostics);
      continue;
    }
    if (!MeasureOtherL2(candidate, result)) continue;
    return FillWinner(candidate, outcome, result);
  }
  return absl::OkStatus();
}

}  // namespace reprise
