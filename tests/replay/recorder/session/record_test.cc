// Whole recordings of a small program: what is chosen, what is kept, and that
// the application does not notice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "replay/base/file_util.h"
#include "replay/base/process.h"
#include "replay/unit/interval_set.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/recorder/recorded_app.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RecordedRun;
using testing::Shell;
using testing::ShellResult;

// The program is built once; every test has a store of its own.
class RecordTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto directory = TemporaryDirectory::Create("record");
    ASSERT_TRUE(directory.ok());
    build_ = new TemporaryDirectory(*std::move(directory));
    setenv("REPRISE_HOME", (build_->path() + "/home").c_str(), 1);
    const ShellResult built = Build(*SelfExecutable() + " cc", "-lcudart");
    ASSERT_EQ(built.exit_code(), 0) << built.err;
  }

  static void TearDownTestSuite() {
    delete build_;
    build_ = nullptr;
  }

  static ShellResult Build(const std::string& launcher,
                           const std::string& runtime,
                           const std::string& program = "app") {
    return Shell(build_->path(),
                 launcher + " " + testing::ClangCuda() + " -O2 -c " +
                     testing::SourceDirectory() +
                     "/tests/replay/recorder/programs/behaviours.cu -o " +
                     program + ".o && clang++-22 " + program + ".o -L" +
                     testing::CudaHome() + "/lib64 -Wl,-rpath," +
                     testing::CudaHome() + "/lib64 " + runtime + " -o " +
                     program);
  }

  void SetUp() override {
    auto directory = TemporaryDirectory::Create("store");
    ASSERT_TRUE(directory.ok());
    store_directory_ =
        std::make_unique<TemporaryDirectory>(*std::move(directory));
    options_ = testing::TestOptions();
    options_.store_directory = store_directory_->path() + "/units";
    options_.count = 100;
  }

  RecordedRun Run(const std::string& command) {
    RecordedRun run = testing::RunUnder(options_, build_->path(), command);
    EXPECT_TRUE(run.status.ok()) << run.status;
    return run;
  }

  std::unique_ptr<UnitStore> Store() {
    auto store = UnitStore::Open({.directory = options_.store_directory});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  std::vector<v1::Unit> Units() {
    std::vector<v1::Unit> units;
    const auto listings = Store()->List();
    EXPECT_TRUE(listings.ok());
    for (const UnitListing& listing : *listings) {
      EXPECT_TRUE(listing.status.ok()) << listing.status;
      units.push_back(listing.manifest);
    }
    return units;
  }

  static TemporaryDirectory* build_;
  std::unique_ptr<TemporaryDirectory> store_directory_;
  RecordOptions options_;
};

TemporaryDirectory* RecordTest::build_ = nullptr;

TEST_F(RecordTest, RecordsTheKernelsThatTakeMostTime) {
  options_.top = 1;
  options_.count = 1;
  const RecordedRun run = Run("./app hot");
  EXPECT_EQ(run.result.ExitCode(), 0) << run.result.problem;
  EXPECT_EQ(run.out, "done\n");  // once, though it ran twice
  ASSERT_EQ(run.result.units.size(), 1u);
  EXPECT_THAT(run.result.units[0], ::testing::StartsWith("Scale-"));
  ASSERT_EQ(run.result.kernels.size(), 2u);
  EXPECT_FALSE(run.result.kernels[1].matched);
}

TEST_F(RecordTest, ProfilingThatFindsNothingSaysSo) {
  options_.top = 1;
  const RecordedRun run =
      testing::RunUnder(options_, build_->path(), "./app nothing");
  EXPECT_THAT(std::string(run.status.message()),
              HasSubstr("no kernel that may be recorded"));
}

