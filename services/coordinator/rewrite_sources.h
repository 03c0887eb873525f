// Where a campaign's source variants come from without a model: rewrites of the
// recorded source (evolution/ast, evolution/move_emitter.h).
#ifndef REPRISE_SERVICES_COORDINATOR_REWRITE_SOURCES_H_
#define REPRISE_SERVICES_COORDINATOR_REWRITE_SOURCES_H_

#include <string>

#include "services/coordinator/local_campaign.h"

namespace reprise {

// `cuda_home` empty: $CUDA_HOME or /usr/local/cuda. Where the source cannot be
// analyzed a warning says why, and nothing is proposed.
SourceProposer RewriteSources(std::string cuda_home);

}  // namespace reprise

#endif  // REPRISE_SERVICES_COORDINATOR_REWRITE_SOURCES_H_
