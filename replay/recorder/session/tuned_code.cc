#include "replay/recorder/session/tuned_code.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/kernel_symbols.h"
#include "replay/recorder/cc/cubin.h"
#include "replay/recorder/driver/protocol.h"

namespace reprise {
namespace {

namespace wire = driver_wire;

void CopyDim(const v1::Dim3& from, uint32_t (&to)[3]) {
  to[0] = from.x();
  to[1] = from.y();
  to[2] = from.z();
}

wire::Substitute Shapes(const Substitution& substitution) {
  wire::Substitute message;
  CopyDim(substitution.guard.grid(), message.guard.grid);
  CopyDim(substitution.guard.block(), message.guard.block);
  CopyDim(substitution.guard.cluster(), message.guard.cluster);
  message.guard.dynamic_shared_bytes =
      substitution.guard.dynamic_shared_bytes();
  message.guard.cooperative = substitution.guard.cooperative() ? 1 : 0;
  CopyDim(substitution.launch.grid(), message.grid);
  CopyDim(substitution.launch.block(), message.block);
  message.dynamic_shared_bytes = substitution.launch.dynamic_shared_bytes();
  return message;
}

template <typename T>
void AppendStruct(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

bool SameParameters(const v1::CompiledKernelInfo& a,
                    const v1::CompiledKernelInfo& b) {
  return std::equal(a.parameter_offsets().begin(), a.parameter_offsets().end(),
                    b.parameter_offsets().begin(),
                    b.parameter_offsets().end()) &&
         std::equal(a.parameter_bytes().begin(), a.parameter_bytes().end(),
                    b.parameter_bytes().begin(), b.parameter_bytes().end());
}

absl::StatusOr<const v1::CompiledKernelInfo*> FindKernel(
    const Substitution& substitution) {
  std::vector<std::string> symbols;
  for (const v1::CompiledKernelInfo& kernel : substitution.code.kernels())
    symbols.push_back(kernel.symbol());
  const int found = FindSymbol(symbols, substitution.kernel);
  if (found < 0)
    return absl::NotFoundError("the tuned code has no such kernel");
  return &substitution.code.kernels(found);
}

absl::Status CheckLaunch(const Substitution& substitution) {
  const auto is_same = [](const v1::Dim3& a, const v1::Dim3& b) {
    return a.x() == b.x() && a.y() == b.y() && a.z() == b.z();
  };
  if (substitution.launch.cooperative() == substitution.guard.cooperative() &&
      is_same(substitution.launch.cluster(), substitution.guard.cluster()))
    return absl::OkStatus();
  return absl::UnimplementedError(
      "the tuned code needs another cluster, or cooperation of blocks");
}

// How PTX spells a name of the IR.
std::string NameInPtx(const std::string& symbol) {
  return absl::StrReplaceAll(symbol, {{".", "_$_"}, {"@", "_%_"}});
}

// What the code has that outlives a launch: not literals and tables.
bool IsState(const CubinVariable& variable, const v1::CompileReply& code) {
  for (const v1::ModuleGlobal& global : code.globals()) {
    if (global.symbol() == variable.symbol ||
        NameInPtx(global.symbol()) == variable.symbol)
      return true;
  }
  // Of inline assembly, which the IR does not describe.
  return absl::StartsWith(variable.symbol, "$") &&
         !absl::StartsWith(variable.symbol, "$str");
}

// The application's name of a constant; empty: it has none, and the code's own
// value holds.
absl::StatusOr<std::string> ApplicationName(
    const std::string& symbol, const std::set<std::string>& variables) {
  const std::vector<std::string> names(variables.begin(), variables.end());
  // Of PTX, for example: the library looks for it by the same name.
  if (names.empty()) return symbol;
  const int found = FindSymbol(names, symbol);
  if (found >= 0) return names[static_cast<size_t>(found)];
  const std::string normalized = NormalizedSymbol(symbol);
  for (const std::string& name : names) {
    if (NormalizedSymbol(name) == normalized)
      return absl::FailedPreconditionError(absl::StrCat(
          "the application has several constants ", DemangledName(symbol)));
  }
  return "";
}

}  // namespace

absl::StatusOr<std::string> TunedCodeMessage(
    const Substitution& substitution, const v1::CompiledKernelInfo& kernel,
    const std::set<std::string>& variables) {
  RETURN_IF_ERROR(CheckLaunch(substitution));
  ASSIGN_OR_RETURN(const v1::CompiledKernelInfo* const tuned,
                   FindKernel(substitution));
  if (!SameParameters(*tuned, kernel)) {
    return absl::FailedPreconditionError(
        "the application's kernel has other parameters than the tuned one");
  }
  ASSIGN_OR_RETURN(const std::vector<CubinVariable> declared,
                   CubinVariables(substitution.code.code()));
  wire::Substitute message = Shapes(substitution);
  std::string names = tuned->symbol() + '\0';
  for (const CubinVariable& variable : declared) {
    if (!IsState(variable, substitution.code)) continue;
    if (!variable.constant) {
      return absl::UnimplementedError(
          absl::StrCat("the tuned code has a device variable of its own (",
                       DemangledName(variable.symbol),
                       "), and what is in it would not be the application's"));
    }
    ASSIGN_OR_RETURN(const std::string name,
                     ApplicationName(variable.symbol, variables));
    if (name.empty()) continue;
    ++message.constant_count;
    names += variable.symbol + '\0' + name + '\0';
  }
  message.name_bytes = static_cast<uint32_t>(names.size());
  message.code_bytes = substitution.code.code().size();
  std::string bytes;
  AppendStruct(message, &bytes);
  return bytes + names + substitution.code.code();
}

std::string RefusedCodeMessage(const Substitution& substitution) {
  wire::Substitute message = Shapes(substitution);
  message.refused = 1;
  std::string bytes;
  AppendStruct(message, &bytes);
  return bytes;
}

}  // namespace reprise
