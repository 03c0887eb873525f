// The device's mathematics library, float and double: every function in the
// list below over many arguments, against the host's library in a wider type.
// --size: number of arguments per function.
#include <limits>

#include "../common/app.h"

constexpr int kBlock = 128;

// Arguments: s in (-4, 4), u in (-0.98, 0.98), p in (0.05, 8).
// F(float expression, double expression, the host's expression in type R for
// arguments of type T, allowed error in epsilons of T times max(1, |result|)).
// clang-format off
#define REPRISE_MATH_FUNCTIONS(F)                                          \
  F(sinf(s), sin(s), std::sin(s), 4)                                       \
  F(cosf(s), cos(s), std::cos(s), 4)                                       \
  F(tanf(u), tan(u), std::tan(u), 6)                                       \
  F(sinf(1000.0f * s), sin(1000.0 * s), std::sin(R(T(1000) * T(s))), 4)    \
  F(asinf(u), asin(u), std::asin(u), 6)                                    \
  F(acosf(u), acos(u), std::acos(u), 6)                                    \
  F(atanf(s), atan(s), std::atan(s), 6)                                    \
  F(atan2f(s, u), atan2(s, u), std::atan2(s, u), 6)                        \
  F(sinpif(u), sinpi(u), std::sin(pi * u), 6)                              \
  F(cospif(u), cospi(u), std::cos(pi * u), 6)                              \
  F(sinhf(s), sinh(s), std::sinh(s), 8)                                    \
  F(coshf(s), cosh(s), std::cosh(s), 8)                                    \
  F(tanhf(s), tanh(s), std::tanh(s), 6)                                    \
  F(asinhf(s), asinh(s), std::asinh(s), 8)                                 \
  F(acoshf(1.0f + p), acosh(1.0 + p), std::acosh(R(T(1) + T(p))), 8)       \
  F(atanhf(u), atanh(u), std::atanh(u), 8)                                 \
  F(expf(s), exp(s), std::exp(s), 4)                                       \
  F(exp2f(s), exp2(s), std::exp2(s), 4)                                    \
  F(exp10f(s), exp10(s), std::pow(R(10), s), 6)                            \
  F(expm1f(s), expm1(s), std::expm1(s), 4)                                 \
  F(logf(p), log(p), std::log(p), 4)                                       \
  F(log2f(p), log2(p), std::log2(p), 4)                                    \
  F(log10f(p), log10(p), std::log10(p), 4)                                 \
  F(log1pf(u), log1p(u), std::log1p(u), 4)                                 \
  F(powf(p, s), pow(p, s), std::pow(p, s), 16)                             \
  F(sqrtf(p), sqrt(p), std::sqrt(p), 2)                                    \
  F(rsqrtf(p), rsqrt(p), 1 / std::sqrt(p), 4)                              \
  F(cbrtf(s), cbrt(s), std::cbrt(s), 4)                                    \
  F(rcbrtf(p), rcbrt(p), 1 / std::cbrt(p), 4)                              \
  F(hypotf(s, p), hypot(s, p), std::hypot(s, p), 6)                        \
  F(rhypotf(s, p), rhypot(s, p), 1 / std::hypot(s, p), 6)                  \
  F(norm3df(s, u, p), norm3d(s, u, p), std::sqrt(s* s + u * u + p * p), 8) \
  F(fmaf(s, u, p), fma(s, u, p), s* u + p, 2)                              \
  F(s / p, s / p, s / p, 2)                                                \
  F(fmodf(s, p), fmod(s, p), std::fmod(s, p), 0)                           \
  F(remainderf(s, p), remainder(s, p), std::remainder(s, p), 0)            \
  F(erff(s), erf(s), std::erf(s), 6)                                       \
  F(erfcf(s), erfc(s), std::erfc(s), 10)                                   \
  F(erff(erfinvf(u)), erf(erfinv(u)), u, 12)                               \
  F(normcdff(s), normcdf(s), std::erfc(-s / std::sqrt(R(2))) / 2, 12)      \
  F(tgammaf(p), tgamma(p), std::tgamma(p), 24)                             \
  F(lgammaf(p), lgamma(p), std::lgamma(p), 16)                             \
  F(floorf(s), floor(s), std::floor(s), 0)                                 \
  F(ceilf(s), ceil(s), std::ceil(s), 0)                                    \
  F(roundf(s), round(s), std::round(s), 0)                                 \
  F(rintf(s), rint(s), std::rint(s), 0)                                    \
  F(truncf(s), trunc(s), std::trunc(s), 0)                                 \
  F(fabsf(s), fabs(s), std::fabs(s), 0)                                    \
  F(copysignf(p, s), copysign(p, s), std::copysign(p, s), 0)               \
  F(fminf(s, u), fmin(s, u), std::fmin(s, u), 0)                           \
  F(fmaxf(s, u), fmax(s, u), std::fmax(s, u), 0)                           \
  F(fdimf(s, u), fdim(s, u), std::fdim(s, u), 2)                           \
  F(ldexpf(s, 5), ldexp(s, 5), std::ldexp(s, 5), 0)                        \
  F(logbf(p), logb(p), std::logb(p), 0)                                    \
  F(nextafterf(s, 9.0f), nextafter(s, 9.0), s, 2)
