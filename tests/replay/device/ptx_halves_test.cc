// Instructions on halves and bfloats against exact arithmetic: operands are
// added and multiplied without rounding, and the result is looked up among all
// numbers of the format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/replay/device/device_test_util.h"
#include "tests/replay/device/kernels/half_functions.h"

namespace reprise {
namespace {

using Wide = __float128;

// A sum of two parts that no type holds; |low| is below the last place of high.
struct Exact {
  Wide high = 0;
  Wide low = 0;
  bool IsNan() const { return high != high; }
  int Compare(Wide other) const {
    if (high != other) return high < other ? -1 : 1;
    return low < 0 ? -1 : low > 0;
  }
};

Exact Sum(Wide a, Wide b) {
  const Wide sum = a + b;
  const Wide part = sum - a;
  const Wide low = (a - (sum - part)) + (b - part);
  return {sum, low == low ? low : 0};
}

// A format of 16 bits.
class Format {
 public:
  Format(int mantissa, const char* name) : mantissa_(mantissa), name_(name) {
    for (uint32_t bits = 0; bits < infinity(); ++bits)
      finite_.push_back(Value(static_cast<uint16_t>(bits)));
  }
  const char* name() const { return name_; }
  uint32_t infinity() const { return 0x7fff & ~((1u << mantissa_) - 1); }
  bool IsNan(uint16_t bits) const { return (bits & 0x7fffu) > infinity(); }

  Wide Value(uint16_t bits) const {
    if (IsNan(bits)) return std::nan("");
    const int exponents = 15 - mantissa_;
    const int bias = (1 << (exponents - 1)) - 1;
    const int exponent = (bits & 0x7fff) >> mantissa_;
    const int fraction = bits & ((1 << mantissa_) - 1);
    double value = INFINITY;
    if ((bits & 0x7fffu) < infinity()) {
      value = std::ldexp(fraction + (exponent > 0 ? 1 << mantissa_ : 0),
                         std::max(exponent, 1) - bias - mantissa_);
    }
    return bits >> 15 ? -value : value;
  }

  // rounding: 'n' to nearest even, z, m, p. A zero sum has the sign of
  // `negative_zero`.
  uint16_t Round(const Exact& exact, char rounding, bool negative_zero) const {
    if (exact.IsNan()) return 0x7fff;
    const bool negative =
        exact.Compare(0) < 0 || (exact.Compare(0) == 0 && negative_zero);
    const Exact magnitude = negative ? Exact{-exact.high, -exact.low} : exact;
    return static_cast<uint16_t>(RoundMagnitude(magnitude, rounding, negative) |
                                 negative << 15);
  }

 private:
  uint32_t RoundMagnitude(const Exact& value, char rounding,
                          bool negative) const {
    if (value.high > 1e300) return infinity();
    // The first number above the value; one past the largest is infinity.
    const auto above = std::upper_bound(
        finite_.begin(), finite_.end(), value,
        [](const Exact& v, Wide number) { return v.Compare(number) < 0; });
    const auto lower = static_cast<uint32_t>(above - finite_.begin()) - 1;
    if (value.Compare(finite_[lower]) == 0) return lower;
    const bool up = rounding == (negative ? 'm' : 'p');
    if (rounding != 'n') return up ? lower + 1 : lower;
    const Wide next = lower + 1 < infinity()
                          ? finite_[lower + 1]
                          : 2 * finite_[lower] - finite_[lower - 1];
    const int side = value.Compare((finite_[lower] + next) / 2);
    return side > 0 || (side == 0 && (lower & 1)) ? lower + 1 : lower;
  }

  int mantissa_;
  const char* name_;
  std::vector<Wide> finite_;  // from zero upwards
};

class PtxHalvesTest : public testing::Test {
 protected:
  static constexpr int kCount = 1 << 17;

