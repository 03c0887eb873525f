#include "replay/base/sha256.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace reprise {
namespace {

// From FIPS 180-4's examples and NIST's test vectors.
TEST(Sha256Test, KnownDigests) {
  EXPECT_EQ(HexEncode(Sha256("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexEncode(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexEncode(Sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, ZerosCount) {
  EXPECT_NE(Sha256(std::string(1, '\0')), Sha256(""));
  EXPECT_NE(Sha256(std::string(2, '\0')), Sha256(std::string(1, '\0')));
}

TEST(HexEncodeTest, EveryByte) {
  EXPECT_EQ(HexEncode(std::string("\x00\x0f\xf0\xff\x7f", 5)), "000ff0ff7f");
  EXPECT_EQ(HexEncode(""), "");
}

TEST(FieldHasherTest, IsTheDigestOfLengthsAndFields) {
  FieldHasher hasher;
  hasher.Bytes("ab").U64(0x0102).F64(1.0);
  const std::string bytes = std::string("\x02\0\0\0\0\0\0\0", 8) + "ab" +
                            std::string("\x02\x01\0\0\0\0\0\0", 8) +
                            std::string("\0\0\0\0\0\0\xf0\x3f", 8);
  EXPECT_EQ(HexEncode(hasher.Finish()), HexEncode(Sha256(bytes)));
}

TEST(FieldHasherTest, FieldsDoNotRunTogether) {
  std::set<std::string> digests;
  digests.insert(FieldHasher().Bytes("ab").Bytes("c").Finish());
  digests.insert(FieldHasher().Bytes("a").Bytes("bc").Finish());
  digests.insert(FieldHasher().Bytes("abc").Bytes("").Finish());
  digests.insert(FieldHasher().Bytes("abc").Finish());
  EXPECT_EQ(digests.size(), 4u);
}

TEST(FieldHasherTest, DoublesAreHashedByTheirBits) {
  EXPECT_NE(FieldHasher().F64(0.0).Finish(), FieldHasher().F64(-0.0).Finish());
}

}  // namespace
}  // namespace reprise
