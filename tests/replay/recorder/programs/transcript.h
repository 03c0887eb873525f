// What the transcript programs share: they call the CUDA runtime and print what
// it answers, one line a call, so that the stand-in's answers can be compared
// with those of a GPU (see README.md here). Single-threaded.
#ifndef REPRISE_TESTS_REPLAY_RECORDER_PROGRAMS_TRANSCRIPT_H_
#define REPRISE_TESTS_REPLAY_RECORDER_PROGRAMS_TRANSCRIPT_H_

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

inline void Section(const char* name) { std::printf("== %s\n", name); }

// Prints the call's code, and clears the thread's last error so that each line
// stands alone. A difference between the code and the last error is printed.
inline void Show(const char* text, cudaError_t code) {
  const cudaError_t last = cudaGetLastError();
  std::printf("%s: %s", text, cudaGetErrorName(code));
  if (last != code) std::printf(" (last error %s)", cudaGetErrorName(last));
  std::printf("\n");
}

inline void ShowValue(const char* text, long long value) {
  std::printf("%s = %lld\n", text, value);
}

#define SHOW(call) Show(#call, (call))
#define VALUE(expression) \
  ShowValue(#expression, static_cast<long long>(expression))

#endif  // REPRISE_TESTS_REPLAY_RECORDER_PROGRAMS_TRANSCRIPT_H_
