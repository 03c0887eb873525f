// Tuned code in place of an application's kernels, under libreprise_cuda.so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/replay/recorder/driver/driver_fixture.h"
#include "tests/replay/recorder/driver/scripted_parent.h"
#include "tests/replay/recorder/shell.h"

namespace reprise {
namespace {

namespace wire = driver_wire;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HeardKernel;
using testing::Script;
using testing::ShellResult;

// What the fake driver loads.
std::string Code(const std::string& contents) {
  std::string image = "\x50\xed\x55\xba";
  image.resize(16, '\0');
  return image + contents + '\0';
}

class DriverSubstitutesTest : public testing::DriverFixture {
 protected:
  // For launches of 2 blocks of 32 threads; launched with 5 blocks of 2.
  static wire::Substitute Shapes() {
    wire::Substitute shapes;
    shapes.guard = {{2, 1, 1}, {32, 1, 1}, {}, 0, 0};
    shapes.grid[0] = 5;
    shapes.block[0] = 2;
    for (int i = 1; i < 3; ++i) shapes.grid[i] = shapes.block[i] = 1;
    return shapes;
  }

  static std::string Message(wire::Substitute shapes,
                             const std::vector<std::string>& names,
                             const std::string& code) {
    std::string all;
    for (const std::string& name : names) all += name + '\0';
    shapes.name_bytes = static_cast<uint32_t>(all.size());
    shapes.code_bytes = code.size();
    return std::string(reinterpret_cast<const char*>(&shapes), sizeof(shapes)) +
           all + code;
  }

  static Script Offering(const std::string& message) {
    Script script;
    script.substitutes = [message](const std::string& kernel) {
      return kernel == "increment" ? std::vector<std::string>{message}
                                   : std::vector<std::string>();
    };
    return script;
  }
  static Script OfferingCode(const std::string& symbol,
                             const std::string& contents) {
    return Offering(Message(Shapes(), {symbol}, Code(contents)));
  }

