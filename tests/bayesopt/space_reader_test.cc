#include "bayesopt/space_reader.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

using std::string_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::shared_ptr<const Space> Read(const std::string& text) {
  const auto space = ReadSpace(text, "s.yaml");
  EXPECT_TRUE(space.ok()) << space.status();
  return *space;
}

std::string ErrorOf(const std::string& text) {
  return std::string(ReadSpace(text, "s.yaml").status().message());
}

// One parameter p of these fields, on line 2.
std::string FieldsErrorOf(const std::string& fields) {
  return ErrorOf(absl::StrCat("parameters:\n  p: {", fields, "}\n"));
}

constexpr char kEveryKind[] = R"(# a comment
parameters:
  launch.block.x: {ordinal: [32, 64, 128, 256], scale: log, initial: 64}
  tile:      {integer: {from: 4, to: 64, step: 4}, initial: 8}
  registers:
    ordinal: [32, 64, {value: default, at: 255}]
    initial: default
  layout:    {categorical: [row, column, '1', 1, true, 1.5]}
  vectorize: {boolean: false}
  width:     {ordinal: [2, 4, 8], when: {vectorize: true}}
  loops:     {permutation: [i, j, k]}
  pipeline:  {pipeline: {target: nvptx, max_edits: 3}}
constraints:
  - launch.block.x * tile <= 1024
  - {holds: width <= tile, because: vectors do not cross tiles}
)";

TEST(SpaceReaderTest, ReadsEveryKindOfParameter) {
  const auto space = Read(kEveryKind);
  std::vector<std::string> names;
  std::map<std::string, const Parameter*> at;
  for (const Parameter& parameter : space->parameters()) {
    names.push_back(parameter.name);
    at[parameter.name] = &parameter;
  }
  EXPECT_THAT(names,
              ElementsAre("launch.block.x", "tile", "registers", "layout",
                          "vectorize", "width", "loops", "pipeline"));
  EXPECT_EQ(at["launch.block.x"]->levels[3].position, 8);
  EXPECT_EQ(at["launch.block.x"]->initial, Value(int64_t{64}));
  EXPECT_EQ(at["tile"]->Cardinality(), 16u);
  EXPECT_FALSE(at["tile"]->log_scale);
  EXPECT_EQ(at["registers"]->levels[2].position, 255);
  EXPECT_EQ(at["registers"]->initial, Value("default"s));
  EXPECT_EQ(at["layout"]->levels[2].value, Value("1"s));
  EXPECT_EQ(at["layout"]->levels[3].value, Value(int64_t{1}));
  EXPECT_EQ(at["layout"]->levels[4].value, Value(true));
  EXPECT_EQ(at["layout"]->levels[5].value, Value(1.5));
  EXPECT_EQ(at["vectorize"]->kind, ParameterKind::kBoolean);
  ASSERT_EQ(at["width"]->conditions.size(), 1u);
  EXPECT_EQ(at["width"]->conditions[0].parameter, "vectorize");
  EXPECT_EQ(at["loops"]->initial, Value("i,j,k"s));
  EXPECT_EQ(at["pipeline"]->pipelines->options().target,
            PipelineTarget::kNvptx);
  EXPECT_EQ(at["pipeline"]->pipelines->options().max_edits, 3);
}

TEST(SpaceReaderTest, ConstraintsHoldInWhatTheSpaceGives) {
  const auto space = Read(kEveryKind);
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    const auto sample = space->Sample(random);
    ASSERT_TRUE(sample.has_value());
    const Assignment at = space->ToAssignment(*sample);
    EXPECT_LE(std::get<int64_t>(at.at("launch.block.x")) *
                  std::get<int64_t>(at.at("tile")),
              1024);
    if (at.contains("width")) {
      EXPECT_LE(std::get<int64_t>(at.at("width")),
                std::get<int64_t>(at.at("tile")));
    }
  }
  Configuration wide = space->Default();
  wide = space->With(wide, 4, true).value();
  wide.values[1] = int64_t{4};
  wide.values[5] = int64_t{8};
  EXPECT_THAT(std::string(space->Check(wide).message()),
              HasSubstr("vectors do not cross tiles"));
}

TEST(SpaceReaderTest, NamesTheLineOfWhatIsWrong) {
  EXPECT_THAT(ErrorOf(""), StartsWith("s.yaml:1: space: got nothing"));
  EXPECT_THAT(ErrorOf("- x"), StartsWith("s.yaml:1: space: got a list"));
  EXPECT_THAT(ErrorOf("parameters:\n  x: {boolean: true}\n  y: [1\n"),
              StartsWith("s.yaml:4: "));
  EXPECT_EQ(ErrorOf("params: {}"),
            "s.yaml:1: space: got 'params', expected parameters, constraints");
  EXPECT_EQ(ErrorOf("constraints: [x < 1]"),
            "s.yaml:1: space: got no 'parameters'");
  EXPECT_EQ(
      ErrorOf("parameters:\n  x: {boolean: true}\n\n  x: {boolean: true}"),
      "s.yaml:4: parameters: got 'x' twice");
  EXPECT_THAT(ErrorOf("parameters:\n  a-b: {boolean: true}"),
              StartsWith("s.yaml:2: got the parameter 'a-b', expected a name"));
  EXPECT_THAT(
      ErrorOf("parameters:\n  x: {boolean: true}\nconstraints:\n  - x == 1\n"),
      StartsWith("s.yaml:4: constraint 'x == 1': column 3: got true or false"));
  EXPECT_EQ(
      ErrorOf("parameters:\n  x: {integer: {from: 1, to: 9}}\n"
              "constraints:\n  - x < 9\n  - {holds: x > 3, because: big}"),
      "s.yaml:5: the initial values break 'big'; change one of them");
  EXPECT_THAT(ErrorOf("parameters:\n  x: {boolean: true}\nconstraints:\n"
                      "  - {because: it must}\n"),
              StartsWith("s.yaml:4: constraint: got none"));
}

