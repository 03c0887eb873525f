#include "replay/device/cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace reprise::cuda {
namespace {

absl::StatusCode CodeOf(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return absl::StatusCode::kOk;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::StatusCode::kResourceExhausted;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_NOT_FOUND:
      return absl::StatusCode::kNotFound;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return absl::StatusCode::kUnimplemented;
    case CUDA_ERROR_INVALID_VALUE:
      return absl::StatusCode::kInvalidArgument;
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Driver>> Driver::Load() {
  const char* chosen = std::getenv(kDriverVariable);
  const char* path = chosen != nullptr ? chosen : "libcuda.so.1";
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("no CUDA driver on this machine: ", dlerror(),
                     "; install NVIDIA's driver, or use --device cpu"));
  }
  auto driver = std::make_unique<Driver>();
#define REPRISE_CUDA_RESOLVE(member, symbol, declaration) \
  driver->member =                                        \
      reinterpret_cast<decltype(driver->member)>(dlsym(library, symbol));
  REPRISE_CUDA_ENTRY_POINTS(REPRISE_CUDA_RESOLVE)
  REPRISE_CUDA_OPTIONAL_ENTRY_POINTS(REPRISE_CUDA_RESOLVE)
#undef REPRISE_CUDA_RESOLVE
#define REPRISE_CUDA_REQUIRE(member, symbol, declaration)          \
  if (driver->member == nullptr) {                                 \
    return absl::FailedPreconditionError(                          \
        absl::StrCat("the CUDA driver ", path, " has no ", symbol, \
                     "; a driver of CUDA 12 or newer is needed")); \
  }
  REPRISE_CUDA_ENTRY_POINTS(REPRISE_CUDA_REQUIRE)
#undef REPRISE_CUDA_REQUIRE
  return driver;
}

std::string Driver::Describe(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    return absl::StrCat("CUDA error ", static_cast<int>(result));
  if (GetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr)
    return name;
  return absl::StrCat(name, ": ", text);
}

absl::Status Driver::Check(CUresult result, std::string_view call) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  return absl::Status(CodeOf(result),
                      absl::StrCat(absl::string_view(call.data(), call.size()),
                                   " failed with ", Describe(result)));
}

}  // namespace reprise::cuda
