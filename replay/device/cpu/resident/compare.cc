#include "replay/device/cpu/resident/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_format.h"

namespace reprise::cpu {
namespace {

// Ranges are skipped in blocks of this size while their bits are equal.
constexpr uint64_t kBlockBytes = 4096;

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

double HalfToDouble(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double mantissa = bits & 1023;
  double value;
  if (exponent == 31) {
    value = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, -24);
  } else {
    value = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

float Bfloat16ToFloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

Element Real(double value, int digits) {
  return {value, absl::StrFormat("%.*g", digits, value)};
}

template <typename T>
Element Whole(const char* at) {
  const T value = Load<T>(at);
  return {static_cast<double>(value), absl::StrFormat("%d", value)};
}

// Accumulates differing elements of one range.
class Statistics {
 public:
  explicit Statistics(const CompareInput& input)
      : input_(input), size_(ElementBytes(input.type)) {}

  void Differs(uint64_t element) {
    const char* got = input_.got + element * size_;
    const char* expected = input_.expected + element * size_;
    const bool may_differ = IsWritable(element);
    if (!may_differ) outside_ = true;
    const Element a = ReadElement(input_.type, got),
                  b = ReadElement(input_.type, expected);
    if (may_differ && std::isnan(a.value) && std::isnan(b.value)) return;
    const double absolute = std::abs(a.value - b.value);
    // A difference that is no number (NaN against something) is infinite.
    const double distance = std::isnan(absolute)
                                ? std::numeric_limits<double>::infinity()
                                : absolute;
    max_absolute_ = std::max(max_absolute_, distance);
    if (b.value != 0)
      max_relative_ = std::max(max_relative_, distance / std::abs(b.value));
    if (std::isfinite(distance)) squares_ += distance * distance;
    const bool close = may_differ && IsFloatingPoint(input_.type) &&
                       WithinTolerance(a.value, b.value, input_.tolerance);
    if (close) return;
    if (wrong_++ == 0) {
      first_ = element;
      got_ = a.text;
      expected_ = b.text;
    }
  }

  CompareResult Finish() const {
    CompareResult result;
    const uint64_t bytes =
        input_.writable != nullptr ? input_.writable->bytes() : input_.bytes;
    const uint64_t compared = bytes / size_;
    result.errors.set_element_type(input_.type);
    result.errors.set_compared_elements(compared);
    result.errors.set_wrong_elements(wrong_);
    result.errors.set_max_absolute(max_absolute_);
    result.errors.set_max_relative(max_relative_);
    result.errors.set_rms(
        compared == 0 ? 0
                      : std::sqrt(squares_ / static_cast<double>(compared)));
    result.errors.set_first_wrong_element(first_);
    result.errors.set_got(got_);
    result.errors.set_expected(expected_);
    result.errors.set_outside_write_set(outside_);
    const double allowed =
        input_.tolerance.outlier_share() * static_cast<double>(compared);
    result.passes = !outside_ && static_cast<double>(wrong_) <= allowed;
    return result;
  }

 private:
  bool IsWritable(uint64_t element) const {
    if (input_.writable == nullptr) return true;
    for (uint32_t byte = 0; byte < size_; ++byte) {
      const uint64_t at = element * size_ + byte;
      if (input_.got[at] != input_.expected[at] &&
          !input_.writable->Contains(at))
        return false;
    }
    return true;
  }

  const CompareInput& input_;
  const uint32_t size_;
  uint64_t wrong_ = 0;
  uint64_t first_ = 0;
  double max_absolute_ = 0;
  double max_relative_ = 0;
  double squares_ = 0;
  bool outside_ = false;
  std::string got_;
  std::string expected_;
};

void CompareSpan(const CompareInput& input, uint64_t begin, uint64_t end,
                 Statistics* statistics) {
  const uint32_t size = ElementBytes(input.type);
  for (uint64_t block = begin; block < end; block += kBlockBytes) {
    const uint64_t stop = std::min(block + kBlockBytes, end);
    if (std::memcmp(input.got + block, input.expected + block, stop - block) ==
        0)
      continue;
    for (uint64_t at = block; at < stop; at += size) {
      if (std::memcmp(input.got + at, input.expected + at, size) != 0)
        statistics->Differs(at / size);
    }
  }
}

}  // namespace

uint32_t ElementBytes(v1::ElementType type) {
  switch (type) {
    case v1::ELEMENT_TYPE_F16:
    case v1::ELEMENT_TYPE_BF16:
    case v1::ELEMENT_TYPE_I16:
      return 2;
    case v1::ELEMENT_TYPE_F32:
    case v1::ELEMENT_TYPE_I32:
      return 4;
    case v1::ELEMENT_TYPE_F64:
    case v1::ELEMENT_TYPE_I64:
      return 8;
    default:
      return 1;
  }
}

bool IsFloatingPoint(v1::ElementType type) {
  return type == v1::ELEMENT_TYPE_F16 || type == v1::ELEMENT_TYPE_BF16 ||
         type == v1::ELEMENT_TYPE_F32 || type == v1::ELEMENT_TYPE_F64;
}

Element ReadElement(v1::ElementType type, const char* at) {
  switch (type) {
    case v1::ELEMENT_TYPE_F16:
      return Real(HalfToDouble(Load<uint16_t>(at)), 5);
    case v1::ELEMENT_TYPE_BF16:
      return Real(Bfloat16ToFloat(Load<uint16_t>(at)), 4);
    case v1::ELEMENT_TYPE_F32:
      return Real(Load<float>(at), 9);
    case v1::ELEMENT_TYPE_F64:
      return Real(Load<double>(at), 17);
    case v1::ELEMENT_TYPE_I8:
      return Whole<int8_t>(at);
    case v1::ELEMENT_TYPE_I16:
      return Whole<int16_t>(at);
    case v1::ELEMENT_TYPE_I32:
      return Whole<int32_t>(at);
    case v1::ELEMENT_TYPE_I64:
      return Whole<int64_t>(at);
    default:
      return {static_cast<double>(Load<uint8_t>(at)),
              absl::StrFormat("0x%02x", Load<uint8_t>(at))};
  }
}

bool WithinTolerance(double got, double expected,
                     const v1::Tolerance& tolerance) {
  if (std::isnan(got) || std::isnan(expected))
    return std::isnan(got) && std::isnan(expected);
  if (tolerance.absolute() == 0 && tolerance.relative() == 0) {
    return got == expected && std::signbit(got) == std::signbit(expected);
  }
  if (std::isinf(got) || std::isinf(expected)) return got == expected;
  return std::abs(got - expected) <=
         tolerance.absolute() + tolerance.relative() * std::abs(expected);
}

CompareResult CompareRange(const CompareInput& input) {
  Statistics statistics(input);
  const uint32_t size = ElementBytes(input.type);
  const uint64_t whole = input.bytes / size * size;
  if (input.spans == nullptr) {
    CompareSpan(input, 0, whole, &statistics);
  } else {
    for (const Interval& span : input.spans->intervals()) {
      CompareSpan(input, span.begin / size * size, std::min(span.end, whole),
                  &statistics);
    }
  }
  CompareResult result = statistics.Finish();
  const bool look_at_tail =
      input.spans == nullptr ||
      (whole < input.bytes && input.spans->Contains(whole));
  // Bytes behind the last whole element are compared by bits.
  if (look_at_tail && std::memcmp(input.got + whole, input.expected + whole,
                                  input.bytes - whole) != 0) {
    result.passes = false;
    result.errors.set_wrong_elements(result.errors.wrong_elements() + 1);
    if (result.errors.wrong_elements() == 1) {
      result.errors.set_first_wrong_element(whole / size);
      result.errors.set_got(
          absl::StrFormat("0x%02x", static_cast<uint8_t>(input.got[whole])));
      result.errors.set_expected(absl::StrFormat(
          "0x%02x", static_cast<uint8_t>(input.expected[whole])));
    }
  }
  return result;
}

}  // namespace reprise::cpu
