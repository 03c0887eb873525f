// One launch of an executable graph on its way to the driver. Every kernel node
// counts as a launch of its kernel. Where the parent wants one of them, the
// graph is launched in parts: what the node depends on, the node by itself,
// recorded as any launch, then the rest. What the application sees is the same.
// Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_LAUNCH_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_LAUNCH_H_

#include <cuda.h>

#include "replay/recorder/driver/launch.h"

namespace reprise::driver {

// `stream` is explicit. Requires Active(). Answers what the driver answered.
CUresult LaunchGraph(CUgraphExec exec, CUstream stream, RealLaunch real);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_LAUNCH_H_
