// absl::Status on the wire: the codes are equal by number. Thread-safe.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_GRPC_STATUS_H_
#define REPRISE_SERVICES_REPLAY_SERVER_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace reprise {

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()),
          std::string(status.message())};
}

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_GRPC_STATUS_H_
