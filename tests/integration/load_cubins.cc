// First contact with a GPU: loads every *.cubin of a directory through the CUDA
// driver and resolves every kernel in it.
//
//   load_cubins DIRECTORY
//
// Prints one line per file and a count line; exits 0 when all load. Needs the
// driver (libcuda.so.1) at run time only.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

// False, with a message, where the driver is too old to have the function.
template <typename Function>
bool Resolve(void* driver, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(driver, name));
  if (*function == nullptr) {
    std::fprintf(stderr,
                 "load_cubins: this CUDA driver has no %s, expected one for "
                 "CUDA 12.4 or newer\n",
                 name);
  }
  return *function != nullptr;
}

struct Driver {
  CUresult (*init)(unsigned);
  CUresult (*device_get)(CUdevice*, int);
  CUresult (*device_name)(char*, int, CUdevice);
  CUresult (*retain)(CUcontext*, CUdevice);
  CUresult (*set_current)(CUcontext);
  CUresult (*load)(CUmodule*, const void*);
  CUresult (*unload)(CUmodule);
  CUresult (*count)(unsigned*, CUmodule);
  CUresult (*enumerate)(CUfunction*, unsigned, CUmodule);
  CUresult (*name)(const char**, CUfunction);
  CUresult (*attribute)(int*, CUfunction_attribute, CUfunction);
  CUresult (*error_string)(CUresult, const char**);
};

bool Open(Driver* driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "load_cubins: no CUDA driver on this machine: %s\n",
                 dlerror());
    return false;
  }
  if (!Resolve(library, "cuInit", &driver->init) ||
      !Resolve(library, "cuDeviceGet", &driver->device_get) ||
      !Resolve(library, "cuDeviceGetName", &driver->device_name) ||
      !Resolve(library, "cuDevicePrimaryCtxRetain", &driver->retain) ||
      !Resolve(library, "cuCtxSetCurrent", &driver->set_current) ||
      !Resolve(library, "cuModuleLoadData", &driver->load) ||
      !Resolve(library, "cuModuleUnload", &driver->unload) ||
      !Resolve(library, "cuModuleGetFunctionCount", &driver->count) ||
      !Resolve(library, "cuModuleEnumerateFunctions", &driver->enumerate) ||
      !Resolve(library, "cuFuncGetName", &driver->name) ||
      !Resolve(library, "cuFuncGetAttribute", &driver->attribute) ||
      !Resolve(library, "cuGetErrorString", &driver->error_string))
    return false;
  CUdevice device;
  CUcontext context;
  char name[256] = "";
  if (driver->init(0) != CUDA_SUCCESS ||
      driver->device_get(&device, 0) != CUDA_SUCCESS ||
      driver->device_name(name, sizeof(name), device) != CUDA_SUCCESS ||
      driver->retain(&context, device) != CUDA_SUCCESS ||
      driver->set_current(context) != CUDA_SUCCESS) {
    std::fprintf(
        stderr,
        "load_cubins: the CUDA driver is there but no device can be used\n");
    return false;
  }
  std::printf("device: %s\n", name);
  return true;
}

// Kernels of the cubin, or -1 when it does not load.
int LoadOne(const Driver& driver, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string image((std::istreambuf_iterator<char>(file)),
                          std::istreambuf_iterator<char>());
  CUmodule module;
  const CUresult loaded = driver.load(&module, image.data());
  if (loaded != CUDA_SUCCESS) {
    const char* text = "";
    driver.error_string(loaded, &text);
    std::printf("%-24s FAILED: %s\n", path.stem().c_str(), text);
    return -1;
  }
  unsigned count = 0;
  driver.count(&count, module);
  std::vector<CUfunction> functions(count);
  driver.enumerate(functions.data(), count, module);
  for (CUfunction function : functions) {
    const char* name = "";
    int registers = 0, local = 0;
    driver.name(&name, function);
    driver.attribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    driver.attribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
    std::printf("%-24s %3d registers %5d local bytes  %s\n",
                path.stem().c_str(), registers, local, name);
  }
  driver.unload(module);
  return static_cast<int>(count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: load_cubins DIRECTORY\n");
    return 2;
  }
  Driver driver;
  if (!Open(&driver)) return 1;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.path().extension() == ".cubin") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  int good = 0, kernels = 0;
  for (const auto& file : files) {
    const int count = LoadOne(driver, file);
    good += count > 0;
    kernels += std::max(count, 0);
  }
  std::printf("%d of %zu cubins loaded, %d kernels\n", good, files.size(),
              kernels);
  return good == static_cast<int>(files.size()) && good > 0 ? 0 : 1;
}
