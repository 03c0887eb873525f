// Evaluates variants of one unit on one device: compile, run, verify, time
// against the interleaved baseline.
//
// Every launch that counts goes restore -> poison -> launch -> verify, the
// baseline's too. Poison seeds come from the operating system's randomness, so
// a variant cannot foresee them. A variant is timed only after it has verified,
// and every timed launch is verified again. Pairs that the clocks speak against
// are measured again, and durations are held against the wall clock; the
// outcome says how all of it was measured (docs/measuring.md).
//
// Create replays the unmodified kernel first. It must reproduce the recorded
// epilogue within tolerance, or no variant may be judged; on another kind of
// device than the recording one its own result (within tolerance of the
// epilogue) becomes the reference. The unmodified kernel is the application's
// own machine code where the device can run it; then the recorded source or IR,
// rebuilt by a front end, must give the same result before that front end may
// remix anything. Repeated unmodified replays tell whether the kernel is
// deterministic: then bits must be equal wherever no tolerance is
// declared; otherwise a tolerance is learned from the spread that was seen.
//
// A variant that is faster than the device can write what has to be written
// (roofline.h) is REJECTED, whatever it computed.
//
// Thread-safety: Compile may run beside anything; the rest from one thread at a
// time.
#ifndef REPRISE_REPLAY_ENGINE_EVALUATOR_H_
#define REPRISE_REPLAY_ENGINE_EVALUATOR_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/device.h"
#include "replay/engine/clock_watch.h"
#include "replay/engine/paired_statistics.h"
#include "replay/engine/roofline.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

struct EvaluatorOptions {
  // Variants will be asked for. Without it a unit replays that holds machine
  // code only, or whose IR does not reproduce the recorded result; every
  // variant is a COMPILE_ERROR then.
  bool remix = true;
  // Front ends that variants may ask for: "clang", "nvrtc". Those that do not
  // reproduce the unmodified kernel's result are refused. Empty: the first of
  // the two that does; on the cpu device Clang.
  std::vector<std::string> frontends;
  // Set by a person: holds for every floating-point range that declares none.
  // Unset: learned or exact.
  std::optional<v1::Tolerance> tolerance;
  StoppingRule stopping;
  // A launch may take this many times the baseline's duration before it is a
  // TIMEOUT, and never less than minimum_timeout.
  double timeout_factor = 50;
  absl::Duration minimum_timeout = absl::Seconds(2);
  // Unmodified replays made to learn determinism.
  int learning_replays = 3;
  // For checks of the measuring itself: the baseline is the recorded IR,
  // rebuilt, and a variant of the same machine code is measured like any other.
  bool compare_equal_code = false;
  // Stop sampling a variant after this long.
  absl::Duration time_per_variant = absl::Seconds(2);
  // What is measured ends soon, as INFRASTRUCTURE, after this became true.
  // Null: it never does. Outlives the evaluator.
  const std::atomic<bool>* give_up = nullptr;
  // Pairs of one variant that are measured again because of the clocks; later
  // ones count, and the outcome says so.
  int most_discarded_pairs = 10;
};

// The measurement that a winner is believed by: a sample of its own, taken in
// rounds, each with both machine codes loaded anew (where code lies may make
// it faster). How many pairs there are depends on no result, so the interval is
// as sure as it says.
struct FinalMeasurement {
  int rounds = 6;
  int pairs_per_round = 10;
  // Then a round ends early, but not before the fifth pair.
  absl::Duration time_per_round = absl::Seconds(10);
  // Another policy than the device's.
  std::optional<v1::L2Policy> l2;
};

// "WRONG_RESULT": for people, and in JSON.
std::string OutcomeName(v1::OutcomeKind kind);

// What replaying the unmodified kernel showed.
struct BaselineReport {
  v1::BaselineKind kind = v1::BASELINE_KIND_UNSPECIFIED;
  bool matches_epilogue = false;  // bit for bit
  bool deterministic = false;     // learning replays gave equal bits
  v1::Tolerance tolerance;        // in force where none is declared
  absl::Duration median_time;
  std::vector<v1::RangeErrors>
      ranges;  // of the first replay against the epilogue
  // Of the unmodified kernel by the first usable front end; empty where nothing
  // is remixed.
  v1::CompileReply code;
  v1::LaunchConfig launch;
  v1::ClockReport clocks;  // of these replays
  // What it prints (device printf), its lines sorted, where that is the same
  // each time; unset where it is not.
  std::optional<std::string> printed;
  std::vector<std::string>
      frontends;                  // that may remix, the preferred one first
  std::string refused_frontends;  // the others, and why
};

class Evaluator {
 public:
  // `device` and `pool` outlive the evaluator. FAILED_PRECONDITION: the unit
  // does not replay here, or with `remix`, no front end may remix it.
  static absl::StatusOr<std::unique_ptr<Evaluator>> Create(
      const UnitReader& unit, Device& device, CompilePool& pool,
      EvaluatorOptions options);

  const BaselineReport& baseline() const { return baseline_; }
  // Variants with edited sources will come: compile processes get ready for
  // them while they have nothing else to do.
  void ExpectSourceVariants();
  const UnitReader& unit() const { return unit_; }

