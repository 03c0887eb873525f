#include "evolution/llm/llm_emitter.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "evolution/archive.h"
#include "evolution/llm/quote.h"
#include "evolution/llm/text.h"
#include "evolution/regions.h"
#include "evolution/reward.h"
#include "evolution/tokens.h"
#include "evolution/unified_diff.h"
#include "replay/base/sha256.h"

namespace reprise::evolution {
namespace {

constexpr char kMutate[] = "mutate";
constexpr char kCrossover[] = "crossover";
// Of proposals whose evaluations are remembered.
constexpr size_t kMaxRemembered = 4096;

bool EndsAllCalls(const absl::Status& status) {
  return status.code() == absl::StatusCode::kCancelled ||
         status.code() == absl::StatusCode::kResourceExhausted ||
         status.code() == absl::StatusCode::kPermissionDenied ||
         status.code() == absl::StatusCode::kNotFound;
}

// The sentence before the first block.
std::string DescriptionIn(const std::string& answer, const std::string& model) {
  constexpr std::string_view kThought = "</think>";
  std::string_view text = answer;
  const size_t thought = text.rfind(kThought);
  if (thought != std::string_view::npos)
    text.remove_prefix(thought + kThought.size());
  for (const std::string_view line : SplitLines(text)) {
    const std::string_view sentence = Undecorated(line);
    if (line.find("```") != std::string_view::npos ||
        sentence.starts_with("<<<<<"))
      break;
    // Not a file's name or a label.
    if (sentence.find(' ') != std::string_view::npos)
      return QuotedLine(sentence);
  }
  return absl::StrCat("A change by ", QuotedLine(model), ".");
}

std::string Genome(uint64_t job) { return absl::StrCat("llm:", job); }

// 0: not of this emitter.
uint64_t JobOf(const std::string& genome) {
  const size_t colon = genome.find(':');
  uint64_t job = 0;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(genome.substr(colon + 1), &job) ||
      Genome(job) != genome)
    return 0;
  return job;
}

template <typename Map>
void ForgetOldest(Map& map) {
  while (map.size() > kMaxRemembered) map.erase(map.begin());
}

}  // namespace

LlmEmitter::LlmEmitter(EvolvableSource source, PromptBuilder prompts,
                       ChatModel* model, LlmEmitterOptions options)
    : source_(std::move(source)),
      prompts_(std::move(prompts)),
      model_(model),
      options_(std::move(options)),
      random_(options_.seed) {}

LlmStatistics LlmEmitter::statistics() const {
  LlmStatistics statistics = statistics_;
  statistics.prompts = prefixes_.totals();
  return statistics;
}

absl::StatusOr<std::string> LlmEmitter::DigestOf(
    const FileContents& files) const {
  const auto state = source_.At(files);
  if (!state.ok()) return state.status();
  std::string code;
  for (const Region& region : state->regions())
    absl::StrAppend(&code, std::string(TextOf(*state, region)), "\n;\n");
  return Sha256(NormalForm(code));
}

absl::Status LlmEmitter::NoteElites(const Archive& archive) {
  if (tried_.empty()) {
    auto recorded = DigestOf({});
    if (!recorded.ok()) return recorded.status();
    tried_.insert(*std::move(recorded));
  }
  for (const Elite* elite : archive.elites()) {
    if (!noted_.insert(elite->solution.id).second) continue;
    auto digest = DigestOf(elite->solution.files);
    if (!digest.ok()) return digest.status();
    tried_.insert(*std::move(digest));
  }
  return absl::OkStatus();
}

// By objective; the recorded source is the last one where it is no elite.
std::vector<LlmEmitter::Parent> LlmEmitter::ParentsIn(
    const Archive& archive) const {
  std::vector<Parent> parents;
  bool recorded = false;
  for (const Elite* elite : archive.Ranked()) {
    recorded |= elite->solution.files.empty();
    parents.push_back({elite->solution.id, elite->objective, elite->solution});
  }
  if (!recorded) parents.push_back({});
  return parents;
}

void LlmEmitter::Choose(const std::vector<Parent>& parents, Pending* pending) {
  const size_t first = random_.Unit() < 0.5 ? 0 : random_.Below(parents.size());
  pending->parents = {parents[first]};
  std::vector<size_t> others;
  for (size_t i = 0; i < parents.size(); ++i) {
    if (i != first && !parents[i].solution.files.empty()) others.push_back(i);
  }
  pending->operation =
      others.empty() ? kMutate : operations_.Rank({kMutate, kCrossover})[0];
  operations_.Pull(pending->operation);
  if (pending->operation == kCrossover)
    pending->parents.push_back(parents[others[random_.Below(others.size())]]);
  Bandit& formats = formats_[pending->model];
  const std::string edits(AnswerFormatName(AnswerFormat::kEdits));
  const std::string regions(AnswerFormatName(AnswerFormat::kRegions));
  const std::string format = formats.Rank({edits, regions})[0];
  formats.Pull(format);
  pending->format =
      format == edits ? AnswerFormat::kEdits : AnswerFormat::kRegions;
}

