// Variants compiled by NVIDIA's compiler, in this process; needs the CUDA
// toolkit and no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "replay/compiler/compiler.h"
#include "tests/replay/compiler/test_units.h"

namespace reprise::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

v1::Variant Nvrtc(v1::Variant variant = {}) {
  variant.set_frontend("nvrtc");
  return variant;
}

class NvidiaFrontendTest : public ::testing::Test {
 protected:
  v1::CompileReply Compile(
      v1::CompileInput input, const v1::Variant& variant,
      v1::CompileTarget target = v1::COMPILE_TARGET_CUBIN) {
    const std::string key = input.key();
    if (!compiler_->Knows(key)) compiler_->Remember(std::move(input));
    return compiler_->Compile(key, variant, target);
  }
  // An application's main file with the name's kernel.
  static v1::CompileInput App(const std::string& name,
                              const std::string& kernel) {
    v1::CompileInput input =
        InputFor(AppsDirectory() + "/" + name + "/" + name + ".cu", {kernel});
    input.set_key(name + kernel);
    return input;
  }

  SourceTree tree_{{{"saxpy.cu", kSaxpySource}}};
  const std::string path_ = tree_.Path("saxpy.cu");
  std::unique_ptr<Compiler> compiler_ = NewCompiler();
};

TEST_F(NvidiaFrontendTest, DescribesWhatClangDescribes) {
  const v1::CompileReply theirs = Compile(InputFor(path_, {"Saxpy"}), Nvrtc());
  ASSERT_EQ(Describe(theirs), "OK");
  EXPECT_THAT(theirs.diagnostics(), IsEmpty()) << "NVRTC can take this";
  const v1::CompileReply ours = Compile(InputFor(path_, {"Saxpy"}), {});
  ASSERT_EQ(theirs.kernels_size(), 1);
  EXPECT_EQ(theirs.kernels(0).symbol(), "Saxpy");
  EXPECT_THAT(theirs.kernels(0).parameter_offsets(),
              ::testing::ElementsAreArray(ours.kernels(0).parameter_offsets()));
  EXPECT_THAT(theirs.kernels(0).parameter_bytes(),
              ::testing::ElementsAreArray(ours.kernels(0).parameter_bytes()));
  EXPECT_EQ(theirs.kernels(0).max_threads_per_block(), 256u);
  EXPECT_EQ(theirs.kernels(0).static_shared_bytes(), 128u);
  EXPECT_GT(theirs.facts().registers(), 0u);
  EXPECT_NE(theirs.code_sha256(), ours.code_sha256());
}

TEST_F(NvidiaFrontendTest, CompilesAnEditedSource) {
  const std::string edited =
      Replace(kSaxpySource, "return x + x", "return 3 * x");
  const v1::CompileInput input = InputFor(path_, {"Saxpy"});
  const v1::CompileReply before = Compile(input, Nvrtc());
  const v1::CompileReply after = Compile(input, Nvrtc(Edit(path_, edited)));
  ASSERT_EQ(Describe(after), "OK");
  EXPECT_NE(before.code_sha256(), after.code_sha256());
  EXPECT_EQ(Compile(input, Nvrtc()).code_sha256(), before.code_sha256());
}

TEST_F(NvidiaFrontendTest, CompilesAnEditThatTouchesHostCode) {
  std::string edited = Replace(kSaxpySource, "int main() {", "int main() {;");
  edited = Replace(edited, "return x + x", "return 3 * x");
  const v1::CompileReply reply =
      Compile(InputFor(path_, {"Saxpy"}), Nvrtc(Edit(path_, edited)));
  EXPECT_EQ(Describe(reply), "OK");
  EXPECT_THAT(reply.diagnostics(), IsEmpty());
}

TEST_F(NvidiaFrontendTest, SaysWhatIsWrongWithASource) {
  const v1::CompileReply reply = Compile(
      InputFor(path_, {"Saxpy"}),
      Nvrtc(Edit(path_, Replace(kSaxpySource, "Twice(x[i])", "Thrice(x[i])"))));
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(), HasSubstr("Thrice"));
}

