// libreprise_cuda.so inside applications that use a driver over host memory,
// against a parent that follows a script.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/replay/recorder/driver/driver_fixture.h"
#include "tests/replay/recorder/driver/scripted_parent.h"
#include "tests/replay/recorder/shell.h"

namespace reprise {
namespace {

namespace wire = driver_wire;
using ::testing::AllOf;
using testing::Binaries;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HeardKernel;
using testing::HeardProcess;
using testing::HeardRange;
using testing::HeardRecording;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Printed;
using testing::Script;
using testing::Shell;
using testing::ShellResult;
using ::testing::SizeIs;

class DriverRecorderTest : public testing::DriverFixture {};

TEST_F(DriverRecorderTest, WithoutAParentEverythingIsTheDrivers) {
  const ShellResult result = Run("driver_app launches");
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_EQ(result.out, "cell 8\nnative allocations 1\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(DriverRecorderTest, AParentThatIsNotThereIsSaidAndPassed) {
  setenv("REPRISE_DRIVER_SOCKET", "/nonexistent/socket", 1);
  const ShellResult result = Run("driver_app launches");
  unsetenv("REPRISE_DRIVER_SOCKET");
  EXPECT_EQ(result.out, "cell 8\nnative allocations 1\n");
  EXPECT_THAT(result.err, HasSubstr("nothing is recorded"));
}

TEST_F(DriverRecorderTest, CountsLaunchesOfEachKernel) {
  Script script;
  const ShellResult result = Run("driver_app launches", &script);
  EXPECT_EQ(result.out, "cell 8\nnative allocations 0\n");
  const HeardProcess& heard = OneProcess();
  EXPECT_THAT(heard.executable, HasSubstr("driver_app"));
  ASSERT_THAT(heard.kernels, SizeIs(2));
  EXPECT_EQ(heard.kernels[0].name, "increment");
  EXPECT_EQ(heard.kernels[0].launches, 6);
  EXPECT_EQ(heard.kernels[1].name, "fill");
  EXPECT_EQ(heard.kernels[1].launches, 1);
  ASSERT_THAT(heard.kernels[1].parameters, SizeIs(3));
  EXPECT_EQ(heard.kernels[1].parameters[2].offset, 12);
  EXPECT_EQ(heard.kernels[1].parameters[2].bytes, 4);
  EXPECT_THAT(heard.begins, IsEmpty());
  EXPECT_THAT(heard.modules, IsEmpty());
}

TEST_F(DriverRecorderTest, RecordsWhatIsLiveBeforeAndWhatTheLaunchWrote) {
  Script script;
  script.wanted = [](const std::string& name) { return name == "fill"; };
  script.variables = {"missing", "table"};
  const ShellResult result = Run("driver_app records", &script);
  EXPECT_THAT(result.out, HasSubstr("values 9 8\n"));
  const HeardProcess& heard = OneProcess();
  EXPECT_THAT(heard.abandoned, IsEmpty());
  EXPECT_THAT(heard.problems, IsEmpty());
  ASSERT_THAT(heard.modules, SizeIs(1));
  EXPECT_THAT(heard.modules.begin()->second, SizeIs(216));
  EXPECT_THAT(heard.modules.begin()->second, HasSubstr("kernel fill"));
  ASSERT_THAT(heard.recordings, SizeIs(2));

  const HeardRecording& first = heard.recordings[0];
  ASSERT_TRUE(first.complete);
  EXPECT_EQ(first.end.error, 0);
  EXPECT_EQ(first.end.duration_ns, 250000);
  EXPECT_EQ(first.begin.grid[0], 2);
  EXPECT_EQ(first.begin.block[0], 32);
  ASSERT_THAT(first.arguments, SizeIs(16));
  EXPECT_EQ(first.arguments[8], 9);

  const uint64_t large = Printed(result.out, "large");
  const uint64_t small = Printed(result.out, "small");
  int seen = 0;
  for (const HeardRange& range : first.ranges) {
    if (range.range.address == large) {
      ++seen;
      EXPECT_EQ(range.range.origin, wire::kOriginDevice);
      ASSERT_THAT(range.before, SizeIs(3 << 20));
      EXPECT_EQ(range.before[1 << 20], 1);
      EXPECT_EQ(range.after[1 << 20], 9);
      EXPECT_EQ(range.after[(1 << 20) + 36], 9);
      EXPECT_EQ(range.after[(1 << 20) + 40], 1);
    } else if (range.range.address == small) {
      ++seen;
      EXPECT_EQ(range.before, std::string(100, 2));
      EXPECT_EQ(range.after, range.before);
    } else if (range.range.origin == wire::kOriginPinned) {
      ++seen;
      EXPECT_EQ(range.before, std::string(5000, 'p'));
    } else if (range.range.origin == wire::kOriginManaged) {
      ++seen;
      EXPECT_EQ(range.before, std::string(300, 'm'));
    } else if (range.range.origin == wire::kOriginGlobal) {
      ++seen;
      EXPECT_EQ(range.symbol, "table");
      EXPECT_THAT(range.before, SizeIs(64));
    }
  }
  EXPECT_EQ(seen, 5);
  EXPECT_THAT(first.ranges, SizeIs(5));

  const HeardRecording& second = heard.recordings[1];
  EXPECT_EQ(second.begin.occurrence, 1);
  EXPECT_EQ(second.arguments[8], 8);
  ASSERT_TRUE(second.complete);
}

TEST_F(DriverRecorderTest, AnImageLargerThanTheWindowComesWhole) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  const ShellResult result = Run("driver_app records-large", &script);
  EXPECT_THAT(result.out, HasSubstr("value 9\n"));
  ASSERT_THAT(OneProcess().recordings, SizeIs(1));
  const HeardRecording& recording = OneProcess().recordings[0];
  ASSERT_TRUE(recording.complete);
  ASSERT_THAT(recording.ranges, SizeIs(1));
  const std::string& before = recording.ranges[0].before;
  ASSERT_THAT(before, SizeIs(100 << 20));
  for (size_t at = 0; at < before.size(); at += 4096)
    ASSERT_EQ(before[at], static_cast<char>(at >> 20)) << at;
  EXPECT_EQ(before[before.size() - 40], 99);
  EXPECT_EQ(recording.ranges[0].after[before.size() - 40], 9);
}

TEST_F(DriverRecorderTest, VerdictsAreObeyed) {
  Script script;
  script.wanted = [](const std::string& name) { return name == "increment"; };
  script.verdict = [](const std::string&, const wire::BeginRequest& begin) {
    return begin.occurrence < 2 ? wire::kPass : wire::kNever;
  };
  const ShellResult result = Run("driver_app launches", &script);
  EXPECT_EQ(result.out, "cell 8\nnative allocations 0\n");
  EXPECT_THAT(OneProcess().begins, SizeIs(3));
  EXPECT_EQ(OneProcess().kernels[0].launches, 6);
}

TEST_F(DriverRecorderTest, ARefusedInstanceIsLaunchedAndNotKept) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  script.filled = wire::kRefuse;
  const ShellResult result = Run("driver_app launches", &script);
  EXPECT_EQ(result.out, "cell 8\nnative allocations 0\n");
  EXPECT_THAT(OneProcess().recordings, SizeIs(7));
  EXPECT_FALSE(OneProcess().recordings[0].complete);
}

TEST_F(DriverRecorderTest, AFailingKernelFailsAsWithoutUs) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  const ShellResult recorded = Run("driver_app fails", &script);
  const ShellResult plain = Run("driver_app fails");
  const auto errors = [](const std::string& out) {
    return out.substr(0, out.find("native"));
  };
  EXPECT_THAT(plain.out, HasSubstr("synchronize 700\nallocate 700\n"));
  EXPECT_EQ(errors(recorded.out), errors(plain.out));
  ASSERT_THAT(OneProcess().recordings, SizeIs(1));
  EXPECT_EQ(OneProcess().recordings[0].end.error, 700);
}

