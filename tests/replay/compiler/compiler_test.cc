// Targets, options and replies of the compiler, in this process.
#include "replay/compiler/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "replay/base/file_util.h"
#include "tests/replay/compiler/test_units.h"

namespace reprise::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CompilerTest : public ::testing::Test {
 protected:
  CompilerTest()
      : tree_({{"saxpy.cu", kSaxpySource}}), path_(tree_.Path("saxpy.cu")) {
    Remember(InputFor(path_, {"Saxpy"}));
  }

  void Remember(v1::CompileInput input) {
    key_ = input.key();
    compiler_->Remember(std::move(input));
  }
  v1::CompileReply Compile(const v1::Variant& variant,
                           v1::CompileTarget target) {
    return compiler_->Compile(key_, variant, target);
  }
  std::string Ptx(const v1::Variant& variant) {
    const v1::CompileReply reply = Compile(variant, v1::COMPILE_TARGET_PTX);
    EXPECT_EQ(Describe(reply), "OK");
    return reply.code();
  }
  // The input with the IR of its unmodified source, as a unit holds it. The
  // source path in it is that of the first test's tree.
  v1::CompileInput WithIr() {
    static const auto* const ir = [this] {
      compiler_->Remember(InputFor(path_));
      auto* reply = new v1::CompileReply(
          compiler_->Compile(path_, {}, v1::COMPILE_TARGET_DEVICE_IR));
      EXPECT_EQ(Describe(*reply), "OK");
      return reply;
    }();
    v1::CompileInput input = InputFor(path_);
    input.mutable_translation_units(0)->set_ir(ir->code());
    input.add_kernels("Saxpy");
    input.set_key("with-ir");
    return input;
  }

  SourceTree tree_;
  const std::string path_;
  std::string key_;
  std::unique_ptr<Compiler> compiler_ = NewCompiler();
};

TEST_F(CompilerTest, MakesCodeForEveryTarget) {
  const v1::CompileReply ir = Compile({}, v1::COMPILE_TARGET_DEVICE_IR);
  ASSERT_EQ(Describe(ir), "OK");
  EXPECT_EQ(ir.code().substr(0, 2), "BC");
  const v1::CompileReply ptx = Compile({}, v1::COMPILE_TARGET_PTX);
  ASSERT_EQ(Describe(ptx), "OK");
  EXPECT_THAT(ptx.code(), AllOf(HasSubstr(".target sm_90"),
                                HasSubstr(".visible .entry Saxpy("),
                                Not(HasSubstr("Other"))));
  const v1::CompileReply cubin = Compile({}, v1::COMPILE_TARGET_CUBIN);
  ASSERT_EQ(Describe(cubin), "OK");
  EXPECT_EQ(cubin.code().substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_GT(cubin.facts().registers(), 0u);
  EXPECT_GT(cubin.facts().code_bytes(), 0u);
  EXPECT_EQ(cubin.facts().static_shared_bytes(), 128u);
  const v1::CompileReply cpu = Compile({}, v1::COMPILE_TARGET_CPU);
  ASSERT_EQ(Describe(cpu), "OK");
  EXPECT_EQ(cpu.code().substr(0, 4),
            "\x7f"
            "ELF");
  ASSERT_EQ(cpu.kernels_size(), 1);
  EXPECT_FALSE(cpu.kernels(0).entry().empty());
  EXPECT_TRUE(cpu.kernels(0).has_barriers());
  for (const v1::CompileReply* reply : {&ir, &ptx, &cubin, &cpu}) {
    EXPECT_EQ(reply->code_sha256().size(), 32u);
    EXPECT_GT(reply->facts().ir_features_size(), 0);
  }
}

TEST_F(CompilerTest, DescribesKernelsAndVariables) {
  v1::CompileInput input = InputFor(path_);
  Remember(input);
  const v1::CompileReply ir = Compile({}, v1::COMPILE_TARGET_DEVICE_IR);
  ASSERT_EQ(ir.kernels_size(), 2);
  input.mutable_translation_units(0)->set_ir(ir.code());
  input.add_kernels("Saxpy");
  Remember(input);
  for (const v1::CompileTarget target :
       {v1::COMPILE_TARGET_PTX, v1::COMPILE_TARGET_CUBIN,
        v1::COMPILE_TARGET_CPU}) {
    const v1::CompileReply reply = Compile({}, target);
    ASSERT_EQ(Describe(reply), "OK");
    ASSERT_EQ(reply.kernels_size(), 1);
    const v1::CompiledKernelInfo& kernel = reply.kernels(0);
    EXPECT_EQ(kernel.symbol(), "Saxpy");
    EXPECT_THAT(kernel.parameter_offsets(), ElementsAre(0, 8, 16, 32));
    EXPECT_THAT(kernel.parameter_bytes(), ElementsAre(8, 8, 16, 4));
    EXPECT_THAT(kernel.parameter_names(),
                ElementsAre("x", "y", "scale", "count"));
    EXPECT_THAT(
        kernel.parameter_pointees(),
        ElementsAre(v1::ELEMENT_TYPE_F32, v1::ELEMENT_TYPE_F32,
                    v1::ELEMENT_TYPE_UNTYPED, v1::ELEMENT_TYPE_UNTYPED));
    EXPECT_EQ(kernel.max_threads_per_block(), 256u);
    EXPECT_EQ(kernel.static_shared_bytes(), 128u);
    EXPECT_EQ(kernel.source_path(), path_);
    EXPECT_EQ(kernel.source_line(), 14u);
    ASSERT_EQ(kernel.tolerances_size(), 1);
    EXPECT_EQ(kernel.tolerances(0).parameter(), 1);
    EXPECT_EQ(kernel.tolerances(0).tolerance().absolute(), 1e-6);
    EXPECT_EQ(kernel.tolerances(0).tolerance().relative(), 1e-6);
    std::set<std::string> globals;
    for (const v1::ModuleGlobal& global : reply.globals()) {
      globals.insert(global.symbol());
      EXPECT_EQ(global.bytes(), 4u);
      EXPECT_EQ(global.constant(), global.symbol() == "offset");
    }
    // Variables that the kernel does not use are not its memory.
    EXPECT_THAT(globals, ElementsAre("_ZL8launches", "offset"));
  }
}

TEST_F(CompilerTest, KeepsVariablesThatOtherKernelsWrite) {
  // Nothing in what remains of the module writes `state`, yet a launch may find
  // any value in it.
  const std::string source = R"(
static __device__ int state = 5;
extern "C" __global__ void Set(int x) { state = x; }
extern "C" __global__ void Get(int* out) { *out = state; }
)";
  tree_.Write("state.cu", source);
  Remember(InputFor(tree_.Path("state.cu"), {"Get"}));
  EXPECT_THAT(Ptx({}), AllOf(HasSubstr("ld.global"), HasSubstr("_ZL5state"),
                             Not(HasSubstr("Set"))));
}

