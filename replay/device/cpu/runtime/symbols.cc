#include "replay/device/cpu/runtime/symbols.h"

#include <cmath>
#include <cstring>

#include "replay/device/cpu/abi.h"

// Helpers of the compiler's own library, which has no header.
extern "C" {
__int128 __divti3(__int128, __int128);
__int128 __modti3(__int128, __int128);
unsigned __int128 __udivti3(unsigned __int128, unsigned __int128);
unsigned __int128 __umodti3(unsigned __int128, unsigned __int128);
float __floattisf(__int128);
double __floattidf(__int128);
float __floatuntisf(unsigned __int128);
double __floatuntidf(unsigned __int128);
__int128 __fixsfti(float);
__int128 __fixdfti(double);
unsigned __int128 __fixunssfti(float);
unsigned __int128 __fixunsdfti(double);
float __powisf2(float, int);
double __powidf2(double, int);
}

namespace reprise::cpu {
namespace {

// Some compilers' libraries lack these or pass halves in other registers, so
// they are written out. Narrowing from double goes through a float rounded to
// odd, so that the result is rounded once.
float OddFloat(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) {
    return nearest;
  }
  uint32_t bits;
  std::memcpy(&bits, &nearest, 4);
  if (bits & 1) return nearest;
  const bool grew = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  bits += grew ? -1 : 1;
  float odd;
  std::memcpy(&odd, &bits, 4);
  return odd;
}

_Float16 TruncateToHalf(double value) {
  return static_cast<_Float16>(OddFloat(value));
}

uint16_t BFloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A bfloat travels in the low half of xmm0, like a half.
_Float16 TruncateFloatToBFloat(float value) {
  const uint16_t bits = BFloatBits(value);
  _Float16 carried;
  std::memcpy(&carried, &bits, 2);
  return carried;
}
_Float16 TruncateDoubleToBFloat(double value) {
  return TruncateFloatToBFloat(OddFloat(value));
}
_Float16 TruncateFloatToHalf(float value) {
  return static_cast<_Float16>(value);
}
float ExtendHalf(_Float16 value) { return static_cast<float>(value); }

template <typename T>
const void* Address(T* function) {
  return reinterpret_cast<const void*>(function);
}

// The overload of a mathematical function for one type.
const void* F(float (*function)(float)) { return Address(function); }
const void* F(float (*function)(float, float)) { return Address(function); }
const void* D(double (*function)(double)) { return Address(function); }
const void* D(double (*function)(double, double)) { return Address(function); }

void AddMathematics(std::vector<RuntimeSymbol>& symbols) {
  const RuntimeSymbol mathematics[] = {
      {"fmaf", Address<float(float, float, float)>(::fmaf)},
      {"fma", Address<double(double, double, double)>(::fma)},
      {"fmodf", F(::fmodf)},
      {"fmod", D(::fmod)},
      {"sqrtf", F(::sqrtf)},
      {"sqrt", D(::sqrt)},
      {"floorf", F(::floorf)},
      {"floor", D(::floor)},
      {"ceilf", F(::ceilf)},
      {"ceil", D(::ceil)},
      {"truncf", F(::truncf)},
      {"trunc", D(::trunc)},
      {"rintf", F(::rintf)},
      {"rint", D(::rint)},
      {"nearbyintf", F(::nearbyintf)},
      {"nearbyint", D(::nearbyint)},
      {"roundf", F(::roundf)},
      {"round", D(::round)},
      {"fminf", F(::fminf)},
      {"fmin", D(::fmin)},
      {"fmaxf", F(::fmaxf)},
      {"fmax", D(::fmax)},
      {"expf", F(::expf)},
      {"exp", D(::exp)},
      {"exp2f", F(::exp2f)},
      {"exp2", D(::exp2)},
      {"logf", F(::logf)},
      {"log", D(::log)},
      {"log2f", F(::log2f)},
      {"log2", D(::log2)},
      {"log10f", F(::log10f)},
      {"log10", D(::log10)},
      {"sinf", F(::sinf)},
      {"sin", D(::sin)},
      {"cosf", F(::cosf)},
      {"cos", D(::cos)},
      {"tanf", F(::tanf)},
      {"tan", D(::tan)},
      {"tanhf", F(::tanhf)},
      {"tanh", D(::tanh)},
      {"powf", F(::powf)},
      {"pow", D(::pow)},
  };
  for (const RuntimeSymbol& symbol : mathematics) symbols.push_back(symbol);
}

float RoundEvenFloat(float value) { return std::nearbyint(value); }
double RoundEvenDouble(double value) { return std::nearbyint(value); }

void AddArithmetic(std::vector<RuntimeSymbol>& symbols) {
  const RuntimeSymbol arithmetic[] = {
      {"__divti3", Address(__divti3)},
      {"__modti3", Address(__modti3)},
      {"__udivti3", Address(__udivti3)},
      {"__umodti3", Address(__umodti3)},
      {"__floattisf", Address(__floattisf)},
      {"__floattidf", Address(__floattidf)},
      {"__floatuntisf", Address(__floatuntisf)},
      {"__floatuntidf", Address(__floatuntidf)},
      {"__fixsfti", Address(__fixsfti)},
      {"__fixdfti", Address(__fixdfti)},
      {"__fixunssfti", Address(__fixunssfti)},
      {"__fixunsdfti", Address(__fixunsdfti)},
      {"__powisf2", Address(__powisf2)},
      {"__powidf2", Address(__powidf2)},
      {"__truncdfhf2", Address(TruncateToHalf)},
      {"__truncsfhf2", Address(TruncateFloatToHalf)},
      {"__extendhfsf2", Address(ExtendHalf)},
      {"__truncsfbf2", Address(TruncateFloatToBFloat)},
      {"__truncdfbf2", Address(TruncateDoubleToBFloat)},
      {"roundevenf", Address(RoundEvenFloat)},
      {"roundeven", Address(RoundEvenDouble)},
      {"memcpy", Address(::memcpy)},
      {"memmove", Address(::memmove)},
      {"memset", Address(::memset)},
      {"memcmp", Address(::memcmp)},
  };
  for (const RuntimeSymbol& symbol : arithmetic) symbols.push_back(symbol);
}

}  // namespace

