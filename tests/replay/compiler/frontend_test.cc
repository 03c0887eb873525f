// Source closures, overlays, precompiled headers and several translation units.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/str_split.h"
#include "replay/base/file_util.h"
#include "replay/compiler/compiler.h"
#include "replay/compiler/source_closure.h"
#include "tests/replay/compiler/test_units.h"

namespace reprise::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kHeader[] = R"(#pragma once
#include "deep/deeper.h"
__device__ inline float Helper(float x) { return x + kDeep; }
)";
constexpr char kDeeper[] = "#pragma once\nconstexpr float kDeep = 2;\n";
constexpr char kMain[] = R"(#include <cstdio>
#include <vector>
#include "helper.h"

#ifdef WITH_MORE
#include "more.h"
#endif
static const float kScale = 3;
namespace app {
__global__ void Kernel(float* x) { x[threadIdx.x] = Helper(x[0]) * kScale; }
}  // namespace app
int main() {
  std::vector<int> host(3);
  app::Kernel<<<1, 1>>>(nullptr);
}
)";
constexpr char kKernel[] = "_ZN3app6KernelEPf";

class FrontendTest : public ::testing::Test {
 protected:
  FrontendTest()
      : tree_({{"main.cu", kMain},
               {"helper.h", kHeader},
               {"deep/deeper.h", kDeeper},
               {"more.h", "#error not now\n"}}),
        main_(tree_.Path("main.cu")) {}

  std::vector<ClosureFile> Closure(const v1::CompileTranslationUnit& unit) {
    auto files = ComputeSourceClosure(unit, "sm_90", FindToolchain(CudaHome()));
    EXPECT_TRUE(files.ok()) << files.status();
    return files.ok() ? *files : std::vector<ClosureFile>();
  }
  // The input with its sources inside.
  v1::CompileInput Enclosed(v1::CompileInput input) {
    for (v1::CompileTranslationUnit& unit :
         *input.mutable_translation_units()) {
      for (const ClosureFile& file : Closure(unit)) {
        v1::CompileFile* copy = unit.add_files();
        copy->set_path(file.path);
        copy->set_content(file.content);
      }
    }
    return input;
  }
  v1::CompileReply Compile(const v1::CompileInput& input,
                           const v1::Variant& variant,
                           v1::CompileTarget target = v1::COMPILE_TARGET_PTX) {
    if (!compiler_->Knows(input.key())) compiler_->Remember(input);
    return compiler_->Compile(input.key(), variant, target);
  }

  SourceTree tree_;
  const std::string main_;
  std::unique_ptr<Compiler> compiler_ = NewCompiler();
};

TEST_F(FrontendTest, ClosureHoldsEveryFileThatIsRead) {
  const std::vector<ClosureFile> files =
      Closure(InputFor(main_).translation_units(0));
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0].path, main_);
  EXPECT_EQ(files[0].content, kMain);
  int user = 0;
  std::string system;
  for (const ClosureFile& file : files) {
    EXPECT_EQ(file.path[0], '/') << file.path;
    user += file.system ? 0 : 1;
    if (file.system) system += file.path + "\n";
  }
  EXPECT_EQ(user, 3);  // main.cu, helper.h, deep/deeper.h
  EXPECT_THAT(
      system,
      AllOf(HasSubstr("__clang_cuda_runtime_wrapper.h"),
            HasSubstr("/include/cuda_runtime.h"), HasSubstr("/vector\n"),
            HasSubstr("/libdevice.10.bc"), HasSubstr("/include/cuda.h")));
}

TEST_F(FrontendTest, ClosureSaysWhatIsMissing) {
  tree_.Write("main.cu", "#include \"absent.h\"\n");
  const auto files = ComputeSourceClosure(InputFor(main_).translation_units(0),
                                          "sm_90", FindToolchain(CudaHome()));
  EXPECT_EQ(files.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(files.status().message()),
              AllOf(HasSubstr("main.cu:1:10"), HasSubstr("absent.h")));
}

TEST_F(FrontendTest, CompilesFromTheClosureAlone) {
  const v1::CompileInput from_disk = InputFor(main_, {kKernel});
  const v1::CompileReply expected = Compile(from_disk, {});
  ASSERT_EQ(Describe(expected), "OK");
  v1::CompileInput enclosed = Enclosed(from_disk);
  enclosed.set_key("enclosed");
  // Nothing of the tree is read any more.
  tree_.Write("main.cu", "#error gone\n");
  tree_.Write("helper.h", "#error gone\n");
  const v1::CompileReply got = Compile(enclosed, {});
  ASSERT_EQ(Describe(got), "OK");
  EXPECT_EQ(got.code_sha256(), expected.code_sha256());
}

