#include "replay/recorder/driver/modules.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/handle_map.h"
#include "replay/recorder/driver/process.h"

namespace reprise::driver {
namespace {

Mutex g_mutex;  // of writers
HandleMap<Kernel, 1 << 14> g_kernels;
HandleMap<Module, 1 << 10> g_modules;  // by CUmodule and CUlibrary
// Kernels by module and name, so that handles in several contexts share one.
Array<Kernel*> g_all_kernels;
uint64_t g_next_module = 0;

void CopyImage(Module* module) {
  if (module->image.bytes == 0 || LiesInLoadedFile(module->image)) return;
  void* copy = mmap(nullptr, module->image.bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) {
    module->image = {};
    return;
  }
  memcpy(copy, module->image.data, module->image.bytes);
  module->image.data = copy;
  module->owns_image = true;
}

void DropImage(Module* module) {
  if (module->owns_image)
    munmap(const_cast<void*>(module->image.data), module->image.bytes);
  module->owns_image = false;
  module->image = {};
}

Module* Add(CUmodule handle, CUlibrary library, const Image& image) {
  void* memory = malloc(sizeof(Module));
  if (memory == nullptr) return nullptr;
  Module* module = new (memory) Module;
  module->module = handle;
  module->cu_library = library;
  module->image = image;
  if (library == nullptr) CUDA_CALL(cuCtxGetCurrent, &module->context);
  CopyImage(module);
  MutexLock lock(g_mutex);
  module->number = g_next_module++;
  if (handle != nullptr) g_modules.Set(handle, module);
  if (library != nullptr) g_modules.Set(library, module);
  return module;
}

// Requires g_mutex.
Kernel* KernelNamed(Module* module, const char* name) {
  for (size_t i = g_all_kernels.size(); i > 0; --i) {
    Kernel* kernel = g_all_kernels[i - 1];
    if (kernel->module == module && strcmp(kernel->name, name) == 0)
      return kernel;
  }
  void* memory = malloc(sizeof(Kernel));
  char* copy = strdup(name);
  if (memory == nullptr || copy == nullptr) {
    free(memory);
    free(copy);
    return nullptr;
  }
  Kernel* kernel = new (memory) Kernel;
  kernel->module = module;
  kernel->name = copy;
  if (g_all_kernels.Append(kernel)) return kernel;
  free(copy);
  free(memory);
  return nullptr;
}

// The kernel that the handle now stands for. Requires g_mutex.
Kernel* AddHandle(const void* handle, const void* module_handle,
                  const char* name) {
  if (handle == nullptr || name == nullptr) return nullptr;
  Module* module = g_modules.Find(module_handle);
  if (module == nullptr) return nullptr;
  Kernel* kernel = KernelNamed(module, name);
  if (kernel != nullptr) g_kernels.Set(handle, kernel);
  return kernel;
}

// Requires g_mutex.
void Forget(Module* module) {
  g_kernels.EraseIf([&](Kernel* kernel) { return kernel->module == module; });
  g_modules.EraseIf([&](Module* other) { return other == module; });
  for (size_t i = g_all_kernels.size(); i-- > 0;)
    if (g_all_kernels[i]->module == module) g_all_kernels.Remove(i);
  DropImage(module);
}

void ForgetHandle(const void* handle) {
  MutexLock lock(g_mutex);
  Module* module = g_modules.Find(handle);
  if (module != nullptr) Forget(module);
}

// Finds the library that `module` is in the current context.
bool AliasOfLibrary(CUmodule module) {
  MutexLock lock(g_mutex);
  Module* found = nullptr;
  g_modules.ForEach([&](Module* known) {
    CUmodule here = nullptr;
    if (found == nullptr && known->cu_library != nullptr &&
        CUDA_CALL(cuLibraryGetModule, &here, known->cu_library) ==
            CUDA_SUCCESS &&
        here == module)
      found = known;
  });
  return found != nullptr && g_modules.Set(module, found);
}

}  // namespace

Module* AddModule(CUmodule module, const void* code) {
  return Add(module, nullptr, FindImage(code));
}

Module* AddLibrary(CUlibrary library, const void* code) {
  return Add(nullptr, library, FindImage(code));
}

Module* AddModuleFile(CUmodule module, CUlibrary library, const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
  void* data = MAP_FAILED;
  if (size > 0) {
    data =
        mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, fd, 0);
  }
  if (fd >= 0) close(fd);
  if (data == MAP_FAILED) return Add(module, library, {});
  const uint64_t bytes = static_cast<uint64_t>(size);
  Module* added = Add(module, library, {data, bytes});  // copies it
  munmap(data, bytes);
  return added;
}