  // Builds and judges a variant. Never an error of the variant: those are
  // outcomes.
  v1::Outcome Evaluate(const v1::Variant& variant);

  // The same with a sampling policy of its own. `code`: what Compile gave for
  // the variant, where that is at hand; null: it is built.
  v1::Outcome EvaluateWith(const v1::Variant& variant,
                           const StoppingRule& stopping,
                           absl::Duration time_limit,
                           const v1::CompileReply* code = nullptr);

  // The same for a winner before it is believed.
  v1::Outcome Remeasure(const v1::Variant& variant,
                        const FinalMeasurement& measurement);

  // Runs the variant once on the current reference and verifies; does not time.
  v1::Outcome VerifyOnly(const v1::Variant& variant,
                         const v1::CompileReply* code = nullptr);

  // What the device counts in a launch of the variant, or of the baseline,
  // outside of anything timed. The counters say why where there are none; a
  // variant should have been verified.
  v1::Counters Count(const v1::Variant& variant);
  v1::Counters CountBaseline();

  // Of the device, measured when first asked for.
  const absl::StatusOr<v1::DeviceCeilings>& Ceilings();

  // Code and launch of a variant that compiled, for overlays. COMPILE_ERROR
  // comes back in the reply's kind.
  absl::StatusOr<v1::CompileReply> Compile(const v1::Variant& variant);
  v1::LaunchConfig LaunchOf(const v1::Variant& variant) const;
  // What Evaluate would say of a variant that Compile gave this for, which is
  // not OK. May run beside anything.
  v1::Outcome OutcomeOfBuild(
      const v1::Variant& variant,
      const absl::StatusOr<v1::CompileReply>& failed) const;

 private:
  struct Built;  // a variant's code, loaded
  struct LaunchTime {
    double device_ns = 0;
    double wall_ns = 0;  // 0: not read
  };

  Evaluator(const UnitReader& unit, Device& device, CompilePool& pool,
            EvaluatorOptions options);
  absl::Status Initialize();
  absl::Status ChooseBaseline();
  absl::Status UseRecordedIr();
  absl::Status BuildRecordedIr();
  absl::Status CheckFrontends();
  absl::StatusOr<v1::CompileReply> Rebuild(const std::string& frontend);
  absl::Status CheckRebuilt(const v1::CompileReply& code,
                            const std::string& frontend);
  absl::Status LoadBaseline();
  absl::Status Reload();
  absl::Status LearnBaseline();
  absl::Status CompareWithEpilogue();
  // UNAVAILABLE once EvaluatorOptions::give_up is set.
  absl::Status CheckWanted() const;
  absl::Status ReplayForSpread(std::map<uint64_t, double>* spread);
  absl::StatusOr<LaunchReport> ReplayBaseline(Verdict* verdict);
  absl::StatusOr<LaunchReport> RunOnce(LoadedKernel& kernel,
                                       const v1::LaunchConfig& launch,
                                       absl::Duration timeout,
                                       Verdict* verdict);
  bool Build(const v1::Variant& variant, const v1::CompileReply* at_hand,
             Built* built, v1::Outcome* outcome);
  bool RunAndJudge(LoadedKernel& kernel, const v1::LaunchConfig& launch,
                   v1::Outcome* outcome, LaunchTime* time);
  v1::Outcome NewOutcome(const v1::Variant& variant) const;
  // False where the outcome is settled without sampling.
  bool BuildAndVerify(const v1::Variant& variant, const v1::CompileReply* code,
                      Built* built, v1::Outcome* outcome);
  void Sample(Built& built, const StoppingRule& stopping,
              absl::Duration time_limit, v1::Outcome* outcome);
  bool SamplePair(Built& built, bool baseline_first, v1::Outcome* outcome);
  bool KeepPair(const LaunchTime& baseline, const LaunchTime& variant,
                v1::Outcome* outcome);
  void RejectImpossible(v1::Outcome* outcome);
  const std::optional<WriteFloor>& Floor();
  absl::Duration Timeout() const;

  UnitReader unit_;
  Device& device_;
  CompilePool& pool_;
  EvaluatorOptions options_;
  std::shared_ptr<const v1::CompileInput> input_;
  std::unique_ptr<ResidentUnit> resident_;
  std::unique_ptr<LoadedKernel> baseline_kernel_;
  BaselineReport baseline_;
  std::optional<v1::L2Policy> l2_;  // of the measurement at hand
  ClockWatch clock_watch_;          // of the outcome at hand
  bool baseline_equal_ = false;     // within tolerance of the epilogue
  std::optional<absl::StatusOr<v1::DeviceCeilings>> ceilings_;
  bool floor_sought_ = false;
  std::optional<WriteFloor> floor_;
};

// The recorded source as it is, by this front end.
v1::Variant UnmodifiedVariant(const std::string& frontend);

// "array[17] (+0x44): got 1.5, expected 2.5; 3 of 1024 elements differ, ..."
// for the first range that is wrong.
std::string DescribeVerdict(const std::vector<v1::RangeErrors>& ranges);

}  // namespace reprise

#endif  // REPRISE_REPLAY_ENGINE_EVALUATOR_H_
