// Every host function that lowered code may reach, by name. Nothing else of the
// process is visible to it: host code never comes from a variant.
#ifndef REPRISE_REPLAY_DEVICE_CPU_RUNTIME_SYMBOLS_H_
#define REPRISE_REPLAY_DEVICE_CPU_RUNTIME_SYMBOLS_H_

#include <vector>

namespace reprise::cpu {

struct RuntimeSymbol {
  const char* name;
  const void* address;
};

// The functions of abi.h, and those that code generation may call: copies,
// mathematics, 128-bit and half-precision arithmetic.
std::vector<RuntimeSymbol> RuntimeSymbols();

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RUNTIME_SYMBOLS_H_
