#include "replay/recorder/cc/cubin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "replay/base/file_util.h"
#include "replay/recorder/cc/device_images.h"
#include "replay/recorder/cc/lz4_block.h"
#include "tests/replay/recorder/cc/elf_builder.h"
#include "tests/replay/recorder/shell.h"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeFatbin;
using testing::MakeFatbinEntry;
using ::testing::UnorderedElementsAre;

std::string Lz4(const std::string& block, uint64_t bytes) {
  const auto plain = DecompressLz4Block(block, bytes);
  return plain.ok() ? *plain : "malformed";
}

TEST(Lz4BlockTest, LiteralsAndRepeats) {
  EXPECT_EQ(Lz4("\x30"
                "abc",
                3),
            "abc");
  // "ab", then 4 + 3 bytes from 2 back, then "z".
  EXPECT_EQ(Lz4(std::string("\x23"
                            "ab\x02\x00\x10z",
                            7),
                10),
            "ababababaz");
  // 15 + 5 literals.
  EXPECT_EQ(Lz4("\xf0\x05"
                "12345678901234567890",
                20),
            "12345678901234567890");
  // 'x', then 4 + 15 + 255 + 0 of it.
  EXPECT_EQ(Lz4(std::string("\x1fx\x01\x00\xff\x00\x00", 7), 275),
            std::string(275, 'x'));
}

TEST(Lz4BlockTest, MalformedBlocks) {
  const std::string good(
      "\x23"
      "ab\x02\x00\x10z",
      7);
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_EQ(Lz4(good.substr(0, length), 10), "malformed");
  EXPECT_EQ(Lz4(good, 9), "malformed");
  EXPECT_EQ(Lz4(good, 11), "malformed");
  // Distances of 0 and before the beginning, a length without end.
  EXPECT_EQ(Lz4(std::string("\x23"
                            "ab\x00\x00\x10z",
                            7),
                10),
            "malformed");
  EXPECT_EQ(Lz4(std::string("\x23"
                            "ab\x03\x00\x10z",
                            7),
                10),
            "malformed");
  EXPECT_EQ(Lz4("\xf0\xff\xff", 1000), "malformed");
}

TEST(CubinForTest, ChoosesByArchitecture) {
  const std::string fatbin = MakeFatbin(
      MakeFatbinEntry(2, 80, 0x11, "80") + MakeFatbinEntry(2, 86, 0x11, "86") +
      MakeFatbinEntry(2, 90, 0x11, "90") +
      MakeFatbinEntry(2, 90, 0x100011, "90a") +
      MakeFatbinEntry(1, 100, 0x11, "ptx"));
  for (const auto& [architecture, code] :
       {std::pair("sm_80", "80"), std::pair("sm_86", "86"),
        std::pair("sm_89", "86"), std::pair("sm_85", "80"),
        std::pair("sm_90", "90"), std::pair("sm_90a", "90a")}) {
    const auto got = CubinFor(fatbin, architecture);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got, code) << architecture;
  }
  const auto none = CubinFor(fatbin, "sm_100");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.status().message()),
              AllOf(HasSubstr("sm_86"), HasSubstr("sm_100 (PTX)")));
  EXPECT_EQ(CubinFor(fatbin, "sm_75").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(CubinFor(fatbin, "hopper").status().code(),
            absl::StatusCode::kInvalidArgument);
  // The device's own code needs its own letter only where there is another.
  const std::string one = MakeFatbin(MakeFatbinEntry(2, 90, 0x100011, "90a"));
  EXPECT_EQ(CubinFor(one, "sm_90").value_or(""), "90a");
}

TEST(CubinForTest, DamagedCompressedEntries) {
  for (const uint64_t flags : {0x2011, 0x8011}) {
    const std::string fatbin =
        MakeFatbin(MakeFatbinEntry(2, 90, flags, "no compressed bytes"));
    EXPECT_EQ(CubinFor(fatbin, "sm_90").status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

constexpr char kSource[] = R"(
__constant__ float weights[16];
__device__ int counter = 5;
__device__ float big[1000];
static __device__ double hidden;
__global__ void Kernel(float* p) {
  __shared__ float tile[32];
  tile[threadIdx.x] = weights[threadIdx.x % 16];
  __syncthreads();
  p[threadIdx.x] = tile[31 - threadIdx.x] + big[threadIdx.x] + hidden;
  if (threadIdx.x == 0) counter++;
  asm volatile(
      "{ .global .align 8 .b8 in_assembly[24]; st.global.u8 [in_assembly], 1; }");
}
)";

// Real machine code, once.
class RealCubinTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!testing::HasNvcc()) return;
    directory_ = new TemporaryDirectory(
        std::move(TemporaryDirectory::Create("cubin-test")).value());
    testing::Spit(Path("a.cu"), kSource);
    Run(testing::Nvcc() + " -arch=sm_90 -cubin a.cu -o a.cubin");
    cubin_ = testing::Slurp(Path("a.cubin"));
  }
  static void TearDownTestSuite() { delete directory_; }
  void SetUp() override {
    if (directory_ == nullptr) GTEST_SKIP() << "no nvcc on this machine";
    ASSERT_FALSE(cubin_.empty());
  }
  static std::string Path(const std::string& name) {
    return directory_->path() + "/" + name;
  }
  static void Run(const std::string& command) {
    const testing::ShellResult result =
        testing::Shell(directory_->path(), command);
    EXPECT_EQ(result.exit_code(), 0) << command << "\n" << result.err;
  }
  // The cubin in a fatbin, packed with these flags.
  static std::string Pack(const std::string& flags) {
    Run(testing::CudaHome() + "/bin/fatbinary " + flags +
        " --create=packed.fatbin --image3=kind=elf,sm=90,file=a.cubin");
    return testing::Slurp(Path("packed.fatbin"));
  }

  static TemporaryDirectory* directory_;
  static std::string cubin_;
};
TemporaryDirectory* RealCubinTest::directory_ = nullptr;
std::string RealCubinTest::cubin_;

