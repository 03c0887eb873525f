#include "replay/recorder/session/substitutions.h"

#include <algorithm>
#include <utility>

#include "replay/recorder/session/kernel_symbols.h"

namespace reprise {
namespace {

bool SameDim(const v1::Dim3& a, const v1::Dim3& b) {
  return a.x() == b.x() && a.y() == b.y() && a.z() == b.z();
}

bool SameShape(const v1::LaunchConfig& a, const v1::LaunchConfig& b) {
  return SameDim(a.grid(), b.grid()) && SameDim(a.block(), b.block()) &&
         a.dynamic_shared_bytes() == b.dynamic_shared_bytes();
}

}  // namespace

Substitutions::Substitutions(std::vector<Substitution> substitutions)
    : substitutions_(std::move(substitutions)) {
  for (const Substitution& substitution : substitutions_) {
    const bool known = std::any_of(counts_.begin(), counts_.end(),
                                   [&](const SubstitutionCount& count) {
                                     return count.kernel == substitution.kernel;
                                   });
    if (!known) counts_.push_back({substitution.kernel, 0, 0});
  }
}

const Substitution* Substitutions::Choose(const std::string& symbol,
                                          const v1::LaunchConfig& launch) {
  if (substitutions_.empty()) return nullptr;
  const std::string normalized = NormalizedSymbol(symbol);
  const Substitution* chosen = nullptr;
  std::string kernel;
  for (const Substitution& substitution : substitutions_) {
    if (substitution.kernel != symbol &&
        NormalizedSymbol(substitution.kernel) != normalized)
      continue;
    kernel = substitution.kernel;
    if (chosen == nullptr && SameShape(substitution.guard, launch))
      chosen = &substitution;
  }
  if (chosen != nullptr) kernel = chosen->kernel;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (SubstitutionCount& count : counts_)
    if (count.kernel == kernel) ++(chosen ? count.applied : count.declined);
  return chosen;
}

std::vector<SubstitutionCount> Substitutions::Counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

}  // namespace reprise
