// One translation unit on its way from the build registry or a compilation
// database to device IR. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_UNIT_SOURCE_H_
#define REPRISE_REPLAY_RECORDER_SESSION_UNIT_SOURCE_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/compiler/compile_pool.h"
#include "replay/recorder/cc/build_registry.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

class SourceUnit {
 public:
  // `files` holds the blobs of unit.files(); it outlives this. Null: unit has
  // no files, and compiling reads them from disk.
  SourceUnit(UnitUse use, v1::TranslationUnit unit, const ChunkStore* files,
             std::string cuda_home);

  const std::string& id() const { return use_.unit; }
  const std::string& architecture() const { return use_.architecture; }
  // Whether a registered name says that it is of this unit; see FindUnitTag.
  bool IsNamedIn(const std::string& symbol) const;
  const v1::TranslationUnit& unit() const { return unit_; }
  bool relocatable() const;

  // Compiles to IR on the first call; kernels and globals are in the reply. A
  // reply of kind COMPILE_ERROR is kept as FAILED_PRECONDITION.
  absl::StatusOr<const v1::CompileReply*> Ir(CompilePool& pool) const;

  absl::StatusOr<std::string> MainText() const;

  // The unit as a store keeps it, with files, and with IR where Ir gave some.
  absl::StatusOr<v1::TranslationUnit> CopyTo(ChunkStore& store) const;

 private:
  absl::StatusOr<v1::CompileTranslationUnit> WithFiles() const;

  const UnitUse use_;
  const v1::TranslationUnit unit_;
  const ChunkStore* const files_;
  const std::string cuda_home_;

  mutable std::mutex mutex_;
  mutable bool compiled_ = false;
  mutable absl::Status error_;
  mutable v1::CompileReply ir_;
};

// The CUDA sources of a compile_commands.json. INVALID_ARGUMENT: it cannot be
// read, or names none.
absl::StatusOr<std::vector<std::shared_ptr<const SourceUnit>>>
ReadCompileCommands(const std::string& path, const std::string& cuda_home);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_UNIT_SOURCE_H_
