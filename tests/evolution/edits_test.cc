// What models answer, applied.
#include "evolution/llm/edits.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "evolution/llm/match.h"
#include "evolution/llm/near_miss.h"
#include "evolution/random.h"
#include "evolution/regions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kKernelFile[] = R"(#include "mine.h"
#define TILE 16
__global__ void k(const float* a, float* c, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += a[i] * scale(a[i]);
  }
  c[0] = sum;
}
void reference(const float* a, float* c, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += a[i];
  }
  c[0] = sum;
}
)";
constexpr char kHeader[] =
    "#pragma once\n__device__ float scale(float x) {\n  return x;\n}\n";

Region RegionOf(const std::string& path, const std::string& text,
                const std::string& first, const std::string& last,
                RegionKind kind) {
  const size_t begin = text.find(first);
  const size_t end = text.find(last, begin);
  EXPECT_NE(begin, std::string::npos);
  EXPECT_NE(end, std::string::npos);
  return {path, begin, end + last.size(), kind, first};
}

// R1 and R2 are the macro and the kernel, R3 is in the header.
EvolvableSource Source() {
  return EvolvableSource(
      {{"/p/src/k.cu", kKernelFile, false}, {"/p/src/mine.h", kHeader, false}},
      {RegionOf("/p/src/k.cu", kKernelFile, "TILE", "16", RegionKind::kMacro),
       RegionOf("/p/src/k.cu", kKernelFile, "__global__", "\n}",
                RegionKind::kKernel),
       RegionOf("/p/src/mine.h", kHeader, "__device__", "\n}",
                RegionKind::kDeviceFunction)});
}