  const HeardKernel& Increment() {
    for (const HeardKernel& kernel : OneProcess().kernels)
      if (kernel.name == "increment") return kernel;
    static const HeardKernel none;
    ADD_FAILURE() << "no increment";
    return none;
  }
};

TEST_F(DriverSubstitutesTest, EveryFormOfLaunchRunsTheTunedCode) {
  const Script script = OfferingCode("add_threads", "kernel add_threads\n");
  const ShellResult result = Run("driver_app tuned", &script);
  EXPECT_EQ(result.exit_code(), 0);
  // Three by 5 * 2; the one of another shape by the application's own.
  EXPECT_THAT(result.out, HasSubstr("cell 31\n"));
  EXPECT_EQ(Increment().launches, 4u);
  EXPECT_EQ(Increment().substituted, 3u);
  EXPECT_THAT(Increment().declined, ElementsAre(1, 0, 0, 0, 0));
}

TEST_F(DriverSubstitutesTest, GuardsCompareTheWholeLaunch) {
  const auto applied = [&](const wire::LaunchShape& guard) {
    wire::Substitute shapes = Shapes();
    shapes.guard = guard;
    const Script script = Offering(
        Message(shapes, {"add_threads"}, Code("kernel add_threads\n")));
    Run("driver_app tuned", &script);
    return Increment().substituted;
  };
  const wire::LaunchShape same = Shapes().guard;
  wire::LaunchShape other = same;
  other.cluster[0] = other.cluster[1] = other.cluster[2] = 1;  // is none
  EXPECT_EQ(applied(other), 3u);
  other.cluster[0] = 2;
  EXPECT_EQ(applied(other), 0u);
  other = same;
  other.dynamic_shared_bytes = 4;
  EXPECT_EQ(applied(other), 0u);
  other = same;
  other.cooperative = 1;
  EXPECT_EQ(applied(other), 0u);
  other = same;
  other.block[2] = 2;
  EXPECT_EQ(applied(other), 0u);
}

TEST_F(DriverSubstitutesTest, CodeThatDoesNotLoadLeavesTheProgramAsItIs) {
  for (const std::string& message :
       {Message(Shapes(), {"add_threads"}, "no code at all"),
        Message(Shapes(), {"add_threads"}, Code("kernel other\n"))}) {
    const Script script = Offering(message);
    const ShellResult result = Run("driver_app tuned", &script);
    EXPECT_THAT(result.out, HasSubstr("cell 4\n"));
    EXPECT_THAT(Increment().declined, ElementsAre(1, 0, 0, 3, 0));
    EXPECT_THAT(OneProcess().problems,
                ElementsAre(HasSubstr("the driver does not load it")));
  }
}

TEST_F(DriverSubstitutesTest, ALaunchThatTheDriverRefusesIsMadeByTheOwnCode) {
  wire::Substitute shapes = Shapes();
  shapes.block[0] = 0;
  const Script script =
      Offering(Message(shapes, {"add_threads"}, Code("kernel add_threads\n")));
  const ShellResult result = Run("driver_app tuned", &script);
  EXPECT_THAT(result.out, HasSubstr("cell 4\n"));
  EXPECT_THAT(Increment().declined, ElementsAre(1, 0, 0, 0, 3));
  EXPECT_THAT(OneProcess().problems,
              ElementsAre(HasSubstr("the driver does not launch it")));
}

TEST_F(DriverSubstitutesTest, CodeThatTheParentRefusesIsCounted) {
  wire::Substitute shapes = Shapes();
  shapes.refused = 1;
  const Script script = Offering(
      std::string(reinterpret_cast<const char*>(&shapes), sizeof(shapes)));
  const ShellResult result = Run("driver_app tuned", &script);
  EXPECT_THAT(result.out, HasSubstr("cell 4\n"));
  EXPECT_THAT(Increment().declined, ElementsAre(1, 0, 3, 0, 0));
}

TEST_F(DriverSubstitutesTest, ConstantsAreTheApplicationsAtEveryLaunch) {
  wire::Substitute shapes = Shapes();
  shapes.constant_count = 1;
  const std::string code = Code("kernel add_table\nvariable table 64\n");
  const Script script =
      Offering(Message(shapes, {"add_table", "table", "table"}, code));
  const ShellResult result = Run("driver_app tuned-constant", &script);
  EXPECT_THAT(result.out, HasSubstr("cell 37\n"));
  EXPECT_EQ(Increment().substituted, 2u);
}

TEST_F(DriverSubstitutesTest, AConstantThatTheApplicationLacksDeclines) {
  wire::Substitute shapes = Shapes();
  shapes.constant_count = 1;
  const std::string code = Code("kernel add_table\nvariable table 32\n");
  for (const char* name : {"table", "other"}) {
    const Script script =
        Offering(Message(shapes, {"add_table", "table", name}, code));
    const ShellResult result = Run("driver_app tuned-constant", &script);
    EXPECT_THAT(result.out, HasSubstr("cell 2\n"));
    EXPECT_THAT(Increment().declined, ElementsAre(0, 0, 0, 2, 0));
  }
}

TEST_F(DriverSubstitutesTest, EveryContextGetsTheCode) {
  const Script script = OfferingCode("add_threads", "kernel add_threads\n");
  const ShellResult result = Run("driver_app tuned-contexts", &script);
  EXPECT_THAT(result.out, HasSubstr("cell 20\n"));
  EXPECT_EQ(Increment().substituted, 3u);
}

TEST_F(DriverSubstitutesTest, ThreadsMayLaunchAtOnce) {
  const Script script = OfferingCode("add_threads", "kernel add_threads\n");
  Run("driver_app threads", &script);
  EXPECT_EQ(Increment().substituted, 801u);
}

TEST_F(DriverSubstitutesTest, LaunchesByGraphsKeepTheOwnCode) {
  const Script script = OfferingCode("add_threads", "kernel add_threads\n");
  const std::string plain = Run("driver_graph_app captured").out;
  const ShellResult result = Run("driver_graph_app captured", &script);
  EXPECT_EQ(result.out.substr(result.out.find("values")),
            plain.substr(plain.find("values")));
  EXPECT_GT(Increment().declined[wire::kInGraph], 0u);
  EXPECT_EQ(Increment().declined[wire::kInGraph], Increment().launches);
}

TEST_F(DriverSubstitutesTest, AProfileTimesTheTunedCode) {
  Script script = OfferingCode("add_threads", "kernel add_threads\n");
  script.flags = wire::kFlagProfile;
  Run("driver_app tuned", &script);
  EXPECT_EQ(Increment().substituted, 3u);
  EXPECT_EQ(Increment().timed, 4u);
}

TEST_F(DriverSubstitutesTest, TheParentIsNotNeededOnceTheCodeIsThere) {
  Script script = OfferingCode("add_threads", "kernel add_threads\n");
  script.vanish_after_substitutes = true;
  const ShellResult result = Run("driver_app tuned", &script);
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_THAT(result.out, HasSubstr("cell 31\n"));
}

TEST_F(DriverSubstitutesTest, AParentThatFailsBeforeLeavesTheProgramAsItIs) {
  Script vanishing = OfferingCode("add_threads", "kernel add_threads\n");
  vanishing.vanish_at = wire::kSubstitutes;
  Script talking = OfferingCode("add_threads", "kernel add_threads\n");
  talking.nonsense_at = wire::kSubstitutes;
  const Script malformed =
      Offering(Message(Shapes(), {"add_threads", "more"}, Code("")));
  for (const Script& script : {vanishing, talking, malformed}) {
    const ShellResult result = Run("driver_app tuned", &script);
    EXPECT_EQ(result.exit_code(), 0);
    EXPECT_THAT(result.out, HasSubstr("cell 4\n"));
  }
}

}  // namespace
}  // namespace reprise
