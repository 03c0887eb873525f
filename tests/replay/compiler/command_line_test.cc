// Command lines of nvcc and Clang as build systems write them.
#include "replay/compiler/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/status/status.h"

namespace reprise {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

CommandContext Context() {
  CommandContext context;
  context.directory = "/src/build";
  context.cuda_home = "/opt/cuda";
  context.read_file = [](const std::string& path) {
    return absl::StatusOr<std::string>(absl::NotFoundError(path));
  };
  return context;
}

CompilerCommand Parse(const std::string& line,
                      const CommandContext& context = Context()) {
  absl::StatusOr<CompilerCommand> command =
      ParseCompilerCommand(SplitArguments(line), context);
  EXPECT_TRUE(command.ok()) << command.status();
  return command.ok() ? *command : CompilerCommand();
}

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

struct Case {
  const char* line;
  CommandKind kind;
  const char* sources;
  const char* output;
  const char* architectures;
  bool rdc;
  // Of clang_args, without what the toolkit adds.
  const char* args;
};

std::string SourcePaths(const CompilerCommand& command) {
  std::vector<std::string> paths;
  for (const CommandSource& source : command.sources)
    paths.push_back(source.path);
  return Join(paths);
}

// Arguments before "--cuda-path=", which the toolkit's own follow.
std::string OwnArgs(const CompilerCommand& command) {
  std::vector<std::string> args;
  for (const std::string& arg : command.clang_args) {
    if (arg.rfind("--cuda-path=", 0) == 0) break;
    args.push_back(arg);
  }
  // What an nvcc command means without saying it.
  if (args.size() >= 2 && args.back() == "-nvptx-prec-sqrtf32=1") {
    args.pop_back();
    args.pop_back();
  }
  return Join(args);
}

constexpr CommandKind kCompile = CommandKind::kCompile;
constexpr CommandKind kLink = CommandKind::kLink;
constexpr CommandKind kOther = CommandKind::kOther;

const Case kCases[] = {
    // As CMake writes them.
    {"/usr/local/cuda/bin/nvcc -forward-unknown-to-host-compiler "
     "-ccbin=/usr/bin/g++ -DNDEBUG -I/src/include -isystem=/opt/lib/include "
     "-O3 -DNDEBUG -std=c++17 --generate-code=arch=compute_90,"
     "code=[compute_90,sm_90] -Xcompiler=-fPIC -MD -MT a.o -MF a.o.d -x cu -c "
     "/src/a.cu -o a.o",
     kCompile, "/src/a.cu", "a.o", "sm_90 compute_90", false,
     "-DNDEBUG -I/src/include -isystem /opt/lib/include -DNDEBUG -std=c++17"},
    {"nvcc -rdc=true -arch sm_80 -c a.cu", kCompile, "a.cu", "a.o",
     "sm_80 compute_80", true, "-fgpu-rdc"},
    {"nvcc -dc --gpu-architecture=sm_90a a.cu b.cu -odir obj", kCompile,
     "a.cu b.cu", "obj/a.o", "sm_90a compute_90a", true, "-fgpu-rdc"},
    {"nvcc --device-c -arch=compute_80 -code=sm_80,sm_86,compute_80 x.cu",
     kCompile, "x.cu", "x.o", "sm_80 sm_86 compute_80", true, "-fgpu-rdc"},
    {"nvcc -gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90a,"
     "code=sm_90a -gencode arch=compute_120,code=compute_120 -o app main.cu "
     "util.cpp",
     kCompile, "main.cu util.cpp", "app", "sm_80 sm_90a compute_120", false,
     ""},
    {"nvcc -gencode \"arch=compute_90,code=\\\"sm_90,compute_90\\\"\" a.cu -c",
     kCompile, "a.cu", "a.o", "sm_90 compute_90", false, ""},
    {"nvcc a.cu", kCompile, "a.cu", "a.out", "sm_75 compute_75", false, ""},
    {"nvcc -arch=native -c a.cu", kCompile, "a.cu", "a.o", "native", false, ""},
    {"nvcc --expt-relaxed-constexpr --extended-lambda -c a.cu", kCompile,
     "a.cu", "a.o", "sm_75 compute_75", false,
     "-D__CUDACC_RELAXED_CONSTEXPR__=1 -D__CUDACC_EXTENDED_LAMBDA__=1"},
    {"nvcc -Xcompiler \"-O2 -DFROM_HOST -Wall\" -Xcompiler "
     "-fno-exceptions,-ffast-math -c a.cu",
     kCompile, "a.cu", "a.o", "sm_75 compute_75", false,
     "-DFROM_HOST -fno-exceptions"},
    {"nvcc -use_fast_math -c a.cu", kCompile, "a.cu", "a.o", "sm_75 compute_75",
     false,
     "-fgpu-approx-transcendentals -fgpu-flush-denormals-to-zero -mllvm "
     "-nvptx-prec-divf32=0 -mllvm -nvptx-prec-sqrtf32=0 "
     "-D__USE_FAST_MATH__=1"},
    {"nvcc -ftz=true --prec-div=false -prec-sqrt false -fmad=false -c a.cu",
     kCompile, "a.cu", "a.o", "sm_75 compute_75", false,
     "-fgpu-flush-denormals-to-zero -mllvm -nvptx-prec-divf32=1 -mllvm "
     "-nvptx-prec-sqrtf32=0 -ffp-contract=off"},
    {"nvcc -maxrregcount 64 -Xptxas -O1,-v -c a.cu", kCompile, "a.cu", "a.o",
     "sm_75 compute_75", false,
     "-Xcuda-ptxas -O1 -Xcuda-ptxas -maxrregcount=64"},
    {"nvcc -include pre.h,other.h -D 'LIST=1,2' -U OLD -I a,b -c a.cu",
     kCompile, "a.cu", "a.o", "sm_75 compute_75", false,
     "-include pre.h -include other.h -DLIST=1,2 -UOLD -Ia -Ib"},
    {"nvcc -x cu -arch=sm_90 -c kernel.cpp -o kernel.o", kCompile, "kernel.cpp",
     "kernel.o", "sm_90 compute_90", false, ""},
    {"nvcc -ptx -arch=sm_90 a.cu", kCompile, "a.cu", "a.ptx",
     "sm_90 compute_90", false, ""},
    {"nvcc -cubin -arch=sm_90 a.cu -o k.cubin", kCompile, "a.cu", "k.cubin",
     "sm_90 compute_90", false, ""},
    {"nvcc -default-stream per-thread -t8 -lineinfo -G -g -c a.cu", kCompile,
     "a.cu", "a.o", "sm_75 compute_75", false,
     "-DCUDA_API_PER_THREAD_DEFAULT_STREAM"},
    {"nvcc -shared -o lib.so a.o b.o -lcublas -L/opt/lib", kLink, "", "lib.so",
     "sm_75 compute_75", false, ""},
    {"nvcc -arch=sm_90 -dlink a.o b.o -o dlink.o", kLink, "", "dlink.o",
     "sm_90 compute_90", false, ""},
    {"nvcc --version", kOther, "", "", "sm_75 compute_75", false, ""},
    {"nvcc -M a.cu -o a.d", kOther, "a.cu", "", "sm_75 compute_75", false, ""},
    {"nvcc --dryrun -c a.cu", kOther, "a.cu", "", "sm_75 compute_75", false,
     ""},
    {"/opt/kokkos/bin/nvcc_wrapper -arch=sm_90 -c a.cpp -x cu", kCompile,
     "a.cpp", "a.o", "sm_90 compute_90", false, ""},
    // Clang.
    {"clang++-22 -O3 -Wall -x cuda --cuda-gpu-arch=sm_90 "
     "--cuda-path=/usr/local/cuda -Wno-unknown-cuda-version "
     "-I/usr/local/cuda/include/cccl -I/src -c /src/a.cu -o a.o",
     kCompile, "/src/a.cu", "a.o", "sm_90", false,
     "-I/usr/local/cuda/include/cccl -I/src"},
    {"clang++ --offload-arch=sm_80,sm_90 --no-offload-arch=sm_80 -fgpu-rdc "
     "-ffast-math -fopenmp -MD -MF a.d -c a.cu",
     kCompile, "a.cu", "a.o", "sm_90", true, "-ffast-math -fgpu-rdc"},
    {"clang++ -std=c++20 -D X=1 -isystem inc -Xclang -fcuda-allow-variadic-"
     "functions -march=native -g a.cu -o app -lcudart",
     kCompile, "a.cu", "app", "sm_52", false,
     "-std=c++20 -DX=1 -isystem inc -Xclang -fcuda-allow-variadic-functions"},
    {"clang++ a.o b.o -L/usr/local/cuda/lib64 -Wl,-rpath,/x -lcudart -o app",
     kLink, "", "app", "sm_52", false, ""},
    {"clang++ -Xcuda-ptxas -maxrregcount=40 -c a.cu -o a.o", kCompile, "a.cu",
     "a.o", "sm_52", false, "-Xcuda-ptxas -maxrregcount=40"},
    {"clang++ -E a.cu", kOther, "a.cu", "", "sm_52", false, ""},
    {"g++ -O2 -c main.cc", kCompile, "main.cc", "main.o", "sm_52", false, ""},
};

TEST(CommandLineTest, UnderstandsCommandsOfBuildSystems) {
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.line);
    const CompilerCommand command = Parse(test.line);
    EXPECT_EQ(command.kind, test.kind);
    EXPECT_EQ(SourcePaths(command), test.sources);
    EXPECT_EQ(command.output, test.output);
    EXPECT_EQ(Join(command.architectures), test.architectures);
    EXPECT_EQ(command.relocatable_device_code, test.rdc);
    EXPECT_EQ(OwnArgs(command), test.args);
    EXPECT_THAT(command.unknown_flags, IsEmpty());
  }
}