std::string Replaced(std::string text, const std::string& from,
                     const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string Block(const std::string& search, const std::string& replace) {
  return absl::StrCat("<<<<<<< SEARCH\n", search, "\n=======\n", replace,
                      replace.empty() ? "" : "\n", ">>>>>>> REPLACE\n");
}

AppliedAnswer Apply(const std::string& answer,
                    const EvolvableSource& source = Source()) {
  auto applied = ApplyAnswer(source, answer);
  EXPECT_TRUE(applied.ok()) << applied.status() << "\n" << answer;
  return applied.ok() ? *std::move(applied) : AppliedAnswer();
}

std::string KernelAfter(const std::string& answer) {
  return Apply(answer).files["/p/src/k.cu"];
}

std::string Refusal(const std::string& answer, absl::StatusCode code) {
  const auto applied = ApplyAnswer(Source(), answer);
  EXPECT_EQ(applied.status().code(), code) << applied.status();
  return std::string(applied.status().message());
}

const char kSum[] = "    sum += a[i] * scale(a[i]);";
const char kNewSum[] = "    sum += 2 * a[i];";

TEST(EditsTest, AppliesABlockAndGivesTheDiff) {
  const AppliedAnswer applied = Apply(Block(kSum, kNewSum));
  EXPECT_EQ(applied.format, AnswerFormat::kEdits);
  EXPECT_EQ(applied.files.at("/p/src/k.cu"),
            Replaced(kKernelFile, kSum, kNewSum));
  EXPECT_EQ(applied.files.size(), 1u);
  EXPECT_THAT(applied.diff, AllOf(HasSubstr("--- a/p/src/k.cu\n"),
                                  HasSubstr(absl::StrCat("-", kSum)),
                                  HasSubstr(absl::StrCat("+", kNewSum))));
}

TEST(EditsTest, UnderstandsWhatModelsWrite) {
  const std::string expected = Replaced(kKernelFile, kSum, kNewSum);
  const std::string block = Block(kSum, kNewSum);
  std::string crlf;
  for (const char c : block) crlf += c == '\n' ? "\r\n" : std::string(1, c);
  for (const std::string& answer :
       {"Here it is:\n\n```cuda\n" + block + "```\nDone.",
        "k.cu\n```\n" + block + "```",
        "**`src/k.cu`**\n\n```cpp\n" + block + "```",
        "### File: /p/src/k.cu\n" + block, "```cuda k.cu\n" + block,
        "Now in k.cu we do less:\n" + block, crlf,
        "<think>\n" + Block("x", "y") + "```\n</think>\n" + block,
        Replaced(Replaced(block, "<<<<<<<", "<<<<<"), "=======", "=========="),
        Replaced(block, "SEARCH", "ORIGINAL"),
        Replaced(block, "SEARCH", "search k.cu"),
        // The fence ends in place of the block.
        "```cuda\n" + Replaced(block, ">>>>>>> REPLACE\n", "```\nIt is so.\n"),
        // Fences inside of the block.
        absl::StrCat("<<<<<<< SEARCH\n```cuda\n", kSum,
                     "\n```\n=======\n```cuda\n", kNewSum,
                     "\n```\n>>>>>>> REPLACE\n"),
        // Blanks, indentation, a line that is not whole.
        Block("sum += a[i]*scale( a[i] );", "sum += 2 * a[i];"),
        Block("sum += a[i] * scale(a[i])", "sum += 2 * a[i]"),
        Block("\tsum += a[i] * scale(a[i]);  ", "\tsum += 2 * a[i];")}) {
    EXPECT_EQ(KernelAfter(answer), expected) << answer;
  }
}

TEST(EditsTest, FitsIndentationAndLineEnds) {
  // Searched without indentation: the new lines get the file's.
  EXPECT_THAT(
      KernelAfter(Block("for (int i = 0; i < n; ++i) {\n  sum += a[i] * "
                        "scale(a[i]);\n}",
                        "for (int i = 0; i < n; i += 2) {\n  sum += a[i];\n\n"
                        "  sum += a[i + 1];\n}")),
      HasSubstr("  for (int i = 0; i < n; i += 2) {\n    sum += a[i];\n\n"
                "    sum += a[i + 1];\n  }\n  c[0]"));
  const std::string text = "void k() {\r\n  a;\r\n  b;\r\n}\r\n";
  const EvolvableSource source(
      {{"/k.cu", text, false}},
      {{"/k.cu", 0, text.size() - 2, RegionKind::kKernel, "k"}});
  EXPECT_EQ(
      Apply(Block("  a;\n  b;", "  c;\n  d;\n  e;"), source).files.at("/k.cu"),
      "void k() {\r\n  c;\r\n  d;\r\n  e;\r\n}\r\n");
}

TEST(EditsTest, RemovedLinesLeaveNothing) {
  EXPECT_EQ(KernelAfter(Block("  c[0] = sum;", "")),
            Replaced(kKernelFile, "  c[0] = sum;\n", ""));
}

TEST(EditsTest, SeveralBlocksAndFiles) {
  const AppliedAnswer applied =
      Apply("mine.h\n" + Block("  return x;", "  return 2 * x;") + "k.cu\n" +
            Block("#define TILE 16", "#define TILE 32") +
            Block("  float sum = 0;", "  float sum = TILE;"));
  EXPECT_THAT(applied.files.at("/p/src/mine.h"), HasSubstr("return 2 * x;"));
  EXPECT_EQ(
      applied.files.at("/p/src/k.cu"),
      Replaced(Replaced(kKernelFile, "16", "32"), "sum = 0", "sum = TILE"));
}

TEST(EditsTest, OnlyPlacesInRegionsCount) {
  // The reference has the same loop.
  EXPECT_EQ(KernelAfter(Block("  float sum = 0;", "  float sum = 1;")),
            Replaced(kKernelFile, "sum = 0", "sum = 1"));
  EXPECT_THAT(Refusal(Block("    sum += a[i];", "    sum += 1;"),
                      absl::StatusCode::kPermissionDenied),
              HasSubstr("/p/src/k.cu:13,"));
  // A block that begins in a region and changes what is behind it.
  EXPECT_THAT(
      Refusal(Block("}\nvoid reference(const float* a, float* c, int n) {",
                    "}\nvoid reference(const float* a, float* c, long n) {"),
              absl::StatusCode::kPermissionDenied),
      HasSubstr("/p/src/k.cu:10,"));
  // The same with the change within the region.
  EXPECT_TRUE(ApplyAnswer(Source(), Block("  c[0] = sum;\n}\nvoid reference",
                                          "  c[0] = 1;\n}\nvoid reference"))
                  .ok());
}

TEST(EditsTest, SeveralPlacesAreRefusedAndListed) {
  EXPECT_THAT(
      Refusal(Block("a[i]", "b[i]"), absl::StatusCode::kFailedPrecondition),
      AllOf(HasSubstr("2 places"), HasSubstr("/p/src/k.cu:6")));
}

TEST(EditsTest, ANearMissIsShown) {
  const std::string message =
      Refusal("k.cu\n" + Block("  for (int j = 0; j < n; ++j) {\n"
                               "    sum += a[j] * scale(a[j]);",
                               "x"),
              absl::StatusCode::kNotFound);
  EXPECT_THAT(message,
              HasSubstr("nearest is /p/src/k.cu:5-6 (- what stands there, + "
                        "what was searched for):\n"
                        "-  for (int i = 0; i < n; ++i) {\n"
                        "-    sum += a[i] * scale(a[i]);\n"
                        "+  for (int j = 0; j < n; ++j) {\n"
                        "+    sum += a[j] * scale(a[j]);\n"));
  EXPECT_THAT(message, HasSubstr("block at line 2"));
  EXPECT_EQ(NearestMiss(Source(), "@@@ nothing @@@"), "");
  EXPECT_EQ(NearestMiss(Source(), ""), "");
}

TEST(EditsTest, WhatIsLeftOutIsRefused) {
  for (const char* line : {"...", "  // ... existing code ...",
                           "// rest of the kernel unchanged...", "/* ... */",
                           "  // …", "// ... same as before"}) {
    Refusal(Block(kSum, absl::StrCat(kNewSum, "\n", line)),
            absl::StatusCode::kInvalidArgument);
    Refusal(Block(absl::StrCat(kSum, "\n", line), kNewSum),
            absl::StatusCode::kInvalidArgument);
    Refusal(absl::StrCat("R2\n```\n__global__ void k() {\n", line, "\n}\n```"),
            absl::StatusCode::kInvalidArgument);
  }
  // Packs and a user's own comments are code.
  EXPECT_THAT(KernelAfter(Block(kSum, "    sum += f(a...); // and so on...")),
              HasSubstr("f(a...)"));
  const std::string text = "void k() {\n  // ...\n  a;\n}";
  const EvolvableSource own(
      {{"/k.cu", text, false}},
      {{"/k.cu", 0, text.size(), RegionKind::kKernel, ""}});
  EXPECT_TRUE(ApplyAnswer(own, Block("  // ...\n  a;", "  // ...\n  b;")).ok());
}

TEST(EditsTest, MalformedAnswersSayWhere) {
  const auto refusal = [](const std::string& answer) {
    return Refusal(answer, absl::StatusCode::kInvalidArgument);
  };
  EXPECT_THAT(refusal(""), HasSubstr("neither"));
  EXPECT_THAT(refusal("I cannot do that."), HasSubstr("neither"));
  EXPECT_THAT(refusal("\n<<<<<<< SEARCH\na\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("<<<<<<< SEARCH\na\n=======\nb\n"),
              HasSubstr("without its >>>>>>> REPLACE at line 1"));
  EXPECT_THAT(refusal("<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n"),
              HasSubstr("a second ======= at line 5"));
  EXPECT_THAT(refusal("<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n"),
              HasSubstr("line 3"));
  EXPECT_THAT(refusal(Block("  \n", "x")), HasSubstr("empty SEARCH"));
  EXPECT_THAT(
      refusal("other.cu\n" + Block(kSum, kNewSum)),
      AllOf(HasSubstr("got file other.cu"), HasSubstr("/p/src/mine.h")));
  EXPECT_THAT(refusal("```cuda\nvoid k() {"), HasSubstr("no end"));
  EXPECT_THAT(refusal("```\na\n```\n```\nb\n```\n"), HasSubstr("label"));
  EXPECT_THAT(refusal("R9\n```\na\n```\n"), HasSubstr("R1 to R3"));
  EXPECT_THAT(refusal(std::string(kMaxAnswerBytes + 1, 'x')),
              HasSubstr("at most"));
  EXPECT_THAT(refusal(Block(kSum, "    sum += 1; /*")), HasSubstr("not ended"));
  EXPECT_THAT(Refusal(Block(kSum, kSum), absl::StatusCode::kAlreadyExists),
              HasSubstr("as it is"));
}

TEST(EditsTest, EveryFailingBlockIsReported) {
  std::string answer = Block(kSum, kNewSum);
  for (int i = 0; i < 7; ++i) answer += Block("nowhere to be found", "x");
  const std::string message = Refusal(answer, absl::StatusCode::kNotFound);
  EXPECT_THAT(message, HasSubstr("block at line 6"));
  EXPECT_THAT(message, HasSubstr("and 2 more blocks"));
  EXPECT_THAT(message, Not(HasSubstr("block at line 1:")));
}

TEST(EditsTest, WholeRegions) {
  const std::string kernel = "__global__ void k() {\n  one();\n}";
  const std::string scale = "__device__ float scale(float x) { return 1; }";
  for (const std::string& answer :
       {"### R2 (kernel)\n```cuda\n" + kernel + "\n```\n",
        "```cuda R2\n" + kernel + "\n```\n",
        "```cuda\n// R2: kernel k\n" + kernel + "\n```\n",
        "One kernel:\n```cuda\n" + kernel + "\n```\nFaster.",
        "For example\n```\nx\n```\nRegion R2:\n~~~~cpp\n" + kernel +
            "\n~~~~"}) {
    const AppliedAnswer applied = Apply(answer);
    EXPECT_EQ(applied.format, AnswerFormat::kRegions);
    EXPECT_EQ(
        std::string(applied.files.at("/p/src/k.cu")),
        "#include \"mine.h\"\n#define TILE 16\n" + kernel +
            std::string(kKernelFile)
                .substr(std::string(kKernelFile).find("\nvoid reference")))
        << answer;
  }
  const AppliedAnswer both =
      Apply("R3\n```\n" + scale + "\n```\nR1\n```\nTILE 64\n```\n");
  EXPECT_EQ(both.files.at("/p/src/mine.h"), "#pragma once\n" + scale + "\n");
  EXPECT_EQ(both.files.at("/p/src/k.cu"),
            Replaced(kKernelFile, "TILE 16", "TILE 64"));
  // What stands around the region in its line is written along.
  EXPECT_EQ(KernelAfter("R1\n```\n#define TILE 64\n```\n"),
            Replaced(kKernelFile, "TILE 16", "TILE 64"));
}

TEST(MatchTest, RulesFromStrictToLoose) {
  const std::string text = "ab;\n  x = a b;\nxab;\n";
  EXPECT_EQ(FindMatches(text, "ab;", MatchRule::kWholeLines).size(), 1u);
  EXPECT_EQ(FindMatches(text, "ab", MatchRule::kTokens).size(), 1u);
  EXPECT_EQ(FindMatches(text, "x=a  b ;", MatchRule::kBlanksAside).size(), 1u);
  EXPECT_EQ(FindMatches(text, "a;", MatchRule::kBlanksAside).size(), 0u);
  EXPECT_EQ(FindMatches(text, " \n", MatchRule::kBlanksAside).size(), 0u);
  // Places that overlap are two.
  EXPECT_EQ(
      FindMatches("a;\na;\na;\n", "a;\na;", MatchRule::kWholeLines).size(), 2u);
}

// --- Properties over random edits.

// Applies a unified diff of one file, strictly.
std::string Patched(const std::string& before, const std::string& diff) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < before.size();) {
    const size_t end = before.find('\n', at);
    lines.push_back(before.substr(at, end - at));
    at = end == std::string::npos ? before.size() : end + 1;
  }
  std::string out;
  size_t next = 0;
  for (size_t at = 0; at < diff.size();) {
    const size_t end = diff.find('\n', at);
    const std::string line = diff.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("---") || line.starts_with("+++")) continue;
    if (line.starts_with("@@ -")) {
      const size_t start = std::stoul(line.substr(4));
      const bool none = line.find(",0 +") != std::string::npos;
      while (next < start - (none ? 0 : 1)) out += lines[next++] + "\n";
    } else if (line[0] == '+') {
      out += line.substr(1) + "\n";
    } else {
      EXPECT_EQ(lines[next], line.substr(1));
      if (line[0] == ' ') out += lines[next] + "\n";
      ++next;
    }
  }
  while (next < lines.size()) out += lines[next++] + "\n";
  return out;
}

