// Loads relocatable objects from the compiler into this process (ORC JITLink).
// They see the runtime's symbols and the addresses of their device variables,
// nothing else. Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_MODULE_LOADER_H_
#define REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_MODULE_LOADER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reprise/v1/node.pb.h"

namespace reprise::cpu {

class ModuleLoader {
 public:
  static absl::StatusOr<std::unique_ptr<ModuleLoader>> Create();
  virtual ~ModuleLoader() = default;

  // Links at once, so that a symbol that is missing is an error here, and
  // copies the initial bytes of request.initialize into place.
  virtual absl::Status Load(const v1::LoadModuleRequest& request) = 0;
  virtual absl::Status Unload(uint64_t module) = 0;
  // NOT_FOUND when the module or the symbol does not exist.
  virtual absl::StatusOr<const void*> Find(uint64_t module,
                                           const std::string& symbol) = 0;
};

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_MODULE_LOADER_H_
