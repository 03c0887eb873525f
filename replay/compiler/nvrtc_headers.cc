#include "replay/compiler/nvrtc_headers.h"

#include <array>
#include <set>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr char kBasics[] = R"(#ifndef REPRISE_NVRTC_BASICS
#define REPRISE_NVRTC_BASICS
typedef signed char int_fast8_t;
typedef unsigned char uint_fast8_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef signed char int_least8_t;
typedef short int_least16_t;
typedef int int_least32_t;
typedef long int_least64_t;
typedef unsigned char uint_least8_t;
typedef unsigned short uint_least16_t;
typedef unsigned int uint_least32_t;
typedef unsigned long uint_least64_t;
typedef long int_fast16_t;
typedef long int_fast32_t;
typedef long int_fast64_t;
typedef unsigned long uint_fast16_t;
typedef unsigned long uint_fast32_t;
typedef unsigned long uint_fast64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef long intmax_t;
typedef unsigned long uintmax_t;
typedef long ptrdiff_t;
typedef long ssize_t;
typedef unsigned int uint;
#define INT8_MIN (-128)
#define INT16_MIN (-32767 - 1)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807L - 1)
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807L
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615UL
#define SIZE_MAX 18446744073709551615UL
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN (-128)
#define CHAR_MAX 127
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define DBL_MANT_DIG 53
#define FLT_DIG 6
#define DBL_DIG 15
#define FLT_MIN 1.17549435e-38F
#define FLT_MAX 3.40282347e+38F
#define FLT_EPSILON 1.1920929e-7F
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e+308
#define DBL_EPSILON 2.2204460492503131e-16
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#define HUGE_VALF INFINITY
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000LL)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
)";

// In place of CCCL's, which has long long where the host has long: names of
// kernels tell the difference.
constexpr char kCudaStdTypes[] = R"(
#define INT8_C(X) ((::int_least8_t)(X))
#define INT16_C(X) ((::int_least16_t)(X))
#define INT32_C(X) ((::int_least32_t)(X))
#define INT64_C(X) ((::int_least64_t)(X))
#define UINT8_C(X) ((::uint_least8_t)(X))
#define UINT16_C(X) ((::uint_least16_t)(X))
#define UINT32_C(X) ((::uint_least32_t)(X))
#define UINT64_C(X) ((::uint_least64_t)(X))
#define INTMAX_C(X) ((::intmax_t)(X))
#define UINTMAX_C(X) ((::uintmax_t)(X))
#define INTMAX_MIN INT64_MIN
#define INTMAX_MAX INT64_MAX
#define UINTMAX_MAX UINT64_MAX
#define PTRDIFF_MIN INT64_MIN
#define PTRDIFF_MAX INT64_MAX
_LIBCUDACXX_BEGIN_NAMESPACE_STD
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::int_fast16_t;
using ::int_fast32_t;
using ::int_fast64_t;
using ::int_fast8_t;
using ::uint_fast16_t;
using ::uint_fast32_t;
using ::uint_fast64_t;
using ::uint_fast8_t;
using ::int_least16_t;
using ::int_least32_t;
using ::int_least64_t;
using ::int_least8_t;
using ::uint_least16_t;
using ::uint_least32_t;
using ::uint_least64_t;
using ::uint_least8_t;
using ::intptr_t;
using ::uintptr_t;
using ::intmax_t;
using ::uintmax_t;
#if _CCCL_HAS_INT128()
using __cccl_intmax_t = __int128_t;
using __cccl_uintmax_t = __uint128_t;
#else
using __cccl_intmax_t = long long;
using __cccl_uintmax_t = unsigned long long;
#endif
_LIBCUDACXX_END_NAMESPACE_STD
)";

constexpr char kBasicStd[] = R"(namespace std {
template <class T> __device__ constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T> __device__ constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <class T> __device__ constexpr void swap(T& a, T& b) {
  T c = a;
  a = b;
  b = c;
}
}
)";

constexpr char kFullStd[] = R"(#include <cuda/std/__algorithm/clamp.h>
#include <cuda/std/__algorithm/max.h>
#include <cuda/std/__algorithm/min.h>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/functional>
#include <cuda/std/limits>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>
namespace std { using namespace cuda::std; }
)";

constexpr std::array kTypes = {
    "size_t",       "ptrdiff_t",     "int8_t",        "int16_t",
    "int32_t",      "int64_t",       "uint8_t",       "uint16_t",
    "uint32_t",     "uint64_t",      "intptr_t",      "uintptr_t",
    "intmax_t",     "uintmax_t",     "int_fast16_t",  "int_fast32_t",
    "int_fast64_t", "uint_fast16_t", "uint_fast32_t", "uint_fast64_t"};

