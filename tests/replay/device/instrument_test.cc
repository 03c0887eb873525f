#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/replay/device/device_test_util.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Spans = std::vector<std::pair<uint64_t, uint64_t>>;

Spans ToSpans(
    const google::protobuf::RepeatedPtrField<v1::AccessInterval>& intervals) {
  Spans spans;
  for (const auto& interval : intervals)
    spans.push_back({interval.address(), interval.bytes()});
  return spans;
}

class InstrumentTest : public testing::Test {
 protected:
  void SetUp() override {
    LoweringOptions options;
    options.instrument = true;
    const absl::Status status = machine_.Load("accesses", options);
    ASSERT_TRUE(status.ok()) << status;
  }
  v1::AccessReport Run(const std::string& kernel,
                       const v1::LaunchConfig& launch,
                       const Arguments& arguments) {
    const v1::AccessReport report =
        machine_.Run(kernel, launch, arguments).accesses;
    reads_ = ToSpans(report.reads());
    writes_ = ToSpans(report.writes());
    first_ = ToSpans(report.reads_before_write());
    return report;
  }
  // Type of the page at an address.
  static v1::ElementType TypeAt(const v1::AccessReport& report,
                                uint64_t address) {
    for (const auto& type : report.types()) {
      if (address >= type.address() &&
          address < type.address() + type.bytes()) {
        return type.element_type();
      }
    }
    return v1::ELEMENT_TYPE_UNTYPED;
  }
  uint64_t Pages(uint64_t count) {
    // Allocations are 256 bytes apart; types are kept by page.
    machine_.Allocate(4096);
    const uint64_t address = machine_.Allocate((count + 1) * 4096);
    return (address + 4095) / 4096 * 4096;
  }

  TestMachine machine_;
  Spans reads_, writes_, first_;
};

TEST_F(InstrumentTest, GuardedElementwiseKernel) {
  const uint64_t x = Pages(1);
  const uint64_t y = Pages(1);
  const auto report =
      Run("Axpb", MakeLaunch({4}, {32}),
          Arguments().Add(x).Add(y).Add(2.0f).Add(1.0f).Add(100));
  EXPECT_THAT(reads_, ElementsAre(std::pair(x, 400)));
  EXPECT_THAT(writes_, ElementsAre(std::pair(y, 400)));
  EXPECT_THAT(first_, ElementsAre(std::pair(x, 400)));
  EXPECT_EQ(report.flops(), 200u);
  EXPECT_EQ(report.bytes_read(), 400u);
  EXPECT_EQ(report.bytes_written(), 400u);
  EXPECT_EQ(TypeAt(report, x), v1::ELEMENT_TYPE_F32);
  EXPECT_EQ(TypeAt(report, y), v1::ELEMENT_TYPE_F32);
  EXPECT_EQ(machine_.host<float>(y)[99], 1.0f);
  EXPECT_EQ(machine_.host<float>(y)[100], 0.0f);
}

TEST_F(InstrumentTest, InPlaceIsReadBeforeWrite) {
  const uint64_t data = Pages(2);
  const auto report = Run("Increment", MakeLaunch({10}, {100}),
                          Arguments().Add(data + 4).Add(1000));
  EXPECT_THAT(reads_, ElementsAre(std::pair(data + 4, 4000)));
  EXPECT_EQ(writes_, reads_);
  EXPECT_EQ(first_, reads_);
  EXPECT_EQ(report.flops(), 0u);
  EXPECT_EQ(TypeAt(report, data), v1::ELEMENT_TYPE_I32);
}

TEST_F(InstrumentTest, WrittenBeforeReadIsNotReadBeforeWrite) {
  const uint64_t tmp = Pages(1);
  const uint64_t in = Pages(1);
  const uint64_t out = Pages(1);
  const auto report = Run("ThroughMemory", MakeLaunch({1}, {8}),
                          Arguments().Add(tmp).Add(in).Add(out));
  EXPECT_THAT(reads_, ElementsAre(std::pair(tmp, 64), std::pair(in, 64)));
  EXPECT_THAT(writes_, ElementsAre(std::pair(tmp, 64), std::pair(out, 64)));
  EXPECT_THAT(first_, ElementsAre(std::pair(in, 64)));
  EXPECT_EQ(report.flops(), 8u);
  EXPECT_EQ(TypeAt(report, tmp), v1::ELEMENT_TYPE_F64);
}