std::vector<RuntimeSymbol> RuntimeSymbols() {
  std::vector<RuntimeSymbol> symbols;
#define REPRISE_RUNTIME_SYMBOL(name) symbols.push_back({#name, Address(name)})
  REPRISE_RUNTIME_SYMBOL(__reprise_run_threads);
  REPRISE_RUNTIME_SYMBOL(__reprise_current_thread);
  REPRISE_RUNTIME_SYMBOL(__reprise_set_thread);
  REPRISE_RUNTIME_SYMBOL(__reprise_barrier);
  REPRISE_RUNTIME_SYMBOL(__reprise_barrier_arrive);
  REPRISE_RUNTIME_SYMBOL(__reprise_warp_sync);
  REPRISE_RUNTIME_SYMBOL(__reprise_shuffle);
  REPRISE_RUNTIME_SYMBOL(__reprise_vote);
  REPRISE_RUNTIME_SYMBOL(__reprise_match_any);
  REPRISE_RUNTIME_SYMBOL(__reprise_match_all);
  REPRISE_RUNTIME_SYMBOL(__reprise_redux);
  REPRISE_RUNTIME_SYMBOL(__reprise_activemask);
  REPRISE_RUNTIME_SYMBOL(__reprise_elect);
  REPRISE_RUNTIME_SYMBOL(__reprise_is_space);
  REPRISE_RUNTIME_SYMBOL(__reprise_shared_base);
  REPRISE_RUNTIME_SYMBOL(__reprise_exit_thread);
  REPRISE_RUNTIME_SYMBOL(__reprise_trap);
  REPRISE_RUNTIME_SYMBOL(__reprise_assert_fail);
  REPRISE_RUNTIME_SYMBOL(__reprise_vprintf);
  REPRISE_RUNTIME_SYMBOL(__reprise_clock);
  REPRISE_RUNTIME_SYMBOL(__reprise_globaltimer);
  REPRISE_RUNTIME_SYMBOL(__reprise_yield);
  REPRISE_RUNTIME_SYMBOL(__reprise_envreg);
  REPRISE_RUNTIME_SYMBOL(__reprise_note_read);
  REPRISE_RUNTIME_SYMBOL(__reprise_note_write);
  REPRISE_RUNTIME_SYMBOL(__reprise_note_flops);
#undef REPRISE_RUNTIME_SYMBOL
  AddMathematics(symbols);
  AddArithmetic(symbols);
  return symbols;
}

}  // namespace reprise::cpu