TEST_F(RecordTest, AUnitHoldsWhatTheLaunchNeeds) {
  const RecordedRun run = Run("./app once");
  EXPECT_EQ(run.result.ExitCode(), 0) << run.result.problem;
  EXPECT_EQ(run.out, "2\n");
  EXPECT_EQ(run.err, "");
  ASSERT_EQ(run.result.units.size(), 1u);
  const std::unique_ptr<UnitStore> store = Store();
  const auto unit = store->Open(run.result.units[0]);
  ASSERT_TRUE(unit.ok()) << unit.status();
  EXPECT_TRUE(store->Verify(*unit).ok());
  const v1::Unit& manifest = unit->manifest();
  EXPECT_EQ(manifest.kernel().symbol(), "_Z5ScalePffi");
  EXPECT_EQ(manifest.kernel().display_name(), "Scale(float*, float, int)");
  ASSERT_EQ(manifest.kernel().parameters_size(), 3);
  EXPECT_EQ(manifest.kernel().parameters(0).name(), "x");
  EXPECT_EQ(manifest.kernel().parameters(0).pointee(), v1::ELEMENT_TYPE_F32);
  EXPECT_EQ(manifest.kernel().parameters(1).offset(), 8u);
  EXPECT_EQ(manifest.launch().grid().x(), 4u);
  EXPECT_EQ(manifest.launch().block().x(), 256u);
  EXPECT_EQ(manifest.architecture(), "sm_90");
  EXPECT_TRUE(manifest.deterministic());

  ASSERT_EQ(manifest.memory_size(), 1);
  const v1::MemoryRange& range = manifest.memory(0);
  EXPECT_EQ(range.bytes(), 4000u);
  EXPECT_EQ(range.element_type(), v1::ELEMENT_TYPE_F32);
  EXPECT_EQ(range.origin(), v1::MEMORY_ORIGIN_DEVICE);
  std::vector<float> before(1000);
  std::vector<float> after(1000);
  ASSERT_TRUE(
      unit->chunks()
          .GetInto(range.prologue(), reinterpret_cast<char*>(before.data()))
          .ok());
  ASSERT_TRUE(
      unit->chunks()
          .GetInto(range.epilogue(), reinterpret_cast<char*>(after.data()))
          .ok());
  EXPECT_EQ(before, std::vector<float>(1000, 1.0f));
  EXPECT_EQ(after, std::vector<float>(1000, 2.0f));
  for (const v1::Blob* set : {&range.read_set(), &range.write_set(),
                              &range.read_before_write_set()}) {
    const auto text = unit->chunks().GetString(*set);
    ASSERT_TRUE(text.ok());
    const auto intervals = IntervalSet::Decode(*text, range.bytes());
    ASSERT_TRUE(intervals.ok());
    EXPECT_EQ(intervals->bytes(), 4000u);
  }
  EXPECT_EQ(manifest.work().flops(), 1000u);
  EXPECT_EQ(manifest.work().global_bytes_written(), 4000u);

  ASSERT_EQ(manifest.translation_units_size(), 1);
  const v1::TranslationUnit& source = manifest.translation_units(0);
  EXPECT_GT(source.ir().bytes(), 0u);
  ASSERT_FALSE(source.files().empty());
  EXPECT_EQ(source.files(0).path(), source.main_file());
  EXPECT_EQ(*unit->chunks().GetString(source.files(0).content()),
            testing::Slurp(source.main_file()));
  EXPECT_EQ(manifest.machine_code().bytes() > 0, true);
  EXPECT_EQ(manifest.fatbin_sha256().size(), 32u);
  EXPECT_EQ(manifest.provenance().device(), "cpu");
  EXPECT_EQ(manifest.provenance().occurrence_count(), 1u);
  EXPECT_EQ(manifest.provenance().command(0), "/bin/sh");
}