struct Words {
  explicit Words(uint64_t seed) : random(seed) {}
  // Few words, so that texts repeat.
  std::string Line(const std::string& indent) {
    static const char* const words[] = {"x = 1;", "y += x;", "f(x, y);",
                                        "x++;",   "// note", ""};
    const std::string word = words[random.Below(6)];
    return word.empty() ? "" : indent + word;
  }
  std::vector<std::string> Lines(size_t most) {
    std::vector<std::string> lines;
    for (size_t i = random.Below(most); i > 0; --i) {
      lines.push_back(Line(random.Below(2) == 0 ? "  " : "    "));
    }
    return lines;
  }
  Random random;
};

std::string JoinLines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

// A random change of a random kernel, written as a block as wide as it has to
// be, gives that change; its diff gives it too.
TEST(EditsPropertyTest, ApplyingWhatDiffersIsIdentity) {
  int applied_count = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Words words(seed);
    const std::vector<std::string> lines = words.Lines(14);
    if (lines.empty()) continue;
    const size_t begin = words.random.Below(lines.size());
    const size_t end = begin + words.random.Below(lines.size() - begin + 1);
    const std::vector<std::string> fresh = words.Lines(4);
    std::vector<std::string> after(lines.begin(), lines.begin() + begin);
    after.insert(after.end(), fresh.begin(), fresh.end());
    after.insert(after.end(), lines.begin() + end, lines.end());
    if (after == lines) continue;
    const std::string head = JoinLines(words.Lines(5)) + "void k() {\n";
    const std::string tail = "} // k\n" + JoinLines(words.Lines(5));
    const std::string text = head + JoinLines(lines) + tail;
    const EvolvableSource source(
        {{"/k.cu", text, false}},
        {{"/k.cu", head.size() - 11, text.size() - tail.size() + 1,
          RegionKind::kKernel, "k"}});
    // With the kernel's first and last line the place is the only one.
    const auto applied = ApplyAnswer(
        source, Block("void k() {\n" + JoinLines(lines) + "} // k",
                      "void k() {\n" + JoinLines(after) + "} // k"));
    ASSERT_TRUE(applied.ok()) << seed << applied.status();
    const std::string expected = head + JoinLines(after) + tail;
    EXPECT_EQ(applied->files.at("/k.cu"), expected) << seed;
    EXPECT_EQ(Patched(text, applied->diff), expected) << seed;
    ++applied_count;
  }
  EXPECT_GT(applied_count, 1500);
}

