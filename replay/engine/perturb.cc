#include "replay/engine/perturb.h"

#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/engine/compile_input.h"
#include "replay/engine/launch_geometry.h"
#include "replay/engine/paired_statistics.h"

namespace reprise {
namespace {

constexpr absl::Duration kReplayLimit = absl::Minutes(5);
// To see whether a claimed speed-up is there.
// Looked at when there are so many pairs, and twice, four times, ... as many.
constexpr int kPairs = 10;
constexpr int kMostPairs = 320;
constexpr int kFewestPairs = 5;
constexpr absl::Duration kPairsLimit = absl::Seconds(30);
constexpr double kConfidence = 0.999;

// Of either sign.
template <typename Float>
bool IsZero(const std::string& bytes) {
  for (size_t at = 0; at + sizeof(Float) <= bytes.size(); at += sizeof(Float)) {
    Float value;
    std::memcpy(&value, bytes.data() + at, sizeof(Float));
    if (value != 0) return false;
  }
  return true;
}

template <typename Float>
void PerturbElements(std::string* bytes, std::mt19937_64& random,
                     double amplitude) {
  std::uniform_real_distribution<double> uniform(-amplitude, amplitude);
  const bool zeros = IsZero<Float>(*bytes);
  for (size_t at = 0; at + sizeof(Float) <= bytes->size();
       at += sizeof(Float)) {
    Float value;
    std::memcpy(&value, bytes->data() + at, sizeof(Float));
    if (std::isfinite(value)) {
      value = static_cast<Float>(zeros ? uniform(random)
                                       : value * (1 + uniform(random)));
    }
    std::memcpy(bytes->data() + at, &value, sizeof(Float));
  }
}

bool CanPerturb(const v1::MemoryRange& range, const PerturbOptions& options) {
  const bool typed = range.element_type() == v1::ELEMENT_TYPE_F32 ||
                     range.element_type() == v1::ELEMENT_TYPE_F64;
  const bool is_input = range.read_before_write_set().bytes() > 0;
  return typed && is_input && range.bytes() <= options.max_bytes_per_range;
}

// Every chunk the perturbed unit names must be in its store: copies what stays
// the same.
absl::Status CopyBlob(const ChunkStore& from, ChunkStore& to,
                      const v1::Blob& blob) {
  ASSIGN_OR_RETURN(const std::string bytes, from.GetString(blob));
  return to.Put(bytes).status();
}

absl::Status CopyRange(const ChunkStore& from, ChunkStore& to,
                       const v1::MemoryRange& range) {
  for (const v1::Blob* blob :
       {&range.prologue(), &range.epilogue(), &range.read_set(),
        &range.write_set(), &range.read_before_write_set()}) {
    RETURN_IF_ERROR(CopyBlob(from, to, *blob));
  }
  return absl::OkStatus();
}

struct Runner {
  ResidentUnit& resident;
  uint64_t seed;

