// Device code and device variables that the application's objects registered
// before main. Registering only takes notes; the recorder learns of a module
// when the first kernel or variable of it is used. The context's mutex guards
// everything here.
#ifndef REPRISE_REPLAY_RECORDER_PRELOAD_MODULES_H_
#define REPRISE_REPLAY_RECORDER_PRELOAD_MODULES_H_

#include <cuda_runtime_api.h>

#include "replay/recorder/preload/context.h"
#include "replay/recorder/preload/protocol.h"
#include "replay/recorder/preload/support.h"

namespace reprise::standin {

struct Module {
  uint64_t id = 0;
  const void* image = nullptr;         // a fatbin
  const void* const* parts = nullptr;  // fatbins it was linked from, or null
  bool sent = false;
  bool live = true;
};

struct Function {
  Module* module = nullptr;
  const void* host = nullptr;
  char* name = nullptr;
  bool resolved = false;
  cudaError_t error = cudaSuccess;  // of resolving it
  wire::FunctionReply info;
  Array<wire::Parameter> parameters;
  // cudaFuncSetAttribute's.
  uint32_t max_dynamic_shared_bytes = 48 << 10;
  int carveout = -1;
};

struct Variable {
  Module* module = nullptr;
  const void* host = nullptr;
  void** managed =
      nullptr;  // where the application reads a managed one's address
  char* name = nullptr;
  bool resolved = false;
  cudaError_t error = cudaSuccess;
  uint64_t address = 0;
  uint64_t bytes = 0;
};

// By the host stub's address or by a cudaKernel_t; null: unknown.
Function* FindFunction(const void* key);
// Makes `info` and `parameters` valid. Requires a whole context.
cudaError_t Resolve(Context& context, Function& function);

Variable* FindVariable(const void* host);
cudaError_t Resolve(Context& context, Variable& variable);

}  // namespace reprise::standin

#endif  // REPRISE_REPLAY_RECORDER_PRELOAD_MODULES_H_