TEST_F(DriverRecorderTest, AllocationsAnswerAsTheDriver) {
  Script script;
  const ShellResult result = Run("driver_app allocations", &script);
  EXPECT_EQ(result.out,
            "aligned 1\nrange 1 513\ninterior free 1\nfree 0\ndouble free 1\n"
            "null free 0\nreused 1\nnothing 1\ntoo much 2\ncontext 1\n"
            "freed memory 1\npitch 512\nipc 1\n"
            "blocks 15\nblocks 15\nnative allocations 1\n");
  EXPECT_THAT(OneProcess().problems,
              ElementsAre(HasSubstr("--allocator native")));
}

TEST_F(DriverRecorderTest, FreedMemoryWaitsForItsStream) {
  Script script;
  const ShellResult result = Run("driver_app streams", &script);
  EXPECT_EQ(result.out,
            "same stream 1\nother stream 0\nno stream 0\n"
            "after synchronizing 1\nunfinished 0\nfinished 1\ndestroyed 0\n"
            "bad stream 400\nnative allocations 0\n");
}

TEST_F(DriverRecorderTest, DevicesHaveArenasAndReachEachOther) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  const ShellResult result = Run("driver_app devices", &script);
  EXPECT_THAT(result.out, HasSubstr("stride 1\naccess 3 3\nlater 3\n"));
  ASSERT_THAT(OneProcess().recordings, SizeIs(3));
  EXPECT_THAT(OneProcess().recordings[0].ranges, SizeIs(2));
  EXPECT_THAT(OneProcess().recordings[1].ranges, SizeIs(2));
  EXPECT_THAT(OneProcess().recordings[2].ranges, SizeIs(3));
}