constexpr std::array kFunctions = {
    "abs",    "acos",      "acosh",     "asin",   "asinh",     "atan",
    "atan2",  "atanh",     "cbrt",      "ceil",   "copysign",  "cos",
    "cosh",   "erf",       "erfc",      "exp",    "exp2",      "expm1",
    "fabs",   "fdim",      "floor",     "fma",    "fmax",      "fmin",
    "fmod",   "frexp",     "hypot",     "ilogb",  "isfinite",  "isinf",
    "isnan",  "ldexp",     "lgamma",    "llrint", "llround",   "log",
    "log10",  "log1p",     "log2",      "logb",   "lrint",     "lround",
    "modf",   "nearbyint", "nextafter", "pow",    "remainder", "remquo",
    "rint",   "round",     "scalbln",   "scalbn", "signbit",   "sin",
    "sinh",   "sqrt",      "tan",       "tanh",   "tgamma",    "trunc",
    "memcpy", "memset",    "printf"};

std::string Basics(bool full) {
  std::string text =
      "#ifndef REPRISE_STD\n#define REPRISE_STD\n#include <reprise_types>\n"
      "namespace std {\n";
  for (const char* name : kTypes)
    absl::StrAppend(&text, "using ::", name, ";\n");
  if (!full) {
    for (const char* name : kFunctions)
      absl::StrAppend(&text, "using ::", name, ";\n");
  }
  absl::StrAppend(&text, "}\n", full ? kFullStd : kBasicStd, "#endif\n");
  return text;
}

std::map<std::string, std::string> Headers(bool full) {
  std::map<std::string, std::string> headers;
  const std::string basics = Basics(full);
  for (const char* name : {"algorithm",
                           "array",
                           "assert.h",
                           "atomic",
                           "bit",
                           "bitset",
                           "cassert",
                           "cfloat",
                           "charconv",
                           "chrono",
                           "climits",
                           "cmath",
                           "complex",
                           "concepts",
                           "cstddef",
                           "cstdint",
                           "cstdio",
                           "cstdlib",
                           "cstring",
                           "ctime",
                           "deque",
                           "errno.h",
                           "exception",
                           "fcntl.h",
                           "filesystem",
                           "float.h",
                           "fstream",
                           "functional",
                           "initializer_list",
                           "inttypes.h",
                           "iomanip",
                           "iostream",
                           "istream",
                           "iterator",
                           "limits",
                           "limits.h",
                           "list",
                           "map",
                           "math.h",
                           "memory",
                           "mutex",
                           "new",
                           "numeric",
                           "optional",
                           "ostream",
                           "queue",
                           "random",
                           "ranges",
                           "set",
                           "span",
                           "sstream",
                           "stack",
                           "stdarg.h",
                           "stdbool.h",
                           "stddef.h",
                           "stdexcept",
                           "stdint.h",
                           "stdio.h",
                           "stdlib.h",
                           "string",
                           "string.h",
                           "string_view",
                           "strings.h",
                           "sys/mman.h",
                           "sys/stat.h",
                           "sys/time.h",
                           "sys/types.h",
                           "sys/wait.h",
                           "thread",
                           "time.h",
                           "tuple",
                           "type_traits",
                           "typeinfo",
                           "unistd.h",
                           "unordered_map",
                           "unordered_set",
                           "utility",
                           "variant",
                           "vector",
                           "cinttypes",
                           "cerrno",
                           "csignal",
                           "signal.h",
                           "dlfcn.h",
                           "sys/syscall.h",
                           "sys/socket.h",
                           "sys/un.h",
                           "pthread.h",
                           "condition_variable",
                           "future",
                           "omp.h",
                           "getopt.h",
                           "cctype",
                           "ctype.h",
                           "sys/resource.h",
                           "malloc.h",
                           "cstdarg",
                           "numbers"})
    headers[name] = basics;
  headers["cuda/std/cstdint"] = absl::StrCat(
      "#ifndef _CUDA_STD_CSTDINT\n#define _CUDA_STD_CSTDINT\n"
      "#include <cuda/std/detail/__config>\n#include <cuda/std/version>\n"
      "#include <cuda/std/climits>\n#include <reprise_types>\n",
      kCudaStdTypes, "#endif\n");
  headers["reprise_types"] = absl::StrCat(kBasics, "#endif\n");
  // Built in.
  for (const char* name :
       {"cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h"})
    headers[name] = "";
  return headers;
}

}  // namespace

const std::map<std::string, std::string>& NvrtcHeaders(bool full) {
  static const auto* const basic =
      new std::map<std::string, std::string>(Headers(false));
  static const auto* const whole =
      new std::map<std::string, std::string>(Headers(true));
  return full ? *whole : *basic;
}

bool IsBasicStdName(const std::string& name) {
  static const auto* const names = [] {
    auto* all = new std::set<std::string>(kTypes.begin(), kTypes.end());
    all->insert(kFunctions.begin(), kFunctions.end());
    for (const char* more : {"min", "max", "swap", "move", "forward", "std"})
      all->insert(more);
    return all;
  }();
  return names->count(name) > 0;
}

}  // namespace reprise
