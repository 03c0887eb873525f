#include "replay/unit/manifest.h"

#include <functional>

#include "replay/base/sha256.h"
#include "replay/unit/frame.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/unit/test_support.h"

namespace reprise {
namespace {

using ::reprise::testing::SmallUnit;
using ::reprise::testing::Text;
using ::testing::HasSubstr;

std::string Framed(const std::string& body, uint32_t flags = kFrameRaw) {
  FrameHeader header;
  header.version = kUnitFormatVersion;
  header.flags = flags;
  header.raw_bytes = header.stored_bytes = body.size();
  header.sha256 = Sha256(body);
  return EncodeFrameHeader(FrameKind::kManifest, header) + body;
}

class ManifestTest : public testing::StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    unit_ = SmallUnit(OpenStore()->chunks());
  }
  v1::Unit unit_;
};

TEST_F(ManifestTest, GivesBackTheUnit) {
  ASSERT_OK_AND_ASSIGN(const std::string file, EncodeManifest(unit_));
  ASSERT_OK_AND_ASSIGN(const v1::Unit again, DecodeManifest(file, "m"));
  EXPECT_EQ(again.SerializeAsString(), unit_.SerializeAsString());
}

TEST_F(ManifestTest, AnyFlippedByteIsFound) {
  ASSERT_OK_AND_ASSIGN(const std::string file, EncodeManifest(unit_));
  for (size_t i = 0; i < file.size(); ++i) {
    std::string flipped = file;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x04);
    const absl::Status status = DecodeManifest(flipped, "m").status();
    ASSERT_EQ(status.code(), i < 8 ? absl::StatusCode::kInvalidArgument
                                   : absl::StatusCode::kDataLoss)
        << i << ": " << status;
  }
}

TEST_F(ManifestTest, TruncatedAtAnyByte) {
  ASSERT_OK_AND_ASSIGN(const std::string file, EncodeManifest(unit_));
  for (size_t size = 0; size < file.size(); ++size) {
    ASSERT_EQ(DecodeManifest(file.substr(0, size), "m").status().code(),
              absl::StatusCode::kDataLoss);
  }
}

