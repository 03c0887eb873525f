// The bitcode of device_library.cc as bytes of the program.
#include <llvm/ADT/StringRef.h>

asm(".section .rodata\n"
    ".balign 16\n"
    "reprise_device_library_begin:\n"
    ".incbin \"" REPRISE_DEVICE_LIBRARY
    "\"\n"
    "reprise_device_library_end:\n"
    ".byte 0\n"
    ".text\n");

extern "C" {
__attribute__((
    visibility("hidden"))) extern const char reprise_device_library_begin[];
__attribute__((
    visibility("hidden"))) extern const char reprise_device_library_end[];
}

namespace reprise::cpu {

llvm::StringRef DeviceLibraryBitcode() {
  return llvm::StringRef(
      reprise_device_library_begin,
      reprise_device_library_end - reprise_device_library_begin);
}

}  // namespace reprise::cpu