TEST_F(RealCubinTest, EveryCompressionGivesTheSameBytes) {
  for (const auto& [flags, compression] :
       {std::pair("--compress-mode=none", FatbinCompression::kNone),
        std::pair("--compress-all --compress-mode=speed",
                  FatbinCompression::kLz4),
        std::pair("--compress-all --compress-mode=balance",
                  FatbinCompression::kZstd),
        std::pair("--compress-all --compress-mode=default",
                  FatbinCompression::kZstd),
        std::pair("--compress-all --compress-mode=size",
                  FatbinCompression::kZstd)}) {
    SCOPED_TRACE(flags);
    const std::string fatbin = Pack(flags);
    const auto entries = FatbinEntries(fatbin);
    ASSERT_TRUE(entries.ok()) << entries.status();
    ASSERT_EQ(entries->size(), 1u);
    EXPECT_EQ((*entries)[0].compression, compression);
    EXPECT_EQ((*entries)[0].plain_bytes, cubin_.size());
    const auto got = CubinFor(fatbin, "sm_90");
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(*got == cubin_);
  }
}

TEST_F(RealCubinTest, WhatNvccPutsIntoObjects) {
  for (const char* flags : {"", "-Xfatbin -compress-all --compress-mode=speed",
                            "--compress-mode=size"}) {
    SCOPED_TRACE(flags);
    Run(testing::Nvcc() + " -gencode arch=compute_80,code=[sm_80,compute_80]" +
        " -gencode arch=compute_90a,code=sm_90a " + flags + " -c a.cu -o a.o");
    const std::string object = testing::Slurp(Path("a.o"));
    std::deque<std::string> storage;
    const auto images = FindDeviceImages(object, "a.o", &storage);
    ASSERT_TRUE(images.ok()) << images.status();
    ASSERT_EQ(images->size(), 1u);
    for (const char* architecture : {"sm_80", "sm_86", "sm_90", "sm_90a"}) {
      const auto cubin = CubinFor((*images)[0].bytes, architecture);
      ASSERT_TRUE(cubin.ok()) << cubin.status();
      const auto variables = CubinVariables(*cubin);
      ASSERT_TRUE(variables.ok()) << variables.status();
      EXPECT_EQ(variables->size(), 5u);
    }
  }
}

TEST_F(RealCubinTest, Variables) {
  const auto variables = CubinVariables(cubin_);
  ASSERT_TRUE(variables.ok()) << variables.status();
  std::vector<std::string> shown;
  for (const CubinVariable& variable : *variables) {
    // Inline assembly's own get a name like "$__in_assembly__70$1".
    std::string name = variable.symbol;
    if (name[0] == '$') name = name.substr(3, name.find("__", 3) - 3);
    shown.push_back(name + " " + std::to_string(variable.bytes) + " " +
                    variable.section);
    EXPECT_EQ(variable.constant, name == "weights");
    EXPECT_EQ(variable.offset % 4, 0u);
  }
  EXPECT_THAT(shown, UnorderedElementsAre(
                         "weights 64 .nv.constant3",
                         "counter 4 .nv.global.init", "big 4000 .nv.global",
                         "hidden 8 .nv.global", "in_assembly 24 .nv.global"));
}

TEST_F(RealCubinTest, DamageIsNoticedOrHarmless) {
  std::mt19937 random(7);
  for (const char* flags :
       {"--compress-mode=none", "--compress-all --compress-mode=speed",
        "--compress-all --compress-mode=size"}) {
    const std::string fatbin = Pack(flags);
    for (size_t length = 0; length < fatbin.size(); length += 61)
      EXPECT_FALSE(CubinFor(fatbin.substr(0, length), "sm_90").ok());
    for (int i = 0; i < 500; ++i) {
      std::string damaged = fatbin;
      for (int k = 0; k < 3; ++k)
        damaged[random() % damaged.size()] ^= static_cast<char>(random());
      const auto cubin = CubinFor(damaged, "sm_90");
      if (cubin.ok()) (void)CubinVariables(*cubin);
    }
  }
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = cubin_.substr(0, cubin_.size() - random() % 200);
    for (int k = 0; k < 5; ++k)
      damaged[random() % damaged.size()] ^= static_cast<char>(random());
    (void)CubinVariables(damaged);
  }
}

TEST(CubinVariablesTest, OnlyMachineCodeHasThem) {
  EXPECT_EQ(CubinVariables("").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CubinVariables(testing::MakeElf({})).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace reprise