TEST_F(ManifestTest, ABodyThatIsNoUnit) {
  EXPECT_EQ(DecodeManifest(Framed("not a message"), "m").status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(
      DecodeManifest(Framed(unit_.SerializeAsString(), 1), "m").status().code(),
      absl::StatusCode::kDataLoss);
}

TEST_F(ManifestTest, NewerUnitInAnOldFrame) {
  unit_.set_format_version(2);
  EXPECT_EQ(
      DecodeManifest(Framed(unit_.SerializeAsString()), "m").status().code(),
      absl::StatusCode::kFailedPrecondition);
}

// Fields that a later writer adds within this version are kept.
TEST_F(ManifestTest, UnknownFieldsStay) {
  unit_.GetReflection()->MutableUnknownFields(&unit_)->AddVarint(900, 7);
  ASSERT_OK_AND_ASSIGN(const std::string file, EncodeManifest(unit_));
  ASSERT_OK_AND_ASSIGN(const v1::Unit again, DecodeManifest(file, "m"));
  EXPECT_EQ(again.SerializeAsString(), unit_.SerializeAsString());
}

// Two bytes each ask for an object of a hundred: refused before it is made.
TEST_F(ManifestTest, TooManyMessagesAreRefusedBeforeParsing) {
  std::string body;
  for (int i = 0; i < kMaxManifestMessages + 1; ++i)
    body += "\x2a" + std::string(1, '\0');
  EXPECT_EQ(DecodeManifest(Framed(body), "m").status().code(),
            absl::StatusCode::kResourceExhausted);
  std::string strings;  // Provenance.command, a string each
  for (int i = 0; i < kMaxManifestMessages + 1; ++i)
    strings += "\x2a" + std::string(1, '\0');
  v1::Unit outer;
  outer.mutable_kernel()->set_symbol("k");
  std::string nested = "\x52";
  for (size_t size = strings.size(); true; size >>= 7) {
    nested.push_back(static_cast<char>(size >= 128 ? size | 128 : size));
    if (size < 128) break;
  }
  EXPECT_EQ(DecodeManifest(Framed(nested + strings), "m").status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(ManifestTest, RefusesStringsThatAreNotUtf8) {
  unit_.mutable_provenance()->set_directory("/home/J\xf6rg");
  const absl::Status status = EncodeManifest(unit_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(status), HasSubstr("UTF-8"));
}

TEST_F(ManifestTest, ChecksTheUnit) {
  struct Case {
    const char* expected;
    std::function<void(v1::Unit*)> change;
  };
  const auto second_range = [](v1::Unit* unit, uint64_t address) {
    v1::MemoryRange copy = unit->memory(0);
    copy.set_address(address);
    *unit->add_memory() = copy;
  };
  const std::vector<Case> cases = {
      {"kernel.symbol is empty",
       [](v1::Unit* u) { u->mutable_kernel()->clear_symbol(); }},
      {"kernel.parameters[1] ends at byte 12 of 11",
       [](v1::Unit* u) { u->mutable_arguments()->resize(11); }},
      {"kernel.parameters[0] ends at byte 4294967303",
       [](v1::Unit* u) {
         u->mutable_kernel()->mutable_parameters(0)->set_offset(4294967295);
       }},
      {"launch.grid is 0x1x1",
       [](v1::Unit* u) { u->mutable_launch()->mutable_grid()->set_x(0); }},
      {"launch.block is 0x0x0",
       [](v1::Unit* u) { u->mutable_launch()->clear_block(); }},
      {"launch.cluster is",
       [](v1::Unit* u) { u->mutable_launch()->mutable_cluster(); }},
      {"memory[0] is empty",
       [](v1::Unit* u) { u->mutable_memory(0)->set_bytes(0); }},
      {"memory[0] wraps around",
       [](v1::Unit* u) { u->mutable_memory(0)->set_address(UINT64_MAX); }},
      {"memory[1] begins at 0x20000000000f",
       [&](v1::Unit* u) { second_range(u, 0x20000000000f); }},
      {"memory[1] begins at 0x1000",
       [&](v1::Unit* u) { second_range(u, 0x1000); }},
      {"memory[0].prologue has 0 bytes",
       [](v1::Unit* u) { u->mutable_memory(0)->clear_prologue(); }},
      {"memory[0].epilogue has 16 bytes",
       [](v1::Unit* u) {
         *u->mutable_memory(0)->mutable_epilogue() =
             u->translation_units(0).ir();
       }},
      {"memory[0].prologue: chunk 2 has 5 bytes",
       [](v1::Unit* u) {
         u->mutable_memory(0)->mutable_prologue()->mutable_chunks(2)->set_bytes(
             5);
       }},
      {"translation_units[0].files[0].content: chunk 0 has a digest",
       [](v1::Unit* u) {
         u->mutable_translation_units(0)
             ->mutable_files(0)
             ->mutable_content()
             ->mutable_chunks(0)
             ->set_sha256("x");
       }},
      {"a digest has 3 bytes",
       [](v1::Unit* u) { u->set_fatbin_sha256("abc"); }},
  };
  EXPECT_OK(CheckUnit(unit_));
  for (const Case& one : cases) {
    v1::Unit unit = unit_;
    one.change(&unit);
    const absl::Status status = CheckUnit(unit);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Text(status), HasSubstr(one.expected));
    // The same rules hold on the way in.
    EXPECT_EQ(
        DecodeManifest(Framed(unit.SerializeAsString()), "m").status().code(),
        absl::StatusCode::kInvalidArgument);
  }
}

std::string ShortOf(const std::string& symbol, const std::string& display) {
  v1::Kernel kernel;
  kernel.set_symbol(symbol);
  kernel.set_display_name(display);
  return ShortKernelName(kernel);
}

TEST(ShortKernelNameTest, KeepsTheLastComponent) {
  EXPECT_EQ(ShortOf("", "sigmoid(float*, int)"), "sigmoid");
  EXPECT_EQ(ShortOf("", "void ns::scale<float, 3>(float*)"), "scale");
  EXPECT_EQ(ShortOf("", "void run<main::{lambda(int)#1}>(ns::A<(int)3>)"),
            "run");
  EXPECT_EQ(ShortOf("", "(anonymous namespace)::blur(int)"), "blur");
  EXPECT_EQ(ShortOf("", "void a::(anonymous namespace)::b<c(d)>(e)"), "b");
  EXPECT_EQ(ShortOf("_ZN2ns4stepEPfi", ""), "step");
  EXPECT_EQ(ShortOf("plain_c_name", ""), "plain_c_name");
}

TEST(ShortKernelNameTest, IsAlwaysAFileName) {
  EXPECT_EQ(ShortOf("", ""), "kernel");
  EXPECT_EQ(ShortOf("..", ""), "__");
  EXPECT_EQ(ShortOf("a/b", ""), "a_b");
  EXPECT_EQ(ShortOf("<<<>>>", ""), "kernel");
  EXPECT_EQ(ShortOf(std::string(500, 'x'), "").size(), 48u);
}

}  // namespace
}  // namespace reprise
