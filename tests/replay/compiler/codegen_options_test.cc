// Codegen options, from IR and without a front end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "replay/compiler/compiler.h"
#include "tests/replay/compiler/test_units.h"

namespace reprise::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kArithmetic[] = R"cuda(
extern "C" __global__ void Fuse(float* x) { x[0] = x[0] * x[1] + x[2]; }
extern "C" __global__ void Divide(float* x) { x[0] = x[1] / x[2]; }
extern "C" __global__ void Root(float* x) { x[0] = sqrtf(x[1]); }
extern "C" __global__ void Exponential(float* x) { x[0] = expf(x[1]); }
extern "C" __global__ void Sum(float* x) { x[0] = ((x[0] + 1) + x[1]) + 2; }
extern "C" __global__ void MinusZero(float* x) { x[0] = x[1] + 0.0f; }
extern "C" __global__ void NotNumber(float* x) { x[0] = x[1] != x[1]; }
extern "C" __global__ void Loop(float* x, const float* y) {
  float sum = 0;
  for (int i = 0; i < 64; ++i) sum += y[i] * y[i + threadIdx.x];
  x[threadIdx.x] = sum;
}
extern "C" __global__ void Greedy(float* x) {
  float v[40];
  for (int i = 0; i < 40; ++i) v[i] = x[i * 32 + threadIdx.x];
  for (int round = 0; round < 7; ++round) {
    for (int i = 0; i < 40; ++i) v[i] = v[i] * v[(i + 7) % 40] + v[(i + 3) % 40];
  }
  for (int i = 0; i < 40; ++i) x[i * 32 + threadIdx.x] = v[i];
}
extern "C" __global__ void Map(float* __restrict__ x,
                               const float* __restrict__ y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = y[i] * 2 + 1;
}
__device__ float Helper(const float* y, int n) {
  float a = y[n], b = y[2 * n], c = y[3 * n];
  return sinf(a) * cosf(b) + powf(c, a) * tanf(b);
}
extern "C" __global__ void Calls(float* x, const float* y) {
  x[0] = Helper(y, 1) + Helper(y, 2) + Helper(y, 3);
}
)cuda";

class CodegenOptionsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    compiler_ = NewCompiler().release();
    tree_ = new SourceTree({{"a.cu", kArithmetic}});
    v1::CompileInput input = InputFor(tree_->Path("a.cu"));
    compiler_->Remember(input);
    const v1::CompileReply ir =
        compiler_->Compile(input.key(), {}, v1::COMPILE_TARGET_DEVICE_IR);
    ASSERT_EQ(Describe(ir), "OK");
    input.mutable_translation_units(0)->set_ir(ir.code());
    input_ = new v1::CompileInput(input);
  }
  static void TearDownTestSuite() {
    delete input_;
    delete tree_;
    delete compiler_;
  }

  v1::CompileReply Compile(const std::string& kernel,
                           const v1::CodegenOptions& options,
                           v1::CompileTarget target = v1::COMPILE_TARGET_PTX,
                           const std::vector<std::string>& clang_args = {}) {
    v1::CompileInput input = *input_;
    input.set_key("options");
    input.add_kernels(kernel);
    for (const std::string& arg : clang_args)
      input.mutable_translation_units(0)->add_clang_args(arg);
    compiler_->Remember(std::move(input));
    v1::Variant variant;
    *variant.mutable_codegen() = options;
    v1::CompileReply reply = compiler_->Compile("options", variant, target);
    EXPECT_EQ(Describe(reply), "OK");
    return reply;
  }
  std::string Ptx(const std::string& kernel, const v1::CodegenOptions& options,
                  const std::vector<std::string>& clang_args = {}) {
    return Compile(kernel, options, v1::COMPILE_TARGET_PTX, clang_args).code();
  }

  static Compiler* compiler_;
  static SourceTree* tree_;
  static v1::CompileInput* input_;
  v1::CodegenOptions options_;
};

Compiler* CodegenOptionsTest::compiler_ = nullptr;
SourceTree* CodegenOptionsTest::tree_ = nullptr;
v1::CompileInput* CodegenOptionsTest::input_ = nullptr;

TEST_F(CodegenOptionsTest, Contraction) {
  EXPECT_THAT(Ptx("Fuse", options_), HasSubstr("fma.rn.f32"));
  options_.set_fp_contract(false);
  EXPECT_THAT(Ptx("Fuse", options_), Not(HasSubstr("fma.rn.f32")));
  options_.set_fp_contract(true);
  EXPECT_THAT(Ptx("Fuse", options_), HasSubstr("fma.rn.f32"));
}

TEST_F(CodegenOptionsTest, Denormals) {
  EXPECT_THAT(Ptx("Divide", options_), Not(HasSubstr(".ftz")));
  options_.set_flush_denormals(true);
  EXPECT_THAT(Ptx("Divide", options_), HasSubstr("div.rn.ftz.f32"));
  // libdevice takes its own form.
  EXPECT_THAT(Ptx("Exponential", options_), HasSubstr("fma.rn.ftz.f32"));
  options_.set_flush_denormals(false);
  EXPECT_THAT(Ptx("Exponential", options_), Not(HasSubstr("fma.rn.ftz.f32")));
}

TEST_F(CodegenOptionsTest, DivisionAndSquareRoot) {
  EXPECT_THAT(Ptx("Divide", options_), HasSubstr("div.rn.f32"));
  options_.set_approximate_division(true);
  options_.set_approximate_sqrt(true);
  EXPECT_THAT(Ptx("Divide", options_), HasSubstr("div.full.f32"));
  EXPECT_THAT(Ptx("Root", options_), HasSubstr("sqrt.approx.f32"));
  options_.set_approximate_division(false);
  options_.set_approximate_sqrt(false);
  EXPECT_THAT(Ptx("Divide", options_), HasSubstr("div.rn.f32"));
  EXPECT_THAT(Ptx("Root", options_), HasSubstr("sqrt.rn.f32"));
  // What a job set does not stay for the next one.
  EXPECT_THAT(Ptx("Divide", {}), HasSubstr("div.rn.f32"));
}

