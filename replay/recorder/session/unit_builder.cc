#include "replay/recorder/session/unit_builder.h"

#include <utility>

#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/recorder/session/unit_description.h"

namespace reprise {

absl::StatusOr<v1::Unit> UnitBuilder::Build(const LaunchFacts& facts) {
  v1::Unit unit;
  *unit.mutable_kernel() =
      DescribeKernel(*facts.kernel, facts.arguments, facts.image);
  *unit.mutable_launch() = facts.launch;
  unit.set_arguments(facts.arguments);
  RETURN_IF_ERROR(AddMemory(facts, &unit));
  ApplyTolerances(*facts.kernel, facts.arguments, &unit);
  unit.set_architecture(facts.architecture);
  if (facts.program != nullptr) RETURN_IF_ERROR(AddSources(facts, &unit));
  for (const auto& source : facts.sources) {
    ASSIGN_OR_RETURN(*unit.add_translation_units(), source->CopyTo(*chunks_));
  }
  ASSIGN_OR_RETURN(*unit.mutable_machine_code(),
                   chunks_->Put(facts.machine_code));
  unit.set_fatbin_sha256(Sha256(facts.machine_code));
  if (facts.accesses != nullptr) {
    unit.mutable_work()->set_flops(facts.accesses->flops());
    unit.mutable_work()->set_global_bytes_read(facts.accesses->bytes_read());
    unit.mutable_work()->set_global_bytes_written(
        facts.accesses->bytes_written());
  }
  return unit;
}

absl::Status UnitBuilder::AddMemory(const LaunchFacts& facts, v1::Unit* unit) {
  for (const ImageRange& range : facts.image) {
    v1::MemoryRange* kept = unit->add_memory();
    kept->set_address(range.address);
    kept->set_bytes(range.bytes);
    kept->set_element_type(range.element_type);
    kept->set_origin(range.origin);
    kept->set_symbol(range.symbol);
    ASSIGN_OR_RETURN(*kept->mutable_prologue(),
                     chunks_->Put(facts.prologue(range.address, range.bytes)));
    if (!range.writes.empty()) {
      ASSIGN_OR_RETURN(
          *kept->mutable_epilogue(),
          chunks_->Put(facts.epilogue(range.address, range.bytes)));
    }
    ASSIGN_OR_RETURN(*kept->mutable_write_set(),
                     chunks_->Put(range.writes.Encode()));
    if (facts.accesses == nullptr) continue;
    ASSIGN_OR_RETURN(*kept->mutable_read_set(),
                     chunks_->Put(range.reads.Encode()));
    ASSIGN_OR_RETURN(*kept->mutable_read_before_write_set(),
                     chunks_->Put(range.reads_before_write.Encode()));
  }
  return absl::OkStatus();
}

absl::Status UnitBuilder::AddSources(const LaunchFacts& facts, v1::Unit* unit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto known = stored_.find(facts.program);
  if (known == stored_.end()) {
    std::vector<v1::TranslationUnit> copies;
    for (const auto& source : facts.program->units()) {
      ASSIGN_OR_RETURN(v1::TranslationUnit copy, source->CopyTo(*chunks_));
      copies.push_back(std::move(copy));
    }
    known = stored_.emplace(facts.program, std::move(copies)).first;
  }
  const std::vector<v1::TranslationUnit>& stored = known->second;
  const size_t own = facts.program->UnitOf(facts.kernel->symbol());
  *unit->add_translation_units() = stored[own];
  for (size_t i = 0; i < stored.size(); ++i)
    if (i != own) *unit->add_translation_units() = stored[i];
  return absl::OkStatus();
}

}  // namespace reprise
