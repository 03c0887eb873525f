// Puts a unit together from what a recording found: description, memory into
// the store's chunks, translation units with files and IR, the application's
// machine code. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_UNIT_BUILDER_H_
#define REPRISE_REPLAY_RECORDER_SESSION_UNIT_BUILDER_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/recorder/session/memory_image.h"
#include "replay/recorder/session/program.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// What a launch was and did. Borrowed pointers outlive the call.
struct LaunchFacts {
  // Null: there is no IR.
  std::shared_ptr<const Program> program;
  // Without a program: the source all the same, the kernel's own first. Empty:
  // the unit holds machine code only.
  std::vector<std::shared_ptr<const SourceUnit>> sources;
  // The kernel as code or driver describe it; its symbol is the program's where
  // there is one.
  const v1::CompiledKernelInfo* kernel = nullptr;
  v1::LaunchConfig launch;
  std::string arguments;
  std::string architecture;
  std::string_view machine_code;
  std::vector<ImageRange> image;
  // Contents of a piece of memory before and after the launch, valid while the
  // unit is built.
  std::function<std::string_view(uint64_t address, uint64_t bytes)> prologue;
  std::function<std::string_view(uint64_t address, uint64_t bytes)> epilogue;
  // Of an observed run; null: none was made, and only what changed is known.
  const v1::AccessReport* accesses = nullptr;
};

class UnitBuilder {
 public:
  // `chunks` outlives the builder.
  explicit UnitBuilder(ChunkStore* chunks) : chunks_(chunks) {}

  // Everything but determinism and provenance.
  absl::StatusOr<v1::Unit> Build(const LaunchFacts& facts);

 private:
  absl::Status AddMemory(const LaunchFacts& facts, v1::Unit* unit);
  absl::Status AddSources(const LaunchFacts& facts, v1::Unit* unit);

  ChunkStore* const chunks_;
  std::mutex mutex_;
  // Units as the store has them, by program.
  std::map<std::shared_ptr<const Program>, std::vector<v1::TranslationUnit>>
      stored_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_UNIT_BUILDER_H_
