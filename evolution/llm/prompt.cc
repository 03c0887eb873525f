#include "evolution/llm/prompt.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "evolution/llm/edits.h"
#include "evolution/llm/quote.h"
#include "evolution/llm/text.h"
#include "evolution/regions.h"
#include "evolution/unified_diff.h"

namespace reprise::evolution {
namespace {

// Of diagnostics and diffs of failures.
constexpr size_t kMaxFailureBytes = 4'000;
constexpr size_t kMaxDiffBytes = 16'000;

std::string List(const std::vector<Fact>& facts) {
  std::string out;
  for (const Fact& fact : facts) {
    absl::StrAppend(&out, "- ", QuotedLine(fact.name), ": ",
                    QuotedLine(fact.value), "\n");
  }
  return out;
}

std::string Shortened(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const size_t end = text.rfind('\n', max_bytes);
  const std::string kept(
      text.substr(0, end == std::string_view::npos ? max_bytes : end + 1));
  return absl::StrCat(kept, "[", text.size() - kept.size(),
                      " more bytes left out]\n");
}

// One digit, so that measuring again seldom changes a prompt.
std::string Speedup(double speedup) {
  if (!(speedup > 0)) return "speed-up not known";
  const auto tenths = static_cast<long>(std::lround(speedup * 10));
  return absl::StrCat("speed-up ", tenths / 10, ".", tenths % 10,
                      " over the original");
}

std::string Relative(const std::string& path, const std::string& root) {
  return !root.empty() && path.starts_with(root + "/")
             ? path.substr(root.size() + 1)
             : path;
}

std::vector<std::string> Paths(const EvolvableSource& source) {
  std::vector<std::string> paths;
  for (const auto& [path, text] : source.files()) paths.push_back(path);
  return paths;
}

// Which lines are within `radius` of one that is kept for itself.
std::vector<bool> Near(const std::vector<bool>& kept, size_t radius) {
  std::vector<bool> near(kept.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    const size_t end = std::min(kept.size(), i + radius + 1);
    for (size_t j = i - std::min(i, radius); j < end; ++j) near[j] = true;
  }
  return near;
}

std::string JoinKept(const std::vector<std::string_view>& lines,
                     const std::vector<bool>& kept) {
  std::string out;
  size_t left_out = 0;
  for (size_t i = 0; i <= lines.size(); ++i) {
    const bool show = i < lines.size() && kept[i];
    if (left_out > 0 && (show || i == lines.size())) {
      absl::StrAppend(&out, "[", left_out, " lines left out]\n");
      left_out = 0;
    }
    if (show) absl::StrAppend(&out, std::string(lines[i]), "\n");
    if (!show) ++left_out;
  }
  return out;
}

}  // namespace

PromptBuilder::PromptBuilder(PromptTemplates templates, EvolvableSource source,
                             PromptTask task)
    : templates_(std::move(templates)),
      source_(std::move(source)),
      task_(std::move(task)),
      root_(CommonDirectory(Paths(source_))) {
  system_ = templates_.Get("system").Fill({{"hardware", List(task_.hardware)}});
  task_text_ = templates_.Get("task").Fill(
      {{"kernel", QuotedLine(task_.kernel)},
       {"launch", List(task_.launch)},
       {"notes", task_.notes.empty() ? "" : Quoted(task_.notes) + "\n"},
       {"host_code", HostCode(task_.max_host_bytes)}});
}

std::string PromptBuilder::HostCode(size_t max_bytes) const {
  std::vector<std::string> files;
  for (const std::string& path : Paths(source_)) {
    files.push_back(absl::StrCat(
        QuotedLine(Relative(path, root_)), "\n",
        Quoted(HostFile(path, max_bytes / source_.files().size()), "cuda")));
  }
  return absl::StrJoin(files, "\n\n");
}

// With each region as a comment; where it is too long, what is near a region or
// a launch of the kernel.
std::string PromptBuilder::HostFile(const std::string& path,
                                    size_t max_bytes) const {
  const std::string_view text = source_.files().at(path);
  std::string host;
  size_t at = 0;
  for (size_t i = 0; i < source_.regions().size(); ++i) {
    const Region& region = source_.regions()[i];
    if (region.path != path) continue;
    host += text.substr(at, region.begin - at);
    absl::StrAppend(&host, "/* ", RegionLabel(i), ": ",
                    std::string(RegionKindName(region.kind)), " ",
                    QuotedLine(region.name), " */");
    at = region.end;
  }
  host += text.substr(at);
  if (host.size() <= max_bytes) return host;
  const std::vector<std::string_view> lines = SplitLines(host);
  std::vector<bool> kept;
  for (const std::string_view line : lines) {
    const bool region = line.find("/* R") != std::string_view::npos;
    const bool launch = line.find("<<<") != std::string_view::npos ||
                        (!task_.kernel.empty() &&
                         line.find(task_.kernel) != std::string_view::npos);
    kept.push_back(region || launch);
  }
  for (const size_t radius : {80, 40, 20, 10, 5, 2}) {
    std::string near = JoinKept(lines, Near(kept, radius));
    if (near.size() <= max_bytes) return near;
  }
  return Shortened(JoinKept(lines, kept), max_bytes);
}

// Whole lines, since these are what can be searched for.
std::string PromptBuilder::RegionsOf(const EvolvableSource& state) const {
  std::vector<std::string> regions;
  for (size_t i = 0; i < state.regions().size(); ++i) {
    const Region& region = state.regions()[i];
    const std::string_view file = state.files().at(region.path);
    const size_t newline = file.substr(0, region.begin).rfind('\n');
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    const size_t end = std::min(file.find('\n', region.end), file.size());
    regions.push_back(absl::StrCat(
        RegionLabel(i), " (", std::string(RegionKindName(region.kind)), " ",
        QuotedLine(region.name), ", ", QuotedLine(Relative(region.path, root_)),
        ")\n", Quoted(file.substr(begin, end - begin), "cuda")));
  }
  return absl::StrJoin(regions, "\n\n");
}

std::string PromptBuilder::DiffOf(const FileContents& files) const {
  return Quoted(Shortened(UnifiedDiff(source_, files,
                                      {.context_lines = 3, .root = root_}),
                          kMaxDiffBytes),
                "diff");
}

std::string PromptBuilder::VariantText(const std::string& name,
                                       const PromptVariant& variant) const {
  return templates_.Get(name).Fill(
      {{"speedup", Speedup(variant.speedup)},
       {"description", Quoted(QuotedLine(variant.description))},
       {"diff", DiffOf(variant.files)}});
}

std::string PromptBuilder::FailureText(const PromptFailure& failure) const {
  const bool of_parent = failure.diff.empty();
  std::string out = absl::StrCat(
      of_parent ? "The code above " : "A change of the code above ",
      DescribeOutcome(failure.kind), ".\n", List(failure.facts));
  if (!of_parent) {
    absl::StrAppend(&out, Quoted(QuotedLine(failure.description)), "\n",
                    Quoted(Shortened(failure.diff, kMaxFailureBytes), "diff"),
                    "\n");
  }
  if (!failure.diagnostics.empty())
    absl::StrAppend(
        &out, Quoted(Shortened(failure.diagnostics, kMaxFailureBytes)), "\n");
  return out;
}

absl::StatusOr<Prompt> PromptBuilder::Build(
    const PromptRequest& request) const {
  const auto state = source_.At(request.parent.files);
  if (!state.ok()) return state.status();
  std::vector<PromptVariant> exemplars = request.exemplars;
  std::sort(exemplars.begin(), exemplars.end(),
            [](const PromptVariant& a, const PromptVariant& b) {
              return a.id < b.id;
            });
  std::vector<std::string> parts = {task_text_};
  for (const PromptVariant& exemplar : exemplars)
    parts.push_back(VariantText("exemplar", exemplar));
  parts.push_back(templates_.Get("parent").Fill(
      {{"speedup", Speedup(request.parent.speedup)},
       {"measured", List(request.parent.measured)},
       {"regions", RegionsOf(*state)}}));
  if (request.other) parts.push_back(VariantText("other", *request.other));
  if (!request.failures.empty()) {
    std::vector<std::string> failures;
    for (const PromptFailure& failure : request.failures)
      failures.push_back(FailureText(failure));
    parts.push_back(templates_.Get("feedback")
                        .Fill({{"feedback", absl::StrJoin(failures, "\n")}}));
  }
  parts.push_back(
      templates_.Get(request.other ? "crossover" : "mutate").Fill({}));
  parts.push_back(templates_
                      .Get(request.format == AnswerFormat::kEdits
                               ? "answer_edits"
                               : "answer_regions")
                      .Fill({}));
  Prompt prompt;
  prompt.messages = {
      {ChatRole::kSystem, system_, system_.size()},
      {ChatRole::kUser, absl::StrJoin(parts, "\n"), task_text_.size()}};
  prompt.stable_bytes = system_.size() + task_text_.size();
  prompt.bytes = system_.size() + prompt.messages[1].text.size();
  return prompt;
}

Prompt PromptBuilder::Repair(Prompt prompt, const std::string& answer,
                             const std::string& errors) const {
  const std::string text =
      templates_.Get("repair").Fill({{"errors", Quoted(errors)}});
  prompt.messages.push_back({ChatRole::kAssistant, CleanText(answer), 0});
  prompt.messages.push_back({ChatRole::kUser, text, 0});
  prompt.bytes += prompt.messages[prompt.messages.size() - 2].text.size();
  prompt.bytes += text.size();
  return prompt;
}

size_t SharedPrefix(const Prompt& a, const Prompt& b) {
  size_t shared = 0;
  const size_t count = std::min(a.messages.size(), b.messages.size());
  for (size_t i = 0; i < count; ++i) {
    const std::string& x = a.messages[i].text;
    const std::string& y = b.messages[i].text;
    if (a.messages[i].role != b.messages[i].role) break;
    const auto end = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
    shared += static_cast<size_t>(end.first - x.begin());
    if (x != y) break;
  }
  return shared;
}

size_t PrefixMeter::Add(const Prompt& prompt) {
  const size_t shared = SharedPrefix(last_, prompt);
  ++totals_.prompts;
  totals_.bytes += prompt.bytes;
  totals_.shared_bytes += shared;
  totals_.stable_bytes += prompt.stable_bytes;
  last_ = prompt;
  return shared;
}

}  // namespace reprise::evolution
