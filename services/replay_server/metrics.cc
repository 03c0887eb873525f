#include "services/replay_server/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <exception>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "services/replay_server/server.h"

namespace reprise {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Entries of one family.
class Family {
 public:
  Family(std::string name, std::string help, MetricType type)
      : family_{std::move(name), std::move(help), type, {}} {}

  // `label` without a name: only the device.
  void Add(const v1::DeviceStatistics& device, ClientMetric::Label label,
           double value) {
    ClientMetric& metric = New(device, std::move(label));
    metric.counter.value = value;
    metric.gauge.value = value;
  }
  void Add(const v1::DeviceStatistics& device, double value) {
    Add(device, {}, value);
  }
  void Add(const v1::DeviceStatistics& device, const std::string& kind,
           const std::string& stage, const v1::Histogram& histogram) {
    ClientMetric& metric = New(device, {"kind", kind});
    metric.label.push_back({"stage", stage});
    Fill(histogram, metric.histogram);
  }
  void Add(const v1::DeviceStatistics& device, const v1::Histogram& histogram) {
    Fill(histogram, New(device, {}).histogram);
  }
  MetricFamily Take() { return std::move(family_); }

 private:
  static void Fill(const v1::Histogram& histogram,
                   ClientMetric::Histogram& made) {
    made.sample_count = histogram.count();
    made.sample_sum = histogram.sum_ms() / 1e3;
    uint64_t below = 0;
    for (int i = 0; i < histogram.counts_size(); ++i) {
      below += histogram.counts(i);
      made.bucket.push_back(
          {below, i < histogram.bounds_ms_size()
                      ? histogram.bounds_ms(i) / 1e3
                      : std::numeric_limits<double>::infinity()});
    }
  }
  ClientMetric& New(const v1::DeviceStatistics& device,
                    ClientMetric::Label label) {
    ClientMetric& metric = family_.metric.emplace_back();
    metric.label.push_back({"device", device.device()});
    if (!label.name.empty()) metric.label.push_back(std::move(label));
    return metric;
  }

  MetricFamily family_;
};

class MetricsPortImpl : public MetricsPort, public prometheus::Collectable {
 public:
  MetricsPortImpl(const std::string& listen,
                  std::function<std::vector<v1::DeviceStatistics>()> read)
      : read_(std::move(read)), exposer_(listen, /*num_threads=*/1) {
    address_ = absl::StrCat(listen.substr(0, listen.rfind(':')), ":",
                            exposer_.GetListeningPorts().at(0));
    // Not owned: the exposer goes first.
    self_ = std::shared_ptr<Collectable>(this, [](Collectable*) {});
    exposer_.RegisterCollectable(self_);
  }

  const std::string& address() const override { return address_; }
  std::vector<MetricFamily> Collect() const override {
    return MetricsOf(read_());
  }

 private:
  std::function<std::vector<v1::DeviceStatistics>()> read_;
  std::string address_;
  std::shared_ptr<Collectable> self_;
  prometheus::Exposer exposer_;
};

}  // namespace

std::vector<MetricFamily> MetricsOf(
    const std::vector<v1::DeviceStatistics>& devices) {
  constexpr MetricType kCounter = MetricType::Counter;
  constexpr MetricType kGauge = MetricType::Gauge;
  Family outcomes("reprise_outcomes_total", "Evaluations made, by outcome",
                  kCounter);
  Family spared("reprise_spared_total",
                "Evaluations answered by one made before (known) or under way "
                "(joined)",
                kCounter);
  Family dropped("reprise_dropped_total",
                 "Evaluations that ended before they ran", kCounter);
  Family waiting("reprise_waiting", "Evaluations that wait now", kGauge);
  Family busy("reprise_device_busy_seconds_total", "The device worked",
              kCounter);
  Family starved("reprise_device_starved_seconds_total",
                 "The device waited for compilers", kCounter);
  Family resident("reprise_resident_bytes", "Memory images of loaded units",
                  kGauge);
  Family budget("reprise_budget_bytes",
                "What they may take; 0: the device decides", kGauge);
  Family evictions("reprise_evictions_total", "Units that made room", kCounter);
  Family recoveries("reprise_recoveries_total", "Good launches after a fault",
                    kCounter);
  Family stages("reprise_stage_seconds",
                "Time of evaluations in each stage, by kind of outcome; stage "
                "outcome: from request to outcome",
                MetricType::Histogram);
  Family recovery("reprise_recovery_seconds",
                  "From a fault to the next good launch",
                  MetricType::Histogram);
  for (const v1::DeviceStatistics& device : devices) {
    for (const auto& [kind, count] : device.outcomes())
      outcomes.Add(device, {"kind", kind}, static_cast<double>(count));
    spared.Add(device, {"how", "known"}, static_cast<double>(device.known()));
    spared.Add(device, {"how", "joined"}, static_cast<double>(device.joined()));
    dropped.Add(device, {"why", "cancelled"},
                static_cast<double>(device.cancelled()));
    dropped.Add(device, {"why", "expired"},
                static_cast<double>(device.expired()));
    waiting.Add(device, {"for", "compiler"},
                static_cast<double>(device.waiting()));
    waiting.Add(device, {"for", "device"},
                static_cast<double>(device.compiled()));
    busy.Add(device, device.busy_s());
    starved.Add(device, device.starved_s());
    resident.Add(device, static_cast<double>(device.resident_bytes()));
    budget.Add(device, static_cast<double>(device.budget_bytes()));
    evictions.Add(device, static_cast<double>(device.evictions()));
    recoveries.Add(device, static_cast<double>(device.recoveries()));
    for (const auto& [kind, took] : device.stages()) {
      stages.Add(device, kind, "queue", took.queue());
      stages.Add(device, kind, "compile", took.compile());
      stages.Add(device, kind, "load", took.load());
      stages.Add(device, kind, "verify", took.verify());
      stages.Add(device, kind, "time", took.time());
      stages.Add(device, kind, "outcome", took.outcome());
    }
    recovery.Add(device, device.recovery());
  }
  std::vector<MetricFamily> families;
  for (Family* family :
       {&outcomes, &spared, &dropped, &waiting, &busy, &starved, &resident,
        &budget, &evictions, &recoveries, &stages, &recovery})
    families.push_back(family->Take());
  return families;
}

absl::StatusOr<std::unique_ptr<MetricsPort>> MetricsPort::Start(
    const std::string& listen,
    std::function<std::vector<v1::DeviceStatistics>()> read) {
  if (absl::StartsWith(listen, "unix:") || !IsOnThisHost(listen)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got --metrics ", listen,
        ", expected a loopback address and a port, e.g. 127.0.0.1:9464: it is "
        "served without TLS"));
  }
  try {
    return std::make_unique<MetricsPortImpl>(listen, std::move(read));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot serve metrics at ", listen, ": ", error.what(),
                     "; is somebody else there?"));
  }
}

}  // namespace reprise
