// Statistics of a replay server for Prometheus: what its text format says of
// DeviceStatistics, and a port that serves it.
//
// Counters end in _total and start at 0 with the server; durations are in
// seconds, as Prometheus wants them; every metric has the label device.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_METRICS_H_
#define REPRISE_SERVICES_REPLAY_SERVER_METRICS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/metric_family.h"
#include "reprise/v1/replay.pb.h"

namespace reprise {

// One family per metric, with one entry per device (and kind or stage).
std::vector<prometheus::MetricFamily> MetricsOf(
    const std::vector<v1::DeviceStatistics>& devices);

// GET /metrics over HTTP, without TLS and to whoever reaches it: on this host
// only. Thread-safe.
class MetricsPort {
 public:
  // `read` is called by the port's threads for every request, until the port is
  // destroyed. INVALID_ARGUMENT: the address is not a loopback one, or nobody
  // can listen there.
  static absl::StatusOr<std::unique_ptr<MetricsPort>> Start(
      const std::string& listen,
      std::function<std::vector<v1::DeviceStatistics>()> read);
  virtual ~MetricsPort() = default;

  // With the port that was free.
  virtual const std::string& address() const = 0;
};

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_METRICS_H_
