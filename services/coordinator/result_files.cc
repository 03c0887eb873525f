#include "services/coordinator/result_files.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "replay/base/file_util.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/engine/clock_watch.h"
#include "replay/engine/evaluator.h"
#include "replay/engine/launch_geometry.h"
#include "services/coordinator/counters_report.h"
#include "services/coordinator/timing_report.h"

namespace reprise {
namespace {

using nlohmann::ordered_json;

constexpr uint32_t kResultFormatVersion = 1;
// Not an outcome: proposals that were not run, their code being known.
constexpr char kSameCode[] = "SAME_CODE";

std::string BaselineName(v1::BaselineKind kind) {
  return kind == v1::BASELINE_KIND_APPLICATION_CODE
             ? "application's own machine code"
             : "recorded IR through default<O3>";
}

// What was measured after the search, without its samples.
ordered_json RemeasurementsJson(const v1::Result& result) {
  ordered_json json = ordered_json::array();
  for (const v1::Remeasurement& measured : result.remeasurements()) {
    const v1::Outcome& outcome = measured.outcome();
    json.push_back({{"phase", measured.phase()},
                    {"description", measured.description()},
                    {"outcome", OutcomeName(outcome.kind())}});
    AddSpeedup(outcome.speedup(), &json.back());
  }
  return json;
}

ordered_json DecisionJson(const v1::Result& result) {
  return {{"confidence", result.decision_confidence()},
          {"least_ratio", result.least_ratio()},
          {"measured_again", RemeasurementsJson(result)}};
}

std::string BeliefText(const v1::Result& result) {
  return absl::StrFormat(
      "by a sample of its own: above 1 with %.4g%% confidence, at least %.4g",
      100 * result.decision_confidence(), result.least_ratio());
}

// Of a search that found nothing, the conditions alone.
std::string ConditionsText(const v1::Result& result) {
  return result.better() ? TimingText(result.outcome())
                         : absl::StrCat(L2Text(result.l2()), "; ",
                                        ClocksText(result.baseline_clocks()));
}

std::string Indented(const std::string& text) {
  std::string out;
  for (const auto line : absl::StrSplit(text, '\n')) {
    if (!line.empty()) absl::StrAppend(&out, "    ", line, "\n");
  }
  return out;
}

ordered_json ErrorsJson(const v1::Result& result) {
  const v1::Outcome& outcome = result.outcome();
  ordered_json errors = ordered_json::array();
  for (int i = 0; i < outcome.errors_size(); ++i) {
    const v1::RangeErrors& range = outcome.errors(i);
    errors.push_back({{"range", range.name()},
                      {"compared_elements", range.compared_elements()},
                      {"wrong_elements", range.wrong_elements()},
                      {"max_absolute", range.max_absolute()},
                      {"max_relative", range.max_relative()},
                      {"rms", range.rms()}});
    if (i < result.range_tolerances_size()) {
      errors.back()["allowed_absolute"] = result.range_tolerances(i).absolute();
      errors.back()["allowed_relative"] = result.range_tolerances(i).relative();
    }
  }
  return errors;
}

// "bit for bit", or the largest error of the last verified launch and what was
// allowed there: the sum of an absolute bound and a share of the value.
std::string ErrorsText(const v1::Result& result) {
  const auto& ranges = result.outcome().errors();
  int worst = -1;
  for (int i = 0; i < ranges.size(); ++i) {
    if (ranges[i].max_absolute() > 0 &&
        (worst < 0 || ranges[i].max_absolute() > ranges[worst].max_absolute()))
      worst = i;
  }
  if (worst < 0) return "bit for bit";
  const v1::RangeErrors& range = ranges[worst];
  const v1::Tolerance allowed = worst < result.range_tolerances_size()
                                    ? result.range_tolerances(worst)
                                    : v1::Tolerance();
  // Where only a share is allowed, relative errors decide; elsewhere those of
  // small values mislead.
  if (allowed.absolute() == 0 && allowed.relative() > 0) {
    return absl::StrFormat("largest relative error %.2g in %s (allowed %.2g)",
                           range.max_relative(), range.name(),
                           allowed.relative());
  }
  std::string text = absl::StrFormat("largest error %.2g in %s",
                                     range.max_absolute(), range.name());
  if (allowed.absolute() > 0) {
    absl::StrAppendFormat(&text, " (allowed %.2g + %.2g of the value)",
                          allowed.absolute(), allowed.relative());
  }
  return text;
}

ordered_json ArchiveJson(const v1::Archive& archive) {
  ordered_json json = {{"cells", archive.cells()},
                       {"measures", archive.measures()},
                       {"islands", ordered_json::array()},
                       {"elites", ordered_json::array()}};
  for (const v1::Island& island : archive.islands()) {
    json["islands"].push_back({{"evaluations", island.evaluations()},
                               {"elites", island.elites()},
                               {"coverage", island.coverage()},
                               {"qd_score", island.qd_score()},
                               {"best", std::exp(island.best())}});
  }
  for (const v1::Elite& elite : archive.elites()) {
    json["elites"].push_back({{"proposal", elite.proposal()},
                              {"description", elite.description()},
                              {"cell", elite.cell()},
                              {"measures", elite.measures()},
                              {"speedup_as_built", std::exp(elite.objective())},
                              {"remeasurements", elite.remeasurements()}});
  }
  return json;
}

RatioInterval Expected(const v1::Speedup& speedup) {
  if (speedup.anew_low() <= 0) return {speedup.ci95_low(), speedup.ci95_high()};
  return {std::min(speedup.ci95_low(), speedup.anew_low()),
          std::max(speedup.ci95_high(), speedup.anew_high())};
}

std::string Counted(uint64_t count, const std::string& what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// "5 elites on 2 islands, the best 1.42x as built".
std::string ArchiveText(const v1::Archive& archive) {
  std::string text =
      Counted(static_cast<uint64_t>(archive.elites_size()), "elite");
  if (archive.islands_size() > 1)
    absl::StrAppend(&text, " on ", archive.islands_size(), " islands");
  if (archive.elites_size() > 0) {
    absl::StrAppendFormat(
        &text, ", the best %.3fx as built%s",
        std::exp(archive.elites(0).objective()),
        archive.elites(0).remeasurements() > 0 ? "" : " (measured once)");
  }
  return text;
}

std::string NothingBetterText(const v1::Result& result) {
  if (result.trials() > 0) {
    return absl::StrCat("nothing better found in ",
                        Counted(result.trials(), "trial"));
  }
  return result.interrupted()
             ? "not searched: interrupted before the first trial"
             : "not searched: the budget ended before the first trial; give "
               "more with --budget";
}

std::string SearchText(const v1::Result& result) {
  std::string text = absl::StrFormat(
      "%s%s, %s, %.1f s", result.interrupted() ? "interrupted after " : "",
      Counted(result.trials(), "trial"),
      Counted(result.source_variants(), "source variant"), result.seconds());
  if (!result.outcomes().empty())
    absl::StrAppend(&text, ": ", OutcomesText(result));
  return text;
}

}  // namespace

std::string OutcomesText(const v1::Result& result) {
  std::vector<std::string> parts;
  std::map<std::string, uint64_t> sorted(result.outcomes().begin(),
                                         result.outcomes().end());
  for (const auto& [kind, count] : sorted) {
    if (kind == kSameCode) continue;
    parts.push_back(absl::StrCat(
        count, " ",
        absl::StrReplaceAll(absl::AsciiStrToLower(kind), {{"_", " "}})));
  }
  std::string text = absl::StrJoin(parts, ", ");
  if (const auto same = sorted.find(kSameCode); same != sorted.end()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", same->second,
                    " more proposals gave machine code known by then");
  }
  return text;
}

RatioInterval ExpectedInProgram(const v1::Result& result) {
  RatioInterval interval = Expected(result.outcome().speedup());
  for (const v1::PolicySpeedup& other : result.other_l2()) {
    const RatioInterval there = Expected(other.speedup());
    interval.low = std::min(interval.low, there.low);
    interval.high = std::max(interval.high, there.high);
  }
  return interval;
}

ordered_json ResultJson(const v1::Result& result) {
  const v1::Speedup& speedup = result.outcome().speedup();
  ordered_json json;
  json["schema"] = "reprise.result/1";
  json["device"] = result.device();
  json["device_name"] = result.device_name();
  json["unit"] = result.unit_id();
  json["kernel"] = result.kernel_display_name().empty()
                       ? result.kernel_symbol()
                       : result.kernel_display_name();
  json["baseline"] = BaselineName(result.baseline());
  json["baseline_ms"] = result.baseline_ms();
  json["best_ms"] = result.best_ms();
  json["better"] = result.better();
  json["speedup"] = result.better() ? speedup.ratio() : 1.0;
  json["speedup_ci95"] = {result.better() ? speedup.ci95_low() : 1.0,
                          result.better() ? speedup.ci95_high() : 1.0};
  json["pairs"] = speedup.pairs();
  json["l2"] = L2Text(result.l2());
  if (result.better()) {
    const RatioInterval expected = ExpectedInProgram(result);
    json["expected_in_program"] = {expected.low, expected.high};
  }
  json["other_l2"] = ordered_json::array();
  for (const v1::PolicySpeedup& other : result.other_l2()) {
    json["other_l2"].push_back({{"l2", L2Text(other.l2())}});
    AddSpeedup(other.speedup(), &json["other_l2"].back());
  }
  json["baseline_clocks"] = ClocksJson(result.baseline_clocks());
  if (result.better()) json["timing"] = TimingJson(result.outcome());
  json["decision"] = DecisionJson(result);
  json["interrupted"] = result.interrupted();
  json["verified"] = result.verified();
  json["perturbed_inputs"] = result.perturbed();
  json["deterministic"] = result.deterministic();
  json["baseline_matches_epilogue"] = result.matches_epilogue();
  if (result.has_archive()) json["archive"] = ArchiveJson(result.archive());
  json["changes"] = ordered_json::array();
  for (const std::string& change : result.changes())
    json["changes"].push_back(change);
  json["frontend"] = result.variant().frontend().empty()
                         ? "clang"
                         : result.variant().frontend();
  json["pipeline"] = result.variant().pipeline().empty()
                         ? "default<O3>"
                         : result.variant().pipeline();
  json["launch"] = DescribeLaunch(result.tuned_launch());
  json["recorded_launch"] = DescribeLaunch(result.recorded_launch());
  json["patch"] = result.patch();
  json["patch_root"] = result.patch_root();
  json["verification"] = ErrorsJson(result);
  if (result.outcome().has_counters())
    json["counters"] = CountersJson(result.outcome().counters());
  json["trials"] = result.trials();
  json["source_variants"] = result.source_variants();
  json["outcomes"] = ordered_json::object();
  for (const auto& [kind, count] : std::map<std::string, uint64_t>(
           result.outcomes().begin(), result.outcomes().end())) {
    json["outcomes"][kind] = count;
  }
  json["machine_code_sha256"] = HexEncode(result.code().code_sha256());
  json["seed"] = result.seed();
  json["seconds"] = result.seconds();
  json["reproduce"] = result.reproduce();
  return json;
}

std::string TrialJson(const TrialRecord& trial) {
  ordered_json json;
  json["schema"] = "reprise.trial/1";
  json["number"] = trial.number;
  json["outcome"] = OutcomeName(trial.outcome.kind());
  json["description"] = trial.description;
  if (trial.outcome.kind() == v1::OUTCOME_KIND_OK) {
    AddSpeedup(trial.outcome.speedup(), &json);
    json["stopped_by"] = trial.outcome.speedup().stopped_by();
  } else {
    json["diagnostics"] = trial.outcome.diagnostics();
  }
  if (trial.outcome.baseline_ns_size() > 0)
    json["timing"] = TimingJson(trial.outcome);
  json["compile_ms"] = trial.outcome.stages().compile_ms();
  json["variant_sha256"] = HexEncode(trial.outcome.variant_digest());
  json["machine_code_sha256"] = HexEncode(trial.outcome.machine_code_sha256());
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ResultText(const v1::Result& result) {
  const v1::Speedup& speedup = result.outcome().speedup();
  std::string text;
  absl::StrAppendFormat(&text, "unit       %s\n", result.unit_id());
  absl::StrAppendFormat(&text, "kernel     %s\n",
                        result.kernel_display_name().empty()
                            ? result.kernel_symbol()
                            : result.kernel_display_name());
  absl::StrAppendFormat(&text, "device     %s (%s)\n", result.device(),
                        result.device_name());
  absl::StrAppendFormat(&text, "baseline   %.4g ms (%s)\n",
                        result.baseline_ms(), BaselineName(result.baseline()));
  if (!result.better()) {
    absl::StrAppend(&text, "best       ", NothingBetterText(result), "\n");
  } else {
    absl::StrAppendFormat(&text, "best       %.4g ms\n", result.best_ms());
    absl::StrAppendFormat(
        &text,
        "speed-up   %.3fx, 95%% interval %.3f to %.3f, %d interleaved pairs\n",
        speedup.ratio(), speedup.ci95_low(), speedup.ci95_high(),
        speedup.pairs());
    for (const v1::PolicySpeedup& measured : result.other_l2()) {
      const v1::Speedup& other = measured.speedup();
      absl::StrAppendFormat(
          &text, "%-10s %.3fx, 95%% interval %.3f to %.3f, %d pairs\n",
          L2Text(measured.l2()), other.ratio(), other.ci95_low(),
          other.ci95_high(), other.pairs());
    }
    absl::StrAppend(&text, "believed   ", BeliefText(result), "\n");
    absl::StrAppendFormat(&text,
                          "verified   every launch, %s; perturbed inputs: %s\n",
                          ErrorsText(result), result.perturbed());
    const std::string counted = CountersLine(result.outcome().counters());
    if (!counted.empty()) absl::StrAppend(&text, "counted    ", counted, "\n");
    absl::StrAppend(&text, "changed    ", absl::StrJoin(result.changes(), "; "),
                    "\n");
    if (!SameLaunch(result.recorded_launch(), result.tuned_launch())) {
      absl::StrAppend(&text, "launch     ",
                      DescribeLaunch(result.tuned_launch()), " (was ",
                      DescribeLaunch(result.recorded_launch()), ")\n");
    }
    if (!result.patch().empty()) {
      absl::StrAppend(&text, "patch      apply with: patch -p1 -d ",
                      result.patch_root(), "\n", Indented(result.patch()));
    }
  }
  absl::StrAppend(&text, "timing     ", ConditionsText(result), "\n");
  absl::StrAppend(&text, "search     ", SearchText(result), "\n");
  if (result.archive().elites_size() > 0)
    absl::StrAppend(&text, "archive    ", ArchiveText(result.archive()), "\n");
  if (!result.reproduce().empty())
    absl::StrAppend(&text, "reproduce  ", result.reproduce(), "\n");
  return text;
}

absl::Status WriteResult(const std::string& directory,
                         const v1::Result& result) {
  RETURN_IF_ERROR(MakeDirectories(directory));
  RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(directory, "/winner.patch"),
                                      result.patch()));
  RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(directory, "/report.txt"),
                                      ResultText(result)));
  RETURN_IF_ERROR(WriteFileAtomically(
      absl::StrCat(directory, "/result.json"),
      ResultJson(result).dump(2, ' ', false,
                              nlohmann::json::error_handler_t::replace) +
          "\n"));
  return WriteFileAtomically(absl::StrCat(directory, "/result.pb"),
                             result.SerializeAsString());
}

absl::StatusOr<v1::Result> ReadResult(const std::string& path) {
  std::error_code ignored;
  const std::string file = std::filesystem::is_directory(path, ignored)
                               ? absl::StrCat(path, "/result.pb")
                               : path;
  absl::StatusOr<std::string> bytes = ReadFile(file);
  if (!bytes.ok()) {
    return absl::Status(
        bytes.status().code(),
        absl::StrCat(
            std::string(bytes.status().message()),
            "; expected a result directory as 'reprise optimize' writes it"));
  }
  v1::Result result;
  if (!result.ParseFromString(*bytes) || result.format_version() == 0) {
    return absl::DataLossError(
        absl::StrCat(file, " is no result file, or is damaged"));
  }
  if (result.format_version() > kResultFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(file, " has format version ", result.format_version(),
                     ", expected at most ", kResultFormatVersion,
                     "; it was written by a newer reprise"));
  }
  return result;
}

}  // namespace reprise
