// Kernels that only graphs launch, under libreprise_cuda.so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <sstream>
#include <string>
#include <utility>

#include "tests/replay/recorder/driver/driver_fixture.h"
#include "tests/replay/recorder/driver/scripted_parent.h"
#include "tests/replay/recorder/shell.h"

namespace reprise {
namespace {

namespace wire = driver_wire;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HeardKernel;
using testing::HeardProcess;
using testing::HeardRange;
using testing::HeardRecording;
using ::testing::IsEmpty;
using testing::Printed;
using testing::Script;
using testing::ShellResult;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class DriverGraphsTest : public testing::DriverFixture {
 protected:
  static Script Wanting(const std::string& kernel) {
    Script script;
    script.wanted = [kernel](const std::string& name) {
      return kernel.empty() || name == kernel;
    };
    return script;
  }

  uint64_t Launches(const std::string& kernel) {
    for (const HeardKernel& heard : OneProcess().kernels)
      if (heard.name == kernel) return heard.launches;
    return 0;
  }

  // What the application prints without us.
  std::string Plain(const std::string& scenario) {
    return Results(Run("driver_graph_app " + scenario).out);
  }
  // All lines but those that tell addresses and calls.
  static std::string Results(const std::string& out) {
    std::string results;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);)
      if (line.rfind("at ", 0) != 0) results += line + "\n";
    return results;
  }
};

