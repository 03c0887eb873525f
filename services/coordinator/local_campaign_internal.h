// Of LocalCampaign: what its parts share.
#ifndef REPRISE_SERVICES_COORDINATOR_LOCAL_CAMPAIGN_INTERNAL_H_
#define REPRISE_SERVICES_COORDINATOR_LOCAL_CAMPAIGN_INTERNAL_H_

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bayesopt/optimizer.h"
#include "evolution/islands.h"
#include "services/coordinator/local_campaign.h"

namespace reprise {

// Several candidates are measured again and the best is taken, so each has to
// be faster by more than the reported interval says. A gain below a hundredth
// is not told from what loading the same code elsewhere does.
inline constexpr double kDecisionConfidence = 0.999;
inline constexpr double kLeastRatio = 1.01;

// "Unroll the loop at a.cu:3 by 4; pipeline=default<O2>"; what says nothing is
// left out.
inline std::string JoinDescriptions(std::string source,
                                    const std::string& build) {
  while (!source.empty() && source.back() == '.') source.pop_back();
  if (source.empty()) return build;
  return build == "as built" ? source : absl::StrCat(source, "; ", build);
}

struct LocalCampaign::Source {
  evolution::Proposal proposal;
  std::unique_ptr<bayesopt::Optimizer> tuner;
  std::vector<bayesopt::ImportedObservation> observed;  // by its tuner
  double best_log_ratio = -INFINITY;
  uint64_t trials = 0;
};

struct LocalCampaign::Candidate {
  v1::Variant variant;
  std::string description;
  evolution::Proposal proposal;  // the source; id 0: as recorded
  double log_low = 0;
};

struct LocalCampaign::Job {
  v1::Variant variant;
  std::string description;
  Source* source = nullptr;
  uint64_t trial = 0;                     // of the source's tuner; 0: none
  bayesopt::Configuration configuration;  // the trial's
};

// A new source on its way to an island.
struct LocalCampaign::Newcomer {
  Job job;
  evolution::Islands::Ticket ticket;
};

}  // namespace reprise

#endif  // REPRISE_SERVICES_COORDINATOR_LOCAL_CAMPAIGN_INTERNAL_H_