TEST_F(DriverRecorderTest, MemoryThatTheApplicationMapsIsRecorded) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  const ShellResult result = Run("driver_app mappings", &script);
  const uint64_t mapped = Printed(result.out, "mapped");
  ASSERT_THAT(OneProcess().recordings, SizeIs(2));
  const HeardRecording& first = OneProcess().recordings[0];
  // The second piece is mapped, but the device has no access to it.
  ASSERT_THAT(first.ranges, SizeIs(1));
  EXPECT_EQ(first.ranges[0].range.address, mapped);
  EXPECT_EQ(first.ranges[0].range.bytes, 2 << 20);
  EXPECT_EQ(first.ranges[0].after[396], 3);
  EXPECT_EQ(first.ranges[0].after[400], 0);
  ASSERT_THAT(OneProcess().recordings[1].ranges, SizeIs(1));
  EXPECT_EQ(OneProcess().recordings[1].ranges[0].range.bytes, 4);
}

TEST_F(DriverRecorderTest, AContextsMemoryEndsWithIt) {
  Script script;
  const ShellResult result = Run("driver_app contexts", &script);
  EXPECT_EQ(result.out,
            "used 42\ndestroyed 0\nreset 0\nnative allocations 0\n");
}

TEST_F(DriverRecorderTest, EveryFormOfALaunchIsSeen) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  const ShellResult result = Run("driver_app forms", &script);
  EXPECT_EQ(result.out, "cell 2\nown stream's 1\nnative allocations 0\n");
  ASSERT_THAT(OneProcess().begins, SizeIs(2));
  const wire::BeginRequest& extended = OneProcess().begins[1];
  EXPECT_EQ(extended.grid[0], 4);
  EXPECT_EQ(extended.cluster[0], 2);
  EXPECT_EQ(extended.cooperative, 1);
  EXPECT_EQ(extended.dynamic_shared_bytes, 77);
  EXPECT_EQ(OneProcess().begins[0].cluster[0], 0);
}

TEST_F(DriverRecorderTest, ATextureInTheArgumentsIsSaid) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  script.textured = wire::kNever;
  Run("driver_app textures", &script);
  // The second launch of the first kernel is not tried.
  ASSERT_THAT(OneProcess().recordings, SizeIs(2));
  EXPECT_EQ(OneProcess().recordings[0].prologue.hints, wire::kHintTexture);
  EXPECT_FALSE(OneProcess().recordings[0].complete);
  EXPECT_EQ(OneProcess().recordings[1].kernel, "fill");
  EXPECT_EQ(OneProcess().recordings[1].prologue.hints, 0u);
  EXPECT_TRUE(OneProcess().recordings[1].complete);
}

