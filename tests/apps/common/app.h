// What every application under tests/apps shares: command line, CUDA error
// checks, device arrays, deterministic input, the timed loop and the verdict.
// Header only, host code only, CUDA runtime API only. Single-threaded. These
// are whole programs, so errors end the process: exit code 0 means PASS, 1
// means FAIL (a wrong result or a CUDA error), 2 means bad usage.
#ifndef REPRISE_TESTS_APPS_COMMON_APP_H_
#define REPRISE_TESTS_APPS_COMMON_APP_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

// States how far a result may be from the recorded one: on an output pointer
// parameter for that buffer, in front of __global__ for everything the kernel
// writes. An element may differ by `bound` absolutely or relatively to its
// value. Only Clang keeps the annotation (in the device IR); nvcc sees nothing.
#if defined(__clang__) && defined(__CUDA__)
#define REPRISE_TOLERANCE(bound) __attribute__((annotate("tolerance:" #bound)))
#else
#define REPRISE_TOLERANCE(bound)
#endif

// Ends the program with a FAIL line when a CUDA runtime call does not return
// cudaSuccess.
#define CUDA_CHECK(call) ::apps::CheckCuda((call), #call, __FILE__, __LINE__)

namespace apps {

// The name that FAIL lines carry before a Checker exists; set by ParseOptions.
inline const char*& AppName() {
  static const char* name = "app";
  return name;
}

inline void CheckCuda(cudaError_t status, const char* call, const char* file,
                      int line) {
  if (status == cudaSuccess) return;
  std::printf("%s: FAIL %s at %s:%d: %s (%s)\n", AppName(), call, file, line,
              cudaGetErrorString(status), cudaGetErrorName(status));
  std::exit(1);
}

struct Options {
  int64_t size = 0;    // the application's own meaning, see its header comment
  int iterations = 0;  // launches of the kernel (or of the kernel sequence)
  bool small =
      false;  // sized for a CPU, and every element of the result is checked
  bool time = false;  // print the median time on the device
};

// The sizes of one application. `meaning` completes the sentence "--size N:
// ...".
struct Sizes {
  int64_t normal;
  int64_t small;
  int64_t max;
  const char* meaning;
};

[[noreturn]] inline void Usage(FILE* stream, int exit_code,
                               const Sizes& sizes) {
  std::fprintf(
      stream,
      "usage: %s [--size N] [--iterations N] [--small] [--time]\n"
      "  --size N        %s (default %lld, at most %lld)\n"
      "  --iterations N  launches of the kernel (default 10, with --small 3)\n"
      "  --small         sized for a CPU (--size %lld), and the whole result "
      "is checked\n"
      "  --time          print the median kernel time in milliseconds\n",
      AppName(), sizes.meaning, static_cast<long long>(sizes.normal),
      static_cast<long long>(sizes.max), static_cast<long long>(sizes.small));
  std::exit(exit_code);
}

// Parses a whole number in [1, max]; anything else is bad usage.
inline int64_t ParseNumber(const char* flag, const char* text, int64_t max,
                           const Sizes& sizes) {
  char* end = nullptr;
  const long long value = text == nullptr ? 0 : std::strtoll(text, &end, 10);
  if (text == nullptr || end == text || *end != '\0' || value < 1 ||
      value > max) {
    std::fprintf(stderr, "%s: %s wants a number from 1 to %lld, got %s\n",
                 AppName(), flag, static_cast<long long>(max),
                 text == nullptr ? "nothing" : text);
    Usage(stderr, 2, sizes);
  }
  return value;
}

inline Options ParseOptions(int argc, char** argv, const char* name,
                            const Sizes& sizes) {
  AppName() = name;
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--small") {
      options.small = true;
    } else if (flag == "--time") {
      options.time = true;
    } else if (flag == "--size") {
      options.size = ParseNumber("--size", argv[i + 1], sizes.max, sizes);
      ++i;
    } else if (flag == "--iterations") {
      options.iterations = static_cast<int>(
          ParseNumber("--iterations", argv[i + 1], 1000000, sizes));
      ++i;
    } else if (flag == "--help") {
      Usage(stdout, 0, sizes);
    } else {
      std::fprintf(stderr, "%s: unknown argument %s\n", name, argv[i]);
      Usage(stderr, 2, sizes);
    }
  }
  if (options.size == 0)
    options.size = options.small ? sizes.small : sizes.normal;
  if (options.iterations == 0) options.iterations = options.small ? 3 : 10;
  return options;
}

