// Which accesses of device IR get a note. What the notes do:
// note_functions_test.cc; whether they are right: noted_code_test.cc of the
// devices.
#include "replay/compiler/note_accesses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "replay/compiler/codegen.h"
#include "replay/compiler/codegen_options.h"
#include "replay/compiler/kernel_selection.h"
#include "replay/compiler/pipeline.h"
#include "replay/device/cuda/access_notes.h"
#include "tests/replay/compiler/test_units.h"

namespace reprise::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using Calls = std::map<std::string, int>;

class NoteAccessesTest : public ::testing::Test {
 protected:
  // Compiles one source and notes its accesses.
  void Note(const std::string& source, const std::string& flag = "") {
    tree_.Write("noted.cu", source);
    v1::CompileInput input = InputFor(tree_.Path("noted.cu"));
    if (!flag.empty()) input.mutable_translation_units(0)->add_clang_args(flag);
    compiler_->Remember(input);
    const v1::CompileReply reply =
        compiler_->Compile(input.key(), {}, v1::COMPILE_TARGET_DEVICE_IR);
    ASSERT_EQ(Describe(reply), "OK");
    auto module = llvm::parseBitcodeFile(
        llvm::MemoryBufferRef(reply.code(), "noted.cu"), context_);
    ASSERT_TRUE(static_cast<bool>(module));
    module_ = std::move(*module);
    ASSERT_TRUE(SelectKernels(KernelNames(*module_), false, *module_).ok());
    ApplyCodegenOptions({}, {}, *module_);
    auto machine = CreateGpuTargetMachine("sm_90", *module_, true);
    ASSERT_TRUE(machine.ok()) << machine.status();
    machine_ = *std::move(machine);
    Optimize(kPipelineBeforeNotes);
    auto not_noted = NoteAccesses(*module_);
    ASSERT_TRUE(not_noted.ok()) << not_noted.status();
    not_noted_ = *not_noted;
    EXPECT_EQ(VerifierErrors(*module_), "");
  }
  void Optimize(const std::string& pipeline) {
    const absl::Status status =
        RunPipeline(pipeline, *machine_, nullptr, false, *module_);
    ASSERT_TRUE(status.ok()) << status;
  }
  // How often a function calls each note function, without their prefix.
  Calls NotesOf(const std::string& function) {
    Calls calls;
    for (llvm::Instruction& instruction :
         llvm::instructions(*module_->getFunction(function))) {
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      const llvm::Function* callee =
          call == nullptr ? nullptr : call->getCalledFunction();
      llvm::StringRef name = callee == nullptr ? "" : callee->getName();
      if (name.consume_front("__reprise_note_")) ++calls[name.str()];
    }
    return calls;
  }
  std::string Ptx() {
    Optimize("default<O3>");
    const auto ptx =
        EmitCode(*machine_, llvm::CodeGenFileType::AssemblyFile, *module_);
    EXPECT_TRUE(ptx.ok()) << ptx.status();
    return ptx.value_or("");
  }

  SourceTree tree_{{}};
  std::unique_ptr<Compiler> compiler_ = NewCompiler();
  llvm::LLVMContext context_;
  std::unique_ptr<llvm::Module> module_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::vector<std::string> not_noted_;
};

TEST_F(NoteAccessesTest, EachAccessToGlobalMemory) {
  Note(kSaxpySource);
  // x[i], y[i], the constant, the counter; y[i], the counter.
  EXPECT_THAT(
      NotesOf("Saxpy"),
      ElementsAre(Pair("read_4", 4), Pair("totals", 1), Pair("write_4", 2)));
  EXPECT_THAT(NotesOf("Other"),
              ElementsAre(Pair("totals", 1), Pair("write_4", 1)));
  EXPECT_THAT(not_noted_, IsEmpty());
}

TEST_F(NoteAccessesTest, NoPrivateMemory) {
  Note(R"(
struct Parameters { int table[16]; };
__device__ const int kTable[4] = {1, 2, 3, 4};
extern "C" __global__ void Private(Parameters p, int n, int* out) {
  __shared__ int tile[64];
  extern __shared__ int more[];
  int local[16];
  for (int i = 0; i < 16; ++i) local[i] = p.table[(i + n) % 16];
  tile[threadIdx.x] = local[n % 16];
  more[threadIdx.x] = kTable[n & 3];
  __syncthreads();
  atomicAdd(&tile[n], 1);
  int* either = n > 3 ? tile : more;
  tile[0] = *either + local[n & 7];
}
)");
  EXPECT_THAT(NotesOf("Private"), IsEmpty());
}

