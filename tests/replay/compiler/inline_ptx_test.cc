#include "replay/compiler/inline_ptx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "r4 $1+8 F32": what an access does, where, to how many bytes, as what.
std::string Show(const PtxValue& value) {
  std::string text;
  if (value.operand) text = "$" + std::to_string(*value.operand);
  if (!value.operand || value.constant != 0)
    text += "+" + std::to_string(static_cast<int64_t>(value.constant));
  return text;
}
std::vector<std::string> Accesses(const InlinePtx& ptx) {
  std::vector<std::string> shown;
  for (const PtxAccess& access : ptx.accesses) {
    std::string text = access.reads ? "r" : "";
    if (access.writes) text += "w";
    text += " " + Show(access.bytes) + " at " + Show(access.address) + " " +
            v1::ElementType_Name(access.type).substr(13);
    if (access.guard) {
      text += access.guard_is_zero ? " unless " : " if ";
      text += Show(*access.guard);
    }
    shown.push_back(text);
  }
  return shown;
}
std::vector<std::string> Accesses(const std::string& text) {
  const InlinePtx ptx = ReadInlinePtx(text);
  EXPECT_THAT(ptx.not_understood, IsEmpty());
  return Accesses(ptx);
}

TEST(InlinePtxTest, LoadsAndStores) {
  EXPECT_THAT(Accesses("ld.global.nc.f32 $0, [$1];"),
              ElementsAre("r +4 at $1 F32"));
  EXPECT_THAT(Accesses("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 "
                       "{$0,$1,$2,$3}, [$4+16];"),
              ElementsAre("r +16 at $4+16 I32"));
  EXPECT_THAT(Accesses("st.global.cs.v2.b64 [$0 + -8], {$1, $2};"),
              ElementsAre("w +16 at $0+-8 UNTYPED"));
  EXPECT_THAT(Accesses("ld.relaxed.gpu.global.u64 $0, [$1];"),
              ElementsAre("r +8 at $1 I64"));
  EXPECT_THAT(Accesses("st.bf16 [$0], $1; ld.volatile.b8 $2, [$3];"),
              ElementsAre("w +2 at $0 BF16", "r +1 at $3 UNTYPED"));
  EXPECT_THAT(Accesses("st.global.b128 [$0], $1;"),
              ElementsAre("w +16 at $0 UNTYPED"));
}

TEST(InlinePtxTest, PrivateMemoryIsLeftOut) {
  for (const char* text :
       {"ld.shared.f32 $0, [$1];", "st.shared::cluster.u32 [$0], $1;",
        "ld.param.u64 $0, [$1];", "ld.local.u8 $0, [$1];",
        "atom.shared.add.u32 $0, [$1], 1;", "bar.sync 0;",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0,$1,$2,$3}, [$4];",
        "cp.async.commit_group;", "cp.async.wait_group 0;", "membar.gl;",
        "prefetch.global.L2 [$0];", "mov.u32 $0, %laneid;",
        "mbarrier.init.shared.b64 [$0], $1;"}) {
    EXPECT_THAT(Accesses(text), IsEmpty()) << text;
  }
}

TEST(InlinePtxTest, Atomics) {
  EXPECT_THAT(Accesses("atom.global.add.f32 $0, [$1], $2;"),
              ElementsAre("rw +4 at $1 F32"));
  EXPECT_THAT(Accesses("red.release.gpu.global.add.s32 [$0], $1;"),
              ElementsAre("rw +4 at $0 I32"));
  EXPECT_THAT(Accesses("atom.cas.b16 $0, [$1], $2, $3;"),
              ElementsAre("rw +2 at $1 UNTYPED"));
  EXPECT_THAT(Accesses("red.global.add.noftz.f16x2 [$0], $1;"),
              ElementsAre("rw +4 at $0 F16"));
}

TEST(InlinePtxTest, AddressesThatAreWorkedOut) {
  EXPECT_THAT(Accesses("{ .reg .u64 t; cvta.to.global.u64 t, $1; "
                       "add.u64 t, t, 32; ld.global.f64 $0, [t+8]; }"),
              ElementsAre("r +8 at $1+40 F64"));
  const InlinePtx unknown = ReadInlinePtx(
      "{ .reg .u64 t; mad.wide.u32 t, $1, 4, $2; ld.global.f32 $0, [t]; }");
  EXPECT_THAT(unknown.accesses, IsEmpty());
  EXPECT_THAT(unknown.not_understood, ElementsAre("ld.global.f32"));
}

