// Arithmetic that device code has and LLVM IR has no word for: directed
// rounding, the hardware's approximate functions, bit-field and byte
// instructions. Compiled to LLVM bitcode at build time (not into the program)
// and linked into lowered modules; the lowering calls these by name and inlines
// them. Branch-free, so that thread loops around them still vectorise.
//
// Built with contraction off: every operation here rounds once, as written.

namespace {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long;
using s64 = long;

template <typename To, typename From>
To Bits(From value) {
  return __builtin_bit_cast(To, value);
}

template <typename T>
struct Traits;
template <>
struct Traits<float> {
  using Int = u32;
  static constexpr Int kSign = 0x80000000u;
  static constexpr float kMax = 3.402823466e+38f;
};
template <>
struct Traits<double> {
  using Int = u64;
  static constexpr Int kSign = 0x8000000000000000ul;
  static constexpr double kMax = 1.7976931348623157e+308;
};

template <typename T>
bool IsFinite(T x) {
  return __builtin_fabs(x) <= Traits<T>::kMax;
}
template <>
bool IsFinite<float>(float x) {
  return __builtin_fabsf(x) <= Traits<float>::kMax;
}

// The next number towards minus infinity. x is not NaN.
template <typename T>
T Down(T x) {
  using Int = typename Traits<T>::Int;
  const Int bits = Bits<Int>(x);
  const Int down = (bits & Traits<T>::kSign) ? bits + 1 : bits - 1;
  return x == 0 ? Bits<T>(Int(Traits<T>::kSign | 1))
                : (x < -Traits<T>::kMax ? x : Bits<T>(down));
}
template <typename T>
T Up(T x) {
  return -Down<T>(-x);
}

enum Mode { kNearest, kZero, kDown, kUp };

// `nearest` is the exact result rounded to nearest and `error` has the sign of
// exact - nearest. Overflow to infinity counts as an error towards it.
template <Mode mode, typename T, typename E>
T Direct(T nearest, E error, bool overflowed) {
  const bool over = overflowed & !IsFinite(nearest) & (nearest == nearest);
  const bool below = (error < 0) | (over & (nearest > 0));  // exact < nearest
  const bool above = (error > 0) | (over & (nearest < 0));
  if (mode == kDown) return below ? Down(nearest) : nearest;
  if (mode == kUp) return above ? Up(nearest) : nearest;
  if (mode == kZero) {
    const T down = nearest > 0 && below ? Down(nearest) : nearest;
    return nearest < 0 && above ? Up(nearest) : down;
  }
  return nearest;
}

template <typename T>
T TwoSumError(T a, T b, T sum) {
  const T bb = sum - a;
  return (a - (sum - bb)) + (b - bb);
}

// Comparisons with NaN are false, so an error that came out as NaN (infinite
// or NaN operands) changes nothing.

// float: a double holds products exactly; `low` is what the double sum lost.
template <Mode mode>
float NarrowFrom(double high, double low) {
  const float nearest = (float)high;
  const double difference = high - (double)nearest;
  const double error = difference != 0 ? difference : low;
  return Direct<mode>(nearest, error, IsFinite(high));
}

// An exact sum of zero is -0 when rounding down, but for +0 + +0.
template <Mode mode, typename T>
bool IsNegativeZero(T a, T b) {
  const bool negative =
      (Bits<typename Traits<T>::Int>(a) | Bits<typename Traits<T>::Int>(b)) >>
      (sizeof(T) * 8 - 1);
  return mode == kDown && a + b == 0 && negative;
}

template <Mode mode>
float Add(float a, float b) {
  const double sum = (double)a + (double)b;
  const double low = TwoSumError<double>(a, b, sum);
  const float result = NarrowFrom<mode>(sum, low);
  return IsNegativeZero<mode>(a, b) ? -0.0f : result;
}
template <Mode mode>
float Mul(float a, float b) {
  return NarrowFrom<mode>((double)a * (double)b, 0);
}
template <Mode mode>
float Fma(float a, float b, float c) {
  const double product = (double)a * (double)b;
  const double sum = product + (double)c;
  const float result =
      NarrowFrom<mode>(sum, TwoSumError<double>(product, c, sum));
  return IsNegativeZero<mode>(product, (double)c) ? -0.0f : result;
}
template <Mode mode>
float Div(float a, float b) {
  const float quotient = a / b;
  const double remainder = (double)a - (double)quotient * (double)b;
  return Direct<mode>(quotient, b < 0 ? -remainder : remainder,
                      IsFinite(a) & (b != 0));
}
template <Mode mode>
float Sqrt(float a) {
  const float root = __builtin_sqrtf(a);
  return Direct<mode>(root, (double)a - (double)root * (double)root, false);
}

template <Mode mode>
double Add(double a, double b) {
  const double sum = a + b;
  const double result =
      Direct<mode>(sum, TwoSumError(a, b, sum), IsFinite(a) & IsFinite(b));
  return IsNegativeZero<mode>(a, b) ? -0.0 : result;
}
// What hardware rounded to nearest is compared with the exact result among
// numbers scaled so that no error term underflows.
int ExponentOf(double x) {
  const double scaled = __builtin_fabs(x) * 0x1p64;
  const int own = (int)(Bits<u64>(x) >> 52 & 0x7ff) - 1023;
  const int small = (int)(Bits<u64>(scaled) >> 52) - 1023 - 64;
  const int exponent = own == -1023 ? small : own;
  return (x == 0) | !IsFinite(x) ? 0 : exponent;
}
// x * 2^power, in steps that are normal numbers.
double Scale(double x, int power) {
  const int limited = power > 3000 ? 3000 : (power < -3000 ? -3000 : power);
  const int step = limited / 3;
  const double by = Bits<double>((u64)(1023 + step) << 52);
  const double last = Bits<double>((u64)(1023 + limited - 2 * step) << 52);
  return x * by * by * last;
}
double Sign(double x) { return x > 0 ? 1 : (x < 0 ? -1 : x); }

// The sign of a * b + c - result, where `result` is the sum rounded.
double FmaError(double a, double b, double c, double result) {
  const int ea = ExponentOf(a), eb = ExponentOf(b);
  const double x = Scale(a, -ea), y = Scale(b, -eb);
  const double product = x * y;
  const double product_low = __builtin_fma(x, y, -product);
  const int distance = ExponentOf(c) - ea - eb;
  const bool apart =
      (c != 0) & IsFinite(c) & ((distance > 200) | (distance < -200));
  // Too small to matter for the result, c keeps its sign only.
  const double near = apart ? 0 : Scale(c, -ea - eb);
  const double far = apart ? Sign(c) * 0x1p-900 : 0;
  const double sum = product + near;
  const double sum_low = TwoSumError(product, near, sum);
  const double rest = sum - Scale(result, -ea - eb);
  const double low = sum_low + product_low;
  const double lowest = TwoSumError(sum_low, product_low, low);
  const double known = rest + low;
  const double error = known != 0 ? known : (lowest != 0 ? lowest : far);
  // A c so large leaves the product below its last place.
  const bool buried = apart & (distance > 0) & IsFinite(result);
  return product == 0 ? 0 : (buried ? Sign(product) : error);
}
template <Mode mode>
double Mul(double a, double b) {
  const double product = a * b;
  return Direct<mode>(product, FmaError(a, b, 0, product),
                      IsFinite(a) & IsFinite(b));
}
template <Mode mode>
double Fma(double a, double b, double c) {
  const double result = __builtin_fma(a, b, c);
  const double directed = Direct<mode>(result, FmaError(a, b, c, result),
                                       IsFinite(a) & IsFinite(b) & IsFinite(c));
  // An exact sum of zero.
  const bool is_zero = (a == 0) | (b == 0) | (FmaError(a, b, c, 0) == 0);
  return IsNegativeZero<mode>(a * b, c) & is_zero & (directed == 0) ? -0.0
                                                                    : directed;
}
template <Mode mode>
double Div(double a, double b) {
  const double quotient = a / b;
  const int ea = ExponentOf(a), eb = ExponentOf(b);
  const double scaled = Scale(b, -eb);
  const double remainder =
      __builtin_fma(-Scale(quotient, eb - ea), scaled, Scale(a, -ea));
  return Direct<mode>(quotient, b < 0 ? -remainder : remainder,
                      IsFinite(a) & (b != 0));
}
template <Mode mode>
double Sqrt(double a) {
  const double root = __builtin_sqrt(a);
  const int half = ExponentOf(a) / 2;
  const double scaled = Scale(root, -half);
  return Direct<mode>(root, __builtin_fma(-scaled, scaled, Scale(a, -2 * half)),
                      false);
}

// Integers to floating point. The rounded value is compared with the integer
// in 128 bits, which hold both.
template <Mode mode, typename T, typename I>
T FromInteger(I value) {
  const T nearest = (T)value;
  const __int128 back = (__int128)nearest;
  const __int128 difference = (__int128)value - back;
  return Direct<mode>(nearest, difference, false);
}

// 2^x for |fraction| <= 1/2 by its Taylor polynomial in double: 1e-11.
double Exp2Fraction(double f) {
  const double y = f * 0.6931471805599453;
  double p = 1.0 / 40320;
  p = p * y + 1.0 / 5040;
  p = p * y + 1.0 / 720;
  p = p * y + 1.0 / 120;
  p = p * y + 1.0 / 24;
  p = p * y + 1.0 / 6;
  p = p * y + 0.5;
  p = p * y + 1.0;
  return p * y + 1.0;
}

double Exp2(double x) {
  const double clamped = x < -200 ? -200 : (x > 200 ? 200 : x);
  const double whole = __builtin_rint(clamped);
  const double fraction = Exp2Fraction(clamped - whole);
  const s64 exponent = (s64)(int)whole + 1023;
  const double scaled = fraction * Bits<double>((u64)exponent << 52);
  return x == x ? scaled : x;
}

// log2 of a positive, normal double.
double Log2Positive(double x) {
  const u64 bits = Bits<u64>(x);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  const u64 offset = bits - 0x3fe6a09e667f3bcdul;
  const double exponent = (double)(int)((s64)offset >> 52);
  const double m = Bits<double>(bits - (offset & 0xfff0000000000000ul));
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double p = 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1.0;
  return exponent + 2.8853900817779268 * s * p;
}

// sin(2 pi t) for |t| <= 1/2, by odd polynomial after folding to |t| <= 1/4.
double SinTurns(double t) {
  const double a = __builtin_fabs(t);
  const double folded = __builtin_copysign(a > 0.25 ? 0.5 - a : a, t);
  const double x = folded * 6.283185307179586;
  const double z = x * x;
  double p = -1.0 / 1307674368000;
  p = p * z + 1.0 / 6227020800;
  p = p * z - 1.0 / 39916800;
  p = p * z + 1.0 / 362880;
  p = p * z - 1.0 / 5040;
  p = p * z + 1.0 / 120;
  p = p * z - 1.0 / 6;
  return x + x * z * p;
}

// The hardware multiplies by 1 / (2 pi) in float, rounding towards zero, before
// it looks up a sine: of large arguments that decides the result.
double Turns(float x, double phase) {
  const double turns = (double)Mul<kZero>(x, 0.15915494f);
  const double within = turns - __builtin_rint(turns) + phase;
  return within - __builtin_rint(within);
}

}  // namespace