TEST_F(RecordTest, EqualLaunchesAreOneUnitDifferentDataAreTwo) {
  const RecordedRun run = Run("./app instances");
  EXPECT_EQ(run.out, "27\n");
  // by 2; by 3; by 3 on what that left; the last in another shape.
  EXPECT_EQ(run.result.units.size(), 4u);
  ASSERT_EQ(run.result.kernels.size(), 1u);
  EXPECT_EQ(run.result.kernels[0].launches, 6u);
  std::vector<uint64_t> occurrences;
  for (const v1::Unit& unit : Units()) {
    occurrences.push_back(unit.provenance().occurrence());
    EXPECT_EQ(unit.provenance().occurrence_count(), 6u);
    EXPECT_EQ(unit.provenance().same_shape_count(),
              unit.launch().grid().x() == 4 ? 5u : 1u);
  }
  EXPECT_THAT(occurrences, ::testing::UnorderedElementsAre(0, 3, 4, 5));
}

TEST_F(RecordTest, SkipAndCountChoose) {
  options_.skip = 4;
  options_.count = 1;
  EXPECT_EQ(Run("./app instances").result.units.size(), 1u);
  const auto units = Units();
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0].provenance().occurrence(), 4u);
}

TEST_F(RecordTest, ExitCodesAndSignalsArePassedOn) {
  const RecordedRun exits = Run("./app exit");
  EXPECT_EQ(exits.result.ExitCode(), 7);
  EXPECT_EQ(exits.result.units.size(), 1u);
  options_.store_directory += "2";
  const RecordedRun aborts = Run("exec ./app abort");
  EXPECT_EQ(aborts.result.application_signal, SIGABRT);
  EXPECT_EQ(aborts.result.ExitCode(), 128 + SIGABRT);
  EXPECT_EQ(aborts.result.units.size(), 1u);
}

TEST_F(RecordTest, StandardInputIsTheApplications) {
  const RecordedRun run = Run("echo hello | ./app echo");
  EXPECT_EQ(run.out, "hello\n");
  EXPECT_EQ(run.result.units.size(), 1u);
}

TEST_F(RecordTest, EveryProcessOfAnApplicationIsServed) {
  const RecordedRun run = Run("./app children");
  EXPECT_EQ(run.out, "2\n2\n");
  ASSERT_EQ(run.result.kernels.size(), 1u);
  EXPECT_EQ(run.result.kernels[0].launches, 2u);
  EXPECT_EQ(run.result.units.size(), 1u);  // the same launch twice
}

TEST_F(RecordTest, ALaunchThatFaultsIsNotRecorded) {
  const RecordedRun run = Run("./app wild");
  EXPECT_EQ(run.out,
            "launch cudaSuccess\nsynchronize cudaErrorIllegalAddress\n");
  EXPECT_EQ(run.result.units.size(), 1u);  // what went before is kept
  const std::vector<v1::Unit> units = Units();
  EXPECT_THAT(units.at(0).kernel().symbol(), HasSubstr("Scale"));
}

TEST_F(RecordTest, AnOverrunIsNamedAndNotRecorded) {
  const RecordedRun run = Run("./app overrun");
  EXPECT_EQ(run.out, "overrun cudaSuccess\n");  // it stays in the page
  EXPECT_EQ(run.result.ExitCode(), 1);
  EXPECT_THAT(run.result.problem,
              HasSubstr("writes 4 bytes outside all memory"));
  EXPECT_THAT(run.result.problem, HasSubstr("allocation of 4000 bytes"));
}

TEST_F(RecordTest, AKernelTheDeviceCannotRunIsRefusedAlone) {
  const RecordedRun run = Run("./app inline_ptx");
  EXPECT_EQ(run.out, "inline ptx cudaErrorInvalidDeviceFunction\n2\n");
  EXPECT_EQ(run.result.units.size(), 1u);
  ASSERT_EQ(run.result.kernels.size(), 2u);
  EXPECT_THAT(run.result.kernels[0].problem, HasSubstr("mma"));
}

TEST_F(RecordTest, ResetGivesVariablesTheirInitialValues) {
  EXPECT_EQ(Run("./app reset").out, "11\n11\n");
}