TEST(CommandLineTest, TellsCudaSourcesFromHostSources) {
  const CompilerCommand command = Parse("nvcc -c main.cu util.cpp");
  ASSERT_EQ(command.sources.size(), 2u);
  EXPECT_TRUE(command.sources[0].cuda);
  EXPECT_FALSE(command.sources[1].cuda);
  EXPECT_EQ(command.sources[1].output, "util.o");
  EXPECT_FALSE(command.links);
  EXPECT_TRUE(Parse("clang++ -x cuda -c k.cc").sources.at(0).cuda);
  EXPECT_FALSE(Parse("nvcc -x c++ -c k.cu").sources.at(0).cuda);
}

TEST(CommandLineTest, KeepsNoObjectOfAProgramBuiltInOneGo) {
  const CompilerCommand command = Parse("nvcc a.cu b.o -o app");
  EXPECT_TRUE(command.links);
  EXPECT_EQ(command.sources.at(0).output, "");
  EXPECT_THAT(command.link_inputs, ElementsAre("b.o"));
}

TEST(CommandLineTest, AddsTheHeadersThatOnlyNvccFinds) {
  const CompilerCommand nvcc = Parse("/opt/cuda-13/bin/nvcc -c a.cu");
  EXPECT_EQ(Join(nvcc.clang_args),
            "-mllvm -nvptx-prec-sqrtf32=1 --cuda-path=/opt/cuda-13 -isystem "
            "/opt/cuda-13/include/cccl");
  const CompilerCommand clang = Parse("clang++ --cuda-path=/c -c a.cu");
  EXPECT_EQ(Join(clang.clang_args),
            "--cuda-path=/c -idirafter /c/include/cccl");
  EXPECT_THAT(Parse("nvcc -c a.cu").clang_args,
              Contains("--cuda-path=/opt/cuda"));
}

