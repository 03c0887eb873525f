// reprise cc around real compilers.
#include "replay/recorder/cc/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <deque>
#include <memory>

#include "replay/base/file_util.h"
#include "replay/base/process.h"
#include "replay/recorder/cc/bookkeeping.h"
#include "replay/recorder/cc/build_registry.h"
#include "replay/recorder/cc/device_images.h"
#include "tests/replay/recorder/shell.h"

namespace reprise {
namespace {

using testing::ClangCuda;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Shell;
using testing::ShellResult;
using testing::Slurp;
using testing::Spit;
using ::testing::UnorderedElementsAre;

constexpr char kHeader[] = "#define SCALE 3.0f\n";
constexpr char kSource[] = R"(
#include "scale.h"
static __global__ void Scale(float* x) { x[threadIdx.x] *= SCALE; }
void Launch(float* x) { Scale<<<1, 32>>>(x); }
)";
constexpr char kMain[] = R"(
void Launch(float* x);
__device__ float Twice(float x);
__global__ void Double(float* x) { *x = Twice(*x); }
int main() { Launch(nullptr); Double<<<1, 1>>>(nullptr); }
)";
constexpr char kDevice[] = "__device__ float Twice(float x) { return 2 * x; }";

class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create("launcher");
    ASSERT_TRUE(directory.ok());
    directory_ = std::make_unique<TemporaryDirectory>(*std::move(directory));
    Spit(Path("scale.h"), kHeader);
    Spit(Path("a.cu"), kSource);
    setenv("REPRISE_HOME", Path("home").c_str(), 1);
    launcher_ = *SelfExecutable() + " cc ";
  }

  std::string Path(const std::string& name) const {
    return directory_->path() + "/" + name;
  }

  ShellResult Run(const std::string& command) {
    return Shell(directory_->path(), command);
  }

  // Runs a command that must succeed and stay silent.
  void Build(const std::string& command) {
    const ShellResult result = Run(command);
    EXPECT_EQ(result.exit_code(), 0) << command << "\n" << result.err;
    EXPECT_EQ(result.err, "");
  }

  // Digests of one kind of image in a file.
  std::vector<std::string> Images(const std::string& name, ImageKind kind) {
    const std::string file = Slurp(Path(name));
    std::deque<std::string> storage;
    const auto images = FindDeviceImages(file, Path(name), &storage);
    EXPECT_TRUE(images.ok()) << images.status();
    std::vector<std::string> digests;
    for (const DeviceImage& image : *images)
      if (image.kind == kind) digests.push_back(image.Digest());
    return digests;
  }

  std::vector<BuiltUnit> Units(const std::string& digest) {
    const auto registry =
        BuildRegistry::Open(BuildRegistry::DefaultDirectory(), false);
    EXPECT_TRUE(registry.ok()) << registry.status();
    if (!registry.ok()) return {};
    const auto units = (*registry)->FindUnits(digest);
    EXPECT_TRUE(units.ok()) << units.status();
    return *units;
  }

  // Main files of the units behind the only registered fatbin of a file.
  std::vector<std::string> Sources(const std::string& name) {
    const std::vector<std::string> images = Images(name, ImageKind::kFatbin);
    EXPECT_EQ(images.size(), 1u) << name;
    std::vector<std::string> sources;
    for (const std::string& image : images)
      for (const BuiltUnit& unit : Units(image))
        sources.push_back(unit.unit.main_file());
    return sources;
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::string launcher_;
};

TEST_F(LauncherTest, ClangObjectsAreIdentical) {
  Build(ClangCuda() + " -O2 -c a.cu -o a.o");
  const std::string plain = Slurp(Path("a.o"));
  Build(launcher_ + ClangCuda() + " -O2 -c a.cu -o a.o");
  EXPECT_FALSE(plain.empty());
  EXPECT_TRUE(plain == Slurp(Path("a.o"))) << "the objects differ";
}

