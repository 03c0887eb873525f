// A small unit and a CUDA device on the fake driver (fake_driver.cc).
#ifndef REPRISE_TESTS_REPLAY_DEVICE_CUDA_CUDA_DEVICE_FIXTURE_H_
#define REPRISE_TESTS_REPLAY_DEVICE_CUDA_CUDA_DEVICE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "replay/base/file_util.h"
#include "replay/device/cuda/cuda_device.h"
#include "replay/unit/blob.h"
#include "replay/unit/unit_store.h"

namespace reprise {

inline constexpr uint64_t kArena = 0x200000000000;
inline constexpr uint64_t kIn = kArena + 0x1000;
inline constexpr uint64_t kOut = kArena + (4 << 20);
inline constexpr uint64_t kCount = 1024;      // floats that the kernel writes
inline constexpr uint64_t kOutFloats = 2048;  // floats of the range
inline constexpr uint64_t kFactor =
    0x7f0000001000;  // recorded address of "factor"
inline constexpr uint64_t kCounter = 0x7f0000002000;

inline std::string Bytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

inline std::string Words(const std::vector<uint64_t>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(uint64_t));
}

inline v1::CompileReply Code(const std::string& kernel,
                             const std::string& variables = "") {
  v1::CompileReply code;
  code.set_kind(v1::OUTCOME_KIND_OK);
  code.set_code("fake\nkernel " + kernel + "\n" + variables);
  return code;
}

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("REPRISE_CUDA_DRIVER", FAKE_CUDA_DRIVER, 1);
    unsetenv("REPRISE_FAKE_CUDA_DEVICES");
    for (const char* name :
         {"REPRISE_FAKE_CUDA_BYTES", "REPRISE_FAKE_CUDA_TAKEN",
          "REPRISE_FAKE_CUDA_NO_PINNING", "REPRISE_FAKE_CUDA_DIE_AT_UPLOAD"})
      unsetenv(name);
    store_ = *ChunkStore::Open({.directory = directory_.path()});
    unit_.mutable_kernel()->set_symbol("double");
    for (v1::Dim3* dim : {unit_.mutable_launch()->mutable_grid(),
                          unit_.mutable_launch()->mutable_block()}) {
      dim->set_x(1);
      dim->set_y(1);
      dim->set_z(1);
    }
    unit_.set_arguments(Words({kIn, kOut, kCount}));
    std::vector<float> in(kCount), before(kOutFloats), after(kOutFloats);
    for (uint64_t i = 0; i < kOutFloats; ++i) {
      before[i] = static_cast<float>(i);
      after[i] = before[i];
    }
    for (uint64_t i = 0; i < kCount; ++i) {
      in[i] = 1.25f * static_cast<float>(i) + 1;
      after[i] = 2 * in[i];
    }
    AddRange(kIn, Bytes(in), "", {});
    v1::MemoryRange* out = AddRange(kOut, Bytes(before), Bytes(after),
                                    {{0, kCount * sizeof(float)}});
    out->set_element_type(v1::ELEMENT_TYPE_F32);
  }

  v1::MemoryRange* AddRange(uint64_t address, const std::string& prologue,
                            const std::string& epilogue,
                            const std::vector<Interval>& writes) {
    v1::MemoryRange* range = unit_.add_memory();
    range->set_address(address);
    range->set_bytes(prologue.size());
    range->set_origin(v1::MEMORY_ORIGIN_DEVICE);
    *range->mutable_prologue() = *store_->Put(prologue);
    if (!epilogue.empty()) *range->mutable_epilogue() = *store_->Put(epilogue);
    IntervalSet set;
    for (const Interval& interval : writes)
      set.Add(interval.begin, interval.end);
    *range->mutable_write_set() = *StoreIntervals(*store_, set);
    *range->mutable_read_before_write_set() =
        *StoreIntervals(*store_, IntervalSet());
    return range;
  }

  // A device variable that the recorded launch read, or read and wrote.
  v1::MemoryRange* AddVariable(uint64_t address, const std::string& symbol,
                               uint64_t before, uint64_t after) {
    std::vector<Interval> writes;
    if (before != after) writes.push_back({0, 8});
    v1::MemoryRange* range =
        AddRange(address, Words({before}), Words({after}), writes);
    IntervalSet set;
    for (const Interval& interval : writes)
      set.Add(interval.begin, interval.end);
    *range->mutable_read_before_write_set() = *StoreIntervals(*store_, set);
    range->set_symbol(symbol);
    range->set_origin(v1::MEMORY_ORIGIN_GLOBAL);
    return range;
  }

  UnitReader Unit() { return UnitReader("double-1", unit_, store_); }

  std::unique_ptr<Device> MakeDevice(const CudaDeviceOptions& options = {}) {
    auto device = CreateCudaDevice(options);
    EXPECT_TRUE(device.ok()) << device.status();
    return *std::move(device);
  }

  void Load() {
    resident_ = nullptr;
    device_ = MakeDevice();
    auto resident = device_->Load(Unit());
    ASSERT_TRUE(resident.ok()) << resident.status();
    resident_ = *std::move(resident);
  }

  static std::unique_ptr<LoadedKernel> LoadCode(
      ResidentUnit& resident, const std::string& kernel,
      const std::string& variables = "") {
    auto loaded = resident.LoadKernel(Code(kernel, variables), kernel);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *std::move(loaded);
  }

  LaunchReport Run(ResidentUnit& resident, LoadedKernel& kernel,
                   absl::Duration timeout = absl::Seconds(30)) {
    EXPECT_TRUE(resident.Restore().ok());
    EXPECT_TRUE(resident.Poison(++seed_).ok());
    LaunchOptions options;
    options.launch = unit_.launch();
    options.timeout = timeout;
    auto report = resident.Launch(kernel, options);
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }

  Verdict Judge(ResidentUnit& resident, double tolerance = 0) {
    v1::Tolerance bound;
    bound.set_relative(tolerance);
    auto verdict = resident.Verify(bound);
    EXPECT_TRUE(verdict.ok()) << verdict.status();
    return *verdict;
  }

  Verdict RunAndJudge(const std::string& kernel, double tolerance = 0) {
    const auto loaded = LoadCode(*resident_, kernel);
    const LaunchReport report = Run(*resident_, *loaded);
    EXPECT_EQ(report.kind, v1::OUTCOME_KIND_OK) << report.diagnostics;
    return Judge(*resident_, tolerance);
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("cuda-test");
  std::shared_ptr<ChunkStore> store_;
  v1::Unit unit_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<ResidentUnit> resident_;
  uint64_t seed_ = 0;
};

}  // namespace reprise

#endif  // REPRISE_TESTS_REPLAY_DEVICE_CUDA_CUDA_DEVICE_FIXTURE_H_