TEST_F(CodegenOptionsTest, ArithmeticOfTheApplicationsOwnCommand) {
  const std::vector<std::string> nvcc_fast = {
      "-mllvm", "-nvptx-prec-divf32=0", "-mllvm", "-nvptx-prec-sqrtf32=0"};
  EXPECT_THAT(Ptx("Divide", {}, nvcc_fast), HasSubstr("div.approx.f32"));
  EXPECT_THAT(Ptx("Root", {}, nvcc_fast), HasSubstr("sqrt.approx.f32"));
  const std::vector<std::string> nvcc_exact = {"-mllvm",
                                               "-nvptx-prec-sqrtf32=1"};
  EXPECT_THAT(Ptx("Root", {}, nvcc_exact), HasSubstr("sqrt.rn.f32"));
  // The variant's word is the last.
  options_.set_approximate_division(false);
  EXPECT_THAT(Ptx("Divide", options_, nvcc_fast), HasSubstr("div.rn.f32"));
  EXPECT_THAT(Ptx("Fuse", {}, {"-ffp-contract=off"}), HasSubstr("fma.rn.f32"))
      << "flags of the front end are in the IR already";
}

TEST_F(CodegenOptionsTest, FastMathPieces) {
  const v1::CompileReply exact = Compile("Sum", options_);
  options_.set_reassociate(true);
  options_.set_no_signed_zeros(true);
  const v1::CompileReply free = Compile("Sum", options_);
  EXPECT_LT(free.facts().ir_features().at("fadd"),
            exact.facts().ir_features().at("fadd"));
  EXPECT_EQ(Compile("MinusZero", {}).facts().ir_features().count("fadd"), 1u);
  EXPECT_EQ(Compile("MinusZero", options_).facts().ir_features().count("fadd"),
            0u);
  EXPECT_EQ(Compile("NotNumber", {}).facts().ir_features().count("fcmp"), 1u);
  options_.set_finite_math_only(true);
  EXPECT_EQ(Compile("NotNumber", options_).facts().ir_features().count("fcmp"),
            0u);
}

TEST_F(CodegenOptionsTest, RegistersAndLaunchBounds) {
  const v1::CompileReply free =
      Compile("Greedy", options_, v1::COMPILE_TARGET_CUBIN);
  options_.set_max_registers(24);
  const v1::CompileReply capped =
      Compile("Greedy", options_, v1::COMPILE_TARGET_CUBIN);
  EXPECT_GT(free.facts().registers(), 24u);
  EXPECT_LE(capped.facts().registers(), 24u);
  EXPECT_NE(free.code_sha256(), capped.code_sha256());
  options_.set_max_threads_per_block(128);
  options_.set_min_blocks_per_multiprocessor(4);
  const v1::CompileReply bounded = Compile("Greedy", options_);
  EXPECT_THAT(bounded.code(),
              AllOf(HasSubstr(".maxntid 128"), HasSubstr(".minnctapersm 4")));
  EXPECT_EQ(bounded.kernels(0).max_threads_per_block(), 128u);
  EXPECT_EQ(Compile("Greedy", options_, v1::COMPILE_TARGET_CUBIN).kind(),
            v1::OUTCOME_KIND_OK);
  EXPECT_LE(Compile("Greedy", {}, v1::COMPILE_TARGET_CUBIN,
                    {"-Xcuda-ptxas", "-maxrregcount=24"})
                .facts()
                .registers(),
            24u);
}

TEST_F(CodegenOptionsTest, UnrollAndInlineThresholds) {
  const auto products = [&](const v1::CodegenOptions& options) {
    const auto features = Compile("Loop", options).facts().ir_features();
    return features.at("fmul");
  };
  const uint64_t free = products({});
  options_.set_unroll_threshold(1);
  const uint64_t rolled = products(options_);
  EXPECT_LT(rolled, free);
  EXPECT_EQ(products({}), free) << "a threshold outlived its job";
  v1::CodegenOptions no_inlining;
  no_inlining.set_inline_threshold(0);
  const auto calls = [&](const v1::CodegenOptions& options) {
    return Compile("Calls", options).facts().ir_features();
  };
  EXPECT_NE(calls({}).at("fmul"), calls(no_inlining).at("fmul"));
}

TEST_F(CodegenOptionsTest, PtxasLevels) {
  std::set<std::string> codes;
  for (uint32_t level = 0; level <= 3; ++level) {
    options_.set_ptxas_level(level);
    codes.insert(
        Compile("Loop", options_, v1::COMPILE_TARGET_CUBIN).code_sha256());
  }
  EXPECT_GT(codes.size(), 1u);
  options_.set_ptxas_level(3);
  EXPECT_EQ(Compile("Loop", options_, v1::COMPILE_TARGET_CUBIN).code_sha256(),
            Compile("Loop", {}, v1::COMPILE_TARGET_CUBIN).code_sha256());
}

TEST_F(CodegenOptionsTest, VectorWidthOfTheHost) {
  std::set<std::string> codes;
  for (const uint32_t bits : {128u, 256u}) {
    options_.set_prefer_vector_bits(bits);
    codes.insert(
        Compile("Map", options_, v1::COMPILE_TARGET_CPU).code_sha256());
  }
  EXPECT_EQ(codes.size(), 2u);
}

}  // namespace
}  // namespace reprise::testing
