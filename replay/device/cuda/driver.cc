#include "replay/device/cuda/driver.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

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
    case CUDA_ERROR_INVALID_IMAGE:
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

std::string CodeMaker(std::string_view image) {
  constexpr std::pair<std::string_view, const char*> kMarks[] = {
      {"Cuda compilation tools, release ", "CUDA "}, {".version ", "PTX "}};
  for (const auto& [mark, kind] : kMarks) {
    const size_t at = image.find(mark);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = image.substr(at + mark.size());
    const size_t end =
        std::min(rest.size(), rest.find_first_not_of("0123456789."));
    return kind + std::string(rest.substr(0, end));
  }
  constexpr char kAbiBefore13 = 7;
  return image.substr(0, 4) == "\177ELF" && image.size() > EI_ABIVERSION &&
                 image[EI_ABIVERSION] == kAbiBefore13
             ? "a CUDA before 13"
             : "";
}

std::string CudaVersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

int DriverCudaVersion() {
  const auto driver = Driver::Load();
  int version = 0;
  if (!driver.ok() || (*driver)->DriverGetVersion(&version) != CUDA_SUCCESS)
    return 0;
  return version;
}

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

absl::Status Driver::CheckLoad(CUresult result, std::string_view image) const {
  const absl::Status status = Check(result, "cuModuleLoadData");
  if (result != CUDA_ERROR_NO_BINARY_FOR_GPU &&
      result != CUDA_ERROR_INVALID_IMAGE && result != CUDA_ERROR_INVALID_PTX &&
      result != CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    return status;
  int version = 0;
  DriverGetVersion(&version);
  const std::string maker = CodeMaker(image);
  return absl::Status(
      status.code(),
      absl::StrCat(
          std::string(status.message()), "; the driver is for CUDA ",
          CudaVersionText(version),
          maker.empty() ? "" : absl::StrCat(", the code of ", maker),
          "; if the code is newer, install a newer driver, or let --cuda-home "
          "name a toolkit that is no newer than the driver"));
}

}  // namespace reprise::cuda