TEST(InlinePtxTest, Guards) {
  EXPECT_THAT(Accesses("{ .reg .pred p; setp.ne.b32 p, $5, 0; mov.b32 $0, $6; "
                       "@p ld.global.v4.u32 {$0, $1, $2, $3}, [$4]; }"),
              ElementsAre("r +16 at $4 I32 if $5"));
  EXPECT_THAT(Accesses("{ .reg .pred p; setp.eq.u32 p, $2, 0; "
                       "@p st.global.u8 [$0], $1; @!p st.u8 [$0], $1; }"),
              ElementsAre("w +1 at $0 I8 unless $2", "w +1 at $0 I8 if $2"));
  const InlinePtx unknown = ReadInlinePtx(
      "{ .reg .pred p; setp.lt.u32 p, $2, $3; @p st.global.u8 [$0], $1; }");
  EXPECT_THAT(unknown.accesses, IsEmpty());
  EXPECT_THAT(unknown.not_understood, ElementsAre("st.global.u8"));
}

TEST(InlinePtxTest, AsynchronousCopies) {
  EXPECT_THAT(Accesses("cp.async.cg.shared.global.L2::128B [$0], [$1], 16;"),
              ElementsAre("r +16 at $1 UNTYPED"));
  EXPECT_THAT(Accesses("cp.async.ca.shared.global [$0], [$1], 8, $2;"),
              ElementsAre("r $2 at $1 UNTYPED"));
  EXPECT_THAT(Accesses("cp.async.bulk.shared::cluster.global.mbarrier::"
                       "complete_tx::bytes [$0], [$1], $2, [$3];"),
              ElementsAre("r $2 at $1 UNTYPED"));
  EXPECT_THAT(
      Accesses("cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;"),
      ElementsAre("w $2 at $0 UNTYPED"));
}

TEST(InlinePtxTest, NamesWhatItDoesNotUnderstand) {
  for (const auto& [text, name] : std::map<std::string, std::string>{
           {"tex.2d.v4.f32.f32 {$0,$1,$2,$3}, [$4, {$5,$6}];",
            "tex.2d.v4.f32.f32"},
           {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
            "complete_tx::bytes [$0], [$1, {$2, $3}], [$4];",
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
            "complete_tx::bytes"},
           {"LOOP: ld.global.u32 $0, [$1];\n @p bra LOOP;", "ld.global.u32"},
           {".pragma \"x\"; @p st.global.u32 [$0], 1;", "st.global.u32"}}) {
    const InlinePtx ptx = ReadInlinePtx(text);
    EXPECT_THAT(ptx.accesses, IsEmpty()) << text;
    EXPECT_THAT(ptx.not_understood, ElementsAre(name));
  }
  EXPECT_THAT(ReadInlinePtx("LOOP: bra LOOP;").not_understood, IsEmpty());
}

TEST(InlinePtxTest, OperationsAndExits) {
  EXPECT_EQ(ReadInlinePtx("fma.rn.f16x2 $0, $1, $2, $3;").flops, 4u);
  EXPECT_EQ(ReadInlinePtx("add.f32 $0, $1, $2;").flops, 1u);
  EXPECT_EQ(ReadInlinePtx("add.s32 $0, $1, $2;").flops, 0u);
  EXPECT_EQ(ReadInlinePtx("cvt.rn.bf16x2.f32 $0, $1, $2;").flops, 0u);
  EXPECT_EQ(ReadInlinePtx("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                          "{$0,$1,$2,$3}, {$4,$5,$6,$7}, {$8,$9}, "
                          "{$10,$11,$12,$13};")
                .flops,
            2u * 16 * 8 * 16 / 32);
  EXPECT_TRUE(ReadInlinePtx("exit;").exits);
  EXPECT_TRUE(
      ReadInlinePtx("{ .reg .pred p; setp.ne.u32 p, $0, 0; @p exit; }").exits);
  EXPECT_FALSE(ReadInlinePtx("bar.sync 0;").exits);
}

}  // namespace
}  // namespace reprise