// clang-format on

#define REPRISE_COUNT(float_call, double_call, host_call, ulps) +1
constexpr int kFunctions = 0 REPRISE_MATH_FUNCTIONS(REPRISE_COUNT);

// output[function * count + i].
REPRISE_TOLERANCE(1e-5)
__global__ void FloatFunctionsKernel(const float* signed_arguments,
                                     const float* unit_arguments,
                                     const float* positive_arguments,
                                     float* output, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float s = signed_arguments[i];
  float u = unit_arguments[i];
  float p = positive_arguments[i];
  int function = 0;
#define REPRISE_CALL(float_call, double_call, host_call, ulps) \
  output[function++ * count + i] = float_call;
  REPRISE_MATH_FUNCTIONS(REPRISE_CALL)
#undef REPRISE_CALL
}

REPRISE_TOLERANCE(1e-13)
__global__ void DoubleFunctionsKernel(const double* signed_arguments,
                                      const double* unit_arguments,
                                      const double* positive_arguments,
                                      double* output, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  double s = signed_arguments[i];
  double u = unit_arguments[i];
  double p = positive_arguments[i];
  int function = 0;
#define REPRISE_CALL(float_call, double_call, host_call, ulps) \
  output[function++ * count + i] = double_call;
  REPRISE_MATH_FUNCTIONS(REPRISE_CALL)
#undef REPRISE_CALL
}

template <typename T>
struct Arguments {
  explicit Arguments(size_t count) : s(count), u(count), p(count) {
    const auto random = [](uint32_t seed, size_t i, double low, double high) {
      const double unit =
          (apps::HashBits(seed, i) + apps::HashBits(seed + 3, i) * 0x1p-32) *
          0x1p-32;
      return static_cast<T>(low + (high - low) * unit);
    };
    for (size_t i = 0; i < count; ++i) {
      s[i] = random(1, i, -4, 4);
      u[i] = random(2, i, -0.98, 0.98);
      p[i] = random(3, i, 0.05, 8);
    }
  }
  std::vector<T> s, u, p;
};

// T is the device's type, R the wider one of the reference.
template <typename T, typename R>
void CheckFunctions(const apps::Options& options, const Arguments<T>& arguments,
                    const std::vector<T>& output, apps::Checker& checker) {
  const size_t count = arguments.s.size();
  const R pi = std::acos(R(-1));
  const double ulp = std::numeric_limits<T>::epsilon();
  const size_t stride = apps::CheckStride(options, count, 1 << 14);
  for (size_t i = 0; i < count; i += stride) {
    const R s = arguments.s[i], u = arguments.u[i], p = arguments.p[i];
    size_t function = 0;
#define REPRISE_CHECK(float_call, double_call, host_call, ulps)       \
  {                                                                   \
    const R want = host_call;                                         \
    const R bound = ulps * ulp * std::max(R(1), std::fabs(want));     \
    const R error = std::fabs(output[function++ * count + i] - want); \
    checker.Expect(sizeof(T) == 4 ? #float_call : #double_call, i,    \
                   static_cast<double>(error), 0,                     \
                   {static_cast<double>(bound), 0});                  \
  }
    REPRISE_MATH_FUNCTIONS(REPRISE_CHECK)
#undef REPRISE_CHECK
  }
}

template <typename T>
struct DeviceArguments {
  explicit DeviceArguments(const Arguments<T>& host)
      : s(host.s), u(host.u), p(host.p), output(host.s.size() * kFunctions) {}
  apps::DeviceArray<T> s, u, p, output;
};

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "math_functions",
      {1 << 20, 700, 1 << 24, "number of arguments per function"});
  const int count = static_cast<int>(options.size);
  const Arguments<float> floats(count);
  const Arguments<double> doubles(count);
  const DeviceArguments<float> device_floats(floats);
  const DeviceArguments<double> device_doubles(doubles);

  apps::RunIterations(options, [&] {
    const int blocks = apps::BlocksFor(count, kBlock);
    FloatFunctionsKernel<<<blocks, kBlock>>>(
        device_floats.s.get(), device_floats.u.get(), device_floats.p.get(),
        device_floats.output.get(), count);
    DoubleFunctionsKernel<<<blocks, kBlock>>>(
        device_doubles.s.get(), device_doubles.u.get(), device_doubles.p.get(),
        device_doubles.output.get(), count);
  });

  apps::Checker checker;
  CheckFunctions<float, double>(options, floats, device_floats.output.ToHost(),
                                checker);
  CheckFunctions<double, long double>(options, doubles,
                                      device_doubles.output.ToHost(), checker);
  return checker.Finish();
}
