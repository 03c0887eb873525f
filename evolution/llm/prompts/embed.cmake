# Writes the texts of the files in FOLDER as C strings into OUTPUT.
file(GLOB inputs ${FOLDER}/*.md)
set(cases "")
foreach(input IN LISTS inputs)
  file(READ ${input} text)
  get_filename_component(name ${input} NAME_WE)
  string(APPEND cases "  if (name == \"${name}\") return R\"prompt(${text})prompt\";\n")
endforeach()
file(WRITE ${OUTPUT} "// Made from the *.md files of evolution/llm/prompts.
#include \"evolution/llm/prompts/built_in.h\"

namespace reprise::evolution {
const char* BuiltInPrompt(std::string_view name) {
${cases}  return nullptr;
}
}  // namespace reprise::evolution
")
