// Arithmetic of device code against the host's own: directed rounding against
// fesetround, libdevice against libm, halves against their definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "tests/replay/device/device_test_util.h"

namespace reprise {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr int kModes[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
constexpr const char* kModeNames[4] = {"rn", "rz", "rd", "ru"};

class NumericsTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = machine_.Load("math");
    ASSERT_TRUE(status.ok()) << status;
  }
  // Values of all sizes, and the special ones among them.
  template <typename T>
  std::vector<T> Operands(size_t count, uint32_t seed, int exponents) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> mantissa(-2, 2);
    std::uniform_int_distribution<int> exponent(-exponents, exponents);
    std::vector<T> values(count);
    for (T& value : values) {
      value = static_cast<T>(std::ldexp(mantissa(random), exponent(random)));
    }
    return values;
  }
  TestMachine machine_;
};

template <typename T>
bool Same(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

// One operation in the current rounding mode; volatile keeps the compiler from
// folding or moving it.
template <typename T>
T Operate(int operation, T x, T y, T z) {
  volatile T a = x, b = y, c = z;
  volatile T result;
  switch (operation) {
    case 0:
      result = a + b;
      break;
    case 1:
      result = a * b;
      break;
    case 2:
      result = a / b;
      break;
    case 3:
      result = std::fma(T(a), T(b), T(c));
      break;
    default:
      result = std::sqrt(T(a));
  }
  return result;
}

template <typename T>
void ExpectRounded(const std::vector<T>& a, const std::vector<T>& b,
                   const std::vector<T>& c, const T* got) {
  constexpr const char* kNames[5] = {"add", "mul", "div", "fma", "sqrt"};
  for (size_t i = 0; i < a.size(); ++i) {
    for (int operation = 0; operation < 5; ++operation) {
      for (int mode = 0; mode < 4; ++mode) {
        std::fesetround(kModes[mode]);
        const T expected = Operate(operation, a[i], b[i], c[i]);
        std::fesetround(FE_TONEAREST);
        const T value = got[20 * i + 4 * operation + mode];
        ASSERT_TRUE(Same(value, expected))
            << kNames[operation] << "." << kModeNames[mode] << " of " << a[i]
            << ", " << b[i] << ", " << c[i] << ": got " << value
            << ", expected " << expected;
      }
    }
  }
}

TEST_F(NumericsTest, FloatsRoundInAllDirections) {
  constexpr size_t kCount = 4096;
  auto a = Operands<float>(kCount, 1, 60);
  auto b = Operands<float>(kCount, 2, 60);
  auto c = Operands<float>(kCount, 3, 60);
  const float inf = std::numeric_limits<float>::infinity();
  const float max = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float special[] = {0.0f,          -0.0f, 1.0f, -1.0f, inf,    -inf,
                           std::nanf(""), max,   -max, tiny,  1e-38f, 3.0f};
  size_t i = 0;
  for (const float x : special) {
    for (const float y : special) {
      a[i] = x;
      b[i] = y;
      c[i] = special[i % 12];
      ++i;
    }
  }
  for (; i < 1000; ++i)
    b[i] = -a[i] * (1 + (i % 3) * 0x1p-23f);  // cancellation
  const uint64_t da = machine_.Upload(a), db = machine_.Upload(b),
                 dc = machine_.Upload(c);
  const uint64_t out = machine_.Allocate(kCount * 80);
  machine_.Run("RoundFloats", MakeLaunch({kCount / 128}, {128}),
               Arguments().Add(da).Add(db).Add(dc).Add(out));
  ExpectRounded(a, b, c, machine_.host<float>(out));
}

TEST_F(NumericsTest, DoublesRoundInAllDirections) {
  constexpr size_t kCount = 4096;
  auto a = Operands<double>(kCount, 4, 300);
  auto b = Operands<double>(kCount, 5, 300);
  auto c = Operands<double>(kCount, 6, 300);
  const double inf = std::numeric_limits<double>::infinity();
  const double max = std::numeric_limits<double>::max();
  const double special[] = {0.0,  -0.0,         1.0, -1.0, inf,
                            -inf, std::nan(""), max, -max, 3.0};
  size_t i = 0;
  for (const double x : special) {
    for (const double y : special) {
      a[i] = x;
      b[i] = y;
      c[i] = special[i % 10];
      ++i;
    }
  }
  for (; i < 1000; ++i) c[i] = -a[i] * b[i] * (1 + (i % 5) * 0x1p-52);
  const uint64_t da = machine_.Upload(a), db = machine_.Upload(b),
                 dc = machine_.Upload(c);
  const uint64_t out = machine_.Allocate(kCount * 160);
  machine_.Run("RoundDoubles", MakeLaunch({kCount / 128}, {128}),
               Arguments().Add(da).Add(db).Add(dc).Add(out));
  ExpectRounded(a, b, c, machine_.host<double>(out));
}

TEST_F(NumericsTest, ConversionsRoundInAllDirections) {
  constexpr size_t kCount = 1024;
  auto d = Operands<double>(kCount, 7, 40);
  std::vector<int64_t> l(kCount);
  std::mt19937_64 random(8);
  for (size_t i = 0; i < kCount; ++i)
    l[i] = static_cast<int64_t>(random()) >> (i % 60);
  d[0] = 2.5;
  d[1] = -2.5;
  d[2] = 0.5;
  d[3] = 1e300;
  d[4] = -0.0;
  l[0] = INT64_MAX;
  l[1] = INT64_MIN;
  const uint64_t dd = machine_.Upload(d), dl = machine_.Upload(l);
  const uint64_t f = machine_.Allocate(kCount * 16),
                 i32 = machine_.Allocate(kCount * 16);
  const uint64_t i64 = machine_.Allocate(kCount * 32),
                 lf = machine_.Allocate(kCount * 16);
  const uint64_t ld = machine_.Allocate(kCount * 32);
  machine_.Run(
      "RoundConversions", MakeLaunch({kCount / 64}, {64}),
      Arguments().Add(dd).Add(dl).Add(f).Add(i32).Add(i64).Add(lf).Add(ld));
  for (size_t i = 0; i < kCount; ++i) {
    for (int mode = 0; mode < 4; ++mode) {
      std::fesetround(kModes[mode]);
      volatile double x = d[i];
      volatile int64_t n = l[i];
      const volatile float as_float = static_cast<float>(x);
      const volatile double integral = std::nearbyint(x);
      const volatile float from_long = static_cast<float>(n);
      const volatile double long_double = static_cast<double>(n);
      std::fesetround(FE_TONEAREST);
      const size_t at = 4 * i + mode;
      ASSERT_TRUE(Same(machine_.host<float>(f)[at], float(as_float)))
          << kModeNames[mode] << " " << d[i];
      const double whole = integral;
      const int expected32 = whole >= 0x1p31   ? INT32_MAX
                             : whole < -0x1p31 ? INT32_MIN
                                               : static_cast<int>(whole);
      ASSERT_EQ(machine_.host<int>(i32)[at], expected32)
          << kModeNames[mode] << " " << d[i];
      const int64_t expected64 = whole >= 0x1p63 ? INT64_MAX
                                 : whole < -0x1p63
                                     ? INT64_MIN
                                     : static_cast<int64_t>(whole);
      ASSERT_EQ(machine_.host<int64_t>(i64)[at], expected64)
          << kModeNames[mode] << " " << d[i];
      ASSERT_EQ(machine_.host<float>(lf)[at], float(from_long))
          << kModeNames[mode] << " " << l[i];
      ASSERT_EQ(machine_.host<double>(ld)[at], double(long_double))
          << kModeNames[mode] << " " << l[i];
    }
  }
}

template <typename T>
std::vector<T> HostFunctions(T x, T y) {
  const T a = std::fabs(x);
  return {std::exp(x),
          std::log(a),
          std::sin(x),
          std::cos(x),
          std::tan(x),
          std::tanh(x),
          std::pow(a, y),
          std::cbrt(x),
          std::erf(x),
          std::tgamma(x),
          std::lgamma(x),
          std::atan2(x, y),
          std::hypot(x, y),
          std::fmod(x, y),
          std::remainder(x, y),
          std::exp2(x),
          std::log1p(a),
          std::expm1(x),
          std::asin(std::sin(x)),
          std::sinh(x),
          std::log2(a),
          std::rint(x),
          std::round(x),
          std::nearbyint(x)};
}

template <typename T>
void ExpectFunctions(TestMachine& machine, const std::string& kernel,
                     double ulps) {
  constexpr size_t kCount = 512;
  std::vector<T> a(kCount), b(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<T>((i - 256.0) / 37 + 0.013);
    b[i] = static_cast<T>((i % 17) / 5.0 + 0.11);
  }
  a[0] = static_cast<T>(1e5);  // the slow path of the range reduction
  a[1] = static_cast<T>(88.5);
  const uint64_t da = machine.Upload(a), db = machine.Upload(b);
  const uint64_t out = machine.Allocate(kCount * 24 * sizeof(T));
  machine.Run(kernel, MakeLaunch({kCount / 64}, {64}),
              Arguments().Add(da).Add(db).Add(out));
  const T epsilon = std::numeric_limits<T>::epsilon();
  for (size_t i = 0; i < kCount; ++i) {
    const std::vector<T> expected = HostFunctions(a[i], b[i]);
    for (size_t f = 0; f < 24; ++f) {
      const T got = machine.host<T>(out)[24 * i + f];
      if (!std::isfinite(expected[f])) {
        EXPECT_TRUE(Same(got, expected[f]))
            << f << " of " << a[i] << " " << b[i];
        continue;
      }
      const T scale =
          std::max(std::fabs(expected[f]), T(f == 10 || f == 18 ? 1 : 1e-30));
      EXPECT_NEAR(got, expected[f], ulps * epsilon * scale)
          << "function " << f << " of " << a[i] << ", " << b[i];
    }
  }
}

TEST_F(NumericsTest, FloatFunctionsOfLibdevice) {
  ExpectFunctions<float>(machine_, "FloatFunctions", 10);
}
TEST_F(NumericsTest, DoubleFunctionsOfLibdevice) {
  ExpectFunctions<double>(machine_, "DoubleFunctions", 12);
}

TEST_F(NumericsTest, FastFunctionsAreClose) {
  constexpr size_t kCount = 256;
  std::vector<float> a(kCount);
  for (size_t i = 0; i < kCount; ++i) a[i] = (i - 128.0f) / 31 + 0.007f;
  const uint64_t da = machine_.Upload(a);
  const uint64_t out = machine_.Allocate(kCount * 32);
  machine_.Run("FastFunctions", MakeLaunch({4}, {64}),
               Arguments().Add(da).Add(out));
  for (size_t i = 0; i < kCount; ++i) {
    const float* got = machine_.host<float>(out) + 8 * i;
    const float x = a[i];
    const float m = std::fabs(x);
    EXPECT_NEAR(got[0], std::exp(x), 3e-6f * std::exp(x));
    EXPECT_NEAR(got[1], std::log(m), 3e-6f);
    EXPECT_NEAR(got[2], std::sin(x), 2e-6f);
    EXPECT_NEAR(got[3], std::cos(x), 2e-6f);
    EXPECT_NEAR(got[4], std::pow(m, 1.5f), 4e-6f * std::pow(m, 1.5f));
    EXPECT_NEAR(got[5], 1 / std::sqrt(m), 4e-7f / std::sqrt(m));
    EXPECT_EQ(got[6], 1 / x);
    EXPECT_EQ(got[7], std::min(std::max(x, 0.0f), 1.0f));
  }
}

float Half(double value) {
  return static_cast<float>(static_cast<_Float16>(value));
}

TEST_F(NumericsTest, Halves) {
  std::vector<float> a(64), b(64);
  for (int i = 0; i < 64; ++i) {
    a[i] = (i - 30) * 0.37f + 0.0009f;
    b[i] = 1.7f - i * 0.21f;
  }
  a[5] = 70000;  // too large for a half
  a[6] = 1e-6f;  // a denormal half
  const uint64_t da = machine_.Upload(a), db = machine_.Upload(b);
  const uint64_t out = machine_.Allocate(64 * 48),
                 pairs = machine_.Allocate(64 * 4);
  const uint64_t ints = machine_.Allocate(64 * 4);
  machine_.Run("Halves", MakeLaunch({1}, {64}),
               Arguments().Add(da).Add(db).Add(out).Add(pairs).Add(ints));
  for (int i = 0; i < 64; ++i) {
    const float* got = machine_.host<float>(out) + 12 * i;
    const float x = Half(a[i]), y = Half(b[i]);
    EXPECT_EQ(got[0], x);
    EXPECT_EQ(got[1], Half(x + y));
    EXPECT_EQ(got[2], Half(double(x) * y));
    EXPECT_EQ(got[3], Half(double(x) * y + x));
    if (std::isinf(x)) {
      EXPECT_EQ(got[4], x / y);
    } else {
      EXPECT_NEAR(got[4], x / y, std::fabs(x / y) * 0x1p-10 + 0x1p-24);
    }
    EXPECT_EQ(got[5], Half(std::sqrt(std::fabs(x))));
    EXPECT_EQ(got[6], x < y);
    if (i != 5) {
      EXPECT_NEAR(got[7], std::exp(x / 8), std::exp(x / 8) * 0x1p-8);
      EXPECT_LE(got[8], a[i]);
      EXPECT_GE(got[9], a[i]);
      EXPECT_LE(got[9] - got[8], std::max(std::fabs(a[i]) * 0x1p-10, 0x1p-24));
      EXPECT_EQ(machine_.host<int>(ints)[i], static_cast<int>(x));
    }
    EXPECT_EQ(got[10], std::max(x, y));
    EXPECT_EQ(got[11], std::floor(x));
    _Float16 pair[2];
    std::memcpy(pair, machine_.host<char>(pairs) + 4 * i, 4);
    EXPECT_EQ(static_cast<float>(pair[0]), Half(2.0 * x + y));
    EXPECT_EQ(static_cast<float>(pair[1]), Half(2.0 * y + x));
  }
}

float BFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
  std::memcpy(&value, &bits, 4);
  return value;
}

