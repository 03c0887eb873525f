// One unit optimized on one device of this machine: evolution proposes source
// variants, tuning finds pipeline, code generation and launch for them, the
// replay engine judges. The main job of `reprise optimize`; the coordinator
// service runs the same code per leased unit.
//
// Compilation of a batch runs in parallel; launches run alone, so that no
// compiler disturbs a measurement. The winner has to hold on perturbed inputs,
// and is measured again before it is believed: the best of the search are
// confirmed, the best of those is made simpler, and what comes out gets a final
// sample that took part in no choice (docs/measuring.md says why that keeps
// many trials from making a win by chance).
//
// Not thread-safe; callbacks run on the calling thread.
#ifndef REPRISE_SERVICES_COORDINATOR_LOCAL_CAMPAIGN_H_
#define REPRISE_SERVICES_COORDINATOR_LOCAL_CAMPAIGN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bayesopt/optimizer.h"
#include "bayesopt/parameter_mapper.h"
#include "evolution/emitter.h"
#include "evolution/islands.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/device.h"
#include "replay/engine/evaluator.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/result.pb.h"

namespace reprise {

struct SourceOptions {
  bool allow_inexact = false;  // results may differ in their last bits
  uint64_t seed = 1;
};

struct ProposedSources {
  std::unique_ptr<evolution::Emitter> emitter;  // null: nothing to propose
  evolution::EvolvableSource evolvable;         // what patches are made against
};

// Where source variants of a unit come from (rewrite_sources.h).
using SourceProposer = std::function<absl::StatusOr<ProposedSources>(
    const UnitReader& unit, const v1::CompileInput& input,
    const SourceOptions& options)>;

struct CampaignOptions {
  absl::Duration budget = absl::Seconds(60);  // from the first trial on
  uint64_t max_trials = 0;                    // 0: as many as the budget allows
  uint64_t seed = 1;
  std::optional<v1::Tolerance> tolerance;
  int batch = 4;  // variants compiled at a time
  // Compilers to choose from, "clang" and "nvrtc"; empty: both on a GPU, Clang
  // on the cpu device. Those that cannot remix the unit are left out.
  std::vector<std::string> frontends;
  // Null: the recorded source is tuned as it is.
  SourceProposer sources;
  // Where sources live that are worth going on from. Its seed is the
  // campaign's.
  evolution::Islands::Options islands = {.islands = 1};
  std::string cells = "kinds";  // what islands.archive.cells was parsed from
  // For checks of the measuring itself: the baseline is the recorded IR, and
  // variants of the same machine code are measured like any other.
  bool compare_equal_code = false;
  bool tune = true;  // pipeline, code generation and launch too
  // Told to stop early (Ctrl-C): what was found so far is measured again, in a
  // few seconds, and returned.
  const std::atomic<bool>* stop = nullptr;
};

// One evaluated variant.
struct TrialRecord {
  uint64_t number = 0;  // from 1
  v1::Variant variant;
  v1::Outcome outcome;
  std::string description;
  bool improved = false;
};

struct CampaignProgress {
  std::string phase;  // "baseline", "search", "confirm", "simplify", "final"
  absl::Duration elapsed;
  absl::Duration budget;
  uint64_t trials = 0;
  uint64_t source_variants = 0;
  double baseline_ms = 0;
  double best_ratio = 1;
  std::string best_description;
  std::map<std::string, uint64_t> outcomes;
};

struct CampaignObserver {
  std::function<void(const CampaignProgress&)> progress;
  std::function<void(const TrialRecord&)> trial;
};

class LocalCampaign {
 public:
  // `device` and `pool` outlive the campaign.
  LocalCampaign(const UnitReader& unit, Device& device, CompilePool& pool,
                CampaignOptions options, CampaignObserver observer);
  ~LocalCampaign();

  // Runs to the end of the budget. Errors: the unit cannot be judged here (its
  // unmodified kernel does not replay, machine code only, ...).
  absl::StatusOr<v1::Result> Run();

 private:
  struct Source;     // a source variant and its tuner
  struct Candidate;  // a variant worth confirming
  struct Job;        // a variant on its way through compile and evaluate
  struct Newcomer;

  absl::Status Prepare();
  absl::Status PrepareEmitter();
  absl::StatusOr<std::unique_ptr<bayesopt::Optimizer>> NewTuner(uint64_t salt);
  void Search();
  void PickFrontend();
  v1::Variant WithSources(const evolution::FileContents& files) const;
  bool TuneRound();
  bool StartTuning(Source& source);
  const Source& TeacherOf(const Source& source) const;
  bool EmitRound();
  // Fewer than a batch: the emitter has no more.
  std::vector<Newcomer> AskForSources();
  void Settle(const Newcomer& newcomer, const v1::Outcome& outcome);
  absl::StatusOr<std::vector<double>> MeasuresOf(
      const evolution::Proposal& proposal, const v1::Outcome& outcome) const;
  void RemeasureElites();
  Source* PickSource();
  void CompileAhead(const std::vector<Job>& jobs);
  v1::Outcome EvaluateJob(const Job& job);
  void Remember(const Job& job, const v1::Outcome& outcome);
  absl::Status Confirm(v1::Result* result);
  std::vector<std::pair<v1::Outcome, Candidate>> ConfirmBest(
      const StoppingRule& rule, v1::Result* result);
  // `l2` unset: the device's policy.
  v1::Outcome MeasureFinally(const char* phase, const Candidate& winner,
                             std::optional<v1::L2Policy> l2,
                             v1::Result* result);
  // False: the winner fails there, so it is none.
  bool MeasureOtherL2(const Candidate& winner, v1::Result* result);
  void Simplify(const StoppingRule& rule, absl::Duration time_limit,
                Candidate* winner, v1::Outcome* outcome, v1::Result* result);
  void FillArchive(v1::Archive* archive) const;
  absl::Status FillWinner(const Candidate& winner, const v1::Outcome& outcome,
                          v1::Result* result);
  bool Stopped() const;
  bool OutOfBudget() const;
  void Report(const std::string& phase);

  UnitReader unit_;
  Device& device_;
  CompilePool& pool_;
  CampaignOptions options_;
  CampaignObserver observer_;
  absl::Time start_;

  std::shared_ptr<const v1::CompileInput> input_;
  std::unique_ptr<Evaluator> evaluator_;
  std::shared_ptr<const bayesopt::Space> space_;
  std::unique_ptr<bayesopt::ParameterMapper> mapper_;
  std::unique_ptr<evolution::Emitter> emitter_;  // null: nothing to rewrite
  evolution::EvolvableSource evolvable_;
  std::unique_ptr<evolution::Islands> islands_;
  uint64_t evaluated_sources_ = 0, remeasured_sources_ = 0;
  std::vector<std::unique_ptr<Source>> sources_;  // the recorded one first
  std::vector<Candidate> candidates_;
  CampaignProgress progress_;
  uint64_t next_proposal_ = 1;
  // What sources are compiled by before they are tuned; empty: Clang.
  std::string frontend_;
};

}  // namespace reprise

#endif  // REPRISE_SERVICES_COORDINATOR_LOCAL_CAMPAIGN_H_