TEST_F(FrontendTest, ClosureOfAnotherMachineCompiles) {
  // As recorded where the toolkit lies in a place that this machine lacks.
  v1::CompileInput input = Enclosed(InputFor(main_, {kKernel}));
  const v1::CompileReply expected = Compile(InputFor(main_, {kKernel}), {});
  v1::CompileTranslationUnit& unit = *input.mutable_translation_units(0);
  const std::string elsewhere = "/nonexistent/cuda";
  for (std::string& arg : *unit.mutable_clang_args()) {
    if (arg.find(CudaHome()) != std::string::npos)
      arg = Replace(arg, CudaHome(), elsewhere);
  }
  for (v1::CompileFile& file : *unit.mutable_files()) {
    if (file.path().rfind(CudaHome() + "/", 0) == 0)
      file.set_path(elsewhere + file.path().substr(CudaHome().size()));
  }
  input.set_key("elsewhere");
  const v1::CompileReply got = Compile(input, {});
  ASSERT_EQ(Describe(got), "OK");
  EXPECT_EQ(got.code_sha256(), expected.code_sha256());
  // A header that the recorded build did not read comes from this machine.
  const v1::CompileReply more = Compile(
      input, Edit(main_, std::string("#include <cuda_fp16.h>\n") + kMain));
  EXPECT_EQ(Describe(more), "OK");
}

TEST_F(FrontendTest, HeaderOverlaysReachTheKernel) {
  const v1::CompileInput input = Enclosed(InputFor(main_, {kKernel}));
  const v1::CompileReply plain = Compile(input, {});
  ASSERT_EQ(Describe(plain), "OK");
  for (const char* name : {"helper.h", "deep/deeper.h"}) {
    const std::string content = std::string(name) == "helper.h"
                                    ? Replace(kHeader, "x + kDeep", "x - kDeep")
                                    : Replace(kDeeper, "= 2", "= 5");
    const v1::CompileReply edited =
        Compile(input, Edit(tree_.Path(name), content));
    ASSERT_EQ(Describe(edited), "OK");
    EXPECT_NE(edited.code_sha256(), plain.code_sha256()) << name;
    EXPECT_TRUE(edited.used_pch()) << name;
  }
  // And leave no trace.
  EXPECT_EQ(Compile(input, Edit(main_, kMain)).code_sha256(),
            plain.code_sha256());
}

TEST_F(FrontendTest, OnlyEditedUnitsAreCompiledAgain) {
  v1::CompileInput input = Enclosed(InputFor(main_));
  const v1::CompileReply ir = Compile(input, {}, v1::COMPILE_TARGET_DEVICE_IR);
  ASSERT_EQ(Describe(ir), "OK");
  input.mutable_translation_units(0)->set_ir(ir.code());
  input.add_kernels(kKernel);
  input.set_key("with-ir");
  // An overlay of a file that the first unit does not read: its IR serves.
  tree_.Write("other.cu", "__device__ int Other() { return 1; }\n");
  v1::CompileInput two = input;
  two.set_key("two");
  *two.add_translation_units() =
      Enclosed(InputFor(tree_.Path("other.cu"))).translation_units(0);
  two.mutable_translation_units(0)->mutable_files(0)->set_content(
      "#error compiled again\n");
  const v1::CompileReply unrelated = Compile(
      two,
      Edit(tree_.Path("other.cu"), "__device__ int Other() { return 2; }\n"));
  ASSERT_EQ(Describe(unrelated), "OK");
  EXPECT_EQ(unrelated.code_sha256(), Compile(input, {}).code_sha256());
  EXPECT_EQ(
      Compile(input, Edit(tree_.Path("helper.h"), "#error read\n")).kind(),
      v1::OUTCOME_KIND_COMPILE_ERROR);
}

TEST_F(FrontendTest, EqualCodeWithAndWithoutPrecompiledHeader) {
  const v1::CompileInput input = InputFor(main_, {kKernel});
  const auto plain_compiler = NewCompiler(/*use_pch=*/false);
  plain_compiler->Remember(input);
  for (const auto& [from, to] :
       std::vector<std::pair<const char*, const char*>>{
           {"* kScale", "* kScale + 1"},
           {"kScale = 3", "kScale = 4"},
           {"#include <vector>", "#include <vector>\n#include <map>"},
           {"#include <cstdio>", "#define EARLY 1\n#include <cstdio>"},
           {"int main", "int unused;\nint main"}}) {
    const v1::Variant edit = Edit(main_, Replace(kMain, from, to));
    const v1::CompileReply with = Compile(input, edit);
    const v1::CompileReply without =
        plain_compiler->Compile(input.key(), edit, v1::COMPILE_TARGET_PTX);
    ASSERT_EQ(Describe(with), "OK");
    EXPECT_TRUE(with.used_pch()) << from;
    EXPECT_FALSE(without.used_pch());
    EXPECT_EQ(with.code(), without.code()) << from;
  }
}