#define API extern "C"

#define DIRECTED(suffix, mode, T, t)                                       \
  API T __reprise_add_##suffix##_##t(T a, T b) { return Add<mode>(a, b); } \
  API T __reprise_mul_##suffix##_##t(T a, T b) { return Mul<mode>(a, b); } \
  API T __reprise_div_##suffix##_##t(T a, T b) { return Div<mode>(a, b); } \
  API T __reprise_sqrt_##suffix##_##t(T a) { return Sqrt<mode>(a); }       \
  API T __reprise_fma_##suffix##_##t(T a, T b, T c) {                      \
    return Fma<mode>(a, b, c);                                             \
  }                                                                        \
  API T __reprise_cvt_##suffix##_##t##_s32(int a) {                        \
    return FromInteger<mode, T>(a);                                        \
  }                                                                        \
  API T __reprise_cvt_##suffix##_##t##_u32(u32 a) {                        \
    return FromInteger<mode, T>(a);                                        \
  }                                                                        \
  API T __reprise_cvt_##suffix##_##t##_s64(s64 a) {                        \
    return FromInteger<mode, T>(a);                                        \
  }                                                                        \
  API T __reprise_cvt_##suffix##_##t##_u64(u64 a) {                        \
    return FromInteger<mode, T>(a);                                        \
  }
