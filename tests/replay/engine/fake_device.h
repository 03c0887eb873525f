// A device and a compile pool whose behaviour the machine code spells out:
// "time=50 wrong" and so on.
#ifndef REPRISE_TESTS_REPLAY_ENGINE_FAKE_DEVICE_H_
#define REPRISE_TESTS_REPLAY_ENGINE_FAKE_DEVICE_H_

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "replay/base/sha256.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/device.h"

namespace reprise {

struct FakeKernel : LoadedKernel {
  std::string code;
};

// What the fake device does beside what the code says.
struct FakeBehaviour {
  // Clocks that come with launch number n, from 1 on; none where not set.
  std::function<std::optional<v1::ClockSample>(int)> clocks;
  // Factor on the device time of each launch, e.g. noise.
  std::function<double()> noise;
  bool reads_wall_clock = true;
  // What launch number n really takes beside; nothing where not set.
  std::function<absl::Duration(int)> pause;
};

// Counts what the engine does and answers as the code says.
class FakeResident : public ResidentUnit {
 public:
  FakeResident(std::vector<std::string>* log, std::string application,
               const FakeBehaviour& behaviour)
      : log_(log),
        application_(std::move(application)),
        behaviour_(behaviour) {}

  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(
      const v1::CompileReply& code, const std::string&) override {
    ++loads;
    auto kernel = std::make_unique<FakeKernel>();
    kernel->code = code.code();
    return kernel;
  }
  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadApplicationKernel()
      override {
    if (application_.empty()) return ResidentUnit::LoadApplicationKernel();
    ++loads;
    auto kernel = std::make_unique<FakeKernel>();
    kernel->code = application_;
    return kernel;
  }
  absl::Status Restore() override {
    log_->push_back("restore");
    return absl::OkStatus();
  }
  absl::Status Poison(uint64_t seed) override {
    log_->push_back("poison");
    seeds.push_back(seed);
    return absl::OkStatus();
  }
  absl::StatusOr<LaunchReport> Launch(LoadedKernel& kernel,
                                      const LaunchOptions& options) override {
    const std::string& code = static_cast<FakeKernel&>(kernel).code;
    log_->push_back(absl::StrCat("launch ", code));
    last_ = code;
    LaunchReport report;
    report.kind = absl::StrContains(code, "hang") ? v1::OUTCOME_KIND_TIMEOUT
                  : absl::StrContains(code, "fault")
                      ? v1::OUTCOME_KIND_DEVICE_FAULT
                      : v1::OUTCOME_KIND_OK;
    if (options.l2 == v1::L2_POLICY_WARM &&
        absl::StrContains(code, "breaks warm"))
      report.kind = v1::OUTCOME_KIND_TIMEOUT;
    ++launches_;
    if (behaviour_.pause) absl::SleepFor(behaviour_.pause(launches_));
    const bool warm = options.l2 == v1::L2_POLICY_WARM;
    const int usual = NumberAfter("time=", code, 100);
    const int time = warm ? NumberAfter("warm=", code, usual) : usual;
    report.device_time =
        absl::Microseconds(time) * (behaviour_.noise ? behaviour_.noise() : 1) +
        absl::Nanoseconds(launches_ % 7 * 100);
    // What the events leave out, and what submitting and waiting cost.
    if (behaviour_.reads_wall_clock) {
      report.wall_time = report.device_time +
                         absl::Microseconds(NumberAfter("escapes=", code, 0)) +
                         absl::Microseconds(40 + launches_ % 5);
    }
    if (options.sample_clocks && behaviour_.clocks)
      report.clocks = behaviour_.clocks(launches_);
    if (absl::StrContains(code, "broken machine"))
      return absl::UnavailableError("the executor is gone");
    return report;
  }
  absl::StatusOr<Verdict> Verify(const v1::Tolerance&) override {
    log_->push_back("verify");
    Verdict verdict;
    verdict.equal = true;
    v1::RangeErrors range;
    range.set_name("argument 0");
    range.set_address(0x200000000000);
    range.set_element_type(v1::ELEMENT_TYPE_F32);
    range.set_compared_elements(8);
    // "late wrong" computes the right thing the first time only.
    const bool late = absl::StrContains(last_, "late wrong") && ++late_ > 2;
    const bool first = absl::StrContains(last_, "first wrong") && late_++ == 0;
    const bool timed =
        absl::StrContains(last_, "late") || absl::StrContains(last_, "first");
    if (late || first || (absl::StrContains(last_, "wrong") && !timed)) {
      verdict.equal = false;
      range.set_wrong_elements(1);
      range.set_first_wrong_element(3);
      range.set_got("1");
      range.set_expected("2");
      range.set_max_absolute(1);
    }
    verdict.ranges.push_back(range);
    return verdict;
  }
  // The instructions are the number of bytes of the code.
  absl::StatusOr<v1::Counters> Count(LoadedKernel& kernel,
                                     const LaunchOptions&) override {
    if (log_->back() != "poison")
      return absl::FailedPreconditionError("memory is not ready");
    v1::Counters counters;
    v1::Counter* counter = counters.add_values();
    counter->set_name("instructions");
    counter->set_value(
        static_cast<double>(static_cast<FakeKernel&>(kernel).code.size()));
    return counters;
  }
  absl::Status AdoptReference() override {
    log_->push_back("adopt");
    return absl::OkStatus();
  }

