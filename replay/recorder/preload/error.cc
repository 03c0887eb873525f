// cudaGetLastError and the names and texts of error codes.
#include <cuda_runtime_api.h>

#include "replay/recorder/preload/context.h"

namespace {

struct ErrorText {
  int code;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrorTexts[] = {
#include "replay/recorder/preload/error_texts.inc"
};
constexpr char kUnknown[] = "unrecognized error code";

const ErrorText* FindText(cudaError_t error) {
  for (const ErrorText& entry : kErrorTexts)
    if (entry.code == static_cast<int>(error)) return &entry;
  return nullptr;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() { return reprise::standin::TakeLastError(); }

cudaError_t cudaPeekAtLastError() { return reprise::standin::LastError(); }

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* found = FindText(error);
  return found != nullptr ? found->name : kUnknown;
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* found = FindText(error);
  return found != nullptr ? found->text : kUnknown;
}

}  // extern "C"