DIRECTED(rz, kZero, float, f32)
DIRECTED(rm, kDown, float, f32)
DIRECTED(rp, kUp, float, f32)
DIRECTED(rz, kZero, double, f64)
DIRECTED(rm, kDown, double, f64)
DIRECTED(rp, kUp, double, f64)

API float __reprise_cvt_rz_f32_f64(double a) { return NarrowFrom<kZero>(a, 0); }
API float __reprise_cvt_rm_f32_f64(double a) { return NarrowFrom<kDown>(a, 0); }
API float __reprise_cvt_rp_f32_f64(double a) { return NarrowFrom<kUp>(a, 0); }

// The double sum rounded to odd: narrowing it further rounds once.
API double __reprise_fma_odd(double a, double b, double c) {
  const double product = a * b;  // exact for 24-bit and shorter operands
  const double sum = product + c;
  const double low = TwoSumError(product, c, sum);
  const u64 bits = Bits<u64>(sum);
  const u64 away = (low > 0) == (sum > 0) ? bits + 1 : bits - 1;
  const bool adjust = (low != 0) & (low == low) & ((bits & 1) == 0);
  return adjust ? Bits<double>(away) : sum;
}

API float __reprise_ex2_approx_f32(float x) { return (float)Exp2(x); }
API float __reprise_lg2_approx_f32(float x) {
  const double result = Log2Positive((double)x);
  const double at_zero = x == 0 ? -__builtin_inf() : result;
  const double infinite = x > Traits<float>::kMax ? __builtin_inf() : at_zero;
  return x < 0 || x != x ? __builtin_nanf("") : (float)infinite;
}
API float __reprise_sin_approx_f32(float x) {
  return (float)SinTurns(Turns(x, 0));
}
API float __reprise_cos_approx_f32(float x) {
  return (float)SinTurns(Turns(x, 0.25));
}
API float __reprise_tanh_approx_f32(float x) {
  const double e = Exp2((double)x * 2.8853900817779268);
  const double t = 1.0 - 2.0 / (e + 1.0);
  const double small = (double)x * (1.0 - (double)x * (double)x / 3.0);
  return (float)(__builtin_fabsf(x) < 1e-4f ? small : t);
}

