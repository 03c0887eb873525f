// The CUDA device from a unit to a verdict, its executor on the fake driver
// (fake_driver.cc): protocol, residency, faults, variables, verification.
#include "replay/device/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "replay/base/log.h"
#include "replay/device/cuda/access_notes.h"
#include "replay/device/cuda/executor_client.h"
#include "tests/replay/device/cuda/cuda_device_fixture.h"

namespace reprise {
namespace {

using testing::HasSubstr;

TEST_F(CudaDeviceTest, FactsComeFromTheDriver) {
  const auto device = MakeDevice();
  EXPECT_EQ(device->facts().kind, "cuda:0");
  EXPECT_EQ(device->facts().name, "Fake GPU");
  EXPECT_EQ(device->facts().architecture, "sm_90");
  EXPECT_EQ(device->facts().uuid, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
  EXPECT_EQ(device->compile_target(), v1::COMPILE_TARGET_CUBIN);
}

TEST_F(CudaDeviceTest, DevicesAreCountedByAChild) {
  EXPECT_EQ(*CudaDeviceCount(), 1);
  setenv("REPRISE_FAKE_CUDA_DEVICES", "0", 1);
  EXPECT_EQ(*CudaDeviceCount(), 0);
  setenv("REPRISE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  EXPECT_TRUE(absl::IsNotFound(CudaDeviceCount().status()));
  EXPECT_TRUE(absl::IsNotFound(CreateCudaDevice({}).status()));
}

TEST_F(CudaDeviceTest, DeviceThatIsNotThereIsNamed) {
  CudaDeviceOptions options;
  options.ordinal = 3;
  const auto device = CreateCudaDevice(options);
  EXPECT_TRUE(absl::IsNotFound(device.status()));
  EXPECT_THAT(std::string(device.status().message()), HasSubstr("cuda:3"));
}

TEST_F(CudaDeviceTest, RecordedKernelReproducesTheEpilogueEveryTime) {
  Load();
  const auto kernel = LoadCode(*resident_, "double");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Run(*resident_, *kernel).kind, v1::OUTCOME_KIND_OK);
    const Verdict verdict = Judge(*resident_);
    EXPECT_TRUE(verdict.equal);
    ASSERT_EQ(verdict.ranges.size(), 1u);
    EXPECT_EQ(verdict.ranges[0].name(), "memory at 0x200000400000");
    EXPECT_EQ(verdict.ranges[0].compared_elements(), kCount);
    EXPECT_EQ(verdict.ranges[0].wrong_elements(), 0u);
  }
}

TEST_F(CudaDeviceTest, WrongResultIsDescribedByItsFirstElement) {
  Load();
  const Verdict verdict = RunAndJudge("triple");
  EXPECT_FALSE(verdict.equal);
  ASSERT_EQ(verdict.ranges.size(), 1u);
  EXPECT_EQ(verdict.ranges[0].wrong_elements(), kCount);
  EXPECT_EQ(verdict.ranges[0].first_wrong_element(), 0u);
  EXPECT_EQ(verdict.ranges[0].got(), "3");
  EXPECT_EQ(verdict.ranges[0].expected(), "2");
  EXPECT_DOUBLE_EQ(verdict.ranges[0].max_relative(), 0.5);
  EXPECT_GT(verdict.ranges[0].rms(), 0);
}

TEST_F(CudaDeviceTest, ToleranceDecides) {
  Load();
  EXPECT_FALSE(RunAndJudge("nearly_double").equal);
  const Verdict verdict = RunAndJudge("nearly_double", 1e-4);
  EXPECT_TRUE(verdict.equal);
  EXPECT_GT(verdict.ranges[0].max_relative(), 0);
}

TEST_F(CudaDeviceTest, PoisonShowsAKernelThatDoesNothing) {
  Load();
  RunAndJudge("double");
  const Verdict verdict = RunAndJudge("lazy");
  EXPECT_FALSE(verdict.equal);
  EXPECT_GT(verdict.ranges[0].wrong_elements(), kCount - 8);
  EXPECT_FALSE(verdict.ranges[0].outside_write_set());
}

TEST_F(CudaDeviceTest, StrayWriteIsFoundAndPutBack) {
  Load();
  const Verdict verdict = RunAndJudge("stray");
  EXPECT_FALSE(verdict.equal);
  EXPECT_TRUE(verdict.ranges[0].outside_write_set());
  EXPECT_EQ(verdict.ranges[0].first_wrong_element(), kCount);
  EXPECT_TRUE(RunAndJudge("double").equal);
}

TEST_F(CudaDeviceTest, WriteToMemoryOfNobodyIsFoundAndPutBack) {
  Load();
  const Verdict verdict = RunAndJudge("slack");
  EXPECT_FALSE(verdict.equal);
  ASSERT_EQ(verdict.ranges.size(), 2u);
  EXPECT_EQ(verdict.ranges[1].address(), kOut + (2 << 20) - 1);
  EXPECT_THAT(verdict.ranges[1].name(), HasSubstr("no allocation"));
  EXPECT_TRUE(RunAndJudge("double").equal);
}

TEST_F(CudaDeviceTest, LaunchThatWasNotVerifiedIsPutBackWhole) {
  Load();
  const auto stray = LoadCode(*resident_, "stray");
  Run(*resident_, *stray);
  EXPECT_TRUE(RunAndJudge("double").equal);
}

TEST_F(CudaDeviceTest, WriteToReadOnlyMemoryIsAFault) {
  Load();
  const auto bad = LoadCode(*resident_, "writes_input");
  const LaunchReport report = Run(*resident_, *bad);
  EXPECT_EQ(report.kind, v1::OUTCOME_KIND_DEVICE_FAULT);
  EXPECT_THAT(report.diagnostics, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_F(CudaDeviceTest, GoodLaunchFollowsAFault) {
  Load();
  const auto good = LoadCode(*resident_, "double");
  const auto bad = LoadCode(*resident_, "null");
  EXPECT_TRUE(RunAndJudge("double").equal);
  EXPECT_EQ(Run(*resident_, *bad).kind, v1::OUTCOME_KIND_DEVICE_FAULT);
  // What the launch left went with the child.
  EXPECT_TRUE(absl::IsUnavailable(resident_->Verify({}).status()));
  EXPECT_EQ(Run(*resident_, *good).kind, v1::OUTCOME_KIND_OK);
  EXPECT_TRUE(Judge(*resident_).equal);
}

TEST_F(CudaDeviceTest, HangIsATimeoutAndAGoodLaunchFollows) {
  Load();
  const auto good = LoadCode(*resident_, "double");
  const auto bad = LoadCode(*resident_, "spin");
  const LaunchReport report = Run(*resident_, *bad, absl::Milliseconds(200));
  EXPECT_EQ(report.kind, v1::OUTCOME_KIND_TIMEOUT);
  EXPECT_THAT(report.diagnostics, HasSubstr("200ms"));
  EXPECT_EQ(Run(*resident_, *good).kind, v1::OUTCOME_KIND_OK);
  EXPECT_TRUE(Judge(*resident_).equal);
}

TEST_F(CudaDeviceTest, RefusedLaunchIsInvalid) {
  Load();
  const auto kernel = LoadCode(*resident_, "double");
  unit_.mutable_launch()->mutable_block()->set_x(2048);
  EXPECT_EQ(Run(*resident_, *kernel).kind, v1::OUTCOME_KIND_INVALID_LAUNCH);
  unit_.mutable_launch()->mutable_block()->set_x(32);
  unit_.mutable_launch()->set_dynamic_shared_bytes(300 << 10);
  EXPECT_EQ(Run(*resident_, *kernel).kind, v1::OUTCOME_KIND_INVALID_LAUNCH);
  unit_.mutable_launch()->set_dynamic_shared_bytes(200 << 10);
  EXPECT_EQ(Run(*resident_, *kernel).kind, v1::OUTCOME_KIND_OK);
  EXPECT_TRUE(Judge(*resident_).equal);
}

TEST_F(CudaDeviceTest, PrintfComesWithTheLaunch) {
  Load();
  const auto kernel = LoadCode(*resident_, "print");
  EXPECT_EQ(Run(*resident_, *kernel).printf_output, "hello from block 3\n");
  EXPECT_EQ(Run(*resident_, *kernel).printf_output, "hello from block 3\n");
}

TEST_F(CudaDeviceTest, AdoptedReferenceSurvivesAFault) {
  Load();
  const auto triple = LoadCode(*resident_, "triple");
  const auto bad = LoadCode(*resident_, "null");
  Run(*resident_, *triple);
  ASSERT_TRUE(resident_->AdoptReference().ok());
  EXPECT_TRUE(RunAndJudge("triple").equal);
  EXPECT_FALSE(RunAndJudge("double").equal);
  Run(*resident_, *bad);
  EXPECT_TRUE(RunAndJudge("triple").equal);
}

TEST_F(CudaDeviceTest, UnitsThatWantTheSameAddressesTakeTurns) {
  Load();
  const auto mine = LoadCode(*resident_, "double");
  auto other = device_->Load(Unit());
  ASSERT_TRUE(other.ok()) << other.status();
  const auto theirs = LoadCode(**other, "triple");
  for (int i = 0; i < 2; ++i) {
    Run(*resident_, *mine);
    Run(**other, *theirs);
    EXPECT_TRUE(Judge(*resident_).equal);
    EXPECT_FALSE(Judge(**other).equal);
  }
}

TEST_F(CudaDeviceTest, OldestUnitMakesRoomAndComesBack) {
  // Each unit needs a read-only and a writable granule, two shadows and tables.
  setenv("REPRISE_FAKE_CUDA_BYTES", std::to_string(14 << 20).c_str(), 1);
  Load();
  const auto mine = LoadCode(*resident_, "double");
  Run(*resident_, *mine);
  auto other = device_->Load(Unit());
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(absl::IsUnavailable(resident_->Verify({}).status()));
  Run(*resident_, *mine);
  EXPECT_TRUE(Judge(*resident_).equal);
  setenv("REPRISE_FAKE_CUDA_BYTES", std::to_string(4 << 20).c_str(), 1);
  const auto small = MakeDevice();
  EXPECT_TRUE(absl::IsResourceExhausted(small->Load(Unit()).status()));
}

TEST_F(CudaDeviceTest, AddressThatCannotBeHadIsNamed) {
  unit_.mutable_memory(0)->set_address(uint64_t{1} << 47);
  device_ = MakeDevice();
  const auto resident = device_->Load(Unit());
  EXPECT_TRUE(absl::IsFailedPrecondition(resident.status()))
      << resident.status();
  EXPECT_THAT(std::string(resident.status().message()),
              HasSubstr("recorded address"));
}

// As addresses are that the driver or the host chose.
TEST_F(CudaDeviceTest, AddressesThatAreTakenMayBeFreeInAnotherProcess) {
  const std::string taken = directory_.path() + "/taken";
  setenv("REPRISE_FAKE_CUDA_TAKEN", taken.c_str(), 1);
  ASSERT_TRUE(WriteFileAtomically(taken, "12").ok());
  Load();
  EXPECT_TRUE(RunAndJudge("double").equal);
  ASSERT_TRUE(WriteFileAtomically(taken, "1234567890").ok());
  const auto device = MakeDevice();
  const auto resident = device->Load(Unit());
  EXPECT_TRUE(absl::IsFailedPrecondition(resident.status()))
      << resident.status();
  EXPECT_THAT(std::string(resident.status().message()),
              HasSubstr("--allocator arena"));
}

// While another unit has its turn.
TEST_F(CudaDeviceTest, AddressesThatAreTakenLaterTakeAnotherProcessToo) {
  const std::string taken = directory_.path() + "/taken";
  setenv("REPRISE_FAKE_CUDA_TAKEN", taken.c_str(), 1);
  Load();
  const auto kernel = LoadCode(*resident_, "double");
  const auto other = device_->Load(Unit());
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE(WriteFileAtomically(taken, "1").ok());
  LaunchOptions options;
  options.launch = unit_.launch();
  options.timeout = absl::Seconds(30);
  EXPECT_FALSE(resident_->Launch(*kernel, options).ok());
  Run(*resident_, *kernel);
  EXPECT_TRUE(Judge(*resident_).equal);
}

TEST_F(CudaDeviceTest, ApplicationCodeIsTheUnitsOwn) {
  *unit_.mutable_machine_code() = *store_->Put("fake\nkernel double\n");
  Load();
  const auto kernel = resident_->LoadApplicationKernel();
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  Run(*resident_, **kernel);
  EXPECT_TRUE(Judge(*resident_).equal);
}

TEST_F(CudaDeviceTest, ApplicationCodeMayNameTheKernelOtherwise) {
  *unit_.mutable_machine_code() =
      *store_->Put("fake\nkernel double\nkernel triple\n");
  unit_.mutable_kernel()->set_symbol("_ZL6doublev__intern__1a2b");
  unit_.mutable_kernel()->set_application_symbol("double");
  Load();
  const auto kernel = resident_->LoadApplicationKernel();
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  Run(*resident_, **kernel);
  EXPECT_TRUE(Judge(*resident_).equal);
}

TEST_F(CudaDeviceTest, ApplicationMayWriteWhereNobodySawItWrite) {
  *unit_.mutable_machine_code() = *store_->Put("fake\nkernel writes_input\n");
  unit_.mutable_kernel()->set_symbol("writes_input");
  Load();
  const auto kernel = resident_->LoadApplicationKernel();
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(Run(*resident_, **kernel).kind, v1::OUTCOME_KIND_OK);
  const Verdict verdict = Judge(*resident_);
  EXPECT_TRUE(verdict.equal);
  EXPECT_EQ(verdict.ranges.size(), 2u);
}

TEST_F(CudaDeviceTest, WriteSetThatIsOnlyADifferenceMakesNothingReadOnly) {
  for (v1::MemoryRange& range : *unit_.mutable_memory())
    range.clear_read_before_write_set();
  Load();
  EXPECT_TRUE(RunAndJudge("writes_input").equal);
  // Nothing was poisoned: who does nothing leaves the prologue.
  EXPECT_EQ(RunAndJudge("lazy").ranges[1].got(), "0");
}

TEST_F(CudaDeviceTest, ApplicationCodeForOtherDevicesIsUnimplemented) {
  Load();
  EXPECT_TRUE(
      absl::IsUnimplemented(resident_->LoadApplicationKernel().status()));
  *unit_.mutable_machine_code() = *store_->Put("other device");
  Load();
  EXPECT_TRUE(
      absl::IsUnimplemented(resident_->LoadApplicationKernel().status()));
}

TEST_F(CudaDeviceTest, CodeOfANewerCudaIsNamedBesideTheDrivers) {
  *unit_.mutable_machine_code() = *store_->Put(
      "other device\nCuda compilation tools, release 14.0, V14.0.1\n");
  Load();
  EXPECT_THAT(
      std::string(resident_->LoadApplicationKernel().status().message()),
      testing::AllOf(HasSubstr("driver is for CUDA 13.0"),
                     HasSubstr("code of CUDA 14.0"), HasSubstr("--cuda-home")));
  *unit_.mutable_machine_code() =
      *store_->Put("other device\n.version 9.9\n.target sm_90\n");
  Load();
  EXPECT_THAT(
      std::string(resident_->LoadApplicationKernel().status().message()),
      HasSubstr("code of PTX 9.9"));
}

TEST_F(CudaDeviceTest, KernelThatIsMissingIsNamedBesideThoseThatAreThere) {
  Load();
  const auto loaded = resident_->LoadKernel(Code("double"), "absent");
  EXPECT_TRUE(absl::IsNotFound(loaded.status()));
  EXPECT_THAT(std::string(loaded.status().message()),
              testing::AllOf(HasSubstr("absent"), HasSubstr("double")));
}

TEST_F(CudaDeviceTest, VariablesLiveWhereEachModuleHasThem) {
  AddVariable(kFactor, "factor", 2, 2);
  AddVariable(kCounter, "count", 0, 1);
  Load();
  const char* variables = "variable factor 8 77\nvariable count 4096 99\n";
  const auto a = LoadCode(*resident_, "scale", variables);
  const auto b = LoadCode(*resident_, "scale", variables);
  for (int i = 0; i < 2; ++i) {
    for (LoadedKernel* kernel : {a.get(), b.get()}) {
      EXPECT_EQ(Run(*resident_, *kernel).kind, v1::OUTCOME_KIND_OK);
      const Verdict verdict = Judge(*resident_);
      EXPECT_TRUE(verdict.equal);
      EXPECT_EQ(verdict.ranges.size(), 3u);
    }
  }
}

// nvcc calls a static variable "count", Clang "_ZL5count".
TEST_F(CudaDeviceTest, VariablesMayHaveOtherNamesInTheCode) {
  AddVariable(kFactor, "_ZL6factor", 2, 2);
  AddVariable(kCounter, "_ZL5count", 0, 1);
  Load();
  v1::CompileReply code =
      Code("scale", "variable factor 8 77\nvariable count 8 99\n");
  code.add_globals()->set_symbol("factor");
  code.add_globals()->set_symbol("count");
  const auto kernel = resident_->LoadKernel(code, "scale");
  ASSERT_TRUE(kernel.ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Run(*resident_, **kernel).kind, v1::OUTCOME_KIND_OK);
    const Verdict verdict = Judge(*resident_);
    EXPECT_TRUE(verdict.equal);
    EXPECT_EQ(verdict.ranges.size(), 3u);
  }
}

// Static variables of two translation units, of which the code has one.
TEST_F(CudaDeviceTest, AVariableIsNotTakenForItsNamesake) {
  AddVariable(kFactor, "factor", 2, 2);
  AddVariable(kCounter, "count", 0, 1);
  AddVariable(kCounter + 256, "_ZL5count__static__7", 5, 5);
  Load();
  v1::CompileReply code =
      Code("scale", "variable factor 8 77\nvariable count 8 99\n");
  code.add_globals()->set_symbol("factor");
  code.add_globals()->set_symbol("count");
  const auto kernel = resident_->LoadKernel(code, "scale");
  ASSERT_TRUE(kernel.ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Run(*resident_, **kernel).kind, v1::OUTCOME_KIND_OK);
    EXPECT_TRUE(Judge(*resident_).equal);
  }
}

TEST_F(CudaDeviceTest, VariableThatTheUnitDoesNotHaveStartsAfreshEveryTime) {
  AddVariable(kFactor, "factor", 2, 2);
  Load();
  v1::CompileReply code =
      Code("scale", "variable factor 8 77\nvariable count 8 0\n");
  code.add_globals()->set_symbol("factor");
  code.add_globals()->set_symbol("count");
  const auto kernel = resident_->LoadKernel(code, "scale");
  ASSERT_TRUE(kernel.ok());
  for (int i = 0; i < 3; ++i) {
    Run(*resident_, **kernel);
    EXPECT_TRUE(Judge(*resident_).equal);
  }
}

TEST_F(CudaDeviceTest, CodeWithAVariableThatIsNotFoundIsLoadedAfreshEveryTime) {
  AddVariable(kFactor, "factor", 2, 2);
  Load();
  v1::CompileReply code =
      Code("scale", "variable factor 8 77\nvariable count 8 0\n");
  code.add_globals()->set_symbol("factor");
  code.add_globals()->set_symbol("lost");
  const auto kernel = resident_->LoadKernel(code, "scale");
  ASSERT_TRUE(kernel.ok());
  for (int i = 0; i < 3; ++i) {
    Run(*resident_, **kernel);
    EXPECT_TRUE(Judge(*resident_).equal);
  }
}

TEST_F(CudaDeviceTest, WrittenVariableThatTheCodeLacksIsWrong) {
  AddVariable(kCounter, "count", 0, 1);
  Load();
  const Verdict verdict = RunAndJudge("double");
  EXPECT_FALSE(verdict.equal);
  EXPECT_EQ(verdict.ranges.back().name(), "count");
}

TEST_F(CudaDeviceTest, AddressesOfVariablesInMemoryFollowTheModule) {
  // in[0..7] points to "factor"; the kernel writes factor + i.
  std::string in(kCount * sizeof(float), '\0');
  const uint64_t pointer = kFactor;
  std::memcpy(in.data(), &pointer, sizeof(pointer));
  *unit_.mutable_memory(0)->mutable_prologue() = *store_->Put(in);
  std::vector<float> after(kOutFloats);
  for (uint64_t i = 0; i < kOutFloats; ++i)
    after[i] = static_cast<float>(i < kCount ? 5 + i : i);
  *unit_.mutable_memory(1)->mutable_epilogue() = *store_->Put(Bytes(after));
  AddVariable(kFactor, "factor", 5, 5);
  Load();
  const auto a =
      LoadCode(*resident_, "scale_through_pointer", "variable factor 8 77\n");
  const auto b =
      LoadCode(*resident_, "scale_through_pointer", "variable factor 64 78\n");
  for (LoadedKernel* kernel : {a.get(), b.get(), a.get()}) {
    EXPECT_EQ(Run(*resident_, *kernel).kind, v1::OUTCOME_KIND_OK);
    EXPECT_TRUE(Judge(*resident_).equal);
  }
}

TEST_F(CudaDeviceTest, InstrumentedLaunchReportsWhatWasTouched) {
  for (v1::MemoryRange& range : *unit_.mutable_memory())
    range.clear_write_set();
  Load();
  const auto kernel = LoadCode(
      *resident_, "notes",
      absl::StrCat("variable ", cuda::kAccessNotesSymbol, " 4096 0\n"));
  ASSERT_TRUE(resident_->Restore().ok());
  LaunchOptions options;
  options.launch = unit_.launch();
  options.instrumented = true;
  const auto report = resident_->Launch(*kernel, options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->accesses.reads_size(), 1);
  EXPECT_EQ(report->accesses.reads(0).address(), kIn);
  EXPECT_EQ(report->accesses.reads(0).bytes(), kCount * sizeof(float));
  ASSERT_EQ(report->accesses.writes_size(), 1);
  EXPECT_EQ(report->accesses.writes(0).address(), kOut);
  EXPECT_EQ(report->accesses.reads_before_write_size(), 0);
  EXPECT_EQ(report->accesses.flops(), kCount);
  EXPECT_EQ(report->accesses.bytes_written(), kCount * sizeof(float));
  ASSERT_EQ(report->accesses.types_size(), 2);
  EXPECT_EQ(report->accesses.types(1).address(), kOut);
  EXPECT_EQ(report->accesses.types(1).bytes(), 4096u);
  EXPECT_EQ(report->accesses.types(1).element_type(), v1::ELEMENT_TYPE_F32);
  EXPECT_TRUE(Judge(*resident_).equal);
}

TEST_F(CudaDeviceTest, RunsOnceWithoutCopiesToRestoreOrCompareWith) {
  device_ = MakeDevice();
  const auto resident = device_->Load(Unit(), {.run_once = true});
  ASSERT_TRUE(resident.ok()) << resident.status();
  const auto kernel = LoadCode(**resident, "double");
  ASSERT_TRUE((*resident)->Restore().ok());
  LaunchOptions options;
  options.launch = unit_.launch();
  const auto report = (*resident)->Launch(*kernel, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->kind, v1::OUTCOME_KIND_OK) << report->diagnostics;
  ASSERT_TRUE((*resident)->Restore().ok());
  EXPECT_EQ((*resident)->Launch(*kernel, options).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ((*resident)->Verify(v1::Tolerance()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(CudaDeviceTest, VerdictThatCameWithTheLaunchIsOfItsToleranceAndState) {
  Load();
  const auto kernel = LoadCode(*resident_, "nearly_double");
  LaunchOptions options;
  options.launch = unit_.launch();
  options.verify_tolerance.emplace();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(resident_->Restore().ok());
    const auto report = resident_->Launch(*kernel, options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_FALSE(Judge(*resident_).equal);
    EXPECT_TRUE(Judge(*resident_, 1e-4).equal);
    options.verify_tolerance->set_relative(1e-4);
  }
  EXPECT_TRUE(Judge(*resident_, 1e-4).equal);
  ASSERT_TRUE(resident_->Restore().ok());
  EXPECT_FALSE(Judge(*resident_, 1e-4).equal);
  ASSERT_TRUE(resident_->Launch(*kernel, options).ok());
  ASSERT_TRUE(resident_->AdoptReference().ok());
  EXPECT_EQ(Judge(*resident_, 1e-4).ranges[0].max_relative(), 0);
}

TEST_F(CudaDeviceTest, AWarmLaunchFindsMemoryAsAColdOneDoes) {
  Load();
  const auto kernel = LoadCode(*resident_, "increment");
  LaunchOptions options;
  options.launch = unit_.launch();
  options.l2 = v1::L2_POLICY_WARM;
  ASSERT_TRUE(resident_->Restore().ok());
  ASSERT_TRUE(resident_->Launch(*kernel, options).ok());
  const Verdict once = Judge(*resident_);
  options.l2 = v1::L2_POLICY_COLD;
  ASSERT_TRUE(resident_->Restore().ok());
  ASSERT_TRUE(resident_->Launch(*kernel, options).ok());
  EXPECT_EQ(Judge(*resident_).ranges[0].got(), once.ranges[0].got());
}

TEST_F(CudaDeviceTest, GoldenCopiesMayStayMapped) {
  CudaDeviceOptions options;
  options.warm_l2 = true;
  options.keep_golden_mapped = true;
  device_ = MakeDevice(options);
  resident_ = *device_->Load(Unit());
  EXPECT_TRUE(RunAndJudge("double").equal);
  EXPECT_FALSE(RunAndJudge("triple").equal);
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  reprise::InitializeLogging();
  if (argc > 1 && std::strcmp(argv[1], "cuda-executor") == 0)
    return reprise::CudaExecutorMain(argc - 2, argv + 2);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