  std::vector<uint64_t> seeds;
  int loads = 0;

 private:
  static int NumberAfter(const std::string& word, const std::string& code,
                         int otherwise) {
    const size_t at = code.find(word);
    return at == std::string::npos ? otherwise
                                   : std::atoi(code.c_str() + at + word.size());
  }

  std::vector<std::string>* log_;
  const std::string application_;
  const FakeBehaviour& behaviour_;
  std::string last_;
  int launches_ = 0;
  int late_ = 0;
};

class FakeDevice : public Device {
 public:
  FakeDevice() {
    facts_.kind = "cpu";
    facts_.name = "fake";
  }
  const DeviceFacts& facts() const override { return facts_; }
  DeviceFacts& mutable_facts() { return facts_; }
  void SetArchitecture(const std::string& name) { facts_.architecture = name; }
  v1::CompileTarget compile_target() const override {
    return v1::COMPILE_TARGET_CPU;
  }
  absl::StatusOr<std::unique_ptr<Device>> OpenForCounting() override {
    if (!counts) return Device::OpenForCounting();
    auto other = std::make_unique<FakeDevice>();
    other->application = application;
    return other;
  }
  absl::StatusOr<v1::DeviceCeilings> MeasureCeilings() override {
    ++ceilings_measured;
    if (!ceilings.has_value()) return Device::MeasureCeilings();
    return *ceilings;
  }
  absl::StatusOr<std::unique_ptr<ResidentUnit>> Load(
      const UnitReader&, const LoadOptions&) override {
    auto resident =
        std::make_unique<FakeResident>(&log, application, behaviour);
    last = resident.get();
    return resident;
  }
  std::vector<std::string> log;
  std::string application;  // machine code of its own; empty: not here
  FakeBehaviour behaviour;
  FakeResident* last = nullptr;
  bool counts = false;  // on another such device
  std::optional<v1::DeviceCeilings> ceilings;
  int ceilings_measured = 0;

 private:
  DeviceFacts facts_;
};

// The variant's pipeline text, or else its source, is its machine code.
class FakePool : public CompilePool {
 public:
  absl::StatusOr<v1::CompileReply> Compile(
      const std::shared_ptr<const v1::CompileInput>& input,
      const v1::Variant& variant, v1::CompileTarget) override {
    architecture = input->architecture();
    v1::CompileReply reply;
    const std::string text = !variant.pipeline().empty() ? variant.pipeline()
                             : variant.sources().empty()
                                 ? baseline
                                 : variant.sources(0).content();
    reply.set_kind(absl::StrContains(text, "syntax")
                       ? v1::OUTCOME_KIND_COMPILE_ERROR
                       : v1::OUTCOME_KIND_OK);
    reply.set_diagnostics(
        absl::StrContains(text, "syntax") ? "a.cu:3: expected ';'" : "");
    reply.set_code(text);
    reply.set_code_sha256(Sha256(text));
    reply.add_kernels()->set_symbol("k");
    return reply;
  }
  Statistics statistics() const override { return {}; }
  std::string baseline = "time=100";
  std::string architecture;  // last built for
};

}  // namespace reprise

#endif  // REPRISE_TESTS_REPLAY_ENGINE_FAKE_DEVICE_H_
