// What the kernel uses, where its source may change, and what templates and
// macros do to rewrites.
#include "evolution/ast/analyze.h"

#include <string>
#include <vector>

#include "ast_test_util.h"
#include "evolution/llm/edits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::vector<std::string> RegionNames(const SourceAnalysis& analysis) {
  std::vector<std::string> names;
  for (const Region& region : analysis.source.regions()) {
    names.push_back(std::string(RegionKindName(region.kind)) + " " +
                    region.name);
  }
  return names;
}

constexpr char kWide[] = R"(
#define SCALE(x) ((x) * FACTOR)
#define FACTOR 2
#define UNUSED 3
struct Pair { float x, y; };
struct Other { float z; };
constexpr int kCount = 4;
const int kUnused = 5;
__constant__ float table[4];
__device__ float helper(float x) { return SCALE(x) * kCount; }
__device__ float unused(float x) { return x; }
extern "C" __global__ void kernel(Pair* p) {
  p[0].x = helper(p[0].y) + table[0];
}
int main() { return 0; }
)";

TEST(AnalyzeTest, RegionsAreTheKernelAndWhatItUses) {
  const SourceAnalysis analysis = Analyze(Context(kWide));
  EXPECT_THAT(
      RegionNames(analysis),
      ElementsAre("macro SCALE", "macro FACTOR", "type Pair", "constant kCount",
                  "device function helper", "kernel kernel"));
}

