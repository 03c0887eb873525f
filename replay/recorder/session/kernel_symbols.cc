#include "replay/recorder/session/kernel_symbols.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace reprise {
namespace {

// Clang's suffixes of externalized static symbols: "<name>__intern__<hash>".
std::string WithoutUniqueSuffix(const std::string& symbol) {
  for (const char* marker :
       {"__intern__", "__static__", ".intern.", ".static."}) {
    const size_t at = symbol.rfind(marker);
    if (at != std::string::npos && at > 0) return symbol.substr(0, at);
  }
  return symbol;
}

// nvcc's namespaces of the same purpose: "_INTERNAL_<hash>_...::".
void DropInternalNamespaces(std::string* name) {
  constexpr char kMarker[] = "_INTERNAL_";
  for (size_t at = name->find(kMarker); at != std::string::npos;
       at = name->find(kMarker, at)) {
    const size_t end = name->find("::", at);
    if (end == std::string::npos) return;
    name->erase(at, end + 2 - at);
  }
}

}  // namespace

std::string DemangledName(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
      &std::free);
  // Without the prefix, short names would be read as types ("f": float).
  return status == 0 && symbol.rfind("_Z", 0) == 0 ? name.get() : symbol;
}

std::string NormalizedSymbol(const std::string& symbol) {
  std::string name = DemangledName(WithoutUniqueSuffix(symbol));
  DropInternalNamespaces(&name);
  return name;
}

int FindSymbol(const std::vector<std::string>& symbols,
               const std::string& wanted) {
  for (size_t i = 0; i < symbols.size(); ++i)
    if (symbols[i] == wanted) return static_cast<int>(i);
  const std::string normalized = NormalizedSymbol(wanted);
  int found = -1;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (NormalizedSymbol(symbols[i]) != normalized) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

}  // namespace reprise