TEST_F(NoteAccessesTest, FunctionsOutOfLine) {
  Note(R"(
__device__ __noinline__ int Load(const int* p) { return *p; }
extern "C" __global__ void Caller(const int* in, int* out) {
  __shared__ int tile[32];
  tile[threadIdx.x] = 1;
  *out = Load(in) + Load(tile);
}
)");
  EXPECT_THAT(NotesOf("_Z4LoadPKi"),
              ElementsAre(Pair("read_4", 1), Pair("totals", 1)));
  EXPECT_THAT(NotesOf("Caller"),
              ElementsAre(Pair("totals", 1), Pair("write_4", 1)));
}

TEST_F(NoteAccessesTest, TotalsBeforeTheThreadEnds) {
  Note(R"(
__device__ __noinline__ void Leave(int n) {
  if (n == 7) asm volatile("exit;");
}
extern "C" __global__ void Exits(int* out, int n) {
  out[threadIdx.x] = 1;
  if (n == 3) {
    out[4] = 2;
    asm volatile("exit;");
  }
  Leave(n);
  out[5] = 3;
}
)");
  // Before the exit, before the call that may end the thread, at the return.
  EXPECT_EQ(NotesOf("Exits")["totals"], 3);
  EXPECT_EQ(NotesOf("Exits")["write_4"], 3);
}

TEST_F(NoteAccessesTest, FunctionsWithoutEffectsMayNote) {
  Note(R"(
__device__ __noinline__ __attribute__((const)) float Square(float x) {
  return x * x;
}
extern "C" __global__ void Squares(float* out) {
  Square(2);
  out[0] = Square(3);
}
)");
  Optimize("default<O3>");
  EXPECT_EQ(NotesOf("_Z6Squaref")["totals"], 1);
}

TEST_F(NoteAccessesTest, TensorCores) {
  Note(R"(
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void Multiply(const half* a, const half* b, float* c) {
  __shared__ half tile[256];
  fragment<matrix_a, 16, 16, 16, half, row_major> x;
  fragment<matrix_b, 16, 16, 16, half, col_major> y;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.0f);
  load_matrix_sync(x, a, 32);
  load_matrix_sync(y, b, 16);
  mma_sync(sum, x, y, sum);
  load_matrix_sync(x, tile, 16);
  mma_sync(sum, x, y, sum);
  store_matrix_sync(c, sum, 64, mem_row_major);
}
)");
  EXPECT_THAT(not_noted_, IsEmpty());
  EXPECT_THAT(NotesOf("Multiply"),
              ElementsAre(Pair("read_bytes", 2), Pair("totals", 1),
                          Pair("write_bytes", 1)));
  EXPECT_THAT(Ptx(), AllOf(HasSubstr("%laneid"), HasSubstr("wmma.load.a")));
}

TEST_F(NoteAccessesTest, NamesWhatItCannotNote) {
  Note(R"(
extern "C" __global__ void Unknown(const float* in, float* out, int n) {
  asm volatile("{ .reg .u64 t; mad.wide.u32 t, %0, 4, %1;"
               " st.global.f32 [t], %2; }"
               :: "r"(n), "l"(out), "f"(in[0]) : "memory");
  asm volatile("bar.sync 0;" ::: "memory");
  asm volatile("{ .reg .u64 t; mad.wide.u32 t, %0, 8, %1;"
               " st.global.f32 [t], %2; }"
               :: "r"(n), "l"(out), "f"(in[1]) : "memory");
}
extern "C" __global__ void Texture(cudaTextureObject_t t, float* out) {
  *out = tex1Dfetch<float>(t, 1);
}
)");
  EXPECT_THAT(not_noted_, ElementsAre("inline PTX st.global.f32 in Unknown",
                                      HasSubstr("in Texture")));
}

