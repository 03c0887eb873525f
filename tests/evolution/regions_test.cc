#include "evolution/regions.h"

#include <string>
#include <utility>
#include <vector>

#include "evolution/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::HasSubstr;

// Regions are what stands between « and », which are taken out.
EvolvableSource Marked(const std::string& marked,
                       const std::string& path = "/p/k.cu") {
  const std::string open = "«", close = "»";
  std::string text;
  std::vector<Region> regions;
  for (size_t i = 0; i < marked.size();) {
    if (marked.compare(i, open.size(), open) == 0) {
      regions.push_back({path, text.size(), 0, RegionKind::kDeviceFunction,
                         "r" + std::to_string(regions.size())});
      i += open.size();
    } else if (marked.compare(i, close.size(), close) == 0) {
      regions.back().end = text.size();
      i += close.size();
    } else {
      text += marked[i++];
    }
  }
  return EvolvableSource({{path, text, false}}, regions);
}

std::vector<std::string> TextsAt(const EvolvableSource& source,
                                 const std::string& after) {
  const auto state = source.At({{"/p/k.cu", after}});
  EXPECT_TRUE(state.ok()) << state.status();
  std::vector<std::string> texts;
  if (!state.ok()) return texts;
  for (const Region& region : state->regions())
    texts.emplace_back(TextOf(*state, region));
  return texts;
}

std::string Refusal(const EvolvableSource& source, const std::string& after) {
  const absl::Status status = source.CheckConfined({{"/p/k.cu", after}});
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  return std::string(status.message());
}

TEST(RegionsTest, FollowsRegionsThroughChanges) {
  const EvolvableSource source =
      Marked("#include <a>\n«f() { one }»\nint x;\n«k() { f(); }»\nmain\n");
  EXPECT_THAT(TextsAt(source, "#include <a>\nf() { two\n}\nint x;\n\nmain\n"),
              testing::ElementsAre("f() { two\n}", ""));
}

TEST(RegionsTest, BetweenManyPossiblePlacesTakesTheOneMostLikeTheRecorded) {
  // The only fixed text between them is a newline.
  const EvolvableSource source = Marked("«f() {\n  a;\n}»\n«k() {\n  b;\n}»\n");
  EXPECT_THAT(TextsAt(source, "f() {\n  a;\n  c;\n}\nk() {\n  b;\n}\n"),
              testing::ElementsAre("f() {\n  a;\n  c;\n}", "k() {\n  b;\n}"));
  EXPECT_THAT(
      TextsAt(source, "g() {\n}\nf() {\n  a;\n}\nk() {\n  d;\n}\n"),
      testing::ElementsAre("g() {\n}\nf() {\n  a;\n}", "k() {\n  d;\n}"));
}

TEST(RegionsTest, RefusalsNameTheLineThatWasTouched) {
  const EvolvableSource source =
      Marked("line 1\n«k»\nline 3\nline 4\n«f»\nline 6\n");
  EXPECT_THAT(Refusal(source, "line 1\nk\nline 3\nline X\nf\nline 6\n"),
              HasSubstr("/p/k.cu:4,"));
  EXPECT_THAT(Refusal(source, "lime 1\nk\nline 3\nline 4\nf\nline 6\n"),
              HasSubstr("/p/k.cu:1,"));
  EXPECT_THAT(Refusal(source, "line 1\nk\nline 3\nline 4\nf\nline 7\n"),
              HasSubstr("/p/k.cu:6,"));
  EXPECT_THAT(Refusal(source, ""), HasSubstr("/p/k.cu:1,"));
}

TEST(RegionsTest, RegionAroundIsTheOneThatHasAllOfIt) {
  const EvolvableSource source = Marked("ab«cd»ef«gh»");
  EXPECT_EQ(RegionAround(source, "/p/k.cu", 2, 4)->name, "r0");
  EXPECT_EQ(RegionAround(source, "/p/k.cu", 7, 7)->name, "r1");
  EXPECT_EQ(RegionAround(source, "/p/k.cu", 1, 3), nullptr);
  EXPECT_EQ(RegionAround(source, "/p/k.cu", 3, 7), nullptr);
  EXPECT_EQ(RegionAround(source, "/p/other.cu", 2, 4), nullptr);
}

