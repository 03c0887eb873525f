// The emitter that asks a language model: a change of one parent, or two elites
// combined. It makes the prompts, reads the answers, and refuses what is not
// worth compiling; who calls the model, and when, is another matter:
//
//   Begin --> request --> (model) --> Finish --> a proposal
//                ^                      |  |
//                +--- one repair -------+  +--> nothing: unusable, cut off, or
//                                               nothing new
//
// Ask() does that one after the other with the model it was given, and blocks
// as long as the model does. Who wants devices to work meanwhile, or several
// calls under way, uses Begin() and Finish(): the same calls in the same order
// give the same proposals, whichever call of the model ends first.
//
// - The parent is the best elite half of the time, else any, the recorded
// source
//   included; a bandit decides between change and combination by their rewards
//   (evolution/reward.h).
// - Whether an answer is edits or whole regions is chosen for each model by a
//   bandit: 1 for an answer that can be used, 0.5 where it took the repair.
// - Code that is the same as what was proposed here, or as an elite or the
//   recorded source, by the normal form of its tokens (evolution/tokens.h), is
//   refused before anything is compiled.
//
// Not thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_LLM_EMITTER_H_
#define REPRISE_EVOLUTION_LLM_LLM_EMITTER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "evolution/bandit.h"
#include "evolution/emitter.h"
#include "evolution/llm/chat_model.h"
#include "evolution/llm/edits.h"
#include "evolution/llm/feedback.h"
#include "evolution/llm/prompt.h"
#include "evolution/random.h"
#include "evolution/source.h"

namespace reprise::evolution {

struct LlmEmitterOptions {
  uint64_t seed = 0;
  size_t exemplars = 3;  // elites shown beside the parent
  size_t failures = 3;   // of changes of the parent, the latest
  // Answers in vain, in all for one Ask, before it gives back what it has.
  int max_attempts = 8;
  int max_output_tokens = 8192;
  double temperature = 0.7;
  absl::Duration call_timeout = absl::Minutes(5);
  KernelWork work;
  // Of files that an answer gave, before they become a proposal (CheckSource of
  // evolution/ast/analyze.h, say). What it says of INVALID_ARGUMENT is shown to
  // the model for its repair; other errors end Finish(). Empty: no check.
  std::function<absl::Status(const FileContents&)> check;
};

// Counts of the emitter's life.
struct LlmStatistics {
  uint64_t requests = 0;  // made, repairs included
  uint64_t no_reply = 0;  // the model gave an error
  uint64_t cut_off = 0;   // by length or a filter
  uint64_t unusable = 0;  // after the repair
  uint64_t duplicates = 0;
  uint64_t proposals = 0;
  uint64_t repaired = 0;  // of the proposals
  ChatUsage usage;        // of all replies
  PrefixMeter::Totals prompts;
};

class LlmEmitter : public Emitter {
 public:
  // `model`, which outlives the emitter, is what Ask() calls, and its name is
  // what Begin() chooses a form for; where calls are made elsewhere it may be
  // null.
  LlmEmitter(EvolvableSource source, PromptBuilder prompts, ChatModel* model,
             LlmEmitterOptions options = {});

  std::string name() const override { return "llm"; }

  struct Job {
    uint64_t id = 0;  // from 1
    ChatRequest request;
  };
  // At most one of them; none: the answer came to nothing.
  struct Step {
    std::optional<ChatRequest> repair;
    std::optional<Proposal> proposal;
  };

  // What to ask the model of this name next. Errors are of the archive's
  // elites: as EvolvableSource::At.
  absl::StatusOr<Job> Begin(const Archive& archive, const std::string& model);
  // What the model made of the job's last request. A repair is finished under
  // the same job. NOT_FOUND: no such job, or it is over. Where the reply is an
  // error that later requests would meet as well, that is returned: CANCELLED,
  // RESOURCE_EXHAUSTED, PERMISSION_DENIED, NOT_FOUND.
  absl::StatusOr<Step> Finish(uint64_t job,
                              const absl::StatusOr<ChatReply>& reply);

  LlmStatistics statistics() const;

 private:
  struct Parent {
    uint64_t id = 0;
    double objective = 0;
    Proposal solution;  // without id: the recorded source
  };
  struct Pending {  // until it is finished
    std::string model;
    std::string operation;
    AnswerFormat format = AnswerFormat::kEdits;
    std::vector<Parent> parents;
    Prompt prompt;
    bool repairing = false;
  };
  struct Asked {  // until it is told
    std::string operation;
    Parent parent;
    bool repaired = false;
    std::string diff;
  };
  using Failures = std::deque<PromptFailure>;

  absl::StatusOr<std::vector<Proposal>> DoAsk(const Archive& archive,
                                              int n) override;
  void DoTell(const Proposal& proposal, const Evaluation& evaluation) override;

  absl::StatusOr<std::optional<Proposal>> Attempt(const Archive& archive);
  absl::Status NoteElites(const Archive& archive);
  std::vector<Parent> ParentsIn(const Archive& archive) const;
  void Choose(const std::vector<Parent>& parents, Pending* pending);
  absl::StatusOr<Prompt> PromptFor(const Pending& pending,
                                   const std::vector<Parent>& parents) const;
  PromptVariant VariantOf(const Parent& parent) const;
  ChatRequest RequestFor(const Prompt& prompt);
  void AddUsage(const ChatUsage& usage);
  absl::StatusOr<Step> Use(uint64_t job, Pending pending,
                           const std::string& answer);
  absl::StatusOr<Step> RepairOrGiveUp(uint64_t job, Pending pending,
                                      const std::string& answer,
                                      const absl::Status& error);
  Proposal MakeProposal(uint64_t job, const Pending& pending,
                        const std::string& answer, FileContents files) const;
  void Remember(const Proposal& proposal, const Asked& asked,
                const Evaluation& evaluation);
  absl::StatusOr<std::string> DigestOf(const FileContents& files) const;

  const EvolvableSource source_;
  const PromptBuilder prompts_;
  ChatModel* const model_;
  const LlmEmitterOptions options_;
  Random random_;
  Bandit operations_;
  std::map<std::string, Bandit> formats_;  // by model
  uint64_t last_job_ = 0;
  std::map<uint64_t, Pending> pending_;
  std::map<uint64_t, Asked> asked_;  // by job; the oldest are forgotten
  std::set<std::string> tried_;      // digests of normal forms
  std::set<uint64_t> noted_;         // elites whose digests are in tried_
  // By proposal; the oldest are forgotten.
  std::map<uint64_t, std::vector<Fact>> measured_;
  std::map<uint64_t, Failures> failures_;
  PrefixMeter prefixes_;
  LlmStatistics statistics_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_LLM_EMITTER_H_
