// What is kept of one compiler command: source closures while the compiler
// runs, device images once it is done. Not thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_CC_BOOKKEEPING_H_
#define REPRISE_REPLAY_RECORDER_CC_BOOKKEEPING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/compiler/command_line.h"
#include "replay/recorder/cc/build_registry.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

bool HasCudaSource(const CompilerCommand& command);

// Whether the command may make device code or link some.
bool IsWorthKeeping(const CompilerCommand& command);

// Whether there is anything to keep of a link that succeeded: its output holds
// device code.
bool HasDeviceCode(const std::string& path);

// The architecture, of those a command names, that a unit is recorded for: the
// highest up to compute capability 9.0 for which there is machine code, else
// PTX; else the lowest.
std::string ChooseArchitecture(const std::vector<std::string>& architectures);

// The translation unit of one source of a command, without its files.
v1::TranslationUnit DescribeUnit(const CompilerCommand& command,
                                 const CommandSource& source,
                                 const std::vector<std::string>& argv,
                                 const std::string& directory);

class Bookkeeping {
 public:
  // `registry` must outlive it.
  Bookkeeping(CompilerCommand command, std::vector<std::string> argv,
              std::string directory, std::string cuda_home,
              BuildRegistry* registry);

  // Reads the source files as the compiler is reading them; to be called while
  // it runs.
  absl::Status KeepSources();

  // Reads the objects that a successful compiler left. Requires KeepSources.
  absl::Status KeepResults();

 private:
  struct Kept {
    CommandSource source;
    UnitUse use;
  };

  absl::Status KeepObject(const Kept& kept);
  absl::Status KeepLink();
  std::string Absolute(const std::string& path) const;

  CompilerCommand command_;
  std::vector<std::string> argv_;
  std::string directory_;
  std::string cuda_home_;
  std::string architecture_;
  BuildRegistry* registry_;
  std::vector<Kept> kept_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_CC_BOOKKEEPING_H_
