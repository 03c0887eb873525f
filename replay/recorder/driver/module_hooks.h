// Hooks of calls that load modules and look kernels up.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_MODULE_HOOKS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_MODULE_HOOKS_H_

#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/gate.h"
#include "replay/recorder/driver/hooks.h"
#include "replay/recorder/driver/modules.h"
#include "replay/recorder/driver/process.h"

namespace reprise::driver {

template <Hook kHook>
CUresult CUDAAPI ModuleLoad(CUmodule* module, const char* path) {
  if (!Active()) return CallReal<kHook>(module, path);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(module, path);
  if (result == CUDA_SUCCESS) AddModuleFile(*module, nullptr, path);
  return result;
}

// cuModuleLoadData, cuModuleLoadFatBinary.
template <Hook kHook>
CUresult CUDAAPI ModuleLoadData(CUmodule* module, const void* image) {
  if (!Active()) return CallReal<kHook>(module, image);
  SharedGate gate;
  const CUresult result = CallReal<kHook>(module, image);
  if (result == CUDA_SUCCESS) AddModule(*module, image);
  return result;
}
template <Hook kHook>
CUresult CUDAAPI ModuleLoadFatBinary(CUmodule* module, const void* image) {
  return ModuleLoadData<kHook>(module, image);
}

template <Hook kHook>
CUresult CUDAAPI ModuleLoadDataEx(CUmodule* module, const void* image,
                                  unsigned int count, CUjit_option* options,
                                  void** values) {
  if (!Active()) return CallReal<kHook>(module, image, count, options, values);
  SharedGate gate;
  const CUresult result =
      CallReal<kHook>(module, image, count, options, values);
  if (result == CUDA_SUCCESS) AddModule(*module, image);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI ModuleUnload(CUmodule module) {
  if (!Active()) return CallReal<kHook>(module);
  SharedGate gate;
  ForgetModule(module);
  return CallReal<kHook>(module);
}

template <Hook kHook>
CUresult CUDAAPI ModuleGetFunction(CUfunction* function, CUmodule module,
                                   const char* name) {
  const CUresult result = CallReal<kHook>(function, module, name);
  if (result == CUDA_SUCCESS && Active()) AddFunction(*function, module, name);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI LibraryLoadData(CUlibrary* library, const void* code,
                                 CUjit_option* options, void** values,
                                 unsigned int count,
                                 CUlibraryOption* library_options,
                                 void** library_values,
                                 unsigned int library_count) {
  if (!Active()) {
    return CallReal<kHook>(library, code, options, values, count,
                           library_options, library_values, library_count);
  }
  SharedGate gate;
  const CUresult result =
      CallReal<kHook>(library, code, options, values, count, library_options,
                      library_values, library_count);
  if (result == CUDA_SUCCESS) AddLibrary(*library, code);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI LibraryLoadFromFile(CUlibrary* library, const char* path,
                                     CUjit_option* options, void** values,
                                     unsigned int count,
                                     CUlibraryOption* library_options,
                                     void** library_values,
                                     unsigned int library_count) {
  if (!Active()) {
    return CallReal<kHook>(library, path, options, values, count,
                           library_options, library_values, library_count);
  }
  SharedGate gate;
  const CUresult result =
      CallReal<kHook>(library, path, options, values, count, library_options,
                      library_values, library_count);
  if (result == CUDA_SUCCESS) AddModuleFile(nullptr, *library, path);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI LibraryUnload(CUlibrary library) {
  if (!Active()) return CallReal<kHook>(library);
  SharedGate gate;
  ForgetLibrary(library);
  return CallReal<kHook>(library);
}

template <Hook kHook>
CUresult CUDAAPI LibraryGetKernel(CUkernel* kernel, CUlibrary library,
                                  const char* name) {
  const CUresult result = CallReal<kHook>(kernel, library, name);
  if (result == CUDA_SUCCESS && Active()) AddKernel(*kernel, library, name);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI LibraryEnumerateKernels(CUkernel* kernels, unsigned int count,
                                         CUlibrary library) {
  const CUresult result = CallReal<kHook>(kernels, count, library);
  for (unsigned int i = 0; result == CUDA_SUCCESS && Active() && i < count;
       ++i) {
    const char* name = nullptr;
    if (kernels[i] != nullptr &&
        CUDA_CALL(cuKernelGetName, &name, kernels[i]) == CUDA_SUCCESS)
      AddKernel(kernels[i], library, name);
  }
  return result;
}

template <Hook kHook>
CUresult CUDAAPI ModuleEnumerateFunctions(CUfunction* functions,
                                          unsigned int count, CUmodule module) {
  const CUresult result = CallReal<kHook>(functions, count, module);
  for (unsigned int i = 0; result == CUDA_SUCCESS && Active() && i < count;
       ++i) {
    const char* name = nullptr;
    if (functions[i] != nullptr &&
        CUDA_CALL(cuFuncGetName, &name, functions[i]) == CUDA_SUCCESS)
      AddFunction(functions[i], module, name);
  }
  return result;
}

template <Hook kHook>
CUresult CUDAAPI KernelGetFunction(CUfunction* function, CUkernel kernel) {
  const CUresult result = CallReal<kHook>(function, kernel);
  if (result == CUDA_SUCCESS && Active()) AddAlias(*function, kernel);
  return result;
}

template <Hook kHook>
CUresult CUDAAPI LibraryGetModule(CUmodule* module, CUlibrary library) {
  const CUresult result = CallReal<kHook>(module, library);
  if (result == CUDA_SUCCESS && Active()) AddModuleAlias(*module, library);
  return result;
}

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_MODULE_HOOKS_H_