TEST_F(FrontendTest, DiagnosticsCountLinesFromTheFilesBeginning) {
  const v1::CompileInput input = InputFor(main_, {kKernel});
  const v1::CompileReply reply =
      Compile(input, Edit(main_, Replace(kMain, "Helper(x[0])", "Gone(x[0])")));
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_TRUE(reply.used_pch());
  EXPECT_THAT(reply.diagnostics(), HasSubstr("main.cu:10:53: error: "));
}

TEST_F(FrontendTest, MacrosThatHideBracesOnlyCostThePrecompiledHeader) {
  const std::string source = R"(#define OPEN namespace hidden {
#define CLOSE }
OPEN
__device__ int f() { return 1; }
extern "C" __global__ void K(int* x) { *x = f(); }
CLOSE
)";
  tree_.Write("macros.cu", source);
  const std::string path = tree_.Path("macros.cu");
  const v1::CompileReply reply = Compile(
      InputFor(path, {"K"}), Edit(path, Replace(source, "= f()", "= 2 * f()")));
  EXPECT_EQ(Describe(reply), "OK");
}

TEST_F(FrontendTest, KernelsThatHostCodeInstantiates) {
  const std::string source = R"(
template <typename F> __global__ void Apply(F f, int* x) { *x = f(*x); }
template <typename F> void Launch(F f) { Apply<<<1, 1>>>(f, nullptr); }
struct Double { __device__ int operator()(int x) { return 2 * x; } };
int main() { Launch(Double()); }
)";
  tree_.Write("template.cu", source);
  const std::string path = tree_.Path("template.cu");
  const std::string kernel = "_Z5ApplyI6DoubleEvT_Pi";
  const v1::CompileReply plain = Compile(InputFor(path, {kernel}), {});
  ASSERT_EQ(Describe(plain), "OK");
  const v1::CompileReply edited = Compile(
      InputFor(path, {kernel}), Edit(path, Replace(source, "2 * x", "x << 1")));
  ASSERT_EQ(Describe(edited), "OK");
  EXPECT_EQ(edited.code_sha256(), plain.code_sha256());
}