// Blocks cut from anywhere in the file, replaced by anything: what comes out is
// a refusal, or a file that differs within the region alone.
TEST(EditsPropertyTest, NothingLandsOutsideOfARegion) {
  int counts[2] = {0, 0};
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Words words(seed);
    const std::string head = JoinLines(words.Lines(6));
    const std::string kernel = "void k() {\n" + JoinLines(words.Lines(8)) + "}";
    const std::string tail = "\n" + JoinLines(words.Lines(6));
    const std::string text = head + kernel + tail;
    const EvolvableSource source(
        {{"/k.cu", text, false}},
        {{"/k.cu", head.size(), head.size() + kernel.size(),
          RegionKind::kKernel, "k"}});
    std::string answer;
    for (size_t i = 1 + words.random.Below(2); i > 0; --i) {
      const size_t begin = words.random.Below(text.size());
      const std::string search =
          text.substr(begin, 1 + words.random.Below(text.size() - begin));
      std::string replace =
          words.random.Below(2) == 0 ? JoinLines(words.Lines(4)) : search;
      if (words.random.Below(2) == 0)
        replace.insert(words.random.Below(replace.size() + 1), "z");
      answer += Block(search, replace);
    }
    const auto applied = ApplyAnswer(source, answer);
    ++counts[applied.ok() ? 1 : 0];
    if (!applied.ok()) continue;
    const std::string& after = applied->files.at("/k.cu");
    ASSERT_GE(after.size(), head.size() + tail.size());
    EXPECT_TRUE(after.starts_with(head)) << seed << "\n" << answer;
    EXPECT_TRUE(after.ends_with(tail)) << seed << "\n" << answer;
  }
  EXPECT_GT(counts[0], 500);
  EXPECT_GT(counts[1], 500);
}

}  // namespace
}  // namespace reprise::evolution