TEST_F(NumericsTest, BFloats) {
  std::vector<float> a(64), b(64);
  for (int i = 0; i < 64; ++i) {
    a[i] = (i - 30) * 0.377f;
    b[i] = 1.7f - i * 0.21f;
  }
  const uint64_t da = machine_.Upload(a), db = machine_.Upload(b);
  const uint64_t out = machine_.Allocate(64 * 24),
                 pairs = machine_.Allocate(64 * 4);
  machine_.Run("BFloats", MakeLaunch({1}, {64}),
               Arguments().Add(da).Add(db).Add(out).Add(pairs));
  for (int i = 0; i < 64; ++i) {
    const float* got = machine_.host<float>(out) + 6 * i;
    const float x = BFloat(a[i]), y = BFloat(b[i]);
    EXPECT_EQ(got[0], x);
    EXPECT_EQ(got[1], BFloat(x + y));
    EXPECT_EQ(got[2], BFloat(x * y));
    EXPECT_EQ(got[3], BFloat(static_cast<float>(double(x) * y + x)));
    EXPECT_EQ(got[4], x > y);
    EXPECT_LE(std::fabs(got[5]), std::fabs(a[i]));
    EXPECT_EQ(machine_.host<uint16_t>(pairs)[2 * i],
              machine_.host<uint16_t>(pairs)[2 * i + 1]);
  }
}