TEST_F(NoteAccessesTest, PtxOfOptimizedCode) {
  Note(kSaxpySource);
  const std::string ptx = Ptx();
  EXPECT_THAT(
      ptx, AllOf(HasSubstr(std::string(".visible .global .align 8 ")),
                 HasSubstr(cuda::kAccessNotesSymbol), HasSubstr(".maxntid 256"),
                 HasSubstr("call.uni (retval0), "),
                 HasSubstr("__reprise_note_read_4")));
  // Only what is called is there.
  EXPECT_THAT(ptx, Not(HasSubstr("__reprise_note_write_16")));
  EXPECT_THAT(ptx, Not(HasSubstr(".extern .func __reprise")));
}

TEST_F(NoteAccessesTest, FlushedDenormalsLinkToo) {
  Note(kSaxpySource, "-fcuda-flush-denormals-to-zero");
  EXPECT_THAT(Ptx(), AllOf(HasSubstr(".ftz."), HasSubstr("__reprise_note")));
}

TEST_F(NoteAccessesTest, OwnNamesAreRefused) {
  llvm::Module module("taken", context_);
  new llvm::GlobalVariable(module, llvm::Type::getInt32Ty(context_), false,
                           llvm::GlobalValue::ExternalLinkage, nullptr,
                           cuda::kAccessNotesSymbol);
  EXPECT_EQ(NoteAccesses(module).status().code(),
            absl::StatusCode::kInvalidArgument);
}

class InstrumentedCubinTest : public NoteAccessesTest {
 protected:
  v1::CompileReply Compile(v1::CompileInput input) {
    input.set_key("cubin");
    compiler_->Remember(input);
    return compiler_->Compile("cubin", {},
                              v1::COMPILE_TARGET_CUBIN_INSTRUMENTED);
  }
};

TEST_F(InstrumentedCubinTest, HoldsTheNotesAndDescribesTheProgram) {
  tree_.Write("saxpy.cu", kSaxpySource);
  for (const char* architecture : {"sm_75", "sm_80", "sm_90", "sm_90a"}) {
    v1::CompileInput input = InputFor(tree_.Path("saxpy.cu"), {"Saxpy"});
    input.set_architecture(architecture);
    const v1::CompileReply reply = Compile(input);
    ASSERT_EQ(Describe(reply), "OK") << architecture;
    EXPECT_EQ(reply.diagnostics(), "");
    EXPECT_THAT(reply.code(), HasSubstr(cuda::kAccessNotesSymbol));
    ASSERT_EQ(reply.kernels_size(), 1);
    EXPECT_EQ(reply.kernels(0).static_shared_bytes(), 128u);
    EXPECT_EQ(reply.kernels(0).max_threads_per_block(), 256u);
    std::vector<std::string> globals;
    for (const v1::ModuleGlobal& global : reply.globals())
      globals.push_back(global.symbol());
    EXPECT_THAT(globals,
                ::testing::UnorderedElementsAre("_ZL8launches", "offset"));
  }
}

TEST_F(InstrumentedCubinTest, SaysWhatIsNotNoted) {
  tree_.Write("unknown.cu", R"(
extern "C" __global__ void Unknown(float* out) {
  asm volatile("multimem.red.relaxed.sys.global.add.f32 [%0], 1.0;"
               :: "l"(out) : "memory");
}
)");
  const v1::CompileReply reply = Compile(InputFor(tree_.Path("unknown.cu")));
  EXPECT_EQ(Describe(reply), "OK");
  EXPECT_EQ(reply.diagnostics(),
            "not noted: inline PTX multimem.red.relaxed.sys.global.add.f32 in "
            "Unknown\n");
}

TEST_F(InstrumentedCubinTest, RegistersCappedAndSpilling) {
  tree_.Write("spills.cu", R"(
extern "C" __global__ void __launch_bounds__(1024, 2) Spills(
    const double* in, double* out) {
  double values[48];
#pragma unroll
  for (int i = 0; i < 48; ++i) values[i] = in[threadIdx.x * 48 + i];
#pragma unroll
  for (int k = 1; k < 48; ++k)
#pragma unroll
    for (int i = 0; i < 48; ++i) values[i] += values[(i * k) % 48] * in[i];
#pragma unroll
  for (int i = 0; i < 48; ++i) out[threadIdx.x * 48 + i] = values[i];
}
)");
  const v1::CompileReply reply = Compile(InputFor(tree_.Path("spills.cu")));
  ASSERT_EQ(Describe(reply), "OK");
  EXPECT_LE(reply.facts().registers(), 32u);
  EXPECT_GT(reply.facts().spill_bytes(), 0u);
}

}  // namespace
}  // namespace reprise::testing