TEST_F(LauncherTest, KeepsCommandAndClosureOfAnObject) {
  Build(launcher_ + ClangCuda() + " -O2 -DUNUSED=1 -c a.cu -o a.o");
  const auto images = Images("a.o", ImageKind::kFatbin);
  ASSERT_EQ(images.size(), 1u);
  // What is on disk later does not matter.
  Spit(Path("scale.h"), "#error changed");
  const auto units = Units(images[0]);
  ASSERT_EQ(units.size(), 1u);
  const v1::TranslationUnit& unit = units[0].unit;
  EXPECT_EQ(units[0].use.architecture, "sm_90");
  EXPECT_EQ(unit.main_file(), Path("a.cu"));
  EXPECT_EQ(unit.directory(), directory_->path());
  EXPECT_EQ(unit.argv(0), "clang++-22");
  EXPECT_THAT(unit.argv(), Contains("-DUNUSED=1"));
  EXPECT_THAT(unit.clang_args(), Contains(HasSubstr("UNUSED")));

  const auto registry =
      BuildRegistry::Open(BuildRegistry::DefaultDirectory(), false);
  ASSERT_TRUE(registry.ok());
  std::string header;
  bool cuda_header_is_system = false;
  for (const v1::SourceFile& file : unit.files()) {
    if (file.path() == Path("scale.h")) {
      EXPECT_FALSE(file.system());
      header = *(*registry)->chunks().GetString(file.content());
    }
    if (file.path().find("cuda_runtime") != std::string::npos)
      cuda_header_is_system = file.system();
  }
  EXPECT_EQ(header, kHeader);
  EXPECT_TRUE(cuda_header_is_system);
}

TEST_F(LauncherTest, ALinkOfClangsRelocatableCodeNamesItsSources) {
  Spit(Path("main.cu"), kMain);
  Spit(Path("device.cu"), kDevice);
  for (const std::string name : {"a", "main", "device"})
    Build(launcher_ + ClangCuda() + " -fgpu-rdc -c " + name + ".cu -o " + name +
          ".o");
  const std::string cuda = testing::CudaHome();
  Build("ar rcs libdevice.a device.o");
  Build(launcher_ + "clang++-22 --offload-link --cuda-path=" + cuda +
        " a.o main.o libdevice.a -L" + cuda +
        "/lib64 -lcudart -lcudadevrt -o app");
  EXPECT_THAT(
      Sources("app"),
      UnorderedElementsAre(Path("a.cu"), Path("main.cu"), Path("device.cu")));
}

TEST_F(LauncherTest, SourcesCompiledAndLinkedAtOnceAreKept) {
  Spit(Path("main.cu"), "void Launch(float*); int main() {}");
  const std::string cuda = testing::CudaHome();
  Build(launcher_ + ClangCuda() + " a.cu main.cu -L" + cuda +
        "/lib64 -lcudart -o app");
  // Clang makes no fatbin for a source without device code.
  EXPECT_THAT(Sources("app"), ElementsAre(Path("a.cu"), Path("main.cu")));
  Build(launcher_ + ClangCuda() + " -DNDEBUG a.cu -Dmain=Unused -shared -o " +
        "liba.so -fPIC");
  EXPECT_THAT(Sources("liba.so"), ElementsAre(Path("a.cu")));
}

TEST_F(LauncherTest, NvccObjectsAndLinksAreKept) {
  if (!testing::HasNvcc()) GTEST_SKIP() << "no nvcc on this machine";
  Spit(Path("main.cu"), kMain);
  Spit(Path("device.cu"), kDevice);
  const std::string nvcc =
      launcher_ + testing::Nvcc() + " -arch=sm_90 -cudart shared ";
  Build(nvcc + "-c a.cu -o plain.o");
  EXPECT_THAT(Sources("plain.o"), ElementsAre(Path("a.cu")));
  for (const std::string name : {"a", "main", "device"})
    Build(nvcc + "-rdc=true -c " + name + ".cu -o " + name + ".o");
  Build(nvcc + "-rdc=true a.o main.o device.o -o app");
  EXPECT_THAT(
      Sources("app"),
      UnorderedElementsAre(Path("a.cu"), Path("main.cu"), Path("device.cu")));
  // What the program hands to the runtime beside the linked fatbin.
  for (const std::string& part : Images("app", ImageKind::kRelocatableFatbin))
    EXPECT_EQ(Units(part).size(), 1u);
}

