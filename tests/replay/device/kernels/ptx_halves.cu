// Inline PTX on halves and bfloats, for comparison with exact arithmetic. Of
// each instruction the results of all operands stand together.

using u16 = unsigned short;

#define TERNARY(k, op) \
  asm(op " %0, %1, %2, %3;" : "=h"(out[k * count + i]) : "h"(x), "h"(y), "h"(z))
#define BINARY(k, op) \
  asm(op " %0, %1, %2;" : "=h"(out[k * count + i]) : "h"(x), "h"(y))
#define FROM_FLOAT(k, op) \
  asm(op " %0, %1;" : "=h"(out[k * count + i]) : "f"(wide[i]))
#define FROM_LONG(k, op) \
  asm(op " %0, %1;" : "=h"(out[k * count + i]) : "l"(longs[i]))
#define TO_INT(k, op) asm(op " %0, %1;" : "=r"(ints[k * 65536 + i]) : "h"((u16)i))

#define ARITHMETIC(t)             \
  TERNARY(0, "fma.rn." t);        \
  TERNARY(1, "fma.rn.relu." t);   \
  BINARY(2, "add.rn." t);         \
  BINARY(3, "sub.rn." t);         \
  BINARY(4, "mul.rn." t);         \
  BINARY(5, "min." t);            \
  BINARY(6, "max." t);            \
  BINARY(7, "min.NaN." t);        \
  BINARY(8, "max.NaN." t);
#define CONVERSIONS(t)            \
  FROM_FLOAT(0, "cvt.rn." t ".f32"); \
  FROM_FLOAT(1, "cvt.rz." t ".f32"); \
  FROM_FLOAT(2, "cvt.rm." t ".f32"); \
  FROM_FLOAT(3, "cvt.rp." t ".f32"); \
  FROM_LONG(4, "cvt.rn." t ".s64");  \
  FROM_LONG(5, "cvt.rz." t ".s64");  \
  FROM_LONG(6, "cvt.rm." t ".s64");  \
  FROM_LONG(7, "cvt.rp." t ".s64");
#define TO_INTEGERS(t)            \
  TO_INT(0, "cvt.rni.s32." t);    \
  TO_INT(1, "cvt.rzi.s32." t);    \
  TO_INT(2, "cvt.rmi.s32." t);    \
  TO_INT(3, "cvt.rpi.s32." t);

#define KERNELS(name, t)                                                      \
  __global__ void name##Arithmetic(const u16* a, const u16* b, const u16* c,  \
                                   u16* out, int count) {                     \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                      \
    const u16 x = a[i], y = b[i], z = c[i];                                   \
    ARITHMETIC(t)                                                             \
  }                                                                           \
  __global__ void name##Conversions(const float* wide, const long long* longs, \
                                    u16* out, int count) {                    \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                      \
    CONVERSIONS(t)                                                            \
  }                                                                           \
  __global__ void name##ToIntegers(int* ints) {                               \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                      \
    TO_INTEGERS(t)                                                            \
  }

extern "C" {
KERNELS(Half, "f16")
KERNELS(BFloat, "bf16")
}
