// One kernel for each instruction of ptx_cases.inc: the instruction on
// kPtxSamples operands that depend on nothing but their index, special values
// and dense pairs first, and a digest of each row of results. Any compiler of
// CUDA and any device must give the same digests.
#include "ptx_cases.h"

namespace {

using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;

__device__ u64 Mix(u64 x) {
  x ^= x >> 31;
  x *= 0x7fb5d329728ea185ull;
  x ^= x >> 27;
  x *= 0x81dadef4bc2dd44dull;
  return x ^ (x >> 33);
}

// What a random operand is made from.
__device__ __noinline__ u64 Random(u32 index, u32 slot) {
  return Mix((u64{index} << 8 | slot) * 0x9e3779b97f4a7c15ull + 1);
}

// --- Special values, by number below 256; from 128 on they are negative.

// Bits 15 to 0 of a half or bfloat: zero, the smallest and largest denormal and
// normal numbers of both formats, one, infinity, NaN, and a spread.
__device__ __noinline__ u16 Special16(u32 number) {
  const u32 n = number & 127;
  constexpr u64 kCorners[12] = {
      0x0003000200010000, 0x007f000700050004, 0x00ff008100800100,
      0x0400040103ff0200, 0x07ff080014003400, 0x38003bff3c003c01,
      0x3c023e0040004200, 0x3f7f3f803f813fc0, 0x4049424844004b00,
      0x5bff64007bff7bfe, 0x7c007c017e007f7f, 0x7f807f817fc07fff};
  const u32 corner = (u32)(kCorners[n / 4 % 12] >> (16 * (n % 4))) & 0xffff;
  const u32 magnitude = n < 48 ? corner : (n - 48) * 0x199;
  return (u16)(magnitude | (number >> 7) << 15);
}

// The lower bits that decide roundings to a half or bfloat.
__device__ u32 SpecialTail(u32 number) {
  constexpr u64 kTails = 0x8001ffff0fff1000;
  const u32 tail = (u32)(kTails >> (16 * (number & 3))) & 0xffff;
  return number & 4 ? (number & 8 ? 0x8000 : 0x7fff) : (number & 8 ? tail : 0);
}

__device__ u32 Special32(u32 number, u32 salt) {
  return (u32{Special16(number)} << 16) | SpecialTail(salt);
}

// A half or bfloat as a double, with the bits that decide roundings below.
__device__ __noinline__ u64 Special64(u32 number, u32 salt) {
  const u32 bits = Special32(number, salt);
  const u32 exponent = (bits >> 23) & 0xff;
  u64 wide = u64{exponent + 1023 - 127} << 52;
  if (exponent == 0) wide = 0;
  if (exponent == 255) wide = u64{0x7ff} << 52;
  const u32 tail = salt >> 4 & 7;
  wide |= u64{bits & 0x7fffff} << 29;
  if (tail == 1) wide |= 1;
  if (tail == 2) wide |= u64{1} << 28;
  if (tail == 3) wide |= (u64{1} << 28) - 1;
  if (tail == 4) wide |= (u64{1} << 28) + 1;
  return wide | u64{bits >> 31} << 63;
}

__device__ u64 SpecialInteger(u32 number, u32 bits) {
  const u64 small = number & 15;
  const u64 edge = u64{1} << ((number >> 4) % bits);
  return (number & 8) ? edge - small / 2 : edge + small - 4;
}

// --- Random values.

// A number with `mantissa` and `exponent` bits. One in four is any bits;
// others have exponents near `center`, where they meet in sums, near the
// denormals, or mantissas near ties of shorter formats.
__device__ __noinline__ u64 RandomFloat(u64 random, u32 mantissa, u32 exponent,
                                        u32 center) {
  const u32 mode = random & 7;
  const u64 sign = random >> 3 & 1;
  const u32 step = random >> 4 & 15;
  u64 fraction = (random >> 8) & ((u64{1} << mantissa) - 1);
  u64 power = random >> (63 - exponent) & ((u64{1} << exponent) - 1);
  if (mode >= 2) power = center + step - 8;
  if (mode == 6) power = step & 3;
  if (mode == 5 && mantissa > 10) {
    const u32 kept = step & 1 ? 10 : 7;
    const u64 below = u64{1} << (mantissa - kept);
    const u64 nudge = step & 2 ? 1 : 0;
    fraction = (fraction & ~(below - 1)) | (below / 2 + (step & 4 ? nudge : 0));
    if ((step & 6) == 2) fraction -= 1;
  }
  if (mode == 7) fraction &= ~((u64{1} << (mantissa / 2)) - 1);
  power &= (u64{1} << exponent) - 1;
  return sign << (mantissa + exponent) | power << mantissa | fraction;
}

// Operand `slot` of an instruction with `count`; the second of two is one in
// eight times the first's opposite but for its last bits, and a third often has
// the exponent of the product.
__device__ __noinline__ u64 FloatOperand(u32 index, u32 slot, u32 mantissa,
                                         u32 exponent) {
  const u64 random = Random(index, slot);
  const u32 bias = (1u << (exponent - 1)) - 1;
  if (slot == 0) return RandomFloat(random, mantissa, exponent, bias);
  const u64 first = RandomFloat(Random(index, 0), mantissa, exponent, bias);
  const u64 sign = u64{1} << (mantissa + exponent);
  if (slot == 1 && (random >> 60) < 2)
    return (first ^ sign) + (random >> 20 & 3) - 1;
  u32 center = bias;
  if (slot == 2) {
    const u64 second = FloatOperand(index, 1, mantissa, exponent);
    const u64 mask = (u64{1} << exponent) - 1;
    center = (u32)((first >> mantissa & mask) + (second >> mantissa & mask)) -
             bias;
  }
  return RandomFloat(random, mantissa, exponent, center);
}

// The number of the special value, for the first 2^16 samples.
__device__ u32 SpecialNumber(u32 index, u32 slot) {
  if (slot == 0) return index >> 8 & 255;
  if (slot == 1) return index & 255;
  return (u32)Random(index, slot) & 255;
}

constexpr u32 kSpecials = 1 << 16;

template <u32 count>
__device__ u16 ShortFloat(u32 index, u32 slot, u32 mantissa) {
  if (count == 1) return (u16)index;
  if (index < kSpecials) return Special16(SpecialNumber(index, slot));
  return (u16)FloatOperand(index, slot, mantissa, 15 - mantissa);
}

// The operand kinds of ptx_cases.inc.
template <u32 count>
__device__ u16 Operand_h(u32 index, u32 slot) {
  return ShortFloat<count>(index, slot, 10);
}
template <u32 count>
__device__ u16 Operand_b(u32 index, u32 slot) {
  return ShortFloat<count>(index, slot, 7);
}
template <u32 count>
__device__ u32 Operand_p(u32 index, u32 slot) {
  return Operand_h<count>(index, slot) |
         u32{Operand_h<2>(index ^ 0x2b5c3, slot)} << 16;
}
template <u32 count>
__device__ u32 Operand_q(u32 index, u32 slot) {
  return Operand_b<count>(index, slot) |
         u32{Operand_b<2>(index ^ 0x2b5c3, slot)} << 16;
}
template <u32 count>
__device__ float Operand_f(u32 index, u32 slot) {
  u32 bits;
  if (index >= kSpecials) {
    bits = (u32)FloatOperand(index, slot, 23, 8);
  } else if (count == 1) {
    bits = index << 16 | SpecialTail((u32)Random(index, 0));
  } else {
    bits = Special32(SpecialNumber(index, slot), (u32)Random(index, slot) >> 8);
  }
  return __uint_as_float(bits);
}
template <u32 count>
__device__ double Operand_d(u32 index, u32 slot) {
  const u64 bits = index < kSpecials
                       ? Special64(SpecialNumber(index, slot),
                                   (u32)Random(index, slot) >> 8)
                       : FloatOperand(index, slot, 52, 11);
  return __longlong_as_double((long long)bits);
}
__device__ u64 Integer(u32 index, u32 slot, u32 bits) {
  if (index < kSpecials)
    return SpecialInteger(SpecialNumber(index, slot), bits);
  const u64 random = Random(index, slot);
  const u64 value = random >> (random & 63);
  return random >> 62 & 1 ? ~value : value;
}
template <u32 count>
__device__ u16 Operand_s(u32 index, u32 slot) {
  return count == 1 ? (u16)index : (u16)Integer(index, slot, 16);
}
template <u32 count>
__device__ u32 Operand_i(u32 index, u32 slot) {
  return (u32)Integer(index, slot, 32);
}
template <u32 count>
__device__ u64 Operand_l(u32 index, u32 slot) {
  return Integer(index, slot, 64);
}

// --- Results. NaN of float and double counts as one value.

__device__ u64 ResultBits(u16 value) { return value; }
__device__ u64 ResultBits(u32 value) { return value; }
__device__ u64 ResultBits(u64 value) { return value; }
__device__ u64 ResultBits(float value) {
  const u32 bits = __float_as_uint(value);
  return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : bits;
}
__device__ u64 ResultBits(double value) {
  const u64 bits = (u64)__double_as_longlong(value);
  return (bits << 1) > 0xffe0000000000000ull ? 0x7fffffffffffffffull : bits;
}

__device__ __noinline__ void Note(u32 index, u64 bits, u64* rows, u64* picks) {
  atomicAdd(&rows[index / kPtxRow], Mix(bits + Mix(index)));
  if (index % kPtxRow == kPtxRow / 2 + index / kPtxRow % 32)
    picks[index / kPtxRow] = bits;
}

}  // namespace

