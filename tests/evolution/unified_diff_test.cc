// Diffs are tested by patch itself: apply(diff(a, b), a) == b.
#include "evolution/unified_diff.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "evolution/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class Directory {
 public:
  Directory() {
    std::string name = ::testing::TempDir() + "reprise_diff_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  void Write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(
        std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path_ + "/" + name, std::ios::binary).rdbuf();
    return text.str();
  }
  // Exit code of `patch -p1` there.
  int Patch(const std::string& diff) const {
    Write("the.patch", diff);
    const std::string command =
        "cd '" + path_ +
        "' && patch -p1 --no-backup-if-mismatch -F0 -s -i the.patch";
    return system(command.c_str());
  }

 private:
  std::string path_;
};

void ExpectPatches(const std::string& before, const std::string& after,
                   const std::string& name = "dir/kernel.cu",
                   int context_lines = 3) {
  const Directory directory;
  directory.Write(name, before);
  DiffOptions options;
  options.context_lines = context_lines;
  options.root = "/root";
  const std::string diff =
      UnifiedDiff({{"/root/" + name, before, after}}, options);
  if (before == after) {
    EXPECT_THAT(diff, IsEmpty());
    return;
  }
  EXPECT_EQ(directory.Patch(diff), 0) << diff;
  EXPECT_EQ(directory.Read(name), after) << diff;
}

TEST(UnifiedDiffTest, IsWhatDiffWrites) {
  EXPECT_EQ(
      UnifiedDiff({{"/p/a/k.cu", "1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nx\n6\n"}},
                  {.root = "/p"}),
      "--- a/a/k.cu\n"
      "+++ b/a/k.cu\n"
      "@@ -2,5 +2,5 @@\n"
      " 2\n"
      " 3\n"
      " 4\n"
      "-5\n"
      "+x\n"
      " 6\n");
}

TEST(UnifiedDiffTest, NearChangesShareAHunkAndFarOnesDoNot) {
  std::string before;
  for (int i = 0; i < 40; ++i) before += std::to_string(i) + "\n";
  const auto hunks = [&](int first, int second) {
    std::string after;
    for (int i = 0; i < 40; ++i) {
      after += (i == first || i == second ? "x" : std::to_string(i)) + "\n";
    }
    ExpectPatches(before, after);
    const std::string diff = UnifiedDiff({{"f", before, after}});
    int count = 0;
    for (size_t at = diff.find("@@ -"); at != std::string::npos;
         at = diff.find("@@ -", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(hunks(10, 17), 1);
  EXPECT_EQ(hunks(10, 18), 2);
  EXPECT_EQ(hunks(0, 39), 2);
}

TEST(UnifiedDiffTest, EdgesOfFiles) {
  ExpectPatches("", "a\n");
  ExpectPatches("a\nb\n", "b\n");
  ExpectPatches("a\nb\n", "a\n");
  ExpectPatches("b\n", "a\nb\n");
  ExpectPatches("a", "a\n");
  ExpectPatches("a\n", "a");
  ExpectPatches("a\nb", "a\nc");
  ExpectPatches("a\nb", "x\nb");
  ExpectPatches("\n\n\n", "\n\n");
  ExpectPatches("a\r\nb\r\n", "a\r\nc\r\n");
  ExpectPatches("a\n", "a\n");
}

TEST(UnifiedDiffTest, NamesWithBlanksAndOddCharacters) {
  ExpectPatches("a\n", "b\n", "my dir/my kernel.cu");
  ExpectPatches("a\n", "b\n", "quo\"te/k.cu");
  ExpectPatches("a\n", "b\n", "tab\there.cu");
}

TEST(UnifiedDiffTest, SeveralFilesInOnePatch) {
  const Directory directory;
  directory.Write("src/a.cu", "1\n2\n");
  directory.Write("inc/b.h", "3\n4\n");
  const std::string diff = UnifiedDiff({{"/p/src/a.cu", "1\n2\n", "1\nx\n"},
                                        {"/p/src/same.cu", "0\n", "0\n"},
                                        {"/p/inc/b.h", "3\n4\n", "y\n4\n"}},
                                       {.root = "/p/"});
  EXPECT_EQ(directory.Patch(diff), 0) << diff;
  EXPECT_EQ(directory.Read("src/a.cu"), "1\nx\n");
  EXPECT_EQ(directory.Read("inc/b.h"), "y\n4\n");
}

TEST(UnifiedDiffTest, OfAnEvolvableSource) {
  const EvolvableSource source({{"/p/k.cu", "old\n", false}},
                               {{"/p/k.cu", 0, 3, RegionKind::kKernel, "k"}});
  EXPECT_THAT(UnifiedDiff(source, {{"/p/k.cu", "new\n"}}, {.root = "/p"}),
              StartsWith("--- a/k.cu\n+++ b/k.cu\n"));
  EXPECT_THAT(UnifiedDiff(source, {{"/p/k.cu", "new\n"}}),
              HasSubstr("--- a/p/k.cu\n"));
  EXPECT_THAT(UnifiedDiff(source, {}), IsEmpty());
}

TEST(UnifiedDiffTest, RandomEditsComeBackExactly) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    std::string texts[2];
    std::vector<std::string> lines;
    const size_t count = random.Below(40);
    for (size_t i = 0; i < count; ++i) {
      lines.push_back(std::string(random.Below(3), 'a') +
                      std::to_string(random.Below(4)));
    }
    for (const std::string& line : lines) texts[0] += line + "\n";
    const size_t edits = random.Below(6);
    for (size_t i = 0; i < edits && !lines.empty(); ++i) {
      const auto at =
          lines.begin() + static_cast<long>(random.Below(lines.size()));
      switch (random.Below(3)) {
        case 0:
          lines.erase(at);
          break;
        case 1:
          lines.insert(at, "new");
          break;
        default:
          *at = "changed";
      }
    }
    for (const std::string& line : lines) texts[1] += line + "\n";
    if (random.Below(4) == 0 && !texts[1].empty()) texts[1].pop_back();
    ExpectPatches(texts[0], texts[1], "k.cu",
                  static_cast<int>(random.Below(4)));
  }
}

TEST(UnifiedDiffTest, FilesThatHaveNothingInCommon) {
  std::string before;
  std::string after;
  for (int i = 0; i < 3000; ++i) {
    before += "a" + std::to_string(i) + "\n";
    after += "b" + std::to_string(i) + "\n";
  }
  ExpectPatches("same\n" + before + "end\n", "same\n" + after + "end\n");
}

TEST(CommonDirectoryTest, IsTheDeepestOneThatHoldsAll) {
  EXPECT_EQ(CommonDirectory({"/a/b/c.cu"}), "/a/b");
  EXPECT_EQ(CommonDirectory({"/a/b/c.cu", "/a/b/d/e.h"}), "/a/b");
  EXPECT_EQ(CommonDirectory({"/a/bc/x", "/a/bd/y"}), "/a");
  EXPECT_EQ(CommonDirectory({"/a/x", "/b/y"}), "/");
  EXPECT_EQ(CommonDirectory({"x", "y"}), "");
  EXPECT_EQ(CommonDirectory({}), "");
}

}  // namespace
}  // namespace reprise::evolution