TEST_F(LauncherTest, ACompileErrorIsPassedOn) {
  Spit(Path("bad.cu"), "__global__ void k() { syntax error }");
  const ShellResult plain = Run(ClangCuda() + " -c bad.cu -o bad.o");
  const ShellResult kept = Run(launcher_ + ClangCuda() + " -c bad.cu -o bad.o");
  EXPECT_NE(plain.exit_code(), 0);
  EXPECT_EQ(kept.exit_code(), plain.exit_code());
  EXPECT_EQ(kept.err, plain.err);
  EXPECT_EQ(kept.out, plain.out);
}

TEST_F(LauncherTest, ARegistryThatCannotBeWrittenIsAWarning) {
  Spit(Path("file"), "");
  setenv("REPRISE_HOME", Path("file").c_str(), 1);
  const ShellResult result = Run(launcher_ + ClangCuda() + " -c a.cu -o a.o");
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_THAT(result.err, HasSubstr("reprise cc: warning"));
  EXPECT_THAT(result.err, HasSubstr("the build is not affected"));
  EXPECT_NE(Slurp(Path("a.o")), "");
}

TEST_F(LauncherTest, OtherCommandsCostNothing) {
  Spit(Path("plain.cc"), "int main() { return 0; }");
  Build(launcher_ + "clang++-22 -c plain.cc -o plain.o");
  Build(launcher_ + "clang++-22 plain.o -o plain");
  const ShellResult version = Run(launcher_ + "clang++-22 --version");
  EXPECT_EQ(version.exit_code(), 0);
  EXPECT_THAT(version.out, HasSubstr("clang version"));
  struct stat info;
  EXPECT_NE(stat(Path("home").c_str(), &info), 0) << "a registry was made";
}

TEST_F(LauncherTest, AMissingCompilerIsOneMessage) {
  const ShellResult compile = Run(launcher_ + "/no/such/nvcc -c a.cu -o a.o");
  EXPECT_EQ(compile.exit_code(), 127);
  EXPECT_THAT(compile.err, HasSubstr("cannot run /no/such/nvcc: No such file"));
  EXPECT_EQ(Run(launcher_ + "/no/such/gcc --version").exit_code(), 127);
  const ShellResult nothing = Run(launcher_);
  EXPECT_EQ(nothing.exit_code(), 2);
  EXPECT_THAT(nothing.err, HasSubstr("usage"));
}

TEST_F(LauncherTest, DiesByTheSignalTheCompilerDiedBy) {
  Spit(Path("nvcc"), "#!/bin/sh\nkill -TERM $$\n");
  chmod(Path("nvcc").c_str(), 0755);
  const ShellResult result =
      Run("exec " + launcher_ + Path("nvcc") + " -c a.cu -o a.o");
  EXPECT_EQ(result.exit_code(), 128 + SIGTERM);
}

TEST(ChooseArchitectureTest, TakesTheHighestUpToTheRecordingDevice) {
  EXPECT_EQ(ChooseArchitecture({"sm_80", "sm_90a", "compute_90"}), "sm_90a");
  EXPECT_EQ(ChooseArchitecture({"sm_90", "sm_120"}), "sm_90");
  EXPECT_EQ(ChooseArchitecture({"sm_120", "sm_100"}), "sm_100");
  EXPECT_EQ(ChooseArchitecture({"compute_70"}), "sm_70");
  EXPECT_EQ(ChooseArchitecture({"native"}), "sm_90");
  EXPECT_EQ(ChooseArchitecture({}), "sm_90");
}

}  // namespace
}  // namespace reprise
