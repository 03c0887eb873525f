#include "replay/unit/digest.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "replay/base/sha256.h"

namespace reprise {
namespace {

void AddSource(v1::Variant* variant, const std::string& path,
               const std::string& content) {
  v1::SourceOverlay* source = variant->add_sources();
  source->set_path(path);
  source->set_content(content);
}

TEST(VariantDigestTest, WritesDefaultsOut) {
  v1::Variant spelled;
  spelled.set_frontend("clang");
  spelled.set_pipeline("default<O3>");
  spelled.mutable_codegen();
  spelled.mutable_launch();
  EXPECT_EQ(VariantDigest(spelled), VariantDigest(v1::Variant()));
  EXPECT_EQ(VariantDigest(spelled).size(), 32u);
}

TEST(VariantDigestTest, DoesNotDependOnTheOrderOfSources) {
  v1::Variant one, other;
  AddSource(&one, "/a.cu", "1");
  AddSource(&one, "/b.cu", "2");
  AddSource(&other, "/b.cu", "2");
  AddSource(&other, "/a.cu", "1");
  EXPECT_EQ(VariantDigest(one), VariantDigest(other));
}

// Each change must give a digest that no other has. A value of 0 that is
// present differs from an absent one.
TEST(VariantDigestTest, EveryFieldCounts) {
  const std::vector<std::function<void(v1::Variant*)>> changes = {
      [](v1::Variant*) {},
      [](v1::Variant* v) { v->set_frontend("nvrtc"); },
      [](v1::Variant* v) { v->set_pipeline("default<O2>"); },
      [](v1::Variant* v) { AddSource(v, "/a", "b"); },
      [](v1::Variant* v) { AddSource(v, "/ab", ""); },
      [](v1::Variant* v) { AddSource(v, "", "/ab"); },
      [](v1::Variant* v) { v->mutable_codegen()->set_fp_contract(false); },
      [](v1::Variant* v) { v->mutable_codegen()->set_fp_contract(true); },
      [](v1::Variant* v) { v->mutable_codegen()->set_reassociate(true); },
      [](v1::Variant* v) { v->mutable_codegen()->set_max_registers(0); },
      [](v1::Variant* v) { v->mutable_codegen()->set_max_registers(64); },
      [](v1::Variant* v) { v->mutable_codegen()->set_unroll_threshold(64); },
      [](v1::Variant* v) { v->mutable_codegen()->set_prefer_vector_bits(64); },
      [](v1::Variant* v) { v->mutable_launch()->mutable_block(); },
      [](v1::Variant* v) { v->mutable_launch()->mutable_block()->set_x(64); },
      [](v1::Variant* v) { v->mutable_launch()->mutable_block()->set_z(64); },
      [](v1::Variant* v) { v->mutable_launch()->set_dynamic_shared_bytes(0); },
      [](v1::Variant* v) { v->mutable_launch()->set_dynamic_shared_bytes(64); },
  };
  std::set<std::string> digests;
  for (const auto& change : changes) {
    v1::Variant variant;
    change(&variant);
    digests.insert(VariantDigest(variant));
  }
  EXPECT_EQ(digests.size(), changes.size());
}

// Digests are kept in journals and caches: they may not change by accident.
TEST(VariantDigestTest, StaysAsItWas) {
  FieldHasher expected;
  expected.Bytes("reprise variant 1").U64(1).Bytes("/a.cu").Bytes("text");
  expected.Bytes("clang").Bytes("default<O3>");
  expected.U64(8).U64(64).U64(0);         // codegen field 8 is 64
  expected.U64(1).U64(32).U64(2).U64(1);  // block
  expected.U64(0);                        // no dynamic shared bytes
  v1::Variant variant;
  AddSource(&variant, "/a.cu", "text");
  variant.mutable_codegen()->set_max_registers(64);
  v1::Dim3* block = variant.mutable_launch()->mutable_block();
  block->set_x(32);
  block->set_y(2);
  block->set_z(1);
  EXPECT_EQ(HexEncode(VariantDigest(variant)), HexEncode(expected.Finish()));
  EXPECT_EQ(HexEncode(VariantDigest(v1::Variant())),
            "5506a8d83e9e3e1e0d6c5a9354c7be3f2802a3d1a55c55fad35fd2a907c15997");
}

v1::Blob BlobOf(char fill) {
  v1::Blob blob;
  blob.set_bytes(7);
  blob.add_chunks()->set_sha256(std::string(32, fill));
  blob.mutable_chunks(0)->set_bytes(7);
  return blob;
}

TEST(InstanceDigestTest, IdentityFieldsCount) {
  const std::vector<std::function<void(v1::Unit*)>> changes = {
      [](v1::Unit*) {},
      [](v1::Unit* u) { u->mutable_kernel()->set_symbol("k"); },
      [](v1::Unit* u) { u->set_architecture("k"); },
      [](v1::Unit* u) { u->set_arguments("k"); },
      [](v1::Unit* u) { *u->mutable_machine_code() = BlobOf('a'); },
      [](v1::Unit* u) { *u->mutable_machine_code() = BlobOf('b'); },
      [](v1::Unit* u) { u->add_translation_units(); },
      [](v1::Unit* u) {
        *u->add_translation_units()->mutable_ir() = BlobOf('a');
      },
      [](v1::Unit* u) { u->mutable_launch()->mutable_grid()->set_x(2); },
      [](v1::Unit* u) { u->mutable_launch()->mutable_block()->set_x(2); },
      [](v1::Unit* u) { u->mutable_launch()->set_dynamic_shared_bytes(2); },
      [](v1::Unit* u) { u->mutable_launch()->mutable_cluster(); },
      [](v1::Unit* u) { u->mutable_launch()->set_cooperative(true); },
      [](v1::Unit* u) { u->add_memory(); },
      [](v1::Unit* u) { u->add_memory()->set_address(4096); },
      [](v1::Unit* u) { u->add_memory()->set_bytes(4096); },
      [](v1::Unit* u) { u->add_memory()->set_symbol("table"); },
      [](v1::Unit* u) {
        u->add_memory()->set_origin(v1::MEMORY_ORIGIN_MANAGED);
      },
      [](v1::Unit* u) { *u->add_memory()->mutable_prologue() = BlobOf('a'); },
  };
  std::set<std::string> digests;
  for (const auto& change : changes) {
    v1::Unit unit;
    change(&unit);
    digests.insert(InstanceDigest(unit));
  }
  EXPECT_EQ(digests.size(), changes.size());
}

TEST(InstanceDigestTest, WhatIsLearnedLaterDoesNotCount) {
  v1::Unit unit;
  v1::MemoryRange* range = unit.add_memory();
  const std::string before = InstanceDigest(unit);
  *range->mutable_epilogue() = BlobOf('e');
  *range->mutable_write_set() = BlobOf('w');
  range->set_element_type(v1::ELEMENT_TYPE_F32);
  range->mutable_tolerance()->set_absolute(1);
  unit.mutable_provenance()->set_host("elsewhere");
  unit.mutable_work()->set_flops(5);
  unit.set_deterministic(true);
  unit.mutable_kernel()->set_display_name("pretty");
  EXPECT_EQ(InstanceDigest(unit), before);
}

}  // namespace
}  // namespace reprise