// What regions are replaced by comes back exactly where fixed text tells them
// apart, and some division that fits the fixed text comes back always.
TEST(RegionsTest, RandomReplacementsAreLocated) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const auto text = [&](const char* letters, size_t count) {
      std::string out;
      for (size_t i = random.Below(8); i > 0; --i)
        out += letters[random.Below(count)];
      return out;
    };
    const bool ambiguous = random.Below(2) == 0;
    std::vector<Region> regions;
    std::string before = text("xy\n", 3), after = before;
    std::vector<std::string> pieces = {before}, replaced;
    for (size_t i = 1 + random.Below(4); i > 0; --i) {
      const std::string old_text = text("ab\n", 3);
      replaced.push_back(text("ab\n", 3));
      const std::string piece =
          ambiguous ? text("ab", 2)
                    : "<" + std::to_string(i) + text("xy\n", 3) + ">";
      regions.push_back({"/p/k.cu", before.size(),
                         before.size() + old_text.size(), RegionKind::kKernel,
                         std::to_string(i)});
      before += old_text + piece;
      after += replaced.back() + piece;
      pieces.push_back(piece);
    }
    const auto located = LocateRegions(before, regions, after);
    ASSERT_TRUE(located.ok()) << seed << located.status();
    ASSERT_EQ(located->size(), regions.size());
    size_t at = 0;
    for (size_t i = 0; i < regions.size(); ++i) {
      const Region& region = (*located)[i];
      ASSERT_EQ(after.substr(at, region.begin - at), pieces[i]) << seed;
      const std::string now =
          after.substr(region.begin, region.end - region.begin);
      if (!ambiguous) {
        EXPECT_EQ(now, replaced[i]) << seed;
      }
      at = region.end;
    }
    EXPECT_EQ(after.substr(at), pieces.back()) << seed;
  }
}

TEST(RegionsTest, AnyChangeOfFixedTextIsRefused) {
  const std::string marked = "host1\n«k { a; }»\nhost2 \n«f { b; }»\nhost3\n";
  const EvolvableSource source = Marked(marked);
  const std::string before = source.files().at("/p/k.cu");
  for (size_t at = 0; at < before.size(); ++at) {
    const bool inside = RegionAround(source, "/p/k.cu", at, at + 1) != nullptr;
    std::string changed = before;
    changed[at] = '#';
    EXPECT_EQ(source.CheckConfined({{"/p/k.cu", changed}}).ok(), inside) << at;
  }
}

TEST(RegionsTest, WhatARegionOpensItHasToClose) {
  const EvolvableSource source =
      Marked("«void k() { a; }»\n/* host */ int main() {}\n«N 1»\n«B {»\n");
  const auto with = [&](const std::string& kernel, const std::string& macro,
                        const std::string& brace) {
    const auto after =
        source.At({{"/p/k.cu", kernel + "\n/* host */ int main() {}\n" + macro +
                                   "\n" + brace + "\n"}});
    EXPECT_TRUE(after.ok()) << after.status();
    return CheckSelfContained(source, *after);
  };
  EXPECT_TRUE(with("void k() { b; } // end", "N 2", "B {").ok());
  // A macro that was like that before.
  EXPECT_TRUE(with("void k() { b; }", "N 2", "B {{").ok());
  const absl::Status comment = with("void k() { a; } /*", "N 1", "B {");
  EXPECT_EQ(comment.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(comment.message()),
              HasSubstr("a comment or literal that is not ended"));
  EXPECT_THAT(std::string(comment.message()), HasSubstr("/p/k.cu:1"));
  for (const char* open :
       {"void k() { a; ", "void k() { a; }}", "void k() { f(a]; }",
        "#if 0\nvoid k() {}", "#endif\nvoid k() {}\n#if 1", "void k() {} // \\",
        "void k() {} \\", "void k() {} R\"x("}) {
    EXPECT_FALSE(with(open, "N 1", "B {").ok()) << open;
  }
}

}  // namespace
}  // namespace reprise::evolution