  void SetUp() override {
    const absl::Status status = machine_.Load("ptx_halves");
    ASSERT_TRUE(status.ok()) << status;
  }
  // Any bits at first, then numbers of like size, which meet in sums.
  std::vector<uint16_t> Operands(const Format& format, uint32_t seed) {
    std::mt19937 random(seed);
    const uint32_t one = format.infinity() / 2 + 1;
    std::vector<uint16_t> values(kCount);
    for (int i = 0; i < kCount; ++i) {
      const auto bits = static_cast<uint32_t>(random());
      const uint32_t near = (one - 2048 + bits % 4096) & 0x7fff;
      values[i] = static_cast<uint16_t>(
          i < kCount / 2 ? bits : near | (bits >> 16 & 0x8000));
    }
    return values;
  }
  void CheckArithmetic(const Format& format, const std::string& prefix);
  void CheckConversions(const Format& format, const std::string& prefix);
  void CheckIntegers(const Format& format, const std::string& prefix);
  void CheckFunctions(const Format& format, const std::string& kernel,
                      int bound);
  TestMachine machine_;
};

struct Operation {
  const char* name;
  uint16_t expected;
};

// In the order of the kernel's results.
std::vector<Operation> Expected(const Format& f, uint16_t a, uint16_t b,
                                uint16_t c) {
  const Wide x = f.Value(a), y = f.Value(b), z = f.Value(c);
  const bool minus = a >> 15, other = b >> 15;
  const auto flipped = static_cast<uint16_t>(b ^ 0x8000);
  const uint16_t fma =
      f.Round(Sum(x * y, z), 'n',
              (minus != other) && (c >> 15) && x * y == 0 && z == 0);
  const bool nan = f.IsNan(fma);
  const bool a_nan = f.IsNan(a), b_nan = f.IsNan(b);
  const bool a_less = x < y || (x == y && minus);
  auto choose = [&](bool first, bool propagate) -> uint16_t {
    if ((a_nan && b_nan) || (propagate && (a_nan || b_nan))) return 0x7fff;
    if (a_nan || b_nan) return a_nan ? b : a;
    return first ? a : b;
  };
  return {
      {"fma", fma},
      {"fma.relu", !nan && (fma >> 15) ? uint16_t{0} : fma},
      {"add", f.Round(Sum(x, y), 'n', minus && other && x == 0)},
      {"sub", f.Round(Sum(x, f.Value(flipped)), 'n',
                      minus && !other && x == 0 && y == 0)},
      {"mul", f.Round({x * y, 0}, 'n', minus != other)},
      {"min", choose(a_less, false)},
      {"max", choose(!a_less, false)},
      {"min.NaN", choose(a_less, true)},
      {"max.NaN", choose(!a_less, true)},
  };
}

void PtxHalvesTest::CheckArithmetic(const Format& format,
                                    const std::string& prefix) {
  const auto a = Operands(format, 1), b = Operands(format, 2);
  const auto c = Operands(format, 3);
  const uint64_t da = machine_.Upload(a), db = machine_.Upload(b);
  const uint64_t dc = machine_.Upload(c);
  const uint64_t out = machine_.Allocate(9 * kCount * 2);
  machine_.Run(prefix + "Arithmetic", MakeLaunch({kCount / 256}, {256}),
               Arguments().Add(da).Add(db).Add(dc).Add(out).Add(kCount));
  const auto* got = machine_.host<uint16_t>(out);
  for (int i = 0; i < kCount; ++i) {
    const auto expected = Expected(format, a[i], b[i], c[i]);
    for (size_t k = 0; k < expected.size(); ++k) {
      ASSERT_EQ(got[k * kCount + i], expected[k].expected)
          << expected[k].name << "." << format.name() << std::hex << " of "
          << a[i] << ", " << b[i] << ", " << c[i];
    }
  }
}

void PtxHalvesTest::CheckConversions(const Format& format,
                                     const std::string& prefix) {
  std::mt19937_64 random(4);
  std::vector<float> wide(kCount);
  std::vector<int64_t> longs(kCount);
  for (int i = 0; i < kCount; ++i) {
    // Around the ties between neighbours, then any bits.
    const uint64_t bits = random();
    const Wide low = format.Value(static_cast<uint16_t>(bits));
    const Wide high = format.Value(static_cast<uint16_t>(bits + 1));
    wide[i] = static_cast<float>((low + high) / 2);
    if (i % 4 == 1) wide[i] = std::nextafter(wide[i], INFINITY);
    if (i % 4 == 2) wide[i] = std::nextafter(wide[i], -INFINITY);
    const auto low_bits = static_cast<uint32_t>(bits);
    if (i % 4 == 3) std::memcpy(&wide[i], &low_bits, 4);
    longs[i] = static_cast<int64_t>(random()) >> (i % 63);
    // A tie that only the last bit breaks.
    if (i % 5 == 0)
      longs[i] = (int64_t{0x181} << (i % 54)) + static_cast<int>(bits % 3) - 1;
  }
  const uint64_t dw = machine_.Upload(wide), dl = machine_.Upload(longs);
  const uint64_t out = machine_.Allocate(8 * kCount * 2);
  machine_.Run(prefix + "Conversions", MakeLaunch({kCount / 256}, {256}),
               Arguments().Add(dw).Add(dl).Add(out).Add(kCount));
  const auto* got = machine_.host<uint16_t>(out);
  for (int i = 0; i < kCount; ++i) {
    for (int mode = 0; mode < 4; ++mode) {
      const char rounding = "nzmp"[mode];
      ASSERT_EQ(got[mode * kCount + i],
                format.Round({wide[i], 0}, rounding, std::signbit(wide[i])))
          << "cvt.r" << rounding << "." << format.name() << ".f32 of "
          << wide[i];
      ASSERT_EQ(got[(4 + mode) * kCount + i],
                format.Round({static_cast<Wide>(longs[i]), 0}, rounding, false))
          << "cvt.r" << rounding << "." << format.name() << ".s64 of "
          << longs[i];
    }
  }
}

void PtxHalvesTest::CheckIntegers(const Format& format,
                                  const std::string& prefix) {
  const uint64_t out = machine_.Allocate(4 * 65536 * 4);
  machine_.Run(prefix + "ToIntegers", MakeLaunch({256}, {256}),
               Arguments().Add(out));
  for (int i = 0; i < 65536; ++i) {
    const auto value = static_cast<double>(format.Value(i));
    const double rounded[4] = {std::nearbyint(value), std::trunc(value),
                               std::floor(value), std::ceil(value)};
    for (int mode = 0; mode < 4; ++mode) {
      const double limited = std::clamp(rounded[mode], -0x1p31, 0x1p31 - 1);
      ASSERT_EQ(machine_.host<int>(out)[mode * 65536 + i],
                std::isnan(value) ? 0 : static_cast<int>(limited))
          << "cvt.r" << "nzmp"[mode] << "i.s32." << format.name() << " of "
          << value;
    }
  }
}

double ExactFunction(int function, double x) {
  switch (function) {
    case kExp:
      return std::exp(x);
    case kExp2:
      return std::exp2(x);
    case kExp10:
      return std::pow(10.0, x);
    case kLog:
      return std::log(x);
    case kLog2:
      return std::log2(x);
    case kLog10:
      return std::log10(x);
    case kSin:
      return std::sin(x);
    case kCos:
      return std::cos(x);
    case kTanh:
      return std::tanh(x);
    case kReciprocal:
      return 1 / x;
    case kRoot:
      return std::sqrt(x);
    default:
      return 1 / std::sqrt(x);
  }
}

// How many values of the format lie between two of them.
int Distance(const Format& format, uint16_t a, uint16_t b) {
  if (format.IsNan(a) || format.IsNan(b))
    return format.IsNan(a) && format.IsNan(b) ? 0 : 65536;
  auto place = [](uint16_t bits) {
    return bits >> 15 ? -(bits & 0x7fff) : bits & 0x7fff;
  };
  return std::abs(place(a) - place(b));
}

// The headers' functions on every value, against the exact one rounded.
void PtxHalvesTest::CheckFunctions(const Format& format,
                                   const std::string& kernel, int bound) {
  ASSERT_TRUE(machine_.Load("half_functions").ok());
  const uint64_t out = machine_.Allocate(kHalfFunctions * 65536 * 2);
  machine_.Run(kernel, MakeLaunch({256}, {256}), Arguments().Add(out));
  const auto* got = machine_.host<uint16_t>(out);
  for (int function = 0; function < kHalfFunctions; ++function) {
    int worst = 0, off = 0, where = 0;
    for (int i = 0; i < 65536; ++i) {
      const auto x = static_cast<double>(format.Value(i));
      const double exact = ExactFunction(function, x);
      const int distance =
          Distance(format, got[function * 65536 + i],
                   format.Round({exact, 0}, 'n', std::signbit(exact)));
      off += distance != 0;
      if (distance <= worst) continue;
      worst = distance;
      where = i;
    }
    EXPECT_LE(worst, bound)
        << "function " << function << " of " << std::hex << where << ": got "
        << got[function * 65536 + where];
    RecordProperty(
        "function" + std::to_string(function),
        std::to_string(off) + " off, at most " + std::to_string(worst));
  }
}

TEST_F(PtxHalvesTest, FunctionsOfHalvesAreClose) {
  CheckFunctions(Format(10, "f16"), "HalfFunctions", 1);
}
TEST_F(PtxHalvesTest, FunctionsOfBFloatsAreClose) {
  CheckFunctions(Format(7, "bf16"), "BFloatFunctions", 1);
}

TEST_F(PtxHalvesTest, HalvesRoundOnce) {
  CheckArithmetic(Format(10, "f16"), "Half");
}
TEST_F(PtxHalvesTest, BFloatsRoundOnce) {
  CheckArithmetic(Format(7, "bf16"), "BFloat");
}
TEST_F(PtxHalvesTest, ConversionsToHalvesRoundOnce) {
  CheckConversions(Format(10, "f16"), "Half");
}
TEST_F(PtxHalvesTest, ConversionsToBFloatsRoundOnce) {
  CheckConversions(Format(7, "bf16"), "BFloat");
}
TEST_F(PtxHalvesTest, AllHalvesBecomeIntegers) {
  CheckIntegers(Format(10, "f16"), "Half");
}
TEST_F(PtxHalvesTest, AllBFloatsBecomeIntegers) {
  CheckIntegers(Format(7, "bf16"), "BFloat");
}

}  // namespace
}  // namespace reprise