  absl::StatusOr<absl::Duration> Run(LoadedKernel& kernel,
                                     const v1::LaunchConfig& launch,
                                     std::string_view who) {
    RETURN_IF_ERROR(resident.Restore());
    RETURN_IF_ERROR(resident.Poison(seed));
    LaunchOptions options;
    options.launch = launch;
    options.timeout = kReplayLimit;
    options.poison_seed = seed;
    ASSIGN_OR_RETURN(const LaunchReport report,
                     resident.Launch(kernel, options));
    if (report.kind == v1::OUTCOME_KIND_OK) return report.device_time;
    return absl::FailedPreconditionError(absl::StrCat(
        std::string(who), " fails on perturbed inputs: ", report.diagnostics));
  }
};

// Code and launch of one side of the comparison.
struct Side {
  LoadedKernel& kernel;
  const v1::LaunchConfig launch;
  const char* name;
};

// In turns, as A B B A, until it is known on which side of `threshold` the
// ratio is, or there is no time left.
absl::StatusOr<RatioEstimate> MeasureRatio(Runner& runner, const Side& baseline,
                                           const Side& variant,
                                           double threshold) {
  std::vector<double> a, b;
  const absl::Time start = absl::Now();
  for (int pair = 0, look = kPairs; pair < kMostPairs; ++pair) {
    if (pair >= kFewestPairs && absl::Now() - start > kPairsLimit) break;
    if (pair == look) {
      const RatioEstimate estimate = EstimateRatio(a, b, kConfidence);
      if (estimate.low >= threshold || estimate.high < threshold) break;
      look *= 2;
    }
    for (const bool baseline_turn : {pair % 2 == 0, pair % 2 != 0}) {
      const Side& side = baseline_turn ? baseline : variant;
      ASSIGN_OR_RETURN(const absl::Duration time,
                       runner.Run(side.kernel, side.launch, side.name));
      (baseline_turn ? a : b).push_back(absl::ToDoubleNanoseconds(time));
    }
  }
  return EstimateRatio(a, b, kConfidence);
}

// Whether the speed-up that is claimed is there, half of it at least.
absl::Status CheckClaim(Runner& runner, const Side& baseline,
                        const Side& variant, double claimed,
                        PerturbedVerdict* verdict) {
  const double least = 1 + (claimed - 1) / 2;
  ASSIGN_OR_RETURN(const RatioEstimate estimate,
                   MeasureRatio(runner, baseline, variant, least));
  verdict->ratio = estimate.ratio;
  if (estimate.high >= least) return absl::OkStatus();
  verdict->verified = false;
  verdict->diagnostics = absl::StrFormat(
      "on perturbed inputs it is %.3g times as fast as the baseline (at most "
      "%.3g), on the recorded ones %.3g times: it tells the recorded inputs "
      "from others",
      estimate.ratio, estimate.high, claimed);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UnitReader> PerturbUnit(const UnitReader& unit,
                                       const std::string& scratch_directory,
                                       const PerturbOptions& options) {
  for (const v1::MemoryRange& range : unit.manifest().memory()) {
    // Such units are not copied; CopyBlob holds a range in memory.
    if (range.bytes() > options.max_bytes_per_range) {
      return absl::NotFoundError(
          "a range of the unit is too large to be perturbed");
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ChunkStore> store,
                   ChunkStore::Open({.directory = scratch_directory}));
  v1::Unit manifest = unit.manifest();
  std::mt19937_64 random(options.seed);
  bool any = false;
  for (v1::MemoryRange& range : *manifest.mutable_memory()) {
    RETURN_IF_ERROR(CopyRange(unit.chunks(), *store, range));
    if (!CanPerturb(range, options)) continue;
    ASSIGN_OR_RETURN(std::string bytes,
                     unit.chunks().GetString(range.prologue()));
    if (range.element_type() == v1::ELEMENT_TYPE_F32) {
      PerturbElements<float>(&bytes, random, options.amplitude);
    } else {
      PerturbElements<double>(&bytes, random, options.amplitude);
    }
    // An unset epilogue means "as the prologue", which holds for the perturbed
    // one as well.
    ASSIGN_OR_RETURN(*range.mutable_prologue(), store->Put(bytes));
    any = true;
  }
  // A device may run the application's own code.
  ASSIGN_OR_RETURN(const std::string machine_code,
                   unit.chunks().GetString(manifest.machine_code(),
                                           options.max_bytes_per_range));
  RETURN_IF_ERROR(store->Put(machine_code).status());
  if (!any)
    return absl::NotFoundError(
        "the kernel reads no floating-point memory that could be perturbed");
  return UnitReader(unit.id(), std::move(manifest), std::move(store));
}

absl::StatusOr<PerturbedVerdict> VerifyOnPerturbedInputs(
    const UnitReader& unit, Device& device, CompilePool& pool,
    const BaselineReport& baseline, const v1::Variant& variant,
    const PerturbOptions& options) {
  PerturbedVerdict verdict;
  ASSIGN_OR_RETURN(const TemporaryDirectory scratch,
                   TemporaryDirectory::Create("reprise-perturbed"));
  absl::StatusOr<UnitReader> perturbed =
      PerturbUnit(unit, scratch.path(), options);
  if (absl::IsNotFound(perturbed.status())) return verdict;
  if (!perturbed.ok()) return perturbed.status();
  verdict.applicable = true;
  ASSIGN_OR_RETURN(const auto input, LoadCompileInput(unit, device));
  ASSIGN_OR_RETURN(const v1::CompileReply code,
                   pool.Compile(input, variant, device.compile_target()));
  ASSIGN_OR_RETURN(const std::unique_ptr<ResidentUnit> resident,
                   device.Load(*perturbed, {.inputs_differ = true}));
  const std::string& symbol = unit.manifest().kernel().symbol();
  const bool application = baseline.kind == v1::BASELINE_KIND_APPLICATION_CODE;
  ASSIGN_OR_RETURN(const auto baseline_kernel,
                   application ? resident->LoadApplicationKernel()
                               : resident->LoadKernel(baseline.code, symbol));
  ASSIGN_OR_RETURN(const auto variant_kernel,
                   resident->LoadKernel(code, symbol));
  Runner runner{*resident, options.seed};
  const Side of_baseline{*baseline_kernel, baseline.launch,
                         "the unmodified kernel"};
  const Side of_variant{
      *variant_kernel,
      VariantLaunch(unit.manifest().launch(), variant.launch()), "the variant"};
  RETURN_IF_ERROR(
      runner.Run(of_baseline.kernel, of_baseline.launch, of_baseline.name)
          .status());
  RETURN_IF_ERROR(resident->AdoptReference());
  const absl::Status ran =
      runner.Run(of_variant.kernel, of_variant.launch, of_variant.name)
          .status();
  if (absl::IsFailedPrecondition(ran)) {
    verdict.diagnostics = std::string(ran.message());
    return verdict;
  }
  RETURN_IF_ERROR(ran);
  ASSIGN_OR_RETURN(const Verdict compared,
                   resident->Verify(baseline.tolerance));
  verdict.verified = compared.equal;
  if (!compared.equal) {
    verdict.diagnostics =
        absl::StrCat("on perturbed inputs: ", DescribeVerdict(compared.ranges));
  } else if (options.claimed_ratio >= kLeastClaim) {
    RETURN_IF_ERROR(CheckClaim(runner, of_baseline, of_variant,
                               options.claimed_ratio, &verdict));
  }
  return verdict;
}

}  // namespace reprise