#define TYPE_h u16
#define TYPE_b u16
#define TYPE_s u16
#define TYPE_p u32
#define TYPE_q u32
#define TYPE_i u32
#define TYPE_l u64
#define TYPE_f float
#define TYPE_d double
#define IN_h "h"
#define IN_b "h"
#define IN_s "h"
#define IN_p "r"
#define IN_q "r"
#define IN_i "r"
#define IN_l "l"
#define IN_f "f"
#define IN_d "d"

#define BEGIN(id, result)                                                 \
  extern "C" __global__ void PtxCase_##id(u64* rows, u64* picks) {        \
    for (u32 index = blockIdx.x * blockDim.x + threadIdx.x;               \
         index < kPtxSamples; index += gridDim.x * blockDim.x) {          \
      TYPE_##result out;
#define END                                      \
      Note(index, ResultBits(out), rows, picks); \
    }                                            \
  }

#define PTX_EXACT1(id, text, result, a) \
  BEGIN(id, result)                     \
  asm(text : "=" IN_##result(out) : IN_##a(Operand_##a<1>(index, 0)));      \
  END
#define PTX_EXACT2(id, text, result, a, b)                  \
  BEGIN(id, result)                                         \
  asm(text : "=" IN_##result(out) : IN_##a(Operand_##a<2>(index, 0)),       \
      IN_##b(Operand_##b<2>(index, 1)));                    \
  END
#define PTX_EXACT3(id, text, result, a, b, c)                               \
  BEGIN(id, result)                                                         \
  asm(text : "=" IN_##result(out) : IN_##a(Operand_##a<3>(index, 0)),                       \
      IN_##b(Operand_##b<3>(index, 1)), IN_##c(Operand_##c<3>(index, 2)));  \
  END
#define PTX_EXACT4(id, text, result, a, b, c, d)                            \
  BEGIN(id, result)                                                         \
  asm(text : "=" IN_##result(out) : IN_##a(Operand_##a<3>(index, 0)),                       \
      IN_##b(Operand_##b<3>(index, 1)), IN_##c(Operand_##c<3>(index, 2)),   \
      IN_##d(Operand_##d<3>(index, 3)));                                    \
  END
#define PTX_APPROXIMATE1 PTX_EXACT1
#define PTX_APPROXIMATE2 PTX_EXACT2

#include "ptx_cases.inc"
