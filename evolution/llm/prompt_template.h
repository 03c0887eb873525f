// Texts of prompts with places to fill in. Thread-safe: immutable values.
//
// A place is {{name}}: small letters and _. \{{ stands for {{ itself. What is
// filled in is not read again: {{ in it means nothing.
#ifndef REPRISE_EVOLUTION_LLM_PROMPT_TEMPLATE_H_
#define REPRISE_EVOLUTION_LLM_PROMPT_TEMPLATE_H_

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise::evolution {

using PromptValues = std::map<std::string, std::string>;

class PromptTemplate {
 public:
  PromptTemplate() = default;

  // `required` places have to be in it, `optional` ones may, others may not.
  // INVALID_ARGUMENT begins with "<name>:<line>: ".
  static absl::StatusOr<PromptTemplate> Parse(
      const std::string& name, std::string_view text,
      const std::vector<std::string>& required,
      const std::vector<std::string>& optional = {});

  // A place without a value gives nothing.
  std::string Fill(const PromptValues& values) const;

 private:
  struct Part {
    std::string text;   // then the place
    std::string place;  // "": none
  };
  std::vector<Part> parts_;
};

// All that a campaign's prompts are made of.
class PromptTemplates {
 public:
  // Those that come with Reprise (evolution/llm/prompts); a file of the same
  // name in `directory` takes the place of one. "": none does.
  // NOT_FOUND: no such directory. INVALID_ARGUMENT: a template is wrong, with
  // file and line; or a *.md file has another name than those.
  static absl::StatusOr<PromptTemplates> Load(const std::string& directory);

  // "task" of task.md. `name` has to be one of Names().
  const PromptTemplate& Get(const std::string& name) const;

  static std::vector<std::string> Names();
  // The text that comes with Reprise: what a user starts from.
  static std::string BuiltIn(const std::string& name);

 private:
  std::map<std::string, PromptTemplate> templates_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_PROMPT_TEMPLATE_H_