PromptVariant LlmEmitter::VariantOf(const Parent& parent) const {
  PromptVariant variant{parent.id,
                        parent.solution.files,
                        std::exp(parent.objective),
                        parent.solution.description,
                        {}};
  const auto measured = measured_.find(parent.id);
  if (measured != measured_.end()) variant.measured = measured->second;
  return variant;
}

absl::StatusOr<Prompt> LlmEmitter::PromptFor(
    const Pending& pending, const std::vector<Parent>& parents) const {
  PromptRequest request;
  request.format = pending.format;
  request.parent = VariantOf(pending.parents[0]);
  if (pending.parents.size() > 1) request.other = VariantOf(pending.parents[1]);
  for (const Parent& parent : parents) {
    const bool shown =
        std::any_of(pending.parents.begin(), pending.parents.end(),
                    [&](const Parent& other) { return other.id == parent.id; });
    if (shown || parent.solution.files.empty()) continue;
    if (request.exemplars.size() == options_.exemplars) break;
    request.exemplars.push_back(VariantOf(parent));
  }
  const auto failures = failures_.find(request.parent.id);
  if (failures != failures_.end()) {
    request.failures.assign(failures->second.begin(), failures->second.end());
  }
  return prompts_.Build(request);
}

ChatRequest LlmEmitter::RequestFor(const Prompt& prompt) {
  prefixes_.Add(prompt);
  ++statistics_.requests;
  // Within what every provider takes for a seed.
  return {prompt.messages, options_.max_output_tokens, options_.temperature,
          random_.Next() >> 33};
}

absl::StatusOr<LlmEmitter::Job> LlmEmitter::Begin(const Archive& archive,
                                                  const std::string& model) {
  absl::Status noted = NoteElites(archive);
  if (!noted.ok()) return noted;
  const std::vector<Parent> parents = ParentsIn(archive);
  Pending pending;
  pending.model = model;
  Choose(parents, &pending);
  auto prompt = PromptFor(pending, parents);
  if (!prompt.ok()) return prompt.status();
  pending.prompt = *std::move(prompt);
  Job job{++last_job_, RequestFor(pending.prompt)};
  pending_[job.id] = std::move(pending);
  return job;
}

void LlmEmitter::AddUsage(const ChatUsage& usage) {
  statistics_.usage.prompt_tokens += usage.prompt_tokens;
  statistics_.usage.cached_tokens += usage.cached_tokens;
  statistics_.usage.output_tokens += usage.output_tokens;
  statistics_.usage.reasoning_tokens += usage.reasoning_tokens;
}

absl::StatusOr<LlmEmitter::Step> LlmEmitter::Finish(
    uint64_t job, const absl::StatusOr<ChatReply>& reply) {
  const auto found = pending_.find(job);
  if (found == pending_.end()) {
    return absl::NotFoundError(absl::StrCat(
        "llm emitter: got job ", job, ", expected one that waits for a reply"));
  }
  Pending pending = std::move(found->second);
  pending_.erase(found);
  if (!reply.ok()) {
    ++statistics_.no_reply;
    operations_.Forget(pending.operation);
    formats_[pending.model].Forget(
        std::string(AnswerFormatName(pending.format)));
    if (EndsAllCalls(reply.status())) return reply.status();
    return Step();
  }
  AddUsage(reply->usage);
  if (reply->finish != FinishReason::kStop) {
    ++statistics_.cut_off;
    return Step();
  }
  return Use(job, std::move(pending), reply->text);
}

absl::StatusOr<LlmEmitter::Step> LlmEmitter::RepairOrGiveUp(
    uint64_t job, Pending pending, const std::string& answer,
    const absl::Status& error) {
  if (pending.repairing) {
    ++statistics_.unusable;
    return Step();
  }
  pending.repairing = true;
  pending.prompt = prompts_.Repair(std::move(pending.prompt), answer,
                                   std::string(error.message()));
  Step step;
  step.repair = RequestFor(pending.prompt);
  pending_[job] = std::move(pending);
  return step;
}

