// Times the kernels of a graph, where the parent asks for a profile.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_TIMING_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_TIMING_H_

#include <cuda.h>

#include "replay/recorder/driver/graphs.h"
#include "replay/recorder/driver/launch.h"

namespace reprise::driver {

// Launches the graph node by node, waits, and notes what its kernels took: each
// later launch is taken to cost the same. `whole` launches the graph itself,
// where it cannot be taken apart. Requires the gate.
CUresult LaunchGraphTimed(ExecutableGraph* graph, CUstream stream,
                          RealLaunch whole);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_TIMING_H_
