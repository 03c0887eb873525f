// The prompt templates of this folder, which the build puts into the library
// (embed.cmake). Thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_PROMPTS_BUILT_IN_H_
#define REPRISE_EVOLUTION_LLM_PROMPTS_BUILT_IN_H_

#include <string_view>

namespace reprise::evolution {

// The text of <name>.md; nullptr: there is none.
const char* BuiltInPrompt(std::string_view name);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_PROMPTS_BUILT_IN_H_