int Value(const std::string& bytes) {
  int value = -1;
  if (bytes.size() >= sizeof(value))
    memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

// The int at an address, before and after a recorded launch.
std::pair<int, int> At(const HeardRecording& recording, uint64_t address) {
  for (const HeardRange& range : recording.ranges)
    if (range.range.address == address)
      return {Value(range.before), Value(range.after)};
  return {-1, -1};
}

TEST_F(DriverGraphsTest, ANodeIsRecordedBetweenWhatComesBeforeAndAfterIt) {
  const Script script = Wanting("increment");
  const ShellResult result = Run("driver_graph_app captured", &script);
  EXPECT_EQ(Results(result.out), Plain("captured"));
  EXPECT_THAT(result.out, HasSubstr("values 7 8\nleft 0\n"));
  const HeardProcess& heard = OneProcess();
  EXPECT_THAT(heard.problems, IsEmpty());
  EXPECT_THAT(heard.abandoned, IsEmpty());
  EXPECT_EQ(Launches("fill"), 3);
  EXPECT_EQ(Launches("increment"), 3);
  ASSERT_THAT(heard.recordings, SizeIs(3));
  const uint64_t b = Printed(result.out, "b");
  for (uint64_t i = 0; i < 3; ++i) {
    const HeardRecording& recording = heard.recordings[i];
    ASSERT_TRUE(recording.complete);
    EXPECT_EQ(recording.kernel, "increment");
    EXPECT_EQ(recording.begin.occurrence, i);
    EXPECT_EQ(recording.begin.grid[0], 2);
    EXPECT_EQ(recording.begin.block[0], 32);
    EXPECT_EQ(recording.end.error, 0);
    // The copy has been made.
    EXPECT_EQ(At(recording, b), std::make_pair(7, 8));
  }
}

TEST_F(DriverGraphsTest, AFirstNodeIsRecordedWithoutWhatFollows) {
  const Script script = Wanting("fill");
  const ShellResult result = Run("driver_graph_app captured", &script);
  EXPECT_THAT(result.out, HasSubstr("values 7 8\nleft 0\n"));
  ASSERT_THAT(OneProcess().recordings, SizeIs(3));
  const uint64_t b = Printed(result.out, "b");
  EXPECT_EQ(At(OneProcess().recordings[0], b), std::make_pair(0, 0));
  EXPECT_EQ(At(OneProcess().recordings[1], b), std::make_pair(8, 8));
}

TEST_F(DriverGraphsTest, KernelsThatAreNotWantedOnlyCount) {
  const Script script;
  const ShellResult result = Run("driver_graph_app captured", &script);
  EXPECT_THAT(result.out, HasSubstr("clones 0\nat end: launches 3\n"));
  EXPECT_EQ(Launches("fill"), 3);
  EXPECT_EQ(Launches("increment"), 3);
  EXPECT_THAT(OneProcess().problems, IsEmpty());
}

TEST_F(DriverGraphsTest, OnceAllIsRecordedTheGraphIsLaunchedWhole) {
  Script script = Wanting("increment");
  script.verdict = [](const std::string&, const wire::BeginRequest& begin) {
    return begin.occurrence == 0 ? wire::kRecord : wire::kNever;
  };
  const ShellResult result = Run("driver_graph_app captured", &script);
  EXPECT_THAT(result.out, HasSubstr("values 7 8\nleft 0\n"));
  EXPECT_THAT(OneProcess().begins, SizeIs(2));
  // What comes before, the node (nothing follows), then whole.
  EXPECT_THAT(result.out, HasSubstr("launches 4\n"));
}

TEST_F(DriverGraphsTest, ChangesOfNodesAreFollowed) {
  const Script script = Wanting("increment");
  const ShellResult result = Run("driver_graph_app changed", &script);
  EXPECT_EQ(Results(result.out), Plain("changed"));
  EXPECT_THAT(result.out,
              HasSubstr("values 7 8 0\nvalues 20 8 21\nvalues 20 8 22\n"));
  EXPECT_THAT(OneProcess().problems, IsEmpty());
  ASSERT_THAT(OneProcess().recordings, SizeIs(3));
  const HeardRecording& first = OneProcess().recordings[0];
  EXPECT_EQ(first.begin.grid[0], 5);
  EXPECT_EQ(first.begin.cluster[0], 5);
  EXPECT_EQ(first.begin.dynamic_shared_bytes, 48);
  const uint64_t b = Printed(result.out, "b");
  const uint64_t c = Printed(result.out, "c");
  EXPECT_EQ(At(first, b), std::make_pair(7, 8));
  EXPECT_EQ(At(OneProcess().recordings[1], c), std::make_pair(20, 21));
  EXPECT_EQ(At(OneProcess().recordings[2], c), std::make_pair(21, 22));
  EXPECT_EQ(Launches("fill"), 2);
  EXPECT_EQ(Launches("increment"), 3);
}

TEST_F(DriverGraphsTest, AnUpdateByAGraphIsFollowedUntilNodesAreNamedAgain) {
  const Script script = Wanting("increment");
  const ShellResult result = Run("driver_graph_app updated", &script);
  EXPECT_EQ(Results(result.out), Plain("updated"));
  ASSERT_THAT(OneProcess().recordings, SizeIs(3));
  const uint64_t b = Printed(result.out, "b");
  const uint64_t c = Printed(result.out, "c");
  EXPECT_EQ(At(OneProcess().recordings[0], b), std::make_pair(7, 8));
  EXPECT_EQ(At(OneProcess().recordings[1], c), std::make_pair(30, 31));
  EXPECT_EQ(At(OneProcess().recordings[2], c), std::make_pair(30, 31));
  EXPECT_THAT(OneProcess().problems,
              ElementsAre(HasSubstr("updated by another graph")));
}

TEST_F(DriverGraphsTest, OccurrencesTellNodesOfOneKernelApart) {
  Script script = Wanting("increment");
  script.verdict = [](const std::string&, const wire::BeginRequest& begin) {
    return begin.occurrence == 4 || begin.occurrence == 5 ? wire::kRecord
                                                          : wire::kPass;
  };
  const ShellResult result = Run("driver_graph_app several", &script);
  EXPECT_EQ(Results(result.out), Plain("several"));
  EXPECT_THAT(result.out, HasSubstr("values 4 3\nleft 0\n"));
  EXPECT_EQ(Launches("increment"), 9);
  EXPECT_THAT(OneProcess().begins, SizeIs(9));
  ASSERT_THAT(OneProcess().recordings, SizeIs(2));
  const uint64_t a = Printed(result.out, "a");
  const uint64_t b = Printed(result.out, "b");
  EXPECT_EQ(At(OneProcess().recordings[0], b), std::make_pair(1, 2));
  EXPECT_EQ(At(OneProcess().recordings[1], a), std::make_pair(2, 3));
}

TEST_F(DriverGraphsTest, EveryNodeOfOneLaunchMayBeRecorded) {
  const Script script = Wanting("");
  const ShellResult result = Run("driver_graph_app several", &script);
  EXPECT_EQ(Results(result.out), Plain("several"));
  EXPECT_THAT(OneProcess().recordings, SizeIs(9));
}

TEST_F(DriverGraphsTest, NodesOfChildGraphsAreRecorded) {
  const Script script = Wanting("increment");
  const ShellResult result = Run("driver_graph_app nested", &script);
  EXPECT_EQ(Results(result.out), Plain("nested"));
  EXPECT_THAT(result.out, HasSubstr("values 9 9\nleft 0\n"));
  EXPECT_EQ(Launches("fill"), 2);
  EXPECT_EQ(Launches("increment"), 4);
  ASSERT_THAT(OneProcess().recordings, SizeIs(4));
  const uint64_t b = Printed(result.out, "b");
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(At(OneProcess().recordings[i], b),
              std::make_pair(7 + i % 2, 8 + i % 2));
  }
}

TEST_F(DriverGraphsTest, PartsOfRandomGraphsGiveWhatTheWholeGives) {
  size_t recorded = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    const std::string scenario = "random " + std::to_string(seed);
    const std::string plain = Plain(scenario);
    for (const uint64_t every : {1, 3}) {
      Script script = Wanting(seed % 2 == 0 ? "increment" : "");
      script.verdict = [every](const std::string&,
                               const wire::BeginRequest& begin) {
        return begin.occurrence % every == 0 ? wire::kRecord : wire::kPass;
      };
      EXPECT_EQ(Results(Run("driver_graph_app " + scenario, &script).out),
                plain)
          << scenario;
      recorded += OneProcess().recordings.size();
    }
    Script profile;
    profile.flags = wire::kFlagProfile;
    EXPECT_EQ(Results(Run("driver_graph_app " + scenario, &profile).out), plain)
        << scenario;
  }
  EXPECT_GT(recorded, 400);
}