TEST_F(RecordTest, OrderDependentResultsAreNotCalledDeterministic) {
  options_.executor_threads = 4;
  const RecordedRun run = Run("./app slots");
  ASSERT_EQ(run.result.units.size(), 1u) << run.result.problem;
  bool has_counter = false;
  const v1::Unit unit = Units()[0];
  for (const v1::MemoryRange& range : unit.memory())
    has_counter = has_counter || range.symbol() == "next_slot";
  EXPECT_TRUE(has_counter);
}

TEST_F(RecordTest, NothingLaunchedIsSaid) {
  const RecordedRun run = Run("./app nothing");
  EXPECT_EQ(run.result.ExitCode(), 1);
  EXPECT_THAT(run.result.problem, HasSubstr("no kernel"));
}

TEST_F(RecordTest, NothingMatchedNamesWhatThereWas) {
  options_.kernel_regex = "Nothing.*Like";
  const RecordedRun run = Run("./app once");
  EXPECT_EQ(run.out, "2\n");
  EXPECT_EQ(run.result.ExitCode(), 1);
  EXPECT_THAT(run.result.problem, HasSubstr("1 x Scale(float*, float, int)"));
}

TEST_F(RecordTest, ATooLargeImageIsSaid) {
  options_.max_unit_bytes = 1000;
  const RecordedRun run = Run("./app once");
  EXPECT_EQ(run.out, "2\n");
  EXPECT_THAT(run.result.problem,
              HasSubstr("has 4000 bytes, allowed are 1000"));
}

TEST_F(RecordTest, AStaticRuntimeIsNamedWithItsCure) {
  const ShellResult built =
      Build("", "-lcudart_static -ldl -lrt -pthread", "static_app");
  ASSERT_EQ(built.exit_code(), 0) << built.err;
  const RecordedRun run = Run("./static_app once");
  EXPECT_EQ(run.result.ExitCode(), 1);
  EXPECT_THAT(run.result.problem, HasSubstr("static_app"));
  EXPECT_THAT(run.result.problem, HasSubstr("-cudart shared"));
}

TEST_F(RecordTest, UnknownSourceIsNamedWithItsCure) {
  options_.registry_directory = store_directory_->path() + "/nothing";
  const RecordedRun run = Run("./app once");
  EXPECT_EQ(run.out, "1\n");  // the launch failed
  EXPECT_THAT(run.result.problem, HasSubstr("reprise cc"));
  EXPECT_THAT(run.result.problem, HasSubstr("--compile-commands"));
}

TEST_F(RecordTest, ACompilationDatabaseServesToo) {
  options_.registry_directory = store_directory_->path() + "/nothing";
  options_.compile_commands = build_->path() + "/compile_commands.json";
  const std::string source = testing::SourceDirectory() +
                             "/tests/replay/recorder/programs/behaviours.cu";
  testing::Spit(build_->path() + "/other.cu", "__global__ void Other() {}");
  testing::Spit(
      options_.compile_commands,
      R"([{"directory": ")" + build_->path() +
          R"(", "file": "other.cu", "command": ")" + testing::ClangCuda() +
          R"( -c other.cu -o other.o"}, {"directory": ")" + build_->path() +
          R"(", "file": ")" + source + R"(", "command": ")" +
          testing::ClangCuda() + " -O2 -c " + source + R"( -o app.o"}])");
  const RecordedRun run = Run("./app once");
  EXPECT_EQ(run.out, "2\n");
  ASSERT_EQ(run.result.units.size(), 1u) << run.result.problem;
  const std::vector<v1::Unit> units = Units();
  EXPECT_FALSE(units.at(0).translation_units(0).files().empty());
}