TEST_F(FrontendTest, LinksRelocatableDeviceCode) {
  const std::map<std::string, std::string> files = {
      {"rdc/shared.h",
       "extern __device__ int total;\n"
       "__device__ int Far(int x);\n"},
      {"rdc/main.cu",
       "#include \"shared.h\"\n"
       "static __device__ int Local(int x) { return x + 1; }\n"
       "extern \"C\" __global__ void K(int* x) {\n"
       "  *x = Far(Local(*x)) + total;\n}\n"},
      {"rdc/far.cu",
       "#include \"shared.h\"\n__device__ int total;\n"
       "static __device__ int Local(int x) { return x + 7; }\n"
       "__device__ int Far(int x) { return Local(x) * 3; }\n"
       "__global__ void Unwanted(int* x) { *x = total; }\n"}};
  for (const auto& [name, content] : files) tree_.Write(name, content);
  v1::CompileInput input;
  input.set_key("rdc");
  input.set_architecture("sm_90");
  input.add_kernels("K");
  for (const char* name : {"rdc/main.cu", "rdc/far.cu"}) {
    v1::CompileInput one = InputFor(tree_.Path(name));
    one.mutable_translation_units(0)->add_clang_args("-fgpu-rdc");
    one = Enclosed(one);
    const v1::CompileReply ir = Compile(one, {}, v1::COMPILE_TARGET_DEVICE_IR);
    ASSERT_EQ(Describe(ir), "OK");
    one.mutable_translation_units(0)->set_ir(ir.code());
    *input.add_translation_units() = one.translation_units(0);
  }
  const v1::CompileReply plain = Compile(input, {}, v1::COMPILE_TARGET_CUBIN);
  ASSERT_EQ(Describe(plain), "OK");
  ASSERT_EQ(plain.kernels_size(), 1);
  ASSERT_EQ(plain.globals_size(), 1);
  EXPECT_EQ(plain.globals(0).symbol(), "total");
  // An edit of the second unit only.
  const v1::CompileReply edited =
      Compile(input,
              Edit(tree_.Path("rdc/far.cu"),
                   Replace(files.at("rdc/far.cu"), "x + 7", "x + 8")),
              v1::COMPILE_TARGET_CUBIN);
  ASSERT_EQ(Describe(edited), "OK");
  EXPECT_NE(edited.code_sha256(), plain.code_sha256());
  // The far unit alone lacks what the kernel calls.
  input.mutable_translation_units()->RemoveLast();
  input.set_key("half");
  const v1::CompileReply half = Compile(input, {}, v1::COMPILE_TARGET_CUBIN);
  EXPECT_EQ(half.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(half.diagnostics(), HasSubstr("_Z3Fari"));
}

// Units hold their kernel's own translation unit first.
TEST_F(FrontendTest, StaticVariablesOfOneNameKeepTheirNamesInAnyOrder) {
  v1::CompileInput input;
  input.set_architecture("sm_90");
  for (const char* name : {"rdc/left.cu", "rdc/right.cu"}) {
    const bool left = input.translation_units().empty();
    tree_.Write(name,
                absl::StrCat("static __device__ int count;\n"
                             "extern \"C\" __global__ void ",
                             left ? "Left" : "Right", "() { ++count; }\n"));
    v1::CompileInput one = InputFor(tree_.Path(name));
    one.mutable_translation_units(0)->add_clang_args("-fgpu-rdc");
    one = Enclosed(one);
    const v1::CompileReply ir = Compile(one, {}, v1::COMPILE_TARGET_DEVICE_IR);
    ASSERT_EQ(Describe(ir), "OK");
    one.mutable_translation_units(0)->set_ir(ir.code());
    *input.add_translation_units() = one.translation_units(0);
  }
  input.add_kernels("Right");
  std::vector<std::string> symbols;
  for (const char* key : {"left first", "right first"}) {
    input.set_key(key);
    const v1::CompileReply reply = Compile(input, {}, v1::COMPILE_TARGET_CUBIN);
    ASSERT_EQ(Describe(reply), "OK");
    ASSERT_EQ(reply.globals_size(), 1);
    symbols.push_back(reply.globals(0).symbol());
    input.mutable_translation_units()->SwapElements(0, 1);
  }
  EXPECT_EQ(symbols[0], symbols[1]);
}

// One row of tests/apps/apps.tsv.
struct App {
  std::string name;
  std::vector<std::string> sources;
  bool rdc = false;
};

std::vector<App> ReadApps() {
  std::vector<App> apps;
  std::ifstream table(AppsDirectory() + "/apps.tsv");
  std::string line;
  while (std::getline(table, line)) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    if (fields.size() < 3) continue;
    apps.push_back({fields[0], absl::StrSplit(fields[1], ','),
                    fields[2].find("-rdc=true") != std::string::npos});
  }
  return apps;
}

TEST_F(FrontendTest, SomeApplicationsCompileTheSameFastAndSlow) {
  // One of each kind; tests/benchmarks/pass_soak goes through all.
  const std::vector<std::string> chosen = {
      "layer_norm",        "constant_globals", "templates_lambdas",
      "cooperative_block", "lattice_qcd",      "atomics_all"};
  int kernels = 0;
  for (const App& app : ReadApps()) {
    if (std::find(chosen.begin(), chosen.end(), app.name) == chosen.end())
      continue;
    const std::string path =
        AppsDirectory() + "/" + app.name + "/" + app.sources[0];
    v1::CompileInput input = InputFor(path);
    const v1::CompileReply ir =
        Compile(input, {}, v1::COMPILE_TARGET_DEVICE_IR);
    ASSERT_EQ(Describe(ir), "OK");
    input.mutable_translation_units(0)->set_ir(ir.code());
    // The last kernel: its file's prefix holds the others.
    const v1::CompiledKernelInfo& kernel = ir.kernels(ir.kernels_size() - 1);
    input.add_kernels(kernel.symbol());
    input.set_key(path + kernel.symbol());
    const v1::CompileReply slow = Compile(input, {});
    ASSERT_EQ(Describe(slow), "OK");
    const v1::CompileReply fast =
        Compile(input, Edit(path, ReadFile(path).value() + "\n// the end\n"));
    ASSERT_EQ(Describe(fast), "OK");
    EXPECT_TRUE(fast.used_pch()) << path;
    EXPECT_EQ(fast.code_sha256(), slow.code_sha256()) << path;
    ++kernels;
  }
  EXPECT_EQ(kernels, static_cast<int>(chosen.size()));
}

}  // namespace
}  // namespace reprise::testing
