// A launch as the wire protocols of applications carry it. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_LAUNCH_REQUEST_H_
#define REPRISE_REPLAY_RECORDER_SESSION_LAUNCH_REQUEST_H_

#include <cstdint>

#include "reprise/v1/types.pb.h"

namespace reprise {

inline v1::Dim3 ToDim3(const uint32_t (&dim)[3]) {
  v1::Dim3 message;
  message.set_x(dim[0]);
  message.set_y(dim[1]);
  message.set_z(dim[2]);
  return message;
}

// Of wire::LaunchRequest and driver_wire::BeginRequest.
template <typename Request>
v1::LaunchConfig ToLaunch(const Request& request) {
  v1::LaunchConfig launch;
  *launch.mutable_grid() = ToDim3(request.grid);
  *launch.mutable_block() = ToDim3(request.block);
  if (request.cluster[0] != 0)
    *launch.mutable_cluster() = ToDim3(request.cluster);
  launch.set_dynamic_shared_bytes(request.dynamic_shared_bytes);
  launch.set_cooperative(request.cooperative != 0);
  return launch;
}

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_LAUNCH_REQUEST_H_