TEST_F(InstrumentTest, SetsAreExactToTheByte) {
  const uint64_t out = Pages(1);
  Run("Bytes", MakeLaunch({1}, {3}), Arguments().Add(out + 1));
  EXPECT_THAT(writes_, ElementsAre(std::pair(out + 1, 1), std::pair(out + 3, 1),
                                   std::pair(out + 5, 1)));
  EXPECT_THAT(reads_, IsEmpty());
}

TEST_F(InstrumentTest, LocalAndSharedMemoryDoNotCount) {
  const uint64_t in = Pages(1);
  const uint64_t out = Pages(1);
  const auto report =
      Run("PrivateMemory", MakeLaunch({1}, {32}), Arguments().Add(in).Add(out));
  EXPECT_THAT(reads_, ElementsAre(std::pair(in, 128)));
  EXPECT_THAT(writes_, ElementsAre(std::pair(out, 128)));
  EXPECT_EQ(report.bytes_written(), 128u);
}

TEST_F(InstrumentTest, AtomicsReadAndWrite) {
  const uint64_t in = Pages(1);
  const uint64_t flags = Pages(1);
  const uint64_t sum = Pages(1);
  for (int t = 0; t < 4; ++t) machine_.host<int>(in)[t] = t % 2;
  machine_.host<int>(flags)[2] = 5;
  const auto report = Run("Atomics", MakeLaunch({1}, {4}),
                          Arguments().Add(in).Add(flags).Add(sum));
  const uint64_t histogram = machine_.symbol("histogram");
  // Only the comparison that held wrote.
  EXPECT_THAT(writes_, ElementsAre(std::pair(histogram, 8),
                                   std::pair(flags + 8, 4), std::pair(sum, 4)));
  EXPECT_THAT(reads_, ElementsAre(std::pair(histogram, 8), std::pair(in, 16),
                                  std::pair(flags, 16), std::pair(sum, 4)));
  EXPECT_EQ(first_, reads_);
  EXPECT_EQ(report.flops(), 4u);
  EXPECT_EQ(machine_.host<int>(histogram)[0], 2);
}

TEST_F(InstrumentTest, CopiesOfStructs) {
  const uint64_t in = Pages(1);
  const uint64_t out = Pages(1);
  Run("CopyStruct", MakeLaunch({1}, {5}), Arguments().Add(in).Add(out));
  EXPECT_THAT(reads_, ElementsAre(std::pair(in, 60)));
  EXPECT_THAT(writes_, ElementsAre(std::pair(out, 60)));
}

TEST_F(InstrumentTest, CountsOperationsOfMathematics) {
  const uint64_t in = Pages(1);
  const uint64_t out = Pages(1);
  // An fma counts 2, root and quotient 1 each.
  const auto report =
      Run("Mathematics", MakeLaunch({1}, {10}), Arguments().Add(in).Add(out));
  EXPECT_EQ(report.flops(), 40u);
}

TEST_F(InstrumentTest, VectorsAreTypedByTheirElements) {
  const uint64_t in = Pages(1);
  const uint64_t out = Pages(1);
  const auto report =
      Run("Vectors", MakeLaunch({1}, {4}), Arguments().Add(in).Add(out));
  EXPECT_THAT(reads_, ElementsAre(std::pair(in, 64)));
  EXPECT_EQ(report.flops(), 4u);
  EXPECT_EQ(TypeAt(report, out), v1::ELEMENT_TYPE_F32);
}

TEST_F(InstrumentTest, InstrumentedCodeNeedsAnInstrumentedLaunch) {
  v1::LaunchRequest request;
  request.set_module(1);
  request.set_entry("__reprise_block_Bytes");
  *request.mutable_launch() = MakeLaunch({1}, {1});
  request.set_arguments(std::string(8, 0));
  const auto report = machine_.client().Launch(request, absl::Seconds(10));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->kind, v1::OUTCOME_KIND_INVALID_LAUNCH);
}

}  // namespace
}  // namespace reprise