// --- 8-bit floating point.

// `x` rounded to nearest even with `mantissa` bits and exponents from `lowest`
// on, as the format's code; no larger than `largest`. NaN is 0x7f.
static u16 ToCode(float x, bool relu, int mantissa, int lowest, u32 largest) {
  const u64 bits = Bits<u64>((double)__builtin_fabsf(x));
  const int own = (int)(bits >> 52) - 1023;
  const int exponent = own < lowest ? lowest : own;
  // Steps of the last place are integers after this scaling, which is exact.
  const double scale = Bits<double>((u64)(1023 + mantissa - exponent) << 52);
  const double steps = __builtin_rint(__builtin_fabs((double)x) * scale);
  const bool over = !(__builtin_fabsf(x) < 65536.0f);
  const u32 code =
      (u32)(int)(over ? 0.0 : steps) + ((u32)(exponent - lowest) << mantissa);
  const u32 magnitude = over || code > largest ? largest : code;
  const bool negative = Bits<u32>(x) >> 31;
  const u32 result = negative ? (relu ? 0 : magnitude | 0x80) : magnitude;
  return (u16)(x != x ? 0x7f : result);
}
API u16 __reprise_cvt_e4m3_f32(float x, bool relu) {
  return ToCode(x, relu, 3, -6, 0x7e);
}
API u16 __reprise_cvt_e5m2_f32(float x, bool relu) {
  return ToCode(x, relu, 2, -14, 0x7b);
}

static u16 FromCode(u16 half, u16 code, bool is_nan, bool relu) {
  const u16 result = relu && (code & 0x80) ? 0 : half;
  return is_nan ? 0x7fff : result;
}
API u16 __reprise_cvt_f16_e4m3(u16 code, bool relu) {
  const int exponent = (code >> 3) & 15;
  const int fraction = code & 7;
  const float steps = (float)(exponent > 0 ? 8 + fraction : fraction);
  const int power = (exponent > 0 ? exponent : 1) - 10;
  const float value = steps * Bits<float>((u32)(127 + power) << 23);
  const u16 half = Bits<u16>((_Float16)value) | (u16)((code & 0x80) << 8);
  return FromCode(half, code, (code & 0x7f) == 0x7f, relu);
}
API u16 __reprise_cvt_f16_e5m2(u16 code, bool relu) {
  return FromCode((u16)(code << 8), code, (code & 0x7f) > 0x7c, relu);
}

