// The gRPC front of a replay server: ReplayService, UnitTransferService and the
// standard health service, which says NOT_SERVING for "" and for
// reprise.v1.ReplayService while any device recovers from a fault or the server
// ends.
//
// Plaintext is served on this host alone: over a Unix socket, in a directory
// that only its owner enters, or on a loopback address, which every user of the
// host can reach. Beyond it only mutual TLS is: clients show a certificate of
// the authority in Options::certificates (services/common/certificates.h), and
// only those whose role is "client" may do more than look.
//
// Thread-safe.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_SERVER_H_
#define REPRISE_SERVICES_REPLAY_SERVER_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/unit/unit_store.h"
#include "services/replay_server/replay_core.h"

namespace reprise {

class ReplayServer {
 public:
  struct Options {
    // "unix:/path", "127.0.0.1:0" (any free port), "0.0.0.0:7411", "[::]:7411".
    std::string listen;
    // Directory of the server's certificates; empty: plaintext.
    std::string certificates;
    // Lets clients ask what services there are; on this host only.
    bool reflection = false;
    // Where Prometheus finds statistics, a loopback address; empty: nowhere.
    std::string metrics;
  };

  // INVALID_ARGUMENT: plaintext beyond this host, or no such address. `store`
  // outlives the server.
  static absl::StatusOr<std::unique_ptr<ReplayServer>> Start(
      Options options, UnitStore& store,
      std::vector<std::unique_ptr<ReplayCore>> cores);
  // As Shutdown without grace.
  virtual ~ReplayServer() = default;

  // What clients connect to, with the port that was free.
  virtual const std::string& address() const = 0;
  // Of the metrics; empty: there are none.
  virtual const std::string& metrics_address() const = 0;

  // Takes nothing any more, hands back what has not begun, and gives what runs
  // this long; then calls that are left are cancelled. Idempotent.
  virtual void Shutdown(absl::Duration grace) = 0;
};

// Whether a server could start with these options now; it listens for a moment.
absl::Status CheckAddress(const ReplayServer::Options& options);

// Whether an address can only be reached from this host.
bool IsOnThisHost(const std::string& address);

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_SERVER_H_