TEST_F(NvidiaFrontendTest, RejectsWhatTheRecordedSourceDoesNotDo) {
  const struct {
    const char *to, *reason;
  } cases[] = {
      {"return x + x + (clock64() == 0);", "reads a clock (%clock64)"},
      {"__nanosleep(9); return x + x;", "sleeps"},
      {"static float kept; kept += x; return kept;", "device variable"},
      {"asm(\"createpolicy.fractional.L2::evict_last.b64 p, 1.0;\"); return x;",
       "controls what the L2 cache keeps"},
      {"printf(\"x\"); return x + x;", "device printf"},
  };
  for (const auto& example : cases) {
    const v1::CompileReply reply = Compile(
        InputFor(path_, {"Saxpy"}),
        Nvrtc(Edit(path_, Replace(kSaxpySource, "return x + x;", example.to))));
    EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_REJECTED) << example.to;
    EXPECT_THAT(reply.diagnostics(), HasSubstr(example.reason));
  }
}

TEST_F(NvidiaFrontendTest, RecordedClocksMayStay) {
  SourceTree tree({{"timed.cu", Replace(kSaxpySource, "return x + x;",
                                        "return x + x + (clock64() == 0);")}});
  const std::string path = tree.Path("timed.cu");
  const v1::CompileReply reply =
      Compile(InputFor(path, {"Saxpy"}),
              Nvrtc(Edit(path, Replace(kSaxpySource, "return x + x;",
                                       "return 3 * x + (clock64() == 1);"))));
  EXPECT_EQ(Describe(reply), "OK");
}

TEST_F(NvidiaFrontendTest, PassesCannotBeTuned) {
  v1::Variant variant = Nvrtc();
  variant.set_pipeline("default<O2>");
  const v1::CompileReply reply = Compile(InputFor(path_, {"Saxpy"}), variant);
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(), HasSubstr("passes cannot be tuned"));
  EXPECT_EQ(Compile(InputFor(path_, {"Saxpy"}), Nvrtc(), v1::COMPILE_TARGET_CPU)
                .kind(),
            v1::OUTCOME_KIND_COMPILE_ERROR);
}

TEST_F(NvidiaFrontendTest, RegistersAndLaunchBoundsApply) {
  const v1::CompileInput input =
      App("layer_norm", "_Z15LayerNormKernelPKfS0_S0_Pfif");
  const v1::CompileReply free = Compile(input, Nvrtc());
  v1::Variant variant = Nvrtc();
  variant.mutable_codegen()->set_max_registers(24);
  variant.mutable_codegen()->set_max_threads_per_block(128);
  const v1::CompileReply capped = Compile(input, variant);
  ASSERT_EQ(Describe(capped), "OK");
  EXPECT_LE(capped.facts().registers(), 24u);
  EXPECT_GT(free.facts().registers(), 24u);
  EXPECT_EQ(capped.kernels(0).max_threads_per_block(), 128u);
}