absl::StatusOr<LlmEmitter::Step> LlmEmitter::Use(uint64_t job, Pending pending,
                                                 const std::string& answer) {
  const FileContents& before = pending.parents[0].solution.files;
  const auto state = source_.At(before);
  if (!state.ok()) return state.status();
  auto applied = ApplyAnswer(*state, answer);
  if (!applied.ok())
    return RepairOrGiveUp(job, std::move(pending), answer, applied.status());
  FileContents files = before;
  for (auto& [path, content] : applied->files) files[path] = std::move(content);
  files = source_.DropUnchanged(std::move(files));
  auto digest = DigestOf(files);
  if (!digest.ok()) return digest.status();
  const bool is_new = tried_.insert(*std::move(digest)).second;
  if (is_new && options_.check) {
    const absl::Status checked = options_.check(files);
    if (checked.code() == absl::StatusCode::kInvalidArgument)
      return RepairOrGiveUp(job, std::move(pending), answer, checked);
    if (!checked.ok()) return checked;
  }
  formats_[pending.model].Reward(std::string(AnswerFormatName(pending.format)),
                                 pending.repairing ? 0.5 : 1);
  if (!is_new) {
    ++statistics_.duplicates;
    return Step();
  }
  Step step;
  step.proposal = MakeProposal(job, pending, answer, std::move(files));
  asked_[job] = {pending.operation, pending.parents[0], pending.repairing,
                 std::move(applied->diff)};
  ForgetOldest(asked_);
  ++statistics_.proposals;
  statistics_.repaired += pending.repairing ? 1 : 0;
  return step;
}

Proposal LlmEmitter::MakeProposal(uint64_t job, const Pending& pending,
                                  const std::string& answer,
                                  FileContents files) const {
  Proposal proposal;
  proposal.files = std::move(files);
  proposal.emitter = name();
  proposal.description = DescriptionIn(answer, pending.model);
  proposal.genome = Genome(job);
  std::set<std::string> kinds = {name()};
  for (const Parent& parent : pending.parents) {
    proposal.parents.push_back(parent.id);
    kinds.insert(parent.solution.kinds.begin(), parent.solution.kinds.end());
  }
  proposal.kinds.assign(kinds.begin(), kinds.end());
  proposal.inexact = true;
  proposal.claim = "the model's change computes the same";
  return proposal;
}

absl::StatusOr<std::optional<Proposal>> LlmEmitter::Attempt(
    const Archive& archive) {
  auto job = Begin(archive, model_->name());
  if (!job.ok()) return job.status();
  for (std::optional<ChatRequest> request = std::move(job->request); request;) {
    const ChatLimits limits{absl::Now() + options_.call_timeout, nullptr};
    auto step = Finish(job->id, model_->Complete(*request, limits));
    if (!step.ok()) return step.status();
    if (step->proposal) return std::move(step->proposal);
    request = std::move(step->repair);
  }
  return std::optional<Proposal>();
}

absl::StatusOr<std::vector<Proposal>> LlmEmitter::DoAsk(const Archive& archive,
                                                        int n) {
  if (model_ == nullptr) {
    return absl::FailedPreconditionError(
        "llm emitter: got no model, expected one to ask");
  }
  std::vector<Proposal> proposals;
  int failed = 0;
  while (proposals.size() < static_cast<size_t>(n) &&
         failed < options_.max_attempts) {
    auto proposal = Attempt(archive);
    if (proposal.ok()) {
      failed += *proposal ? 0 : 1;
      if (*proposal) proposals.push_back(*std::move(*proposal));
      continue;
    }
    // What there is counts, and a budget that is used up is an end like any.
    if (!proposals.empty() ||
        proposal.status().code() == absl::StatusCode::kResourceExhausted)
      break;
    return proposal.status();
  }
  return proposals;
}

void LlmEmitter::DoTell(const Proposal& proposal,
                        const Evaluation& evaluation) {
  const auto found = asked_.find(JobOf(proposal.genome));
  if (found == asked_.end()) return;
  const Asked asked = std::move(found->second);
  asked_.erase(found);
  const auto reward =
      RewardOf(evaluation.kind, std::exp(evaluation.objective), asked.repaired);
  if (!reward) {
    operations_.Forget(asked.operation);
    return;
  }
  operations_.Reward(asked.operation,
                     BanditReward(*reward, std::exp(asked.parent.objective)));
  Remember(proposal, asked, evaluation);
}

void LlmEmitter::Remember(const Proposal& proposal, const Asked& asked,
                          const Evaluation& evaluation) {
  std::vector<Fact> facts;
  if (evaluation.outcome != nullptr)
    facts = FactsOf(*evaluation.outcome, options_.work);
  measured_[proposal.id] = facts;
  ForgetOldest(measured_);
  const bool right = evaluation.kind == v1::OUTCOME_KIND_OK;
  if (right && evaluation.objective > asked.parent.objective) return;
  if (right) {
    facts.insert(facts.begin(), {"speed-up over the original",
                                 Rounded(std::exp(evaluation.objective))});
  }
  Failures& failures = failures_[asked.parent.id];
  failures.push_back({proposal.description, asked.diff, evaluation.kind,
                      std::move(facts), evaluation.diagnostics});
  while (failures.size() > options_.failures) failures.pop_front();
  ForgetOldest(failures_);
}

}  // namespace reprise::evolution