TEST(SpaceReaderTest, SaysWhatIsWrongWithAParameter) {
  EXPECT_EQ(
      FieldsErrorOf("intger: {from: 1, to: 2}"),
      "s.yaml:2: parameter p: got 'intger', expected ordinal, integer, "
      "categorical, boolean, permutation, pipeline, scale, initial, when");
  EXPECT_THAT(FieldsErrorOf("initial: 3"), HasSubstr("got no kind"));
  EXPECT_THAT(FieldsErrorOf("boolean: true, ordinal: [1]"),
              HasSubstr("got both ordinal and boolean"));
  EXPECT_THAT(FieldsErrorOf("ordinal: [1, two]"),
              HasSubstr("got 'two', expected a number"));
  EXPECT_THAT(FieldsErrorOf("ordinal: []"),
              HasSubstr("got a list, expected a list of 1 to 10000 values"));
  EXPECT_THAT(FieldsErrorOf("ordinal: [2, 1]"),
              HasSubstr("expected increasing positions, got 1 after 2"));
  EXPECT_THAT(FieldsErrorOf("ordinal: [-1, 1], scale: log"),
              HasSubstr("got '-1' on a log scale"));
  EXPECT_THAT(FieldsErrorOf("ordinal: [1, 2], scale: cubic"),
              HasSubstr("got the scale 'cubic', expected linear or log"));
  EXPECT_THAT(FieldsErrorOf("ordinal: [{value: x}]"),
              HasSubstr("expected a level {value: ..., at: ...}"));
  EXPECT_THAT(FieldsErrorOf("categorical: [a, a]"), HasSubstr("twice"));
  EXPECT_THAT(FieldsErrorOf("categorical: [a, b], scale: log"),
              HasSubstr("got a scale for a categorical"));
  EXPECT_THAT(FieldsErrorOf("categorical: [a, [b]]"),
              HasSubstr("got a list, expected one value"));
  EXPECT_THAT(FieldsErrorOf("categorical: [a, b], initial: c"),
              HasSubstr("got initial value \"c\""));
  EXPECT_THAT(FieldsErrorOf("boolean: yes"),
              HasSubstr("got 'yes', expected true or false"));
  EXPECT_THAT(FieldsErrorOf("boolean: true, initial: true"),
              HasSubstr("is its value: {boolean: true}"));
  EXPECT_THAT(FieldsErrorOf("integer: {from: 1}"),
              HasSubstr("expected integer: {from: ..., to: ...}"));
  EXPECT_THAT(FieldsErrorOf("integer: {from: 9, to: 1}"),
              HasSubstr("got range 9 to 1 by 1"));
  EXPECT_THAT(FieldsErrorOf("integer: {from: 1, to: 2.5}"),
              HasSubstr("got '2.5', expected a whole number"));
  EXPECT_THAT(FieldsErrorOf("permutation: [a]"), HasSubstr("got 1 items"));
  EXPECT_THAT(FieldsErrorOf("pipeline: {target: riscv}"),
              HasSubstr("got the target 'riscv', expected host or nvptx"));
  EXPECT_THAT(FieldsErrorOf("pipeline: {max_edits: 65}"),
              HasSubstr("got max_edits 65, expected 0 to 64"));
  EXPECT_THAT(
      FieldsErrorOf("boolean: true, when: {q: 1}"),
      HasSubstr("got a condition on 'q', expected a parameter further"));
  EXPECT_THAT(ErrorOf("parameters:\n  q: {boolean: true}\n"
                      "  p: {boolean: true, when: {q: 1}}"),
              HasSubstr("s.yaml:3: parameter p: got a condition on q = '1'"));
}

TEST(SpaceReaderTest, TakesOrRefusesAnyCutOrChangedText) {
  const std::string whole = kEveryKind;
  Random random(1);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    if (random.Chance(0.3)) text.resize(random.Below(text.size()));
    for (uint64_t changes = random.Below(4); changes > 0 && !text.empty();
         --changes) {
      text[random.Below(text.size())] = "{}[]:,'\"-# \n0x&*!"[random.Below(17)];
    }
    const auto space = ReadSpace(text, "s.yaml");
    if (space.ok()) {
      ++accepted;
      EXPECT_TRUE((*space)->Check((*space)->Default()).ok());
    } else {
      EXPECT_THAT(std::string(space.status().message()),
                  ::testing::ContainsRegex("^s.yaml:[1-9][0-9]*: "))
          << text;
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(SpaceReaderTest, TooMuchIsRefused) {
  EXPECT_THAT(ErrorOf(std::string(2 << 20, '#')), HasSubstr("at most 1048576"));
  std::string many = "parameters:\n";
  for (int i = 0; i < 1001; ++i) {
    absl::StrAppend(&many, "  p", i, ": {boolean: true}\n");
  }
  EXPECT_THAT(ErrorOf(many),
              HasSubstr("s.yaml:1002: expected at most 1000 parameters"));
}

}  // namespace
}  // namespace reprise::bayesopt
