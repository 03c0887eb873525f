#include "bayesopt/pipeline_space.h"

#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSubsetOf;

PipelineSpace Make(PipelineTarget target, int max_edits = 8) {
  PipelineSpace::Options options;
  options.target = target;
  options.max_edits = max_edits;
  return PipelineSpace(options);
}

TEST(PipelineSpaceTest, BasesAreCanonicalAndOfTheSpace) {
  for (const auto target : {PipelineTarget::kHost, PipelineTarget::kNvptx}) {
    const PipelineSpace space = Make(target);
    EXPECT_EQ(space.initial(), "default<O3>");
    for (const std::string& base : space.bases()) {
      EXPECT_TRUE(space.Contains(base)) << space.Check(base).status();
    }
  }
}

TEST(PipelineSpaceTest, SamplesAndNeighborsStayInTheSpace) {
  for (const auto target : {PipelineTarget::kHost, PipelineTarget::kNvptx}) {
    const PipelineSpace space = Make(target, 3);
    Random random(7);
    std::set<std::string> distinct;
    for (int i = 0; i < 200; ++i) {
      std::string text = space.Sample(random);
      for (int step = 0; step < 10; ++step) {
        ASSERT_TRUE(space.Contains(text)) << space.Check(text).status();
        distinct.insert(text);
        const std::string next = space.Neighbor(text, random);
        ASSERT_NE(next, text);
        text = next;
      }
    }
    EXPECT_GT(distinct.size(), 1000u);
  }
}

TEST(PipelineSpaceTest, TheSameSeedGivesTheSamePipelines) {
  const PipelineSpace space = Make(PipelineTarget::kNvptx);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random a(seed);
    Random b(seed);
    EXPECT_EQ(space.Sample(a), space.Sample(b));
    EXPECT_EQ(space.RandomSequence(9, a), space.RandomSequence(9, b));
  }
}

TEST(PipelineSpaceTest, EditsInsideTheExplicitListAreReached) {
  const PipelineSpace space = Make(PipelineTarget::kHost);
  const std::string& list = space.bases().back();
  Random random(3);
  int inside = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string next = space.Neighbor(list, random);
    if (next.rfind("default<", 0) != 0 && next != list) ++inside;
  }
  EXPECT_GT(inside, 80);
}

TEST(DescribePipelineTest, LongOnesAreToldByWhatMakesThemOfO3) {
  EXPECT_EQ(DescribePipeline("default<O3>,function(slsr)"),
            "default<O3>,function(slsr)");
  const std::string o3(ExplicitO3(PipelineTarget::kHost));
  EXPECT_EQ(DescribePipeline(o3), "O3");
  EXPECT_EQ(DescribePipeline("function(slsr)," + o3), "O3 with slsr");
  const size_t last = o3.rfind(",constmerge");
  ASSERT_NE(last, std::string::npos);
  EXPECT_EQ(DescribePipeline(o3.substr(0, last)), "O3 without constmerge");
  EXPECT_EQ(DescribePipeline("function(slsr)," + o3.substr(0, last)),
            "O3 with slsr, without constmerge");
  // Of anything: short.
  Random random(5);
  const PipelineSpace space({});
  for (int i = 0; i < 50; ++i)
    EXPECT_LT(DescribePipeline(space.Sample(random)).size(), 700u);
}

TEST(PipelineSpaceTest, RefusalsSayWhy) {
  const PipelineSpace space = Make(PipelineTarget::kHost, 2);
  const auto message = [&](const std::string& text) {
    return std::string(space.Check(text).status().message());
  };
  EXPECT_THAT(message("default<O3>,function(reg2mem)"),
              HasSubstr("reg2mem, which is not allowed"));
  EXPECT_THAT(message("default<O3>,function(licm)"),
              HasSubstr("expected one of loop-mssa passes"));
  EXPECT_THAT(message("default<O3>,loop(indvars)"), HasSubstr("adaptor loop"));
  EXPECT_THAT(message("default<O3>,function(sroa<typo>)"),
              HasSubstr("not among its allowed parameters"));
  EXPECT_THAT(message("default<O3>,function(infer-address-spaces)"),
              HasSubstr("not allowed"));  // NVPTX only
  EXPECT_THAT(message("function(gvn,dse,adce,sccp,bdce)"),
              HasSubstr("more than 2 edits"));
  EXPECT_TRUE(space.Contains("default<O3>,function(gvn,dse)"));
}

TEST(PipelineSpaceTest, NoAllowedPassIsBanned) {
  for (const AllowedPass& allowed : AllowedPasses()) {
    for (const BannedPass& banned : BannedPasses()) {
      const bool prefix = banned.name.back() == '*';
      const std::string name =
          prefix ? banned.name.substr(0, banned.name.size() - 1) : banned.name;
      EXPECT_FALSE(prefix ? allowed.name.rfind(name, 0) == 0
                          : allowed.name == name)
          << allowed.name << ": " << banned.why;
    }
  }
}

// --- Against LLVM itself.

class OptTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* directory = getenv("REPRISE_LLVM_BINDIR");  // set by CTest
    if (directory == nullptr) GTEST_SKIP() << "REPRISE_LLVM_BINDIR is not set";
    opt_ = std::string(directory) + "/opt";
    if (!std::filesystem::exists(opt_)) GTEST_SKIP() << "no " << opt_;
    input_ = ::testing::TempDir() + "reprise_pipeline_" +
             std::to_string(getpid()) + ".ll";
    std::ofstream(input_) << "define void @f() { ret void }\n";
  }
  void TearDown() override { std::filesystem::remove(input_); }

  // What opt says about `pipeline`: the list it understood, or its error.
  std::string Print(const std::string& pipeline, PipelineTarget target,
                    bool* ok) {
    const std::string triple = target == PipelineTarget::kNvptx
                                   ? "-mtriple=nvptx64-nvidia-cuda -mcpu=sm_90"
                                   : "-mtriple=x86_64-linux-gnu";
    const std::string command = opt_ + " " + triple + " -passes='" + pipeline +
                                "' -print-pipeline-passes -disable-output " +
                                input_ + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> buffer;
    while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) {
      text.append(buffer.data(), n);
    }
    *ok = pclose(pipe) == 0;
    return text;
  }

  void ExpectAccepted(const std::string& pipeline, PipelineTarget target) {
    bool ok = false;
    const std::string text = Print(pipeline, target, &ok);
    EXPECT_TRUE(ok) << pipeline << "\n" << text;
  }

  std::string opt_;
  std::string input_;
};

TEST_F(OptTest, KnowsEveryAllowedPassAndItsParameters) {
  std::string lists[2];
  for (const AllowedPass& pass : AllowedPasses()) {
    std::vector<std::string> parameters = pass.parameters;
    if (parameters.empty()) parameters = {""};
    for (const std::string& parameter : parameters) {
      std::string text =
          pass.name + (parameter.empty() ? "" : "<" + parameter + ">");
      switch (pass.level) {
        case PassLevel::kModule:
          break;
        case PassLevel::kCgscc:
          text = "cgscc(" + text + ")";
          break;
        case PassLevel::kFunction:
          text = "function(" + text + ")";
          break;
        case PassLevel::kLoop:
          text = "function(loop(" + text + "))";
          break;
        case PassLevel::kLoopMssa:
          text = "function(loop-mssa(" + text + "))";
          break;
      }
      if (!pass.only_nvptx) lists[0] += (lists[0].empty() ? "" : ",") + text;
      if (!pass.only_host) lists[1] += (lists[1].empty() ? "" : ",") + text;
    }
  }
  ExpectAccepted(lists[0], PipelineTarget::kHost);
  ExpectAccepted(lists[1], PipelineTarget::kNvptx);
}

TEST_F(OptTest, TheExplicitListIsDefaultO3WithoutWhatDevicesNeverNeed) {
  const std::set<std::string> left_out = {"memprof-remove-attributes",
                                          "annotation2metadata",
                                          "forceattrs",
                                          "coro-early",
                                          "ee-instrument",
                                          "openmp-opt",
                                          "openmp-opt-cgscc",
                                          "libcalls-shrinkwrap",
                                          "move-auto-init",
                                          "coro-elide",
                                          "coro-split",
                                          "coro-annotation-elide",
                                          "coro-cleanup",
                                          "elim-avail-extern",
                                          "transform-warning",
                                          "alloc-token",
                                          "cg-profile",
                                          "rel-lookup-table-converter",
                                          "annotation-remarks",
                                          "verify"};
  for (const auto target : {PipelineTarget::kHost, PipelineTarget::kNvptx}) {
    bool ok = false;
    auto full = ParsePipeline(Print("default<O3>", target, &ok));
    ASSERT_TRUE(ok && full.ok());
    auto ours =
        ParsePipeline(Print(std::string(ExplicitO3(target)), target, &ok));
    ASSERT_TRUE(ok && ours.ok());
    const auto without = [&](const Pipeline& pipeline) {
      std::vector<std::string> kept;
      for (const std::string& leaf : FlattenPipeline(pipeline)) {
        const std::string name = leaf.substr(leaf.rfind('/') + 1);
        if (left_out.count(name.substr(0, name.find('<'))) == 0) {
          kept.push_back(leaf);
        }
      }
      return kept;
    };
    EXPECT_EQ(without(*ours), without(*full));
    EXPECT_LT(FlattenPipeline(*ours).size(), FlattenPipeline(*full).size());
  }
}

TEST_F(OptTest, AcceptsSamplesNeighborsAndRandomSequences) {
  for (const auto target : {PipelineTarget::kHost, PipelineTarget::kNvptx}) {
    const PipelineSpace space = Make(target);
    Random random(11);
    std::string text = space.initial();
    for (int i = 0; i < 8; ++i) {
      text = space.Neighbor(text, random);
      ExpectAccepted(text, target);
      ExpectAccepted(space.Sample(random), target);
      ExpectAccepted(space.RandomSequence(1 + 3 * i, random), target);
    }
  }
}

}  // namespace
}  // namespace reprise::bayesopt