TEST_F(NumericsTest, BitsOfWords) {
  std::vector<uint32_t> a(32), b(32);
  std::mt19937 random(9);
  for (int i = 0; i < 32; ++i) {
    a[i] = static_cast<uint32_t>(random()) >> (i % 20);
    b[i] = static_cast<uint32_t>(random());
  }
  a[0] = 0;
  const uint64_t da = machine_.Upload(a), db = machine_.Upload(b);
  const uint64_t out = machine_.Allocate(32 * 64);
  machine_.Run("Bits", MakeLaunch({1}, {32}),
               Arguments().Add(da).Add(db).Add(out));
  for (int i = 0; i < 32; ++i) {
    const uint32_t* got = machine_.host<uint32_t>(out) + 16 * i;
    const uint32_t x = a[i], y = b[i];
    const auto sx = static_cast<int32_t>(x), sy = static_cast<int32_t>(y);
    EXPECT_EQ(got[0], __builtin_bitreverse32(x));
    EXPECT_EQ(got[1], x == 0 ? 32u : static_cast<uint32_t>(__builtin_clz(x)));
    EXPECT_EQ(got[2], static_cast<uint32_t>(__builtin_popcount(x)));
    EXPECT_EQ(got[3], static_cast<uint32_t>(__builtin_ffs(sx)));
    const uint64_t both = (uint64_t{y} << 32) | x;
    uint32_t permuted = 0;
    for (int k = 0; k < 4; ++k)
      permuted |= ((both >> (8 * (2 * k + 1))) & 0xff) << (8 * k);
    EXPECT_EQ(got[4], permuted);
    EXPECT_EQ(got[5], static_cast<uint32_t>((uint64_t{x} * y) >> 32));
    EXPECT_EQ(got[6], static_cast<uint32_t>((int64_t{sx} * sy) >> 32));
    EXPECT_EQ(got[7], static_cast<uint32_t>(std::llabs(int64_t{sx} - sy)) + 3);
    EXPECT_EQ(got[8], (x > y ? x - y : y - x) + 3);
    const auto low24 = [](int32_t v) {
      return static_cast<int32_t>(static_cast<uint32_t>(v) << 8) >> 8;
    };
    EXPECT_EQ(got[9], static_cast<uint32_t>(int64_t{low24(sx)} * low24(sy)));
    EXPECT_EQ(got[10], (x & 0xffffff) * (y & 0xffffff));
    EXPECT_EQ(got[11], i == 0 ? y : (y << i) | (x >> (32 - i)));
    const int clamped = std::min(i + 20, 32);
    EXPECT_EQ(got[12], static_cast<uint32_t>(both >> clamped));
    int32_t dot = 5;
    for (int k = 0; k < 4; ++k) {
      dot +=
          static_cast<int8_t>(x >> (8 * k)) * static_cast<int8_t>(y >> (8 * k));
    }
    EXPECT_EQ(got[13], static_cast<uint32_t>(dot));
    EXPECT_EQ(got[14],
              static_cast<uint32_t>((int64_t{sx / 2} + sy / 2 + 1) >> 1));
    EXPECT_EQ(got[15], (x >> i) & 127);
  }
}