// To a mantissa of 10 bits, ties away from zero.
API u32 __reprise_cvt_tf32(u32 bits) {
  const u32 magnitude = bits & 0x7fffffff;
  const u32 rounded = (bits + 0x1000) & 0xffffe000;
  return magnitude >= 0x7f800000 ? bits & 0xffffe000 : rounded;
}

// --- mbarrier. Bits 19 to 0: arrivals that are awaited; 39 to 20: how many a
// phase awaits; above: number of the phase.

API void __reprise_mbarrier_init(u64* barrier, u64 count) {
  __atomic_store_n(barrier, (count & 0xfffff) * 0x100001, __ATOMIC_SEQ_CST);
}
// The state before; dropping ones are awaited no more in later phases.
API u64 __reprise_mbarrier_arrive(u64* barrier, u64 count, bool drop) {
  u64 old = __atomic_load_n(barrier, __ATOMIC_SEQ_CST);
  u64 next;
  do {
    const u64 pending = (old & 0xfffff) - count;
    const u64 expected = ((old >> 20) & 0xfffff) - (drop ? count : 0);
    const u64 phase = (old >> 40) + (pending == 0);
    next = phase << 40 | expected << 20 | (pending == 0 ? expected : pending);
  } while (!__atomic_compare_exchange_n(barrier, &old, next, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return old;
}
// Whether the phase of that state, or of that parity, is over.
API bool __reprise_mbarrier_test(u64* barrier, u64 phase, bool is_parity) {
  const u64 now = __atomic_load_n(barrier, __ATOMIC_SEQ_CST) >> 40;
  return is_parity ? (now & 1) != (phase & 1)
                   : (now & 0xffffff) != (phase >> 40);
}

// --- Integers.

API u32 __reprise_prmt(u32 a, u32 b, u32 selector) {
  const u64 bytes = ((u64)b << 32) | a;
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 nibble = selector >> (4 * i);
    const u32 byte = (u32)(bytes >> (8 * (nibble & 7))) & 0xff;
    const u32 sign = (byte & 0x80) ? 0xff : 0;
    result |= ((nibble & 8) ? sign : byte) << (8 * i);
  }
  return result;
}
// The other modes pick by the low two bits of the selector.
API u32 __reprise_prmt_f4e(u32 a, u32 b, u32 s) {
  const u64 bytes = ((u64)b << 32) | a;
  return (u32)(bytes >> (8 * (s & 3)));
}
API u32 __reprise_prmt_b4e(u32 a, u32 b, u32 s) {
  u32 result = 0;
  const u64 bytes = ((u64)b << 32) | a;
  for (int i = 0; i < 4; ++i)
    result |= ((u32)(bytes >> (8 * (((s & 3) - i) & 7))) & 0xff) << (8 * i);
  return result;
}
API u32 __reprise_prmt_rc8(u32 a, u32, u32 s) {
  return ((a >> (8 * (s & 3))) & 0xff) * 0x01010101u;
}
API u32 __reprise_prmt_ecl(u32 a, u32, u32 s) {
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    const u32 from = i > (s & 3) ? i : (s & 3);
    result |= ((a >> (8 * from)) & 0xff) << (8 * i);
  }
  return result;
}
API u32 __reprise_prmt_ecr(u32 a, u32, u32 s) {
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    const u32 from = i < (s & 3) ? i : (s & 3);
    result |= ((a >> (8 * from)) & 0xff) << (8 * i);
  }
  return result;
}
API u32 __reprise_prmt_rc16(u32 a, u32, u32 s) {
  return ((a >> (16 * (s & 1))) & 0xffff) * 0x00010001u;
}

