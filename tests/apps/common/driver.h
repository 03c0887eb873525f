// For applications that call the CUDA driver API: the check of its calls.
// Host code only; single-threaded.
#ifndef REPRISE_TESTS_APPS_COMMON_DRIVER_H_
#define REPRISE_TESTS_APPS_COMMON_DRIVER_H_

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

#include "app.h"

// Ends the program with a FAIL line when a CUDA driver call does not return
// CUDA_SUCCESS.
#define CU_CHECK(call) ::apps::CheckDriver((call), #call, __FILE__, __LINE__)

namespace apps {

inline void CheckDriver(CUresult status, const char* call, const char* file,
                        int line) {
  if (status == CUDA_SUCCESS) return;
  const char* text = nullptr;
  const char* name = nullptr;
  cuGetErrorString(status, &text);
  cuGetErrorName(status, &name);
  std::printf("%s: FAIL %s at %s:%d: %s (%s, %d)\n", AppName(), call, file,
              line, text == nullptr ? "no text" : text,
              name == nullptr ? "no name" : name, status);
  std::exit(1);
}

}  // namespace apps

#endif  // REPRISE_TESTS_APPS_COMMON_DRIVER_H_
