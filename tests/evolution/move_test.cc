#include "evolution/move.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

Move At(const std::string& site, std::vector<TextEdit> edits) {
  Move move;
  move.key = move.site = site;
  for (TextEdit& edit : edits) edit.path = "f";
  move.edits = std::move(edits);
  return move;
}

EvolvableSource Source(const std::string& text, size_t begin, size_t end) {
  return EvolvableSource({{"f", text, false}},
                         {{"f", begin, end, RegionKind::kKernel, "k"}});
}

std::string Apply(const EvolvableSource& source,
                  const std::vector<const Move*>& moves) {
  auto files = ApplyMoves(source, moves);
  return files.ok() ? (*files)["f"] : std::string(files.status().message());
}

TEST(MoveTest, EditsAtOnePlaceFollowTheirRanks) {
  const auto source = Source("a/b", 0, 3);
  const Move outer = At("1", {{"", 2, 0, "(", 1}, {"", 3, 0, ")", -1}});
  const Move inner = At("2", {{"", 2, 0, "[", 2}, {"", 3, 0, "]", -2}});
  const Move replace = At("3", {{"", 2, 1, "x", 0}});
  EXPECT_EQ(Apply(source, {&outer, &inner}), "a/([b])");
  EXPECT_EQ(Apply(source, {&inner, &outer}), "a/([b])");
  EXPECT_EQ(Apply(source, {&replace, &outer, &inner}), "a/([x])");
}

TEST(MoveTest, ConflictsAreSeenAndRefused) {
  const auto source = Source("0123456789", 0, 10);
  const Move a = At("a", {{"", 2, 4, "x", 0}});
  const Move overlapping = At("b", {{"", 5, 2, "y", 0}});
  const Move inside = At("c", {{"", 3, 0, "y", 0}});
  const Move beside = At("d", {{"", 6, 2, "y", 0}});
  const Move at_start = At("e", {{"", 2, 0, "y", 0}});
  const Move same_place = At("f", {{"", 2, 0, "z", 0}});
  EXPECT_FALSE(Compatible(a, overlapping));
  EXPECT_FALSE(Compatible(a, inside));
  EXPECT_TRUE(Compatible(a, beside));
  EXPECT_TRUE(Compatible(a, at_start));
  EXPECT_FALSE(Compatible(at_start, same_place));
  EXPECT_FALSE(ApplyMoves(source, {&a, &inside}).ok());
  Move tagged = beside;
  tagged.tags = {"nest"};
  Move other = At("g", {{"", 9, 1, "y", 0}});
  EXPECT_TRUE(Compatible(tagged, other));
  other.tags = {"x", "nest"};
  EXPECT_FALSE(Compatible(tagged, other));
  other.tags.clear();
  other.site = tagged.site;
  EXPECT_FALSE(Compatible(tagged, other));
}

TEST(MoveTest, EditsOutsideOfRegionsOrFilesAreRefused) {
  const auto source = Source("0123456789", 2, 5);
  const auto code = [&](const Move& move) {
    return ApplyMoves(source, {&move}).status().code();
  };
  EXPECT_EQ(code(At("a", {{"", 2, 3, "x", 0}})), absl::StatusCode::kOk);
  EXPECT_EQ(code(At("a", {{"", 5, 0, "x", 0}})), absl::StatusCode::kOk);
  EXPECT_EQ(code(At("a", {{"", 1, 2, "x", 0}})),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code(At("a", {{"", 4, 3, "x", 0}})),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code(At("a", {{"", 9, 5, "x", 0}})),
            absl::StatusCode::kInvalidArgument);
}

TEST(MoveTest, WhatChangesNothingIsNoChange) {
  const auto source = Source("abc", 0, 3);
  const Move same = At("a", {{"", 1, 1, "b", 0}});
  EXPECT_TRUE(ApplyMoves(source, {&same})->empty());
  EXPECT_TRUE(ApplyMoves(source, {})->empty());
}

// A change is confined exactly when text between regions survives in order.
TEST(EvolvableSourceTest, ConfinedChangesKeepAllTextBetweenRegions) {
  const std::string text = "head AAA mid BBB tail\n";
  const EvolvableSource source({{"f", text, false}},
                               {{"f", 5, 8, RegionKind::kKernel, ""},
                                {"f", 13, 16, RegionKind::kMacro, ""}});
  const auto ok = [&](const std::string& after) {
    return source.CheckConfined({{"f", after}}).ok();
  };
  EXPECT_TRUE(ok(text));
  EXPECT_TRUE(ok("head x mid y tail\n"));
  EXPECT_TRUE(ok("head  mid  tail\n"));
  EXPECT_TRUE(ok("head one mid two mid three tail\n"));
  EXPECT_FALSE(ok("Head AAA mid BBB tail\n"));
  EXPECT_FALSE(ok("head AAA mud BBB tail\n"));
  EXPECT_FALSE(ok("head AAA mid BBB tail"));
  EXPECT_FALSE(ok("head AAA mid BBB tail\n\n"));
  EXPECT_FALSE(ok(" tail\n"));
  EXPECT_FALSE(ok(""));
}

TEST(EvolvableSourceTest, OverlappingRegionsAreMerged) {
  const EvolvableSource source({{"f", "0123456789", false}, {"g", "x", false}},
                               {{"f", 4, 8, RegionKind::kKernel, "b"},
                                {"f", 1, 5, RegionKind::kType, "a"},
                                {"f", 9, 10, RegionKind::kMacro, "c"}});
  ASSERT_EQ(source.regions().size(), 2u);
  EXPECT_EQ(source.regions()[0].begin, 1u);
  EXPECT_EQ(source.regions()[0].end, 8u);
  EXPECT_EQ(source.files().count("g"), 0u);
}

}  // namespace
}  // namespace reprise::evolution
