#include "replay/recorder/session/substitutions.h"

#include <algorithm>
#include <utility>

#include "replay/compiler/kernel_symbols.h"

namespace reprise {
namespace {

bool SameDim(const v1::Dim3& a, const v1::Dim3& b) {
  return a.x() == b.x() && a.y() == b.y() && a.z() == b.z();
}

// None is one block.
bool SameCluster(const v1::LaunchConfig& a, const v1::LaunchConfig& b) {
  const auto blocks = [](const v1::LaunchConfig& launch) {
    return launch.has_cluster() ? launch.cluster().x() * launch.cluster().y() *
                                      launch.cluster().z()
                                : 1;
  };
  return SameDim(a.cluster(), b.cluster()) ||
         (blocks(a) <= 1 && blocks(b) <= 1);
}

bool IsFor(const Substitution& substitution, const std::string& symbol,
           const std::string& normalized) {
  return substitution.kernel == symbol ||
         NormalizedSymbol(substitution.kernel) == normalized;
}

bool SameShape(const v1::LaunchConfig& a, const v1::LaunchConfig& b) {
  return SameDim(a.grid(), b.grid()) && SameDim(a.block(), b.block()) &&
         a.dynamic_shared_bytes() == b.dynamic_shared_bytes() &&
         a.cooperative() == b.cooperative() && SameCluster(a, b);
}

}  // namespace

Substitutions::Substitutions(std::vector<Substitution> substitutions)
    : substitutions_(std::move(substitutions)) {
  for (const Substitution& substitution : substitutions_) {
    const bool known = std::any_of(counts_.begin(), counts_.end(),
                                   [&](const SubstitutionCount& count) {
                                     return count.kernel == substitution.kernel;
                                   });
    if (!known) counts_.push_back({substitution.kernel, 0, 0, {}});
  }
}

const Substitution* Substitutions::Choose(const std::string& symbol,
                                          const v1::LaunchConfig& launch) {
  const std::vector<const Substitution*> known = Of(symbol);
  if (known.empty()) return nullptr;
  for (const Substitution* substitution : known) {
    if (!SameShape(substitution->guard, launch)) continue;
    AddApplied(symbol, 1);
    return substitution;
  }
  AddDeclined(symbol, kOtherLaunch, 1);
  return nullptr;
}

std::vector<const Substitution*> Substitutions::Of(
    const std::string& symbol) const {
  std::vector<const Substitution*> known;
  if (substitutions_.empty()) return known;
  const std::string normalized = NormalizedSymbol(symbol);
  for (const Substitution& substitution : substitutions_)
    if (IsFor(substitution, symbol, normalized)) known.push_back(&substitution);
  return known;
}

SubstitutionCount* Substitutions::CountOf(const std::string& symbol) {
  const std::vector<const Substitution*> known = Of(symbol);
  for (SubstitutionCount& count : counts_)
    if (!known.empty() && count.kernel == known[0]->kernel) return &count;
  return nullptr;
}

void Substitutions::AddApplied(const std::string& symbol, uint64_t launches) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (SubstitutionCount* count = CountOf(symbol)) count->applied += launches;
}

void Substitutions::AddDeclined(const std::string& symbol,
                                const std::string& why, uint64_t launches) {
  const std::lock_guard<std::mutex> lock(mutex_);
  SubstitutionCount* count = CountOf(symbol);
  if (count == nullptr || launches == 0) return;
  count->declined += launches;
  count->reasons[why] += launches;
}

std::vector<SubstitutionCount> Substitutions::Counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

}  // namespace reprise