TEST(CommandLineTest, KeepsNvccsSquareRoot) {
  EXPECT_THAT(Parse("nvcc -c a.cu").clang_args,
              Contains("-nvptx-prec-sqrtf32=1"));
  EXPECT_THAT(Parse("nvcc -prec-sqrt=false -c a.cu").clang_args,
              Not(Contains("-nvptx-prec-sqrtf32=1")));
  EXPECT_THAT(Parse("clang++ -c a.cu").clang_args,
              Not(Contains("-nvptx-prec-sqrtf32=1")));
}

TEST(CommandLineTest, ReadsTheEnvironmentThatCompilersRead) {
  CommandContext context = Context();
  context.nvcc_prepend_flags = "-arch=sm_80 -DFIRST";
  context.nvcc_append_flags = "-arch=sm_90 -DLAST";
  context.cpath = "/p1:/p2";
  context.cplus_include_path = "/s";
  const CompilerCommand command = Parse("nvcc -DMID -c a.cu", context);
  EXPECT_THAT(command.architectures, ElementsAre("sm_90", "compute_90"));
  EXPECT_EQ(OwnArgs(command), "-DFIRST -DMID -DLAST -I/p1 -I/p2 -isystem /s");
}

TEST(CommandLineTest, ExpandsResponseFilesAndOptionsFiles) {
  std::map<std::string, std::string> files = {
      {"/src/build/flags.rsp", "-DA=\"x y\" @more.rsp\n-c"},
      {"/src/build/more.rsp", "-I'dir with space' a\\ b.cu"},
      {"/opts", "-DFROM_OPTS -arch=sm_90"},
  };
  CommandContext context = Context();
  context.read_file =
      [&](const std::string& path) -> absl::StatusOr<std::string> {
    const auto it = files.find(path);
    if (it == files.end()) return absl::NotFoundError("no such file " + path);
    return it->second;
  };
  const CompilerCommand command =
      Parse("nvcc @flags.rsp --options-file /opts", context);
  EXPECT_EQ(SourcePaths(command), "a b.cu");
  EXPECT_THAT(command.clang_args, Contains("-DA=x y"));
  EXPECT_THAT(command.clang_args, Contains("-Idir with space"));
  EXPECT_THAT(command.clang_args, Contains("-DFROM_OPTS"));
  EXPECT_EQ(command.architectures.front(), "sm_90");

  files["/src/build/self.rsp"] = "@self.rsp";
  absl::Status status =
      ParseCompilerCommand({"nvcc", "@self.rsp"}, context).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("self.rsp"));
  files["/self.opt"] = "--options-file /self.opt";
  status =
      ParseCompilerCommand({"nvcc", "-optf", "/self.opt"}, context).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  status = ParseCompilerCommand({"nvcc", "@missing"}, context).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("/src/build/missing"));
}