TEST_F(DriverGraphsTest, WhatCannotBeTakenApartIsRefusedByName) {
  const Script script = Wanting("increment");
  const ShellResult result = Run("driver_graph_app refused", &script);
  EXPECT_EQ(Results(result.out), Plain("refused"));
  EXPECT_THAT(result.out, HasSubstr("b 11\nb 14\nb 8\nb 10\nb 13\nb 51\n"));
  EXPECT_THAT(
      OneProcess().problems,
      UnorderedElementsAre(
          HasSubstr("memory allocation nodes"),
          HasSubstr("neither counted nor recorded"),
          HasSubstr("increment is not recorded where a CUDA graph launches it: "
                    "it has conditional nodes"),
          HasSubstr("event nodes"), HasSubstr("semaphores"),
          HasSubstr("batch memory operation"),
          HasSubstr("the device may launch it")));
  // The graph that was launched into another one runs there.
  ASSERT_THAT(OneProcess().recordings, SizeIs(1));
  EXPECT_EQ(Launches("increment"), 12);
}

TEST_F(DriverGraphsTest, AFailingNodeFailsAsWithoutUs) {
  const Script script = Wanting("");
  const ShellResult result = Run("driver_graph_app fails", &script);
  EXPECT_EQ(Results(result.out), Plain("fails"));
  EXPECT_THAT(result.out, HasSubstr("launch 0\nsynchronize 700\nleft 0\n"));
  ASSERT_THAT(OneProcess().recordings, SizeIs(3));
  EXPECT_TRUE(OneProcess().recordings[0].complete);
  EXPECT_EQ(OneProcess().recordings[1].end.error, 700);
  EXPECT_THAT(OneProcess().abandoned, ElementsAre(HasSubstr("failed")));
}

TEST_F(DriverGraphsTest, LaunchesOfOneGraphStayInOrder) {
  Script script = Wanting("increment");
  script.verdict = [](const std::string&, const wire::BeginRequest& begin) {
    return begin.occurrence == 0 ? wire::kRecord : wire::kNever;
  };
  const ShellResult result = Run("driver_graph_app ordered", &script);
  EXPECT_THAT(result.out, HasSubstr("waits 1\nwaits 1\nvalues 3\nleft 0\n"));
  EXPECT_THAT(OneProcess().recordings, SizeIs(1));
}

TEST_F(DriverGraphsTest, GraphsEndWithTheirContext) {
  const Script script = Wanting("increment");
  const ShellResult result = Run("driver_graph_app reset", &script);
  EXPECT_THAT(result.out, HasSubstr("values 4\n"));
  EXPECT_THAT(OneProcess().recordings, SizeIs(2));
}

TEST_F(DriverGraphsTest, ANodeMayWaitForOneBesideIt) {
  Script script = Wanting("spin");
  script.patience_ms = 300;
  EXPECT_THAT(Run("driver_graph_app beside", &script).out,
              HasSubstr("values 1 2\nleft 0\n"));
  EXPECT_THAT(OneProcess().abandoned,
              ElementsAre(HasSubstr("did not end within 0.3 s")));
  EXPECT_EQ(Launches("increment"), 2);

  script.flags = wire::kFlagProfile;
  script.wanted = [](const std::string&) { return false; };
  EXPECT_THAT(Run("driver_graph_app beside", &script).out,
              HasSubstr("values 1 2\nleft 0\n"));
}

TEST_F(DriverGraphsTest, ThreadsMayLaunchGraphsWhileAnotherIsRecorded) {
  Script script = Wanting("increment");
  script.verdict = [](const std::string&, const wire::BeginRequest& begin) {
    return begin.occurrence % 7 == 0 ? wire::kRecord : wire::kPass;
  };
  const ShellResult result = Run("driver_graph_app threads", &script);
  EXPECT_THAT(result.out, HasSubstr("done\nleft 0\n"));
  EXPECT_EQ(Launches("increment"), 800);
  EXPECT_THAT(OneProcess().recordings, SizeIs(115));
  EXPECT_THAT(OneProcess().abandoned, IsEmpty());
}

TEST_F(DriverGraphsTest, AProfileTimesTheKernelsOfGraphs) {
  Script script;
  script.flags = wire::kFlagProfile;
  const ShellResult result = Run("driver_graph_app several", &script);
  EXPECT_EQ(Results(result.out), Plain("several"));
  ASSERT_THAT(OneProcess().kernels, SizeIs(1));
  EXPECT_EQ(OneProcess().kernels[0].timed, 9);
  EXPECT_EQ(OneProcess().kernels[0].total_ns, 9 * 250000);
}

TEST_F(DriverGraphsTest, AParentThatVanishesEndsOnlyTheRecording) {
  for (uint32_t at = wire::kHello; at <= wire::kEpilogue; ++at) {
    Script script = Wanting("");
    script.vanish_at = at;
    const ShellResult result = Run("driver_graph_app nested", &script);
    EXPECT_EQ(result.exit_code(), 0) << at;
    EXPECT_THAT(result.out, HasSubstr("values 9 9\nleft 0\n")) << at;
  }
}

}  // namespace
}  // namespace reprise