TEST_F(CompilerTest, AnnotatedParametersStayInRegisters) {
  Remember(WithIr());
  EXPECT_THAT(Ptx({}), Not(HasSubstr(".local")));
}

TEST_F(CompilerTest, SourceErrorsNameFileAndLine) {
  for (const char* kernel : {"Saxpy", ""}) {
    v1::CompileInput input = InputFor(path_);
    if (*kernel != '\0') input.add_kernels(kernel);
    Remember(std::move(input));
    const v1::CompileReply reply = Compile(
        Edit(path_, Replace(kSaxpySource, "Twice(x[i])", "Thrice(x[i])")),
        v1::COMPILE_TARGET_PTX);
    EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
    EXPECT_THAT(reply.diagnostics(),
                AllOf(HasSubstr("saxpy.cu:21:"), HasSubstr("Thrice")));
    EXPECT_TRUE(reply.code().empty());
  }
}

TEST_F(CompilerTest, ErrorsInHostCodeAreErrors) {
  // Host bodies are left out of fast compiles, not of the judgement when the
  // kernel does not come out.
  const v1::CompileReply reply = Compile(
      Edit(path_, Replace(kSaxpySource, "Saxpy(const", "Renamed(const")),
      v1::COMPILE_TARGET_PTX);
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(), HasSubstr("Saxpy"));
}

TEST_F(CompilerTest, SaysWhichKernelIsGone) {
  std::string source = Replace(kSaxpySource, "Saxpy(const", "Renamed(const");
  source = Replace(source, "Saxpy<<<", "Renamed<<<");
  const v1::CompileReply reply =
      Compile(Edit(path_, source), v1::COMPILE_TARGET_CUBIN);
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(),
              AllOf(HasSubstr("kernel Saxpy"), HasSubstr("Renamed, Other")));
}

TEST_F(CompilerTest, PipelineTextDecides) {
  Remember(WithIr());
  v1::Variant variant;
  variant.set_pipeline("default<O3>");
  const v1::CompileReply explicit_default =
      Compile(variant, v1::COMPILE_TARGET_PTX);
  EXPECT_EQ(explicit_default.code_sha256(),
            Compile({}, v1::COMPILE_TARGET_PTX).code_sha256());
  variant.set_pipeline("function(sroa)");
  const v1::CompileReply little = Compile(variant, v1::COMPILE_TARGET_PTX);
  ASSERT_EQ(Describe(little), "OK");
  EXPECT_NE(little.code_sha256(), explicit_default.code_sha256());
  EXPECT_EQ(Compile(variant, v1::COMPILE_TARGET_CUBIN).kind(),
            v1::OUTCOME_KIND_OK);
  variant.set_pipeline("default<O3>,no-such-pass");
  const v1::CompileReply wrong = Compile(variant, v1::COMPILE_TARGET_PTX);
  EXPECT_EQ(wrong.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(wrong.diagnostics(),
              HasSubstr("unknown module pass 'no-such-pass'"));
}

TEST_F(CompilerTest, InvalidIrAfterAPassIsAnError) {
  Remember(WithIr());
  v1::Variant variant;
  variant.set_pipeline("function(reprise-break-ir)");
  const v1::CompileReply reply = Compile(variant, v1::COMPILE_TARGET_PTX);
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(),
              AllOf(HasSubstr("left invalid IR"), HasSubstr("dominate")));
}