void ForgetModule(CUmodule module) { ForgetHandle(module); }
void ForgetLibrary(CUlibrary library) { ForgetHandle(library); }

void ForgetContextModules(CUcontext context) {
  MutexLock lock(g_mutex);
  g_modules.ForEach([&](Module* module) {
    if (module->context == context) Forget(module);
  });
}

void AddFunction(CUfunction handle, CUmodule module, const char* name) {
  MutexLock lock(g_mutex);
  AddHandle(handle, module, name);
}

void AddKernel(CUkernel handle, CUlibrary library, const char* name) {
  MutexLock lock(g_mutex);
  Kernel* kernel = AddHandle(handle, library, name);
  if (kernel != nullptr) kernel->cu_kernel = handle;
}

void AddAlias(CUfunction handle, CUkernel kernel) {
  MutexLock lock(g_mutex);
  Kernel* known = g_kernels.Find(kernel);
  if (known != nullptr && handle != nullptr) g_kernels.Set(handle, known);
}

void AddModuleAlias(CUmodule module, CUlibrary library) {
  MutexLock lock(g_mutex);
  Module* known = g_modules.Find(library);
  if (known != nullptr && module != nullptr) g_modules.Set(module, known);
}

bool FindVariable(const Module& module, const char* name, uint64_t* address,
                  uint64_t* bytes) {
  CUdeviceptr pointer = 0;
  size_t size = 0;
  CUresult result = CUDA_ERROR_NOT_FOUND;
  if (module.cu_library != nullptr) {
    result =
        CUDA_CALL(cuLibraryGetGlobal, &pointer, &size, module.cu_library, name);
    if (result != CUDA_SUCCESS)
      result = CUDA_CALL(cuLibraryGetManaged, &pointer, &size,
                         module.cu_library, name);
  } else if (module.module != nullptr) {
    result =
        CUDA_CALL(cuModuleGetGlobal_v2, &pointer, &size, module.module, name);
  }
  *address = pointer;
  *bytes = size;
  return result == CUDA_SUCCESS && pointer != 0 && size > 0;
}

bool SendModule(ParentLock& parent, Module* module) {
  if (module->sent) return true;
  const driver_wire::ModuleNotice notice{module->number, module->image.bytes};
  module->sent = parent->Send(
      driver_wire::kModule, notice,
      {module->image.data, static_cast<size_t>(module->image.bytes)});
  if (!module->sent) parent.Lost("sending a module");
  return module->sent;
}

Kernel* FindKernel(const void* handle) { return g_kernels.Find(handle); }

Kernel* FindUnknownKernel(CUfunction handle) {
  const char* name = nullptr;
  CUmodule module = nullptr;
  if (CUDA_CALL(cuFuncGetName, &name, handle) != CUDA_SUCCESS) return nullptr;
  if (CUDA_CALL(cuFuncGetModule, &module, handle) != CUDA_SUCCESS)
    return nullptr;
  if (g_modules.Find(module) == nullptr && !AliasOfLibrary(module))
    Add(module, nullptr, {});
  // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the map keeps the module.
  AddFunction(handle, module, name);
  return FindKernel(handle);
}

}  // namespace reprise::driver
