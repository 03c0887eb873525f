// Small parts of the compile pool and of the compiler that need no compile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "replay/compiler/lru_cache.h"
#include "replay/compiler/nvjitlink.h"
#include "replay/compiler/progress_page.h"
#include "replay/compiler/tolerance_annotation.h"
#include "replay/compiler/toolchain.h"
#include "replay/compiler/unit_options.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;

TEST(LruCacheTest, DropsWhatWasUsedLongestAgo) {
  LruCache<int> cache(3500);
  for (const char* key : {"a", "b", "c"})
    cache.Insert(key, std::make_shared<int>(1), 1000);
  EXPECT_NE(cache.Find("a"), nullptr);
  cache.Insert("d", std::make_shared<int>(2), 1000);
  EXPECT_EQ(cache.Find("b"), nullptr);
  for (const char* key : {"a", "c", "d"}) EXPECT_NE(cache.Find(key), nullptr);
  EXPECT_LE(cache.bytes(), 3500u);
}

TEST(LruCacheTest, ReplacesAndBounds) {
  LruCache<int> cache(2000);
  cache.Insert("a", std::make_shared<int>(1), 100);
  const uint64_t bytes = cache.bytes();
  cache.Insert("a", std::make_shared<int>(2), 100);
  EXPECT_EQ(cache.bytes(), bytes);
  EXPECT_EQ(*cache.Find("a"), 2);
  cache.Insert("huge", std::make_shared<int>(3), 5000);
  EXPECT_EQ(cache.Find("huge"), nullptr);
  EXPECT_NE(cache.Find("a"), nullptr);
}

TEST(ProgressPageTest, TellsTheLastTextWhateverItsLength) {
  auto page = ProgressPage::Create();
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ((*page)->Read(), "");
  (*page)->Write("pass gvn on Kernel");
  // The other process's view.
  auto other = ProgressPage::Open(dup((*page)->fd()));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ((*other)->Read(), "pass gvn on Kernel");
  (*other)->Write("dce");
  EXPECT_EQ((*page)->Read(), "dce");
  (*page)->Write(std::string(3 * ProgressPage::kBytes, 'n'));
  EXPECT_EQ((*other)->Read(), std::string(ProgressPage::kBytes - 1, 'n'));
}

TEST(NvJitLinkTest, KnowsThePtxOfEachCuda) {
  EXPECT_EQ(PtxVersionOf(12, 0), 80);
  EXPECT_EQ(PtxVersionOf(12, 4), 84);
  EXPECT_EQ(PtxVersionOf(12, 9), 88);
  EXPECT_EQ(PtxVersionOf(13, 0), 90);
  EXPECT_EQ(PtxVersionOf(14, 1), 90);
}

TEST(NvJitLinkTest, OfTheDriversOwnCudaComesFirst) {
  const auto place_of = [](int driver_cuda, const std::string& name) {
    const std::vector<std::string> candidates =
        FindToolchain("/home", driver_cuda).nvjitlink_candidates;
    return std::find(candidates.begin(), candidates.end(),
                     "/home/lib64/" + name) -
           candidates.begin();
  };
  const std::string old_one = "libnvJitLink.so.12";
  const std::string new_one = "libnvJitLink.so.13";
  EXPECT_LT(place_of(0, new_one), place_of(0, old_one));
  EXPECT_LT(place_of(13000, new_one), place_of(13000, old_one));
  EXPECT_LT(place_of(12040, old_one), place_of(12040, new_one));
}

TEST(NvJitLinkTest, ReadsWhatPtxasReports) {
  const std::vector<PtxasKernelReport> reports = ParsePtxasLog(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1aPf' for 'sm_90'\n"
      "ptxas info    : Function properties for _Z1aPf\n"
      "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 16 bytes "
      "cumulative stack size, 2048 bytes smem\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90'\n"
      "ptxas info    : Function properties for b\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers\n");
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].symbol, "_Z1aPf");
  EXPECT_EQ(reports[0].registers, 40u);
  EXPECT_EQ(reports[0].spill_bytes, 20u);
  EXPECT_EQ(reports[0].stack_bytes, 16u);
  EXPECT_EQ(reports[0].shared_bytes, 2048u);
  EXPECT_EQ(reports[1].symbol, "b");
  EXPECT_EQ(reports[1].registers, 8u);
  EXPECT_EQ(reports[1].shared_bytes, 0u);
  EXPECT_TRUE(ParsePtxasLog("no kernels here").empty());
}

struct ToleranceCase {
  const char* text;
  bool valid;
  double absolute, relative, outliers;
};

TEST(ToleranceAnnotationTest, ReadsEveryForm) {
  for (const ToleranceCase& test : {
           ToleranceCase{"tolerance:1e-6", true, 1e-6, 1e-6, 0},
           {"tolerance:1e-6f", true, 1e-6, 1e-6, 0},
           {"tolerance:0", true, 0, 0, 0},
           {"tolerance:1e-6,1e-5", true, 1e-6, 1e-5, 0},
           {"tolerance:abs=1e-6,rel=1e-5", true, 1e-6, 1e-5, 0},
           {"tolerance:rel=1e-5,outliers=0.01", true, 0, 1e-5, 0.01},
           {"tolerance:", false, 0, 0, 0},
           {"tolerance:small", false, 0, 0, 0},
           {"tolerance:-1", false, 0, 0, 0},
           {"tolerance:nan", false, 0, 0, 0},
           {"tolerance:inf", false, 0, 0, 0},
           {"tolerance:1,2,3", false, 0, 0, 0},
           {"tolerance:abs=", false, 0, 0, 0},
           {"tolerance:outliers=2", false, 0, 0, 0},
           {"tolerance:max=1", false, 0, 0, 0},
           {"something else", false, 0, 0, 0},
       }) {
    SCOPED_TRACE(test.text);
    const auto tolerance = ParseToleranceAnnotation(test.text);
    ASSERT_EQ(tolerance.has_value(), test.valid);
    if (!test.valid) continue;
    EXPECT_EQ(tolerance->absolute(), test.absolute);
    EXPECT_EQ(tolerance->relative(), test.relative);
    EXPECT_EQ(tolerance->outlier_share(), test.outliers);
  }
}

TEST(UnitOptionsTest, ReadsWhatTheBackendNeeds) {
  v1::CompileTranslationUnit unit;
  for (const char* arg :
       {"-DX", "--cuda-path=/opt/cuda", "-mllvm", "-nvptx-prec-divf32=1",
        "-mllvm", "-nvptx-prec-sqrtf32=0", "-mllvm", "-other", "-Xcuda-ptxas",
        "-maxrregcount=40", "-Xcuda-ptxas", "-O1", "-Xcuda-ptxas", "-v",
        "-ffp-contract=off", "-fgpu-rdc", "-mllvm"})
    unit.add_clang_args(arg);
  const UnitOptions options = ParseUnitOptions(unit);
  EXPECT_EQ(options.cuda_path, "/opt/cuda");
  EXPECT_EQ(options.division_precision, 1);
  EXPECT_EQ(options.precise_sqrt, false);
  EXPECT_EQ(options.max_registers, 40u);
  EXPECT_THAT(options.ptxas_options, ElementsAre("-O1"));
  EXPECT_FALSE(options.fuse);
  EXPECT_TRUE(options.relocatable_device_code);
  const UnitOptions none = ParseUnitOptions(v1::CompileTranslationUnit());
  EXPECT_FALSE(none.division_precision.has_value());
  EXPECT_FALSE(none.precise_sqrt.has_value());
  EXPECT_TRUE(none.fuse);
}

}  // namespace
}  // namespace reprise