TEST_F(RecordTest, BadRequestsAreErrors) {
  options_.kernel_regex = "(";
  EXPECT_EQ(RunRecorded(options_, {"/bin/true"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  options_.kernel_regex = "";
  EXPECT_EQ(RunRecorded(options_, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const absl::Status missing =
      RunRecorded(options_, {"/no/such/application"}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("cannot run /no/such/application"));
  options_.preload_library = "/no/such/library.so";
  EXPECT_THAT(
      std::string(RunRecorded(options_, {"/bin/true"}).status().message()),
      HasSubstr("/no/such/library.so"));
}

TEST_F(RecordTest, ALaunchThatDoesNotEndIsGivenUp) {
  options_.launch_timeout = absl::Seconds(2);
  const RecordedRun run = Run("./app endless");
  EXPECT_EQ(run.out, "waiting\nendless cudaErrorLaunchTimeout\n");
  ASSERT_EQ(run.result.kernels.size(), 2u);
  EXPECT_THAT(run.result.kernels[1].problem,
              HasSubstr("a trial run of it ended badly: the kernel did not end "
                        "within 2s"));
}

TEST_F(RecordTest, RecursionWithoutEndIsNamed) {
  const RecordedRun run = Run("./app recursion");
  EXPECT_THAT(run.out, HasSubstr("recursion cudaError"));
  EXPECT_THAT(run.result.problem, HasSubstr("stack overflow"));
}

TEST_F(RecordTest, AUnitThatTheStoreHasIsNotCalledNew) {
  const RecordedRun first = Run("./app once");
  ASSERT_EQ(first.result.kernels.size(), 1u);
  EXPECT_THAT(first.result.kernels[0].known_units, ElementsAre());
  const RecordedRun again = Run("./app once");
  ASSERT_EQ(again.result.kernels.size(), 1u);
  EXPECT_EQ(again.result.units, first.result.units);
  EXPECT_EQ(again.result.kernels[0].known_units, first.result.units);
}

// Regression: Ctrl-C in the profiling run began the recording run.
TEST_F(RecordTest, AProfilingRunThatIsStoppedIsTheLast) {
  options_.top = 1;
  const auto result =
      RunRecorded(options_, {build_->path() + "/app", "terminate"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->ExitCode(), 128 + SIGTERM);
  EXPECT_THAT(result->units, ElementsAre());
  EXPECT_THAT(result->problem, HasSubstr("stopped while it was profiled"));
}

// The session in a child of its own, the application's output in a pipe: it
// gets SIGTERM when the application says that it waits. The child exits with 1
// unless the session is as it should be, else with the application's code.
int ExitCodeAfterSigterm(const RecordOptions& options,
                         const std::vector<std::string>& command,
                         size_t units) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t recorder = fork();
  if (recorder == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    const auto result = RunRecorded(options, command);
    _exit(result.ok() && result->application_signal == SIGTERM &&
                  result->units.size() == units
              ? result->ExitCode()
              : 1);
  }
  close(ends[1]);
  std::string said;
  char byte = 0;
  while (said.find("waiting") == std::string::npos &&
         read(ends[0], &byte, 1) == 1)
    said += byte;
  close(ends[0]);
  EXPECT_THAT(said, HasSubstr("waiting"));
  kill(recorder, SIGTERM);
  int status = 0;
  waitpid(recorder, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_F(RecordTest, ASignalReachesTheApplicationAndUnitsAreKept) {
  EXPECT_EQ(ExitCodeAfterSigterm(options_, {build_->path() + "/app", "wait"},
                                 /*units=*/1),
            128 + SIGTERM);
  const auto units = Units();
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0].provenance().occurrence_count(), 1u);
}

// Regression: the session waited for a launch that nobody waited for.
TEST_F(RecordTest, ASignalEndsALaunchThatRuns) {
  options_.launch_timeout = absl::Hours(10);
  EXPECT_EQ(ExitCodeAfterSigterm(options_, {build_->path() + "/app", "endless"},
                                 /*units=*/1),
            128 + SIGTERM);
}

}  // namespace
}  // namespace reprise