// An owned array in device memory. It starts filled with 0xff bytes (NaN as
// float, -1 as int), so that a result element the kernel never wrote cannot
// pass for a right one.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    CUDA_CHECK(cudaMalloc(&data_, bytes()));
    CUDA_CHECK(cudaMemset(data_, 0xff, bytes()));
  }
  explicit DeviceArray(const std::vector<T>& host) : count_(host.size()) {
    CUDA_CHECK(cudaMalloc(&data_, bytes()));
    CUDA_CHECK(cudaMemcpy(data_, host.data(), bytes(), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { CUDA_CHECK(cudaFree(data_)); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return data_; }
  size_t size() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }

  void Clear() { CUDA_CHECK(cudaMemset(data_, 0, bytes())); }
  // Requires other.size() == size().
  void CopyFrom(const DeviceArray& other) {
    CUDA_CHECK(
        cudaMemcpy(data_, other.get(), bytes(), cudaMemcpyDeviceToDevice));
  }
  std::vector<T> ToHost() const {
    std::vector<T> host(count_);
    CUDA_CHECK(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

// Number of blocks of `block` threads that cover `count` elements.
inline int BlocksFor(int64_t count, int block) {
  return static_cast<int>((count + block - 1) / block);
}

// The same 32 random-looking bits for the same (seed, index), everywhere.
inline uint32_t HashBits(uint32_t seed, uint64_t index) {
  uint64_t x = index * 0x9e3779b97f4a7c15ull + seed * 0xd1342543de82ef95ull;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  return static_cast<uint32_t>(x >> 32);
}

inline float RandomFloat(uint32_t seed, uint64_t index, float low, float high) {
  const float unit = static_cast<float>(HashBits(seed, index) >> 8) * 0x1p-24f;
  return low + (high - low) * unit;
}

inline std::vector<float> RandomFloats(size_t count, uint32_t seed, float low,
                                       float high) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = RandomFloat(seed, i, low, high);
  return values;
}

// Integers from 0 to below - 1.
inline std::vector<int> RandomInts(size_t count, uint32_t seed, int below) {
  std::vector<int> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] =
        static_cast<int>(HashBits(seed, i) % static_cast<uint32_t>(below));
  }
  return values;
}

// Calls prepare() and then launch() once per iteration, waits for the device,
// and with --time prints the median device time of launch(); prepare() is not
// timed. launch() launches on the default stream; every launch error and device
// fault ends the program.
template <typename Launch, typename Prepare>
void RunIterations(const Options& options, Launch launch, Prepare prepare) {
  std::vector<float> times_ms;
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  if (options.time) {
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
  }
  for (int i = 0; i < options.iterations; ++i) {
    prepare();
    if (options.time) CUDA_CHECK(cudaEventRecord(start));
    launch();
    CUDA_CHECK(cudaGetLastError());
    if (!options.time) continue;
    CUDA_CHECK(cudaEventRecord(stop));
    CUDA_CHECK(cudaEventSynchronize(stop));
    float elapsed_ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&elapsed_ms, start, stop));
    times_ms.push_back(elapsed_ms);
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  if (!options.time) return;
  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(stop));
  std::sort(times_ms.begin(), times_ms.end());
  std::printf("%s: kernel_ms %.4f (median of %zu)\n", AppName(),
              times_ms[times_ms.size() / 2], times_ms.size());
}

template <typename Launch>
void RunIterations(const Options& options, Launch launch) {
  RunIterations(options, launch, [] {});
}

// Distance between the elements to check, so that about `samples` of `count`
// are: 1 with --small. Odd, so that the sampled elements visit every position
// within a block.
inline size_t CheckStride(const Options& options, size_t count,
                          size_t samples) {
  return options.small || count <= samples ? 1 : (count / samples) | 1;
}

// An element is right when |got - expected| <= absolute + relative *
// |expected|.
struct Tolerance {
  double absolute;
  double relative;
};
inline constexpr Tolerance kExact{0, 0};

// Collects comparisons and prints the verdict.
class Checker {
 public:
  void Expect(const char* what, size_t index, double got, double expected,
              Tolerance tolerance) {
    ++checked_;
    const double error = got == expected ? 0 : std::fabs(got - expected);
    max_error_ = std::max(max_error_, error);
    if (error <= tolerance.absolute + tolerance.relative * std::fabs(expected))
      return;
    // Reached with a NaN as well, which no comparison holds for.
    if (wrong_++ > 0) return;
    char text[200];
    std::snprintf(text, sizeof(text), "%s[%zu]: got %.9g, expected %.9g", what,
                  index, got, expected);
    first_wrong_ = text;
  }

  // Whether something was checked, and nothing of it was wrong.
  bool Right() const { return checked_ > 0 && wrong_ == 0; }

  // Prints the one verdict line and returns main's exit code. Having checked
  // nothing is a failure.
  int Finish() const {
    if (checked_ == 0) {
      std::printf("%s: FAIL nothing was checked\n", AppName());
    } else if (wrong_ > 0) {
      std::printf("%s: FAIL %s (%zu of %zu checked values wrong)\n", AppName(),
                  first_wrong_.c_str(), wrong_, checked_);
    } else {
      std::printf("%s: PASS (max error %.3g, %zu values checked)\n", AppName(),
                  max_error_, checked_);
    }
    return Right() ? 0 : 1;
  }

 private:
  size_t checked_ = 0;
  size_t wrong_ = 0;
  double max_error_ = 0;
  std::string first_wrong_;
};

}  // namespace apps

#endif  // REPRISE_TESTS_APPS_COMMON_APP_H_
