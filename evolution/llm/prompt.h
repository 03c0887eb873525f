// Puts a campaign's state into a prompt. What changes least comes first, so
// that a model's prompt cache has as much of it as can be:
//
//   system   rules, both forms of answers; the hardware
//   user     task and host code            (until here: the campaign's)
//            exemplars, by proposal id: those that lasted longest first
//            the code to change, a second variant
//            measurements and failures
//            the request, and the form of the answer
//
// Nothing in it depends on time or place. Texts are templates that a user may
// replace (prompt_template.h). All that others wrote - source, diagnostics,
// what models said of their changes - is quoted (quote.h) and never read as a
// template. Thread-safe: immutable values.
#ifndef REPRISE_EVOLUTION_LLM_PROMPT_H_
#define REPRISE_EVOLUTION_LLM_PROMPT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "evolution/llm/answer.h"
#include "evolution/llm/chat_model.h"
#include "evolution/llm/feedback.h"
#include "evolution/llm/prompt_template.h"
#include "evolution/source.h"
#include "reprise/v1/types.pb.h"

namespace reprise::evolution {

// The same for all prompts of a campaign.
struct PromptTask {
  std::string kernel;          // as the user knows it
  std::vector<Fact> hardware;  // name, memory, multiprocessors, ceilings, ...
  std::vector<Fact> launch;    // grid, block, dynamic shared memory, tolerance
  std::string notes;           // of the user
  // Of the files around the regions; beyond it lines far from them are left
  // out.
  size_t max_host_bytes = 24'000;
};

struct PromptVariant {
  uint64_t id = 0;     // of its proposal
  FileContents files;  // as Proposal::files
  double speedup = 0;  // over the baseline; 0: not known
  std::string description;
  std::vector<Fact> measured;
};

// An evaluation that the model should know of.
struct PromptFailure {
  std::string description;
  std::string diff;  // against the code to change; "": it is that code itself
  v1::OutcomeKind kind = v1::OUTCOME_KIND_UNSPECIFIED;
  std::vector<Fact> facts;
  std::string diagnostics;
};

struct PromptRequest {
  AnswerFormat format = AnswerFormat::kEdits;
  PromptVariant parent;
  std::optional<PromptVariant> other;  // given: a crossover
  std::vector<PromptVariant> exemplars;
  std::vector<PromptFailure> failures;
};

struct Prompt {
  std::vector<ChatMessage> messages;
  // Of all messages, and of what is the same in the campaign's prompts.
  size_t bytes = 0;
  size_t stable_bytes = 0;
};

class PromptBuilder {
 public:
  PromptBuilder(PromptTemplates templates, EvolvableSource source,
                PromptTask task);

  // NOT_FOUND, PERMISSION_DENIED: as EvolvableSource::At, for the parent.
  absl::StatusOr<Prompt> Build(const PromptRequest& request) const;

  // `prompt` with the answer it got and what was wrong with that.
  Prompt Repair(Prompt prompt, const std::string& answer,
                const std::string& errors) const;

 private:
  std::string HostCode(size_t max_bytes) const;
  std::string HostFile(const std::string& path, size_t max_bytes) const;
  std::string RegionsOf(const EvolvableSource& state) const;
  std::string DiffOf(const FileContents& files) const;
  std::string FailureText(const PromptFailure& failure) const;
  std::string VariantText(const std::string& name,
                          const PromptVariant& variant) const;

  PromptTemplates templates_;
  EvolvableSource source_;
  PromptTask task_;
  std::string root_;  // directory of the files
  std::string system_;
  std::string task_text_;
};

// Bytes that both begin with, over all messages in their order.
size_t SharedPrefix(const Prompt& a, const Prompt& b);

// How much of each prompt the one before had already. Not thread-safe.
class PrefixMeter {
 public:
  struct Totals {
    uint64_t prompts = 0;
    uint64_t bytes = 0;
    uint64_t shared_bytes = 0;  // with the prompt before
    uint64_t stable_bytes = 0;  // that are the campaign's, in every prompt
  };
  // Bytes shared with the prompt of the call before; 0 the first time.
  size_t Add(const Prompt& prompt);
  const Totals& totals() const { return totals_; }

 private:
  Prompt last_;
  Totals totals_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_PROMPT_H_
