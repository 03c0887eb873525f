// The bitcode of note_functions.cc as bytes of the program.
#include <string_view>

asm(".section .rodata\n"
    ".balign 16\n"
    "reprise_note_functions_begin:\n"
    ".incbin \"" REPRISE_NOTE_FUNCTIONS
    "\"\n"
    "reprise_note_functions_end:\n"
    ".byte 0\n"
    ".text\n");

extern "C" {
__attribute__((
    visibility("hidden"))) extern const char reprise_note_functions_begin[];
__attribute__((
    visibility("hidden"))) extern const char reprise_note_functions_end[];
}

namespace reprise {

std::string_view NoteFunctionsBitcode() {
  return std::string_view(
      reprise_note_functions_begin,
      reprise_note_functions_end - reprise_note_functions_begin);
}

}  // namespace reprise