TEST_F(CompilerTest, OnlyKnownFrontEnds) {
  v1::Variant variant;
  variant.set_frontend("hipcc");
  const v1::CompileReply reply = Compile(variant, v1::COMPILE_TARGET_PTX);
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(), HasSubstr("hipcc"));
}

TEST_F(CompilerTest, AsksForAnInputThatItDoesNotKnow) {
  EXPECT_TRUE(
      compiler_->Compile("other", {}, v1::COMPILE_TARGET_PTX).need_input());
}

TEST_F(CompilerTest, DamagedIrIsNotTheVariantsFault) {
  v1::CompileInput input = WithIr();
  input.mutable_translation_units(0)->mutable_ir()->resize(1000);
  Remember(std::move(input));
  const v1::CompileReply reply = Compile({}, v1::COMPILE_TARGET_PTX);
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_INFRASTRUCTURE);
  EXPECT_THAT(reply.diagnostics(), HasSubstr("saxpy.cu"));
}

TEST_F(CompilerTest, OtherArchitecturesToTheLetter) {
  for (const char* architecture : {"sm_80", "sm_90a"}) {
    v1::CompileInput input = InputFor(path_, {"Saxpy"});
    input.set_architecture(architecture);
    Remember(std::move(input));
    EXPECT_THAT(Ptx({}), HasSubstr(std::string(".target ") + architecture));
    EXPECT_EQ(Describe(Compile({}, v1::COMPILE_TARGET_CUBIN)), "OK");
  }
}

TEST_F(CompilerTest, UnknownArchitecturesAreSaid) {
  v1::CompileInput input = InputFor(path_, {"Saxpy"});
  input.set_architecture("sm_999");
  Remember(std::move(input));
  const v1::CompileReply reply = Compile({}, v1::COMPILE_TARGET_PTX);
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(), HasSubstr("sm_999"));
}

TEST_F(CompilerTest, EqualCodeHasEqualHashes) {
  const v1::CompileReply plain = Compile({}, v1::COMPILE_TARGET_CUBIN);
  // Comments, other paths and options without effect change nothing.
  v1::Variant comment =
      Edit(path_, Replace(kSaxpySource, "// Scales", "// Multiplies"));
  comment.mutable_codegen()->set_unroll_threshold(301);
  const v1::CompileReply same = Compile(comment, v1::COMPILE_TARGET_CUBIN);
  EXPECT_EQ(plain.code_sha256(), same.code_sha256());
  tree_.Write("elsewhere/copy.cu", kSaxpySource);
  Remember(InputFor(tree_.Path("elsewhere/copy.cu"), {"Saxpy"}));
  for (const v1::CompileTarget target :
       {v1::COMPILE_TARGET_CUBIN, v1::COMPILE_TARGET_CPU,
        v1::COMPILE_TARGET_PTX, v1::COMPILE_TARGET_DEVICE_IR}) {
    const v1::CompileReply copy = Compile({}, target);
    EXPECT_EQ(copy.code_sha256(),
              compiler_->Compile(path_, {}, target).code_sha256())
        << target;
  }
  const v1::CompileReply other = compiler_->Compile(
      path_, Edit(path_, Replace(kSaxpySource, "x + x", "x + 3 * x")),
      v1::COMPILE_TARGET_CUBIN);
  EXPECT_NE(plain.code_sha256(), other.code_sha256());
}

TEST_F(CompilerTest, FindsTheToolkitMissing) {
  Compiler::Options options;
  options.tools = FindToolchain(tree_.Path("nowhere"));
  options.tools.nvjitlink_candidates = {tree_.Path("libnvJitLink.so")};
  const auto compiler = Compiler::Create(std::move(options));
  compiler->Remember(WithIr());
  const v1::CompileReply reply =
      compiler->Compile("with-ir", {}, v1::COMPILE_TARGET_CUBIN);
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_INFRASTRUCTURE);
  EXPECT_THAT(reply.diagnostics(),
              AllOf(HasSubstr("nvJitLink"), HasSubstr("CUDA_HOME")));
}

}  // namespace
}  // namespace reprise::testing