TEST(CommandLineTest, ReportsUnknownFlagsAndGoesOn) {
  const CompilerCommand command =
      Parse("nvcc --future-flag=1 -restrict -Xcompiler -fgcse -c a.cu");
  EXPECT_EQ(command.kind, CommandKind::kCompile);
  EXPECT_THAT(command.unknown_flags,
              ElementsAre("--future-flag=1", "-restrict", "-fgcse"));
  EXPECT_THAT(command.clang_args, Not(Contains("-fgcse")));
}

TEST(CommandLineTest, NamesTheFlagWhoseValueIsMissing) {
  for (const char* line : {"nvcc -c a.cu -o", "clang++ -c a.cu -I",
                           "nvcc -c a.cu -gencode", "clang++ -c -x"}) {
    const absl::Status status =
        ParseCompilerCommand(SplitArguments(line), Context()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr("wants a value"));
  }
  EXPECT_FALSE(
      ParseCompilerCommand({"nvcc", "-maxrregcount=many", "a.cu"}, Context())
          .ok());
  EXPECT_FALSE(ParseCompilerCommand({}, Context()).ok());
}

TEST(CommandLineTest, NamesTheRealArchitecture) {
  EXPECT_EQ(RealArchitecture("compute_90a"), "sm_90a");
  EXPECT_EQ(RealArchitecture("sm_120f"), "sm_120f");
  EXPECT_EQ(RealArchitecture("90"), "sm_90");
  EXPECT_EQ(RealArchitecture("native"), "");
  EXPECT_EQ(RealArchitecture("all-major"), "");
  EXPECT_EQ(RealArchitecture(""), "");
}

}  // namespace
}  // namespace reprise