TEST_F(DriverRecorderTest, MemoryThatCudaWasNotGivenIsSaid) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  const ShellResult result = Run("driver_app host-memory", &script);
  ASSERT_THAT(OneProcess().recordings, SizeIs(4));
  EXPECT_EQ(OneProcess().recordings[0].prologue.host_pointer,
            Printed(result.out, "own"));
  // Of device memory, pinned memory, and nobody.
  for (int i = 1; i < 4; ++i)
    EXPECT_EQ(OneProcess().recordings[i].prologue.host_pointer, 0u) << i;
}

TEST_F(DriverRecorderTest, LaunchesThatWaitForWhatComesLaterAreAbandoned) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  script.patience_ms = 300;
  const ShellResult result = Run("driver_app spins", &script);
  EXPECT_THAT(result.out, HasSubstr("flags 1 1\n"));
  EXPECT_THAT(OneProcess().abandoned,
              ElementsAre(AllOf(HasSubstr("it did not end within 0.3 s"),
                                HasSubstr("another kernel or the host")),
                          AllOf(HasSubstr("work before the launch did not end"),
                                HasSubstr("--stall-timeout"))));
  // The second launch of the first kernel was not tried; another kernel was.
  ASSERT_THAT(OneProcess().recordings, SizeIs(3));
  EXPECT_FALSE(OneProcess().recordings[0].complete);
  EXPECT_TRUE(OneProcess().recordings[2].complete);
}

TEST_F(DriverRecorderTest, ALaunchThatAnotherThreadsCallWaitsForIsAbandoned) {
  Script script;
  script.wanted = [](const std::string& name) { return name == "fill"; };
  script.patience_ms = 300;
  const ShellResult result = Run("driver_app blocked-thread", &script);
  EXPECT_THAT(result.out, HasSubstr("read 1\n"));
  EXPECT_THAT(OneProcess().abandoned,
              ElementsAre(HasSubstr("calls of other threads did not end")));
}

TEST_F(DriverRecorderTest, PoolsAreServedUnlessTheyAreShared) {
  Script script;
  const ShellResult result = Run("driver_app pools", &script);
  EXPECT_THAT(result.out, HasSubstr("other device's 2001\nown 2000\n"
                                    "the driver's 0\n"
                                    "shared: the driver's 1\n"));
}

TEST_F(DriverRecorderTest, AModuleThatIsLoadedAgainIsAnother) {
  Script script;
  Run("driver_app reloads", &script);
  ASSERT_THAT(OneProcess().kernels, SizeIs(3));
  for (const HeardKernel& kernel : OneProcess().kernels) {
    EXPECT_EQ(kernel.name, "increment");
    EXPECT_EQ(kernel.launches, 1);
  }
}

TEST_F(DriverRecorderTest, AProfileTimesEveryLaunch) {
  Script script;
  script.flags = wire::kFlagProfile;
  const ShellResult result = Run("driver_app launches", &script);
  EXPECT_THAT(result.out, HasSubstr("cell 8\n"));
  EXPECT_EQ(OneProcess().kernels[0].timed, 6);
  EXPECT_EQ(OneProcess().kernels[0].total_ns, 6 * 250000);
  EXPECT_EQ(OneProcess().kernels[1].timed, 1);
}

TEST_F(DriverRecorderTest, TheNativeAllocatorIsTrackedOnly) {
  Script script;
  script.flags = wire::kFlagNativeAllocator;
  script.wanted = [](const std::string& name) { return name == "fill"; };
  const ShellResult result = Run("driver_app records", &script);
  EXPECT_THAT(result.out, HasSubstr("native allocations 2\n"));
  ASSERT_THAT(OneProcess().recordings, SizeIs(2));
  EXPECT_THAT(OneProcess().recordings[0].ranges, SizeIs(4));
}