API u32 __reprise_bfe_u32(u32 a, u32 position, u32 length) {
  const u32 p = position & 0xff, n = length & 0xff;
  const u64 mask = n > 63 ? ~0ul : (1ul << n) - 1;
  return p > 31 ? 0 : (u32)(((u64)a >> p) & mask);
}
// Of 64 bits, all bits of position and length count.
API u64 __reprise_bfe_u64(u64 a, u32 p, u32 n) {
  const u64 mask = n > 63 ? ~0ul : (1ul << n) - 1;
  return p > 63 ? 0 : (a >> p) & mask;
}
API u32 __reprise_bfe_s32(u32 a, u32 position, u32 length) {
  const u32 p = position & 0xff, n = length & 0xff;
  if (n == 0) return 0;
  const u32 top = p + n - 1 > 31 ? 31 : p + n - 1;
  const u64 wide = (u64)(s64)(int)a;
  const u32 shift = p > 63 ? 63 : p;
  const u64 field = (u64)((s64)wide >> shift);
  const u32 width = top >= p ? top - p + 1 : 1;
  const u64 sign = (a >> top) & 1;
  const u64 mask = width > 63 ? ~0ul : (1ul << width) - 1;
  return p > 31 ? (sign ? ~0u : 0) : (u32)((field & mask) | (sign ? ~mask : 0));
}
API u64 __reprise_bfe_s64(u64 a, u32 p, u32 n) {
  if (n == 0) return 0;
  const u32 top = (u64)p + n > 64 ? 63 : p + n - 1;
  const u64 sign = (a >> top) & 1;
  if (p > 63) return sign ? ~0ul : 0;
  const u32 width = top - p + 1;
  const u64 mask = width > 63 ? ~0ul : (1ul << width) - 1;
  return ((a >> p) & mask) | (sign ? ~mask : 0);
}
API u32 __reprise_bfi_b32(u32 insert, u32 base, u32 position, u32 length) {
  const u32 p = position & 0xff, n = length & 0xff;
  const u64 field = n > 31 ? 0xffffffffu : (1u << n) - 1;
  const u32 mask = p > 31 ? 0 : (u32)(field << p);
  return (base & ~mask) | ((u32)((u64)insert << (p & 31)) & mask);
}
API u64 __reprise_bfi_b64(u64 insert, u64 base, u32 p, u32 n) {
  const u64 field = n > 63 ? ~0ul : (1ul << n) - 1;
  const u64 mask = p > 63 ? 0 : field << p;
  return (base & ~mask) | ((insert << (p & 63)) & mask);
}

// `width` ones from bit `position` on.
API u32 __reprise_bmsk(u32 position, u32 width, bool clamp) {
  const u32 p = clamp ? (position > 32 ? 32 : position) : position & 31;
  const u32 n = clamp ? (width > 32 ? 32 : width) : width & 31;
  return (u32)(((1ul << n) - 1) << p);
}
// The lowest bits, extended.
API u32 __reprise_szext_u32(u32 a, u32 bits, bool clamp) {
  const u32 n = clamp ? (bits > 32 ? 32 : bits) : bits & 31;
  return (u32)(a & ((1ul << n) - 1));
}
API u32 __reprise_szext_s32(u32 a, u32 bits, bool clamp) {
  const u32 n = clamp ? (bits > 32 ? 32 : bits) : bits & 31;
  return n == 0 ? 0 : (u32)((s64)((u64)a << (64 - n)) >> (64 - n));
}

// Position of the n-th set bit from `base`, or all ones.
API u32 __reprise_fns(u32 mask, u32 base, u32 offset) {
  const int n = (int)offset;
  if (n == 0) return (mask >> (base & 31)) & 1 ? base : ~0u;
  int left = n > 0 ? n : -n;
  for (int i = (int)base; i >= 0 && i < 32; i += n > 0 ? 1 : -1) {
    left -= (mask >> i) & 1;
    if (left == 0) return (u32)i;
  }
  return ~0u;
}

API u32 __reprise_bfind_u32(u32 a) {
  return a == 0 ? ~0u : 31 - __builtin_clz(a);
}
API u32 __reprise_bfind_u64(u64 a) {
  return a == 0 ? ~0u : 63 - __builtin_clzl(a);
}

#define BYTE(type, word, i) ((int)(type)((word) >> (8 * (i))))
#define HALF(type, word, i) ((int)(type)((word) >> (16 * (i))))
#define DOT(name, A, B)                                               \
  API u32 __reprise_dp4a_##name(u32 a, u32 b, u32 c) {                \
    u32 sum = c;                                                      \
    for (int i = 0; i < 4; ++i) sum += BYTE(A, a, i) * BYTE(B, b, i); \
    return sum;                                                       \
  }                                                                   \
  API u32 __reprise_dp2a_##name(u32 a, u32 b, bool high, u32 c) {     \
    u32 sum = c;                                                      \
    for (int i = 0; i < 2; ++i)                                       \
      sum += HALF(A##16, a, i) * BYTE(B, b, i + (high ? 2 : 0));      \
    return sum;                                                       \
  }
using s8 = signed char;
using s816 = short;
using u816 = u16;
DOT(s_s, s8, s8)
DOT(s_u, s8, u8)
DOT(u_s, u8, s8)
DOT(u_u, u8, u8)