TEST(AnalyzeTest, EditsOutsideOfRegionsAreRefused) {
  const SourceAnalysis analysis = Analyze(Context(kWide));
  const std::string before = kWide;
  const auto check = [&](const std::string& from, const std::string& to) {
    std::string after = before;
    const size_t at = after.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    after.replace(at, from.size(), to);
    return analysis.source.CheckConfined({{"/app/kernel.cu", after}});
  };
  EXPECT_TRUE(check("p[0].y", "p[1].y").ok());
  EXPECT_TRUE(check("FACTOR 2", "FACTOR 3").ok());
  EXPECT_TRUE(check("kCount = 4", "kCount = 8").ok());
  EXPECT_EQ(check("return 0", "return 1").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(check("UNUSED 3", "UNUSED 4").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(check("table[4]", "table[8]").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(check("float z", "double z").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(analysis.source.CheckConfined({{"/app/other.cu", ""}}).code(),
            absl::StatusCode::kNotFound);
}

TEST(AnalyzeTest, HeadersOfTheUserAreEvolvableAndSystemHeadersAreNot) {
  SourceContext context =
      Context("#include \"mine.h\"\n#include <theirs.h>\n" +
              Kernel("  c[0] = mine(a[0]) + theirs(a[1]);\n"));
  context.files.push_back(
      {"/app/mine.h",
       "#pragma once\n__device__ inline float mine(float x) "
       "{ return x / sqrtf(x); }\n",
       false});
  context.files.push_back(
      {"/prelude/theirs.h",
       "__device__ inline float theirs(float x) { return x / sqrtf(x); }\n",
       true});
  const SourceAnalysis analysis = Analyze(context);
  EXPECT_THAT(RegionNames(analysis),
              UnorderedElementsAre("device function mine", "kernel kernel"));
  EXPECT_THAT(Keys(analysis, "rsqrt"), ElementsAre("rsqrt@mine.h:2:50"));
}

TEST(AnalyzeTest, AKernelThatIsNotThereAndACompileErrorSaySo) {
  const auto missing = AnalyzeSource(Context(kWide, "other"));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("other"));
  const auto broken = AnalyzeSource(Context(Kernel("  c[0] = typo;\n")));
  EXPECT_EQ(broken.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(broken.status().message()),
              HasSubstr("kernel.cu:3:10: error: use of undeclared"));
}

TEST(AnalyzeTest, StaticKernelsUnderRdcAreFoundBehindTheirSuffix) {
  const std::string source =
      "static __global__ void step(float* c) { c[0] = c[1] / sqrtf(c[2]); }\n"
      "template <typename T> void use(T); void host() { use(step); }\n";
  EXPECT_TRUE(AnalyzeSource(Context(source, "_ZL4stepPf")).ok());
  EXPECT_TRUE(AnalyzeSource(Context(source, "_ZL4stepPf__static__8e2f")).ok());
  EXPECT_TRUE(AnalyzeSource(Context(source, "_ZL4stepPf.static.8e2f")).ok());
  EXPECT_FALSE(AnalyzeSource(Context(source, "_ZL4stepPfi")).ok());
}

TEST(AnalyzeTest, CheckSourceSeesAChangedSignature) {
  const std::string source = Kernel("  c[0] = 1;\n");
  const SourceContext context = Context(source);
  EXPECT_TRUE(CheckSource(context, {}).ok());
  std::string renamed = source;
  renamed.replace(renamed.find("kernel("), 7, "kernel2(");
  EXPECT_FALSE(CheckSource(context, {{"/app/kernel.cu", renamed}}).ok());
}

TEST(AnalyzeTest, TheSameSourceGivesTheSameMoves) {
  const SourceContext context = Context(kWide);
  const auto first = Analyze(context);
  const auto second = Analyze(context);
  ASSERT_EQ(first.moves.size(), second.moves.size());
  for (size_t i = 0; i < first.moves.size(); ++i) {
    EXPECT_EQ(first.moves[i].key, second.moves[i].key);
    EXPECT_EQ(first.moves[i].edits, second.moves[i].edits);
  }
}

// What a model answers for the regions found here, in the recorded source and
// in a state that rewrites gave.
TEST(AnalyzeTest, AnswersOfModelsApplyToWhatWasFound) {
  const SourceContext context = Context(kWide);
  const SourceAnalysis analysis = Analyze(context);
  const std::vector<std::string> answers = {
      "<<<<<<< SEARCH\n#define FACTOR 2\n=======\n#define FACTOR 4\n"
      ">>>>>>> REPLACE\n<<<<<<< SEARCH\nconstexpr int kCount = 4;\n=======\n"
      "constexpr int kCount = 2;\n>>>>>>> REPLACE\n",
      "R3\n```\nstruct Pair { float x, y; float both() const; };\n```\n",
      "```\n__device__ float twice(float x) { return x + x; }\n"
      "extern \"C\" __global__ void kernel(Pair* p) { p[0].x = "
      "twice(table[0]); "
      "}\n```\n"};
  FileContents files;
  for (const std::string& answer : answers) {
    const auto state = analysis.source.At(files);
    ASSERT_TRUE(state.ok()) << state.status();
    const auto applied = ApplyAnswer(*state, answer);
    ASSERT_TRUE(applied.ok()) << applied.status();
    files = applied->files;
    const absl::Status compiles = CheckSource(context, files);
    EXPECT_TRUE(compiles.ok()) << compiles << files.at("/app/kernel.cu");
  }
  EXPECT_TRUE(analysis.source.CheckConfined(files).ok());
  EXPECT_THAT(files.at("/app/kernel.cu"),
              AllOf(HasSubstr("#define FACTOR 4"), HasSubstr("twice(table")));
  EXPECT_EQ(ApplyAnswer(analysis.source,
                        "<<<<<<< SEARCH\n__constant__ float table[4];\n"
                        "=======\n__constant__ float table[8];\n"
                        ">>>>>>> REPLACE\n")
                .status()
                .code(),
            absl::StatusCode::kPermissionDenied);
}

// --- Templates.

constexpr char kTemplate[] = R"(
template <typename T, int N>
__global__ void scale(const T* x, T* y, T d) {
  for (int i = 0; i < N; ++i) y[i] = x[i] / sqrt(d);
}
)";

TEST(TemplateTest, OneInstantiationGivesItsMoves) {
  const std::string source =
      std::string(kTemplate) +
      "template __global__ void scale<float, 4>(const float*, float*, "
      "float);\n";
  const std::string symbol = "_Z5scaleIfLi4EEvPKT_PS0_S0_";
  EXPECT_THAT(After(Context(source, symbol), "rsqrt"),
              HasSubstr("x[i] * rsqrtf(d)"));
  EXPECT_THAT(Keys(Analyze(Context(source, symbol)), "unroll"),
              Contains("unroll@kernel.cu:4:3=full"));
}

TEST(TemplateTest, WhatDiffersBetweenInstantiationsIsLeftAlone) {
  const std::string source =
      std::string(kTemplate) +
      "template __global__ void scale<float, 4>(const float*, float*, float);\n"
      "template __global__ void scale<double, 100>(const double*, double*, "
      "double);\n";
  const std::string symbol = "_Z5scaleIfLi4EEvPKT_PS0_S0_";
  const SourceAnalysis analysis = Analyze(Context(source, symbol));
  // rsqrtf in one and rsqrt in the other.
  EXPECT_THAT(Keys(analysis, "rsqrt"), IsEmpty());
  EXPECT_THAT(Keys(analysis, "unroll"),
              Not(Contains("unroll@kernel.cu:4:3=full")));
  EXPECT_THAT(Keys(analysis, "unroll"), Contains("unroll@kernel.cu:4:3=2"));
  EXPECT_THAT(Keys(analysis, "restrict"), testing::SizeIs(3));
}

TEST(TemplateTest, LambdasThatAKernelCallsAreItsOwn) {
  const std::string source =
      "template <typename F>\n"
      "__global__ void apply(float* y, F f) { y[0] = f(y[0]); }\n"
      "void host() {\n"
      "  auto f = [] __device__(float x) { return x / sqrtf(x); };\n"
      "  apply<decltype(f)><<<1, 1>>>(nullptr, f);\n"
      "}\n";
  SourceContext context = Context(source, "_Z5applyIZ4hostvEUlfE_EvPfT_");
  context.files[1].content += R"(
struct dim3 { unsigned x, y, z; dim3(unsigned x = 1) : x(x), y(1), z(1) {} };
typedef struct stream* cudaStream_t;
extern "C" int cudaConfigureCall(dim3, dim3, size_t = 0, cudaStream_t = 0);
extern "C" int __cudaPushCallConfiguration(dim3, dim3, size_t = 0, void* = 0);
extern "C" int cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t);
)";
  const SourceAnalysis analysis = Analyze(context);
  EXPECT_THAT(Keys(analysis, "rsqrt"), ElementsAre("rsqrt@kernel.cu:4:46"));
  EXPECT_THAT(After(context, "rsqrt"), HasSubstr("{ return x * rsqrtf(x); }"));
}

}  // namespace
}  // namespace reprise::evolution