TEST_F(DriverRecorderTest, MemoryOfAnotherProcessIsRecordedWhileItIsOpen) {
  Script script;
  script.flags = wire::kFlagNativeAllocator;
  script.wanted = [](const std::string&) { return true; };
  const ShellResult result = Run("driver_app ipc", &script);
  const uint64_t opened = Printed(result.out, "opened");
  ASSERT_THAT(OneProcess().recordings, SizeIs(2));
  const auto ranges_of = [&](int recording) {
    std::vector<HeardRange> found;
    for (const HeardRange& range : OneProcess().recordings[recording].ranges)
      if (range.range.address == opened) found.push_back(range);
    return found;
  };
  ASSERT_THAT(ranges_of(0), SizeIs(1));
  EXPECT_EQ(ranges_of(0)[0].range.bytes, 1000);
  EXPECT_EQ(ranges_of(0)[0].after[36], 3);
  EXPECT_THAT(ranges_of(1), IsEmpty());
  EXPECT_THAT(OneProcess().problems, IsEmpty());
}

TEST_F(DriverRecorderTest, AnArenaThatCannotBeHadIsSaid) {
  Script script;
  script.arena_base = 0x1000;  // the kernel gives nobody this one
  const ShellResult result = Run("driver_app launches", &script);
  EXPECT_EQ(result.out, "cell 8\nnative allocations 1\n");
  EXPECT_THAT(OneProcess().problems, ElementsAre(HasSubstr("--arena-base")));
}

TEST_F(DriverRecorderTest, ACapturedLaunchIsANodeAndNoLaunch) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  const ShellResult result = Run("driver_app captures", &script);
  EXPECT_THAT(result.out, HasSubstr("cell 1\n"));
  EXPECT_THAT(OneProcess().problems, IsEmpty());
  EXPECT_EQ(OneProcess().kernels[0].launches, 1);
  EXPECT_THAT(OneProcess().recordings, SizeIs(1));
}

TEST_F(DriverRecorderTest, ThreadsMayLaunchWhileAnotherIsRecorded) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  script.verdict = [](const std::string&, const wire::BeginRequest& begin) {
    return begin.occurrence % 10 == 0 ? wire::kRecord : wire::kPass;
  };
  const ShellResult result = Run("driver_app threads", &script);
  EXPECT_EQ(result.out, "done\nnative allocations 0\n");
  EXPECT_EQ(OneProcess().kernels[0].launches, 801);
  EXPECT_THAT(OneProcess().recordings, SizeIs(81));
}

TEST_F(DriverRecorderTest, DriversThatTellNoParametersAreNamed) {
  driver_ = "fake_driver_12_2";
  Script script;
  script.wanted = [](const std::string&) { return true; };
  const ShellResult result = Run("driver_app launches", &script);
  EXPECT_EQ(result.out, "cell 8\nnative allocations 0\n");
  EXPECT_THAT(OneProcess().recordings, IsEmpty());
  EXPECT_THAT(OneProcess().problems,
              ::testing::Contains(AllOf(HasSubstr("CUDA 12.2"),
                                        HasSubstr("does not tell its"),
                                        HasSubstr("550"))));
}

TEST_F(DriverRecorderTest, LookupsBehaveAsWithoutUs) {
  Script script;
  const ShellResult recorded = Run("driver_app dlsym", &script);
  EXPECT_THAT(recorded.out, Not(HasSubstr(" 0\nun")));
  const ShellResult plain = Run("driver_app dlsym");
  const ShellResult alone =
      Shell(directory_->path(), "LD_LIBRARY_PATH=" + Binaries() +
                                    "/tests/fake_driver " + Binaries() +
                                    "/tests/bin/driver_app dlsym");
  EXPECT_EQ(recorded.out, alone.out);
  EXPECT_EQ(plain.out, alone.out);
}

TEST_F(DriverRecorderTest, ALinkedApplicationIsRecordedToo) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  const ShellResult result = Run("driver_linked_app", &script);
  EXPECT_EQ(result.out, "launch 0\nin arena 1\n");
  ASSERT_THAT(OneProcess().recordings, SizeIs(1));
  EXPECT_TRUE(OneProcess().recordings[0].complete);
  // The image as it was when it was loaded.
  EXPECT_THAT(OneProcess().modules.at(0), HasSubstr("kernel increment"));
}

