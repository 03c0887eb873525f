#include <cxxabi.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "replay/unit/manifest.h"

namespace reprise {
namespace {

constexpr size_t kMaxNameBytes = 48;

std::string Demangle(const std::string& symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 && text != nullptr ? text : symbol;
  std::free(text);
  return name;
}

bool IsNameCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_';
}

// The name without what stands in brackets, up to the parameter list:
// "void a::(anonymous namespace)::b<c(d)>(e)" gives "void a::::b".
std::string WithoutBrackets(std::string_view name) {
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool opens = c == '<' || c == '(' || c == '{' || c == '[';
    const bool closes = c == '>' || c == ')' || c == '}' || c == ']';
    const bool qualifies = name.substr(i).starts_with("(anonymous namespace)");
    if (c == '(' && depth == 0 && !qualifies) break;
    if (opens) ++depth;
    if (!opens && !closes && depth == 0) out.push_back(c);
    if (closes && depth > 0) --depth;
  }
  return out;
}

}  // namespace

std::string ShortKernelName(const v1::Kernel& kernel) {
  const std::string whole = kernel.display_name().empty()
                                ? Demangle(kernel.symbol())
                                : kernel.display_name();
  std::string name = WithoutBrackets(whole);
  const size_t end = name.find_last_not_of(" :");
  name.resize(end == std::string::npos ? 0 : end + 1);
  const size_t before = name.find_last_of(" :");
  if (before != std::string::npos) name.erase(0, before + 1);
  std::string clean;
  for (char c : name) {
    if (clean.size() == kMaxNameBytes) break;
    clean.push_back(IsNameCharacter(c) ? c : '_');
  }
  return clean.empty() ? "kernel" : clean;
}

}  // namespace reprise
