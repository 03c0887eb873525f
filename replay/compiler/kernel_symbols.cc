#include "replay/compiler/kernel_symbols.h"

#include <cxxabi.h>

#include <charconv>
#include <cstdlib>
#include <memory>
#include <string_view>

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

// nvcc's prefix of the same purpose: "__nv_static_<n>_<n characters>_<name>".
std::string WithoutUniquePrefix(const std::string& symbol) {
  constexpr std::string_view kPrefix = "__nv_static_";
  if (symbol.rfind(kPrefix, 0) != 0) return symbol;
  size_t length = 0;
  const char* digits = symbol.c_str() + kPrefix.size();
  const auto [end, error] =
      std::from_chars(digits, symbol.c_str() + symbol.size(), length);
  const size_t name = (end - symbol.c_str()) + length + 2;
  return error == std::errc() && *end == '_' && name < symbol.size()
             ? symbol.substr(name)
             : symbol;
}

// nvcc's namespace of what a unit of relocatable code alone can name.
std::string WithoutUnitNamespace(const std::string& name) {
  const size_t end = name.find("::");
  return name.rfind("_INTERNAL_", 0) == 0 && end != std::string::npos
             ? name.substr(end + 2)
             : name;
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
  return WithoutUnitNamespace(
      DemangledName(WithoutUniqueSuffix(WithoutUniquePrefix(symbol))));
}

std::string KernelExpression(const std::string& symbol) {
  std::string name = NormalizedSymbol(symbol);
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (size_t at = name.find(kAnonymous); at != std::string::npos;
       at = name.find(kAnonymous))
    name.erase(at, kAnonymous.size());
  // The parameters and the result type are outside of all <>.
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth != 0) continue;
    if (name[i] == '(') return name.substr(begin, i - begin);
    if (name[i] == ' ') begin = i + 1;
  }
  return name.substr(begin);
}

std::string QualifiedKernelName(const std::string& symbol) {
  const std::string name = KernelExpression(symbol);
  return name.substr(0, name.find('<'));
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
