// A replay core over a store of small units, a device and compilers whose
// behaviour the machine code spells out (tests/replay/engine/fake_device.h).
#ifndef REPRISE_TESTS_SERVICES_REPLAY_SERVER_FAKE_NODE_H_
#define REPRISE_TESTS_SERVICES_REPLAY_SERVER_FAKE_NODE_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"
#include "services/replay_server/replay_core.h"
#include "tests/replay/engine/fake_device.h"

namespace reprise {

// Holds whoever passes while it is shut.
class Gate {
 public:
  void Shut() { Set(true); }
  void Open() { Set(false); }
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !shut_; });
    --waiting_;
  }
  void WaitForSomebody() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

 private:
  void Set(bool shut) {
    const std::lock_guard<std::mutex> lock(mutex_);
    shut_ = shut;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool shut_ = false;
  int waiting_ = 0;
};

// Code with "slow compile" waits at the gate. A pipeline of LLVM's makes code
// that takes a time of its own.
class GatedPool : public CompilePool {
 public:
  absl::StatusOr<v1::CompileReply> Compile(
      const std::shared_ptr<const v1::CompileInput>& input,
      const v1::Variant& variant, v1::CompileTarget target) override {
    ++compiles;
    if (gate_all || absl::StrContains(variant.pipeline(), "slow compile"))
      gate.Pass();
    FakePool pool;
    const std::string& pipeline = variant.pipeline();
    if (pipeline.find_first_of("<(") == std::string::npos)
      return pool.Compile(input, variant, target);
    v1::Variant other = variant;
    other.set_pipeline(absl::StrCat(
        "time=", 50 + static_cast<uint8_t>(Sha256(pipeline)[0]) % 40));
    return pool.Compile(input, other, target);
  }
  Statistics statistics() const override { return {}; }

  Gate gate;
  std::atomic<bool> gate_all = false;
  std::atomic<int> compiles = 0;
};

// A launch passes the node's gate.
class GatedDevice : public FakeDevice {
 public:
  explicit GatedDevice(Gate* gate) {
    behaviour.pause = [gate](int) {
      gate->Pass();
      return absl::ZeroDuration();
    };
  }
  absl::StatusOr<std::unique_ptr<ResidentUnit>> Load(
      const UnitReader& unit, const LoadOptions& options) override {
    ++loads[unit.id()];
    if (refused.count(unit.id()) > 0)
      return absl::FailedPreconditionError("it does not replay here");
    return FakeDevice::Load(unit, options);
  }
  std::map<std::string, int> loads;
  std::map<std::string, bool> refused;
};

class FakeNode {
 public:
  FakeNode() {
    store_ = *UnitStore::Open({.directory = directory_.path()});
    options.evaluator.stopping.maximum_pairs = 5;
    options.evaluator.learning_replays = 1;
    device = std::make_unique<GatedDevice>(&gate);
  }
  // Returns its id.
  std::string AddUnit(const std::string& name, uint64_t bytes = 4096) {
    v1::Unit unit;
    unit.mutable_kernel()->set_symbol("k");
    unit.mutable_kernel()->set_display_name(name);
    unit.mutable_provenance()->set_device("cpu");
    unit.set_architecture("sm_90");
    unit.set_arguments(name);
    for (v1::Dim3* dim : {unit.mutable_launch()->mutable_grid(),
                          unit.mutable_launch()->mutable_block()}) {
      dim->set_x(1);
      dim->set_y(1);
      dim->set_z(1);
    }
    unit.add_translation_units()->set_main_file("/a.cu");
    v1::MemoryRange* range = unit.add_memory();
    range->set_address(0x200000000000);
    range->set_bytes(bytes);
    range->set_origin(v1::MEMORY_ORIGIN_DEVICE);
    *range->mutable_prologue() =
        *store_->chunks().Put(std::string(bytes, '\0'));
    const absl::StatusOr<std::string> id = store_->Add(unit);
    EXPECT_TRUE(id.ok()) << id.status();
    return *id;
  }
  ReplayCore& core() {
    if (core_ == nullptr) {
      device_ = device.get();
      core_ = ReplayCore::Create(options, *store_, std::move(device), pool);
    }
    return *core_;
  }
  absl::Status Load(const std::string& unit, double lease_s = 0) {
    v1::LoadUnitRequest request;
    request.set_unit_id(unit);
    request.set_lease_s(lease_s);
    return core().LoadUnit(request).status();
  }
  void EndCore() { core_.reset(); }
  // From here on the core's time is `seconds`, which outlives its threads.
  void UseClock() {
    options.now = [this] { return absl::FromUnixSeconds(seconds); };
  }
  UnitStore& store() { return *store_; }
  GatedDevice& loaded_device() { return *device_; }

  ReplayCore::Options options;
  std::atomic<int64_t> seconds = 0;
  Gate gate;  // of launches
  std::unique_ptr<GatedDevice> device;
  GatedPool pool;

 private:
  TemporaryDirectory directory_ = *TemporaryDirectory::Create("fake-node");
  std::unique_ptr<UnitStore> store_;
  GatedDevice* device_ = nullptr;
  std::unique_ptr<ReplayCore> core_;
};

inline v1::Variant Code(const std::string& text) {
  v1::Variant variant;
  variant.set_pipeline(text);
  return variant;
}

}  // namespace reprise

#endif  // REPRISE_TESTS_SERVICES_REPLAY_SERVER_FAKE_NODE_H_
