// The modules and kernels of the application: what it loaded, and which kernel
// a CUfunction or CUkernel is. Objects live for the process's life, also after
// their module is unloaded; an unloaded module has no image. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_MODULES_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_MODULES_H_

#include <cuda.h>
#include <stdint.h>

#include <atomic>

#include "replay/recorder/driver/image.h"
#include "replay/recorder/driver/protocol.h"

namespace reprise::driver {

struct Module {
  uint64_t number = 0;
  // One of the two; a library's modules are not kept.
  CUmodule module = nullptr;
  CUlibrary cu_library = nullptr;
  CUcontext context = nullptr;  // of a module that is no library's
  Image image;
  bool owns_image = false;
  bool sent = false;  // to the parent; guarded by the channel
};

struct KernelSubstitutes;
class ParentLock;

struct Kernel {
  Module* module = nullptr;
  const char* name = nullptr;
  CUkernel cu_kernel = nullptr;  // where a library gave it

  // Valid once `introduced` is true.
  std::atomic<bool> introduced{false};
  // The parent still wants to be asked about launches.
  std::atomic<bool> wanted{false};
  uint32_t number = 0;
  driver_wire::KernelCounter* counter = nullptr;
  driver_wire::Parameter* parameters = nullptr;
  uint32_t parameter_count = 0;
  uint32_t argument_bytes = 0;
  KernelSubstitutes* substitutes = nullptr;  // null: there is no tuned code
};

// After the driver loaded `code`, or the file. Null when memory is exhausted.
Module* AddModule(CUmodule module, const void* code);
Module* AddLibrary(CUlibrary library, const void* code);
Module* AddModuleFile(CUmodule module, CUlibrary library, const char* path);
// Before the driver unloads it: its handles may come back for other kernels.
void ForgetModule(CUmodule module);
void ForgetLibrary(CUlibrary library);
// The context is gone, and the modules that were loaded into it.
void ForgetContextModules(CUcontext context);

// The driver answered that `handle` is the kernel `name` of a module.
void AddFunction(CUfunction handle, CUmodule module, const char* name);
void AddKernel(CUkernel handle, CUlibrary library, const char* name);
// `handle` is `kernel` in some context.
void AddAlias(CUfunction handle, CUkernel kernel);
// `module` is `library` in some context.
void AddModuleAlias(CUmodule module, CUlibrary library);

// A device variable of a module, in the current context.
bool FindVariable(const Module& module, const char* name, uint64_t* address,
                  uint64_t* bytes);
// Sends the image to the parent, once. False: the parent is gone.
bool SendModule(ParentLock& parent, Module* module);

// The kernel behind a CUfunction, or a CUkernel in its place. Lock-free.
// Null: never seen.
Kernel* FindKernel(const void* handle);
// Asks the driver about a handle that nobody saw coming.
Kernel* FindUnknownKernel(CUfunction handle);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_MODULES_H_