TEST_F(NvidiaFrontendTest, TakesManagedVariablesThatClangRefuses) {
  const v1::CompileInput input = App("managed_global", "_Z16WalkChainsKernelv");
  EXPECT_EQ(Compile(input, {}).kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  const v1::CompileReply reply = Compile(input, Nvrtc());
  ASSERT_EQ(Describe(reply), "OK");
  EXPECT_THAT(reply.diagnostics(), IsEmpty());
  std::set<std::string> variables;
  for (const v1::ModuleGlobal& variable : reply.globals())
    variables.insert(variable.symbol());
  EXPECT_THAT(variables, IsSupersetOf({"chain_sums", "launches", "nodes"}));
}

TEST_F(NvidiaFrontendTest, KeepsManagedVariablesThatTheKernelDoesNotName) {
  v1::CompileInput input = App("managed_global", "_Z11RaiseKernelP4NodeiPKi");
  input.set_keep_variables(true);
  const v1::CompileReply reply = Compile(input, Nvrtc());
  ASSERT_EQ(Describe(reply), "OK");
  EXPECT_THAT(reply.diagnostics(), IsEmpty());
  std::set<std::string> variables;
  for (const v1::ModuleGlobal& variable : reply.globals())
    variables.insert(variable.symbol());
  EXPECT_THAT(variables, IsSupersetOf({"chain_sums", "launches", "nodes"}));
}

TEST_F(NvidiaFrontendTest, TakesClustersThatClangRefuses) {
  const v1::CompileInput input = App("cluster", "_Z15SwapTilesKernelPKiiPi");
  EXPECT_EQ(Compile(input, {}).kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  const v1::CompileReply reply = Compile(input, Nvrtc());
  ASSERT_EQ(Describe(reply), "OK");
  EXPECT_THAT(reply.diagnostics(), IsEmpty());
}

TEST_F(NvidiaFrontendTest, TakesSharedBarriersThatClangRefuses) {
  tree_.Write("barrier.cu", R"cuda(#include <cuda/barrier>
#include <vector>
__global__ void Wait(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  barrier.arrive_and_wait();
  out[threadIdx.x] = threadIdx.x;
}
int main() {
  std::vector<int> host(3);
  Wait<<<1, 32>>>(host.data());
}
)cuda");
  const v1::CompileInput input =
      InputFor(tree_.Path("barrier.cu"), {"_Z4WaitPi"});
  EXPECT_EQ(Compile(input, {}).kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  const v1::CompileReply reply = Compile(input, Nvrtc());
  ASSERT_EQ(Describe(reply), "OK");
  EXPECT_THAT(reply.diagnostics(), IsEmpty());
}

TEST_F(NvidiaFrontendTest, MakesKernelsOfTemplatesStaticAndHidden) {
  tree_.Write("names.cu", R"cuda(#include <cstdint>
namespace deep { struct Scale { int by; }; }
namespace {
__constant__ int factor = 3;
template <typename T, int N>
__global__ void Hidden(T* x, deep::Scale s) { x[0] *= s.by + N + factor; }
}
static __global__ void Own(int64_t* x) { x[1] = 1; }
int main() {
  Hidden<float, 4><<<1, 1>>>(nullptr, deep::Scale{});
  Hidden<double, 2><<<1, 1>>>(nullptr, deep::Scale{});
  Own<<<1, 1>>>(nullptr);
}
)cuda");
  for (const char* kernel :
       {"_ZN12_GLOBAL__N_16HiddenIfLi4EEEvPT_N4deep5ScaleE", "_ZL3OwnPl"}) {
    v1::CompileInput input = InputFor(tree_.Path("names.cu"), {kernel});
    input.set_key(kernel);
    const v1::CompileReply reply = Compile(input, Nvrtc());
    ASSERT_EQ(Describe(reply), "OK");
    EXPECT_THAT(reply.diagnostics(), IsEmpty()) << kernel;
    EXPECT_EQ(reply.kernels(0).symbol(), kernel);
    EXPECT_THAT(reply.code(), HasSubstr(std::string(".text.") + kernel));
  }
}

TEST_F(NvidiaFrontendTest, NvccTakesWhatNvrtcCannot) {
  tree_.Write("lambda.cu", R"cuda(
template <typename F> __global__ void Apply(int* x, F f) { x[0] = f(x[0]); }
int main() {
  Apply<<<1, 1>>>(static_cast<int*>(nullptr),
                  [] __device__(int v) { return v + 1; });
}
)cuda");
  const v1::CompileReply reply = Compile(
      InputFor(tree_.Path("lambda.cu"), {"_Z5ApplyIZ4mainEUliE_EvPiT_"}),
      Nvrtc());
  ASSERT_EQ(Describe(reply), "OK");
  EXPECT_THAT(reply.diagnostics(), HasSubstr("compiled by nvcc"));
  EXPECT_EQ(reply.kernels(0).symbol(), "_Z5ApplyIZ4mainEUliE_EvPiT_");
}

TEST_F(NvidiaFrontendTest, ReadsTheUnitsClosureAndNotTheDisk) {
  v1::CompileInput input = InputFor("/nowhere/src/main.cu", {"_Z4CopyPi"});
  const auto add = [&](const std::string& path, const std::string& content) {
    v1::CompileFile* file = input.mutable_translation_units(0)->add_files();
    file->set_path(path);
    file->set_content(content);
  };
  input.mutable_translation_units(0)->add_clang_args("-I/nowhere/include");
  add("/nowhere/src/main.cu",
      "#include \"../lib/near.h\"\n#include <far.h>\n"
      "__global__ void Copy(int* x) { x[0] = kNear + kFar; }\n");
  add("/nowhere/src/../lib/near.h", "constexpr int kNear = 1;\n");
  add("/nowhere/include/far.h", "#pragma once\nconstexpr int kFar = 2;\n");
  const v1::CompileReply reply = Compile(input, Nvrtc());
  ASSERT_EQ(Describe(reply), "OK");
  EXPECT_THAT(reply.diagnostics(), Not(HasSubstr("nvcc")));
  const v1::CompileReply edited = Compile(
      input,
      Nvrtc(Edit("/nowhere/include/far.h", "constexpr int kFar = 5;\n")));
  ASSERT_EQ(Describe(edited), "OK");
  EXPECT_NE(edited.code_sha256(), reply.code_sha256());
}

}  // namespace
}  // namespace reprise::testing