TEST_F(NumericsTest, BitsOfLongWords) {
  std::vector<uint64_t> a(16), b(16);
  std::mt19937_64 random(10);
  for (int i = 0; i < 16; ++i) {
    a[i] = random() >> (3 * i);
    b[i] = random();
  }
  const uint64_t da = machine_.Upload(a), db = machine_.Upload(b);
  const uint64_t out = machine_.Allocate(16 * 48);
  machine_.Run("WideBits", MakeLaunch({1}, {16}),
               Arguments().Add(da).Add(db).Add(out));
  for (int i = 0; i < 16; ++i) {
    const uint64_t* got = machine_.host<uint64_t>(out) + 6 * i;
    using Wide = unsigned __int128;
    EXPECT_EQ(got[0], __builtin_bitreverse64(a[i]));
    EXPECT_EQ(got[1], static_cast<uint64_t>(__builtin_clzll(a[i])));
    EXPECT_EQ(got[2], static_cast<uint64_t>(__builtin_popcountll(a[i])));
    EXPECT_EQ(got[3], static_cast<uint64_t>((Wide{a[i]} * b[i]) >> 64));
    EXPECT_EQ(got[4],
              static_cast<uint64_t>((__int128{static_cast<int64_t>(a[i])} *
                                     static_cast<int64_t>(b[i])) >>
                                    64));
    const Wide sum = Wide{a[i]} + b[i];
    EXPECT_EQ(got[5], static_cast<uint64_t>(sum) ^
                          (a[i] + static_cast<uint64_t>(sum >> 64)));
  }
}

