// Analyzes small kernels without the CUDA toolkit: a prelude stands in for its
// headers, so that a test parses in milliseconds.
#ifndef REPRISE_TESTS_EVOLUTION_AST_TEST_UTIL_H_
#define REPRISE_TESTS_EVOLUTION_AST_TEST_UTIL_H_

#include <string>
#include <vector>

#include "evolution/ast/analyze.h"
#include "evolution/move.h"
#include "evolution/source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {

inline constexpr char kPrelude[] = R"cuda(#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__ __restrict
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
typedef unsigned long size_t;
struct Index {
  __declspec(property(get = get_x)) unsigned int x;
  static inline __device__ unsigned int get_x() {
    return __fetch_builtin_x();
  }
  __declspec(property(get = get_y)) unsigned int y;
  static inline __device__ unsigned int get_y() {
    return __fetch_builtin_x();
  }
  static inline __device__ unsigned int __fetch_builtin_x() { return 0; }
};
extern const __device__ Index threadIdx, blockIdx, blockDim, gridDim;
__device__ void __syncthreads();
__device__ float sqrtf(float);
__device__ float rsqrtf(float);
__device__ double sqrt(double);
__device__ float sqrt(float);
__device__ double sqrt(int);
__device__ double rsqrt(double);
__device__ float expf(float);
__device__ float __expf(float);
__device__ float powf(float, float);
__device__ double pow(double, double);
__device__ float pow(float, int);
__device__ double pow(float, double);
__device__ float fmaxf(float, float);
__device__ int max(int, int);
__device__ float __ldg(const float *);
__device__ int __ldg(const int *);
__device__ int atomicAdd(int *, int);
__device__ float atomicAdd(float *, float);
__device__ int unknown(int);
)cuda";

inline SourceContext Context(const std::string& source,
                             const std::string& symbol = "kernel",
                             const std::string& device_kind = "cuda") {
  SourceContext context;
  context.main_file = "/app/kernel.cu";
  context.directory = "/app";
  context.clang_args = {"-nocudainc", "-nocudalib", "-std=c++17", "-isystem",
                        "/prelude",   "-include",   "prelude.h"};
  context.files = {{"/app/kernel.cu", source, false},
                   {"/prelude/prelude.h", kPrelude, true}};
  context.kernel_symbol = symbol;
  context.architecture = "sm_90";
  context.device_kind = device_kind;
  context.threads_per_block = 256;
  return context;
}

inline SourceAnalysis Analyze(const SourceContext& context) {
  auto analysis = AnalyzeSource(context);
  EXPECT_TRUE(analysis.ok()) << analysis.status();
  return analysis.ok() ? *std::move(analysis) : SourceAnalysis();
}

// A kernel named kernel around `body`, with two inputs and an output.
inline std::string Kernel(const std::string& body) {
  return "extern \"C\" __global__ void kernel(const float* a, const float* b,\n"
         "                                  float* c, int n) {\n" +
         body + "}\n";
}

inline std::vector<std::string> Keys(const SourceAnalysis& analysis,
                                     const std::string& kind) {
  std::vector<std::string> keys;
  for (const Move& move : analysis.moves) {
    if (move.kind == kind) keys.push_back(move.key);
  }
  return keys;
}

// The main file after the one move of `kind` whose key ends in `parameter`, and
// that the result still compiles.
inline std::string After(const SourceContext& context, const std::string& kind,
                         const std::string& parameter = "") {
  const SourceAnalysis analysis = Analyze(context);
  const Move* found = nullptr;
  for (const Move& move : analysis.moves) {
    const bool match =
        move.kind == kind &&
        (parameter.empty() ||
         (move.key.size() > parameter.size() &&
          move.key.substr(move.key.size() - parameter.size()) == parameter));
    if (!match) continue;
    EXPECT_EQ(found, nullptr) << "both " << found->key << " and " << move.key;
    found = &move;
  }
  if (found == nullptr) return "no such move";
  auto files = ApplyMoves(analysis.source, {found});
  EXPECT_TRUE(files.ok()) << files.status();
  if (!files.ok()) return "does not apply";
  EXPECT_TRUE(analysis.source.CheckConfined(*files).ok());
  const absl::Status compiles = CheckSource(context, *files);
  EXPECT_TRUE(compiles.ok()) << compiles << "\n" << (*files)[context.main_file];
  return (*files)[context.main_file];
}

// The same for the body of Kernel().
inline std::string BodyAfter(const std::string& body, const std::string& kind,
                             const std::string& parameter = "") {
  const std::string empty = Kernel("");
  const std::string after = After(Context(Kernel(body)), kind, parameter);
  const size_t head = empty.size() - 2;  // up to the closing brace
  if (after.size() < empty.size()) return after;
  return after.substr(head, after.size() - empty.size());
}

inline std::vector<std::string> KeysIn(const std::string& body,
                                       const std::string& kind) {
  return Keys(Analyze(Context(Kernel(body))), kind);
}

}  // namespace reprise::evolution

#endif  // REPRISE_TESTS_EVOLUTION_AST_TEST_UTIL_H_
