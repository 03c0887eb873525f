#include "replay/unit/describe.h"

#include "replay/unit/blob.h"
#include "replay/unit/unit_json.h"
#include "tests/replay/unit/test_support.h"

namespace reprise {
namespace {

using ::reprise::testing::FlipByte;
using ::reprise::testing::SmallUnit;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DescribeTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    store_ = OpenStore();
    unit_ = SmallUnit(store_->chunks());
  }
  std::string Describe() {
    absl::StatusOr<std::string> id = store_->Add(unit_);
    EXPECT_OK(id.status());
    EXPECT_OK(store_->Update(*id, unit_));
    return DescribeUnit(*store_->Open(*id));
  }
  std::unique_ptr<UnitStore> store_;
  v1::Unit unit_;
};

TEST(FormatBytesTest, PicksTheUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(FormatBytes(uint64_t{10} << 30), "10.0 GiB");
  EXPECT_EQ(FormatBytes(UINT64_MAX), "16.0 EiB");
}

TEST_F(DescribeTest, SaysWhatTheUnitIs) {
  const std::string text = Describe();
  EXPECT_THAT(text, HasSubstr("kernel         sigmoid(float*, int)\n"));
  EXPECT_THAT(text, HasSubstr("symbol         _Z7sigmoidPfi\n"));
  EXPECT_THAT(text, HasSubstr("grid 64x1x1, block 64x1x1\n"));
  EXPECT_THAT(text, HasSubstr("data=0x200000000000 n=0x1000\n"));
  EXPECT_THAT(text, HasSubstr("sm_90: LLVM IR 16 B; machine code 300 B; 1 "
                              "source file, 27 B\n"));
  EXPECT_THAT(text, HasSubstr("2.5 MiB in 1 range\n"));
  EXPECT_THAT(text, HasSubstr("launch 1 of 3"));
  EXPECT_THAT(text, Not(HasSubstr(" \n")));
}

TEST_F(DescribeTest, ShowsRangesWithWhatIsKnownOfThem) {
  EXPECT_THAT(Describe(), HasSubstr("0x200000000000      2.5 MiB  device      "
                                    "f32        1.0 MiB        -   <0.1 %"));
  unit_.mutable_memory(0)->clear_write_set();
  EXPECT_THAT(Describe(), HasSubstr("1.0 MiB        -        -"));
}

TEST_F(DescribeTest, ADamagedSetIsSaidToBe) {
  unit_.mutable_memory(0)->mutable_write_set()->mutable_chunks(0)->set_sha256(
      unit_.machine_code().chunks(0).sha256());
  EXPECT_THAT(Describe(), HasSubstr("damaged"));
}

TEST_F(DescribeTest, LaunchExtrasAppearWhereSet) {
  unit_.mutable_launch()->set_dynamic_shared_bytes(4096);
  unit_.mutable_launch()->set_cooperative(true);
  EXPECT_THAT(Describe(),
              HasSubstr(", 4.0 KiB dynamic shared memory, cooperative\n"));
}

TEST_F(DescribeTest, ManyRangesAreCounted) {
  v1::MemoryRange range = unit_.memory(0);
  for (uint64_t i = 1; i < 50; ++i) {
    range.set_address(unit_.memory(0).address() + i * 0x10000000);
    *unit_.add_memory() = range;
  }
  EXPECT_THAT(Describe(), HasSubstr("and 10 more ranges"));
}

TEST_F(DescribeTest, TableHasALineForEachUnit) {
  ASSERT_OK_AND_ASSIGN(const std::string id, store_->Add(unit_));
  unit_.set_arguments(unit_.arguments() + "x");
  ASSERT_OK_AND_ASSIGN(const std::string broken, store_->Add(unit_));
  FlipByte(root() + "/units/" + broken + "/manifest", 100);
  const std::string table = UnitTable(*store_->List());
  EXPECT_THAT(table, HasSubstr(id + "  sigmoid(float*, int)  64x1x1"));
  EXPECT_THAT(table, HasSubstr(broken + "  broken: "));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
}

TEST_F(DescribeTest, JsonHasHexDigestsNumbersAndShortEnums) {
  ASSERT_OK_AND_ASSIGN(const std::string id, store_->Add(unit_));
  const v1::Unit unit = store_->Open(id)->manifest();
  const nlohmann::ordered_json json = UnitToJson(id, unit);
  EXPECT_EQ(json["id"], id);
  EXPECT_EQ(json["instance_sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(json["memory"][0]["address"], 0x200000000000);
  EXPECT_EQ(json["memory"][0]["element_type"], "f32");
  EXPECT_EQ(json["memory"][0]["origin"], "device");
  EXPECT_EQ(json["memory"][0]["prologue"]["chunks"], 3);
  EXPECT_EQ(json["memory"][0]["prologue"]["zero_bytes"], kChunkBytes);
  EXPECT_FALSE(json["memory"][0].contains("read_set"));
  EXPECT_EQ(json["kernel"]["parameters"][1]["offset"], 8);
  EXPECT_EQ(json["deterministic"], false);
  EXPECT_EQ(json["launch"]["block"], nlohmann::ordered_json({64, 1, 1}));
  const nlohmann::ordered_json full = UnitToJson(id, unit, {.chunks = true});
  EXPECT_EQ(full["memory"][0]["prologue"]["chunks"][1], "");
  EXPECT_EQ(
      full["memory"][0]["prologue"]["chunks"][0].get<std::string>().size(),
      64u);
}

TEST_F(DescribeTest, JsonOfAListHasErrorsOfBrokenUnits) {
  ASSERT_OK_AND_ASSIGN(const std::string id, store_->Add(unit_));
  FlipByte(root() + "/units/" + id + "/manifest", 100);
  const nlohmann::ordered_json json = ListingsToJson(*store_->List());
  EXPECT_EQ(json[0]["id"], id);
  EXPECT_EQ(json[0]["error"]["code"], "DATA_LOSS");
}

TEST(MessageToJsonTest, MapsAreObjects) {
  v1::Outcome outcome;
  outcome.set_kind(v1::OUTCOME_KIND_COMPILE_ERROR);
  (*outcome.mutable_code()->mutable_ir_features())["fmul"] = 3;
  outcome.add_baseline_ns(1.5);
  const nlohmann::ordered_json json = MessageToJson(outcome);
  EXPECT_EQ(json["kind"], "compile_error");
  EXPECT_EQ(json["code"]["ir_features"]["fmul"], 3);
  EXPECT_EQ(json["baseline_ns"][0], 1.5);
}

}  // namespace
}  // namespace reprise
