// What is in a graph of the application's, or in a copy of it. Requires the
// gate.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_READER_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_READER_H_

#include <cuda.h>

#include "replay/recorder/driver/graphs.h"

namespace reprise::driver {

// Fills the levels and nodes of `to` with a graph's and its child graphs'; with
// `edges` also the edges, and nodes come in topological order. Kernels become
// known to the parent. Null, or why a launch of the graph cannot be made in
// parts.
const char* ReadGraph(CUgraph graph, bool edges, ExecutableGraph* to);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_READER_H_