TEST_F(NumericsTest, AtomicsOfAllTypes) {
  std::vector<int> i32 = {0, 0, 0, 0, -1, 0, 0};
  std::vector<uint32_t> u32 = {0, 4, 0, 0};
  std::vector<uint64_t> u64 = {0, 1000, 0};
  const uint64_t di = machine_.Upload(i32), du = machine_.Upload(u32),
                 dl = machine_.Upload(u64);
  const uint64_t f = machine_.Upload(std::vector<float>{0});
  const uint64_t d = machine_.Upload(std::vector<double>{0});
  const uint64_t h = machine_.Upload(std::vector<uint32_t>{0});
  const uint64_t s = machine_.Upload(std::vector<uint16_t>{0, 0});
  machine_.Run("AllAtomics", MakeLaunch({8}, {64}),
               Arguments().Add(di).Add(du).Add(dl).Add(f).Add(d).Add(h).Add(s));
  EXPECT_THAT(machine_.Download<int>(di, 7),
              ElementsAre(512, -1024, -63, 63, INT32_MIN, INT32_MAX, 0));
  // 512 increments modulo 10; 512 steps down through 0 to 9.
  EXPECT_THAT(machine_.Download<uint32_t>(du, 4), ElementsAre(2, 2, 63, 77));
  EXPECT_THAT(machine_.Download<uint64_t>(dl, 3),
              ElementsAre(512ull << 33, 5, 1536));
  EXPECT_EQ(*machine_.host<float>(f), 256);
  EXPECT_EQ(*machine_.host<double>(d), 128);
  EXPECT_EQ(machine_.host<uint16_t>(h)[0], 0x6000);  // 512 as a half
  EXPECT_EQ(machine_.host<uint16_t>(h)[1], 0x6000);
  EXPECT_EQ(machine_.host<uint16_t>(s)[0], 512);
}

