#include "replay/compiler/kernel_symbols.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(KernelSymbolsTest, DemanglesOnlyWhatIsMangled) {
  EXPECT_EQ(DemangledName("_Z1kPfi"), "k(float*, int)");
  EXPECT_EQ(DemangledName("f"), "f");
  EXPECT_EQ(DemangledName("extern_c_kernel"), "extern_c_kernel");
}

TEST(KernelSymbolsTest, CompilersAgreeAfterNormalization) {
  // static __global__ void k(float*, int): nvcc, Clang, Clang -fgpu-rdc, nvcc
  // -rdc=true.
  const std::string expected = "k(float*, int)";
  EXPECT_EQ(NormalizedSymbol("_Z1kPfi"), expected);
  EXPECT_EQ(NormalizedSymbol("_ZL1kPfi"), expected);
  EXPECT_EQ(NormalizedSymbol("_ZL1kPfi__intern__1a2b3c"), expected);
  EXPECT_EQ(NormalizedSymbol("__nv_static_18__a98b07c9_4_a_cu_g__Z1kPfi"),
            expected);
  // namespace { __global__ void k(int*); }: Clang, Clang -fgpu-rdc, nvcc.
  EXPECT_EQ(NormalizedSymbol("_ZN12_GLOBAL__N_11kEPi"),
            NormalizedSymbol("_ZN33_GLOBAL__N__cf9170c7_5_ns_cu_main1kEPi"));
  EXPECT_EQ(NormalizedSymbol("_ZN12_GLOBAL__N_11kEPi__intern__bfb8b6e3"),
            NormalizedSymbol("_ZN12_GLOBAL__N_11kEPi"));
  // A static variable.
  EXPECT_EQ(NormalizedSymbol("_ZL5table"), NormalizedSymbol("table"));
  EXPECT_EQ(NormalizedSymbol("_ZL5table__static__77aa"), "table");
  // namespace { __device__ unsigned rounds; }: Clang, nvcc -rdc=true.
  EXPECT_EQ(
      NormalizedSymbol("_ZN12_GLOBAL__N_16roundsE__static__77aa"),
      NormalizedSymbol(
          "__nv_static_28__8d71c7e2_7_left_cu_da5a6af1__ZN37_INTERNAL_8d71c7e2_"
          "7_left_cu_da5a6af139_GLOBAL__N__8d71c7e2_7_left_cu_da5a6af16"
          "roundsE"));
}

TEST(KernelSymbolsTest, OverloadsStayDifferent) {
  EXPECT_NE(NormalizedSymbol("_Z1kPf"), NormalizedSymbol("_Z1kPd"));
  EXPECT_EQ(NormalizedSymbol("__nv_static_99_short"), "__nv_static_99_short");
  EXPECT_EQ(NormalizedSymbol("__nv_static_x"), "__nv_static_x");
}

TEST(KernelSymbolsTest, FindsTheEqualSymbolBeforeTheSimilarOne) {
  EXPECT_EQ(FindSymbol({"_ZL1kPf", "_Z1kPf"}, "_Z1kPf"), 1);
  EXPECT_EQ(FindSymbol({"_Z1mPf", "_ZL1kPf"}, "_Z1kPf"), 1);
  EXPECT_EQ(FindSymbol({"_Z1mPf"}, "_Z1kPf"), -1);
  // Two candidates: guessing would run the wrong kernel.
  EXPECT_EQ(FindSymbol({"_ZL1kPf__intern__1", "_ZL1kPf__intern__2"}, "_Z1kPf"),
            -1);
}

}  // namespace
}  // namespace reprise