TEST_F(DriverRecorderTest, OtherPreloadsFindTheNextCall) {
  const std::string other =
      Binaries() + "/tests/lib/libdriver_other_preload.so";
  for (const bool first : {true, false}) {
    Script script;
    const ShellResult result = Run("driver_linked_app", &script,
                                   first ? other : "", first ? "" : other);
    EXPECT_EQ(result.out, "other saw a launch\nlaunch 0\nin arena 1\n");
    ASSERT_THAT(OneProcess().kernels, SizeIs(1));
    EXPECT_EQ(OneProcess().kernels[0].launches, 1);
  }
}

// In front of this library it sees launches as well; behind it, lookups do not
// reach it.
TEST_F(DriverRecorderTest, APreloadInFrontOfDlsymChangesNothing) {
  const std::string tracer =
      Binaries() + "/tests/lib/libdriver_dlsym_preload.so";
  for (const bool first : {true, false}) {
    Script script;
    const ShellResult result = Run("driver_app launches", &script,
                                   first ? tracer : "", first ? "" : tracer);
    EXPECT_THAT(result.out, HasSubstr("cell 8\nnative allocations 0\n"));
    EXPECT_EQ(result.out.find("tracer saw a launch") != std::string::npos,
              first);
    ASSERT_THAT(OneProcess().kernels, SizeIs(2)) << first;
    EXPECT_EQ(OneProcess().kernels[0].launches, 6);
  }
}

TEST_F(DriverRecorderTest, AForkedChildConnectsByItself) {
  Script script;
  const ShellResult result = Run("driver_app forks", &script);
  EXPECT_EQ(result.out, "cell 8\nchild 0\n");
  EXPECT_THAT(heard_, SizeIs(1));
}

TEST_F(DriverRecorderTest, AChildOfAProcessThatUsedCudaIsLeftAlone) {
  Script script;
  const ShellResult result = Run("driver_app used-then-forks", &script);
  EXPECT_THAT(result.out, HasSubstr("child 0\n"));
  EXPECT_EQ(OneProcess().kernels[0].launches, 6);
}

TEST_F(DriverRecorderTest, AParentThatVanishesEndsOnlyTheRecording) {
  for (uint32_t at = wire::kHello; at <= wire::kEpilogue; ++at) {
    Script script;
    script.wanted = [](const std::string&) { return true; };
    script.vanish_at = at;
    const ShellResult result = Run("driver_app launches", &script);
    EXPECT_EQ(result.exit_code(), 0) << at;
    EXPECT_THAT(result.out, HasSubstr("cell 8\n")) << at;
    EXPECT_THAT(result.err, HasSubstr("record")) << at;
  }
}

TEST_F(DriverRecorderTest, AParentThatVanishesWhileMemoryLeavesEndsOnlyThat) {
  Script script;
  script.wanted = [](const std::string&) { return true; };
  script.vanish_while_copying = true;
  const ShellResult result = Run("driver_app records-large", &script);
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_THAT(result.out, HasSubstr("value 9\n"));
  EXPECT_THAT(result.err, HasSubstr("recorder is gone (while copying memory"));
}

TEST_F(DriverRecorderTest, NonsenseFromTheParentEndsOnlyTheRecording) {
  for (uint32_t at = wire::kHello; at <= wire::kFilled; ++at) {
    if (at == wire::kModule) continue;  // has no answer
    Script script;
    script.wanted = [](const std::string&) { return true; };
    script.nonsense_at = at;
    const ShellResult result = Run("driver_app launches", &script);
    EXPECT_EQ(result.exit_code(), 0) << at;
    EXPECT_THAT(result.out, HasSubstr("cell 8\n")) << at;
    EXPECT_THAT(result.err, HasSubstr("record")) << at;
  }
}

}  // namespace
}  // namespace reprise
