// Parts of a graph that can be launched by themselves. Requires the gate.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_PARTS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_PARTS_H_

#include <cuda.h>
#include <stdint.h>

#include "replay/recorder/driver/graphs.h"
#include "replay/recorder/driver/launch.h"

namespace reprise::driver {

// The nodes of a level whose entry of `choice`, one for each of the graph's
// nodes, is `chosen`, with the edges between them. No path between two of them
// may lead over another node. Null: there are none.
CUresult MakePart(const ExecutableGraph& graph, const GraphLevel& level,
                  const unsigned char* choice, unsigned char chosen,
                  CUgraphExec* part);

// One kernel node, between two events where they are given.
CUresult MakeKernelPart(const ExecutableGraph& graph, const GraphNode& node,
                        CUevent begin, CUevent end, CUgraphExec* part);

// The launch that a kernel node is, but for its stream, and the context that it
// runs in (null: the launching stream's). False: the driver does not tell.
bool LaunchOf(const GraphNode& node, LaunchCall* launch, CUcontext* context);

// Frees a part, which may be null and may still run.
void DestroyPart(CUgraphExec* part);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_GRAPH_PARTS_H_
