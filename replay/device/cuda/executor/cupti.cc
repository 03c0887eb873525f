#include "replay/device/cuda/executor/cupti.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace reprise::cuda {
namespace {

absl::StatusCode CodeOf(CUptiResult result) {
  switch (result) {
    case CUPTI_SUCCESS:
      return absl::StatusCode::kOk;
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return absl::StatusCode::kPermissionDenied;
    case CUPTI_ERROR_INVALID_METRIC_NAME:
      return absl::StatusCode::kNotFound;
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_NOT_COMPATIBLE:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
    case CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_INVALID_CHIP_NAME:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

constexpr char kHowToBeAllowed[] =
    "; the driver keeps the GPU's performance counters for administrators "
    "(ERR_NVGPUCTRPERM): run as root or with CAP_SYS_ADMIN, or have the "
    "driver's module loaded with NVreg_RestrictProfilingToAdminUsers=0";

// The library looks for this companion where the loader does, which need not be
// where it lies itself.
void LoadCompanion(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return;
  const std::string directory = path.substr(0, slash + 1);
  dlopen((directory + "libnvperf_host.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
}

void* OpenFirst(const std::vector<std::string>& places, std::string* opened,
                std::string* error) {
  for (const std::string& place : places) {
    *opened = place;
    LoadCompanion(place);
    void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    const char* text = dlerror();
    *error = text == nullptr ? "" : text;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> CuptiPlaces(const std::string& cuda_home) {
  if (const char* chosen = std::getenv(kCuptiVariable)) return {chosen};
  std::vector<std::string> places;
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    for (const char* place : {"/lib64/", "/extras/CUPTI/lib64/",
                              "/targets/x86_64-linux/lib/", "/lib/"})
      places.push_back(absl::StrCat(cuda_home, place, name));
  }
  places.insert(places.end(), {"libcupti.so.13", "libcupti.so.12"});
  return places;
}

absl::StatusOr<std::unique_ptr<const Cupti>> Cupti::Load(
    const std::string& cuda_home) {
  std::string path, error;
  void* library = OpenFirst(CuptiPlaces(cuda_home), &path, &error);
  if (library == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "no libcupti in ", cuda_home, " nor where libraries are (", error,
        "); let --cuda-home name a CUDA toolkit that has "
        "CUPTI"));
  }
  auto cupti = std::make_unique<Cupti>();
#define REPRISE_CUPTI_RESOLVE(member, declaration)                             \
  cupti->member =                                                              \
      reinterpret_cast<decltype(cupti->member)>(dlsym(library, #declaration)); \
  if (cupti->member == nullptr) {                                              \
    return absl::FailedPreconditionError(                                      \
        absl::StrCat(path, " has no ", #declaration,                           \
                     "; CUPTI of CUDA 12.6 or newer is needed"));              \
  }
  REPRISE_CUPTI_ENTRY_POINTS(REPRISE_CUPTI_RESOLVE)
#undef REPRISE_CUPTI_RESOLVE
  return cupti;
}

absl::Status Cupti::Check(CUptiResult result, std::string_view call) const {
  if (result == CUPTI_SUCCESS) return absl::OkStatus();
  const char* text = nullptr;
  if (GetResultString(result, &text) != CUPTI_SUCCESS || text == nullptr)
    text = "an unknown error";
  const absl::StatusCode code = CodeOf(result);
  return absl::Status(
      code,
      absl::StrCat(
          absl::string_view(call.data(), call.size()), " failed with ", text,
          code == absl::StatusCode::kPermissionDenied ? kHowToBeAllowed : ""));
}

}  // namespace reprise::cuda
