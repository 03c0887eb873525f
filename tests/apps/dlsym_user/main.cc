// A program that neither links the driver nor the runtime: it opens libcuda
// itself and looks every function up by name; every other launch goes through
// the pointer that cuGetProcAddress gives. Results are exact.
// --size: number of values.
#include <cuda.h>  // types only
#include <dlfcn.h>

#include "../common/app.h"

// Made of kernels.image.cu by build.sh.
extern "C" const unsigned char kernels_image[];

namespace {

constexpr unsigned int kBlock = 256;

// The functions of libcuda that the program uses.
struct Driver {
  decltype(cuInit)* init;
  decltype(cuDeviceGet)* device_get;
  decltype(cuDevicePrimaryCtxRetain)* retain_context;
  decltype(cuDevicePrimaryCtxRelease)* release_context;
  decltype(cuCtxSetCurrent)* set_context;
  decltype(cuCtxSynchronize)* synchronize;
  decltype(cuModuleLoadData)* load_module;
  decltype(cuModuleUnload)* unload_module;
  decltype(cuModuleGetFunction)* get_function;
  decltype(cuMemAlloc)* allocate;
  decltype(cuMemFree)* free;
  decltype(cuMemcpyHtoD)* copy_to_device;
  decltype(cuMemcpyDtoH)* copy_to_host;
  decltype(cuLaunchKernel)* launch;
  decltype(cuGetProcAddress)* get_address;
};

void Check(CUresult status, const char* what) {
  if (status == CUDA_SUCCESS) return;
  std::printf("dlsym_user: FAIL %s: CUDA driver error %d\n", what, status);
  std::exit(1);
}

template <typename Function>
void Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function != nullptr) return;
  std::printf("dlsym_user: FAIL dlsym: %s\n", dlerror());
  std::exit(1);
}

Driver OpenDriver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("dlsym_user: FAIL dlopen: %s\n", dlerror());
    std::exit(1);
  }
  Driver driver;
  Find(library, "cuInit", driver.init);
  Find(library, "cuDeviceGet", driver.device_get);
  Find(library, "cuDevicePrimaryCtxRetain", driver.retain_context);
  Find(library, "cuDevicePrimaryCtxRelease_v2", driver.release_context);
  Find(library, "cuCtxSetCurrent", driver.set_context);
  Find(library, "cuCtxSynchronize", driver.synchronize);
  Find(library, "cuModuleLoadData", driver.load_module);
  Find(library, "cuModuleUnload", driver.unload_module);
  Find(library, "cuModuleGetFunction", driver.get_function);
  Find(library, "cuMemAlloc_v2", driver.allocate);
  Find(library, "cuMemFree_v2", driver.free);
  Find(library, "cuMemcpyHtoD_v2", driver.copy_to_device);
  Find(library, "cuMemcpyDtoH_v2", driver.copy_to_host);
  Find(library, "cuLaunchKernel", driver.launch);
  Find(library, "cuGetProcAddress_v2", driver.get_address);
  return driver;
}

// The driver's own answer to the question for cuLaunchKernel.
decltype(cuLaunchKernel)* AskForLaunch(const Driver& driver) {
  void* address = nullptr;
  CUdriverProcAddressQueryResult found;
  Check(driver.get_address("cuLaunchKernel", &address, 12000,
                           CU_GET_PROC_ADDRESS_DEFAULT, &found),
        "cuGetProcAddress");
  return reinterpret_cast<decltype(cuLaunchKernel)*>(address);
}

}  // namespace

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "dlsym_user", {1 << 22, 10007, 1 << 28, "number of values"});
  int count = static_cast<int>(options.size);
  const size_t bytes = count * sizeof(unsigned int);
  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);

  const Driver driver = OpenDriver();
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction kernel;
  CUdeviceptr device_values;
  Check(driver.init(0), "cuInit");
  Check(driver.device_get(&device, 0), "cuDeviceGet");
  Check(driver.retain_context(&context, device), "cuDevicePrimaryCtxRetain");
  Check(driver.set_context(context), "cuCtxSetCurrent");
  Check(driver.load_module(&module, kernels_image), "cuModuleLoadData");
  Check(driver.get_function(&kernel, module, "AdvanceLoadedKernel"),
        "cuModuleGetFunction");
  Check(driver.allocate(&device_values, bytes), "cuMemAlloc");
  Check(driver.copy_to_device(device_values, values.data(), bytes),
        "cuMemcpyHtoD");

  decltype(cuLaunchKernel)* const launches[] = {driver.launch,
                                                AskForLaunch(driver)};
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    void* arguments[] = {&device_values, &count};
    Check(launches[iteration % 2](kernel, apps::BlocksFor(count, kBlock), 1, 1,
                                  kBlock, 1, 1, 0, nullptr, arguments, nullptr),
          "cuLaunchKernel");
  }
  Check(driver.synchronize(), "cuCtxSynchronize");
  std::vector<unsigned int> got(count);
  Check(driver.copy_to_host(got.data(), device_values, bytes), "cuMemcpyDtoH");

  apps::Checker checker;
  for (int i = 0; i < count; ++i) {
    unsigned int value = values[i];
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      value = value * 3u + static_cast<unsigned int>(i);
    }
    checker.Expect("value", i, got[i], value, apps::kExact);
  }
  Check(driver.free(device_values), "cuMemFree");
  Check(driver.unload_module(module), "cuModuleUnload");
  Check(driver.release_context(device), "cuDevicePrimaryCtxRelease");
  return checker.Finish();
}