TEST_F(NumericsTest, FencesClocksLoadsAndSpaces) {
  const uint64_t data = machine_.Allocate(256);
  const uint64_t flag = machine_.Upload(std::vector<int>{0});
  machine_.Run("Fences", MakeLaunch({1}, {32}),
               Arguments().Add(data).Add(flag));
  EXPECT_EQ(*machine_.host<int>(flag), 32);

  const uint64_t clocks = machine_.Allocate(16);
  machine_.Run("Clocks", MakeLaunch({1}, {1}), Arguments().Add(clocks));
  EXPECT_THAT(machine_.Download<int64_t>(clocks, 2), Each(1));

  const uint64_t in = machine_.Upload(std::vector<float>(32, 1.5f));
  const uint64_t wide = machine_.Upload(std::vector<int>(128, 4));
  const uint64_t out = machine_.Allocate(256);
  machine_.Run("ReadOnlyLoads", MakeLaunch({1}, {32}),
               Arguments().Add(in).Add(wide).Add(out));
  EXPECT_THAT(machine_.Download<float>(out, 32), Each(7));
  EXPECT_THAT(machine_.Download<float>(out + 128, 32), Each(3));

  const uint64_t spaces = machine_.Allocate(16);
  machine_.Run("Spaces", MakeLaunch({1}, {1}),
               Arguments().Add(data).Add(spaces));
  EXPECT_THAT(machine_.Download<int>(spaces, 4), ElementsAre(1, 1, 1, 198));
}

TEST_F(NumericsTest, CooperativeGroupsOfABlock) {
  std::vector<int> in(64);
  for (int t = 0; t < 64; ++t) in[t] = t * t % 11;
  const uint64_t din = machine_.Upload(in);
  const uint64_t out = machine_.Allocate(64 * 8);
  machine_.Run("Groups", MakeLaunch({2}, {64}), Arguments().Add(din).Add(out));
  for (int t = 0; t < 64; ++t) {
    int sum = 0;
    for (int k = 0; k < 8; ++k) sum += in[t / 8 * 8 + k];
    EXPECT_EQ(machine_.host<int>(out)[2 * t], sum) << t;
    int size = 0, rank = 0;
    for (int k = t / 32 * 32; k < t / 32 * 32 + 32; ++k) {
      if (in[k] % 3 != 0) continue;
      ++size;
      if (k < t) ++rank;
    }
    EXPECT_EQ(machine_.host<int>(out)[2 * t + 1],
              in[t] % 3 == 0 ? size * 100 + rank : 0)
        << t;
  }
}

}  // namespace
}  // namespace reprise
