// All launches of a recorded run, over all processes of the application: who
// launched what how often, which launches are recorded, and the units that wait
// for the run's end. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_LAUNCH_LEDGER_H_
#define REPRISE_REPLAY_RECORDER_SESSION_LAUNCH_LEDGER_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/recorder/session/session.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/types.pb.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// A launch as the ledger knows it.
struct LaunchTicket {
  size_t kernel = 0;        // the ledger's number of it
  uint64_t occurrence = 0;  // among all launches of the kernel
  bool record = false;      // this one is to be recorded
};

// What identifies a recorded instance without reading its unit: hash over
// shape, arguments and prologue.
struct RecordedInstance {
  std::string shape_and_arguments;
  // Memory that the launch touches, and the hash of what was in it before.
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // address, bytes
  std::string memory_hash;
};

class LaunchLedger {
 public:
  struct Options {
    bool record = false;
    std::string kernel_regex;
    std::set<std::string> kernel_symbols;  // these only; empty: all
    uint64_t skip = 0;
    uint64_t count = 1;
  };
  // INVALID_ARGUMENT: the regular expression is none.
  static absl::StatusOr<std::unique_ptr<LaunchLedger>> Create(Options options);

  // Whether launches are recorded at all.
  bool Records() const { return options_.record; }

  // Counts a launch. `image_digest` tells kernels of the same name apart.
  LaunchTicket Begin(const std::string& symbol, const std::string& image_digest,
                     const v1::LaunchConfig& launch);
  void End(const LaunchTicket& ticket, absl::Duration duration);

  // --- The same where applications count most launches themselves (on a GPU).

  // A kernel that will be launched: its number, and whether launches of it are
  // to be told one by one.
  LaunchTicket Meet(const std::string& symbol, const std::string& image_digest);
  // As Begin, for a kernel by its number. A launch to record counts as recorded
  // until NoteCaptured or NoteGivenUp, so that processes that launch at the
  // same time do not record more than was asked for.
  LaunchTicket BeginKnown(size_t kernel, const v1::LaunchConfig& launch);
  // Whether no later launch of the kernel will be recorded.
  bool IsDone(size_t kernel) const;
  // A launch was captured; AddUnit follows when the run has ended.
  void NoteCaptured(const LaunchTicket& ticket);
  // It was not, and why; empty: its process ended.
  void NoteGivenUp(const LaunchTicket& ticket, const std::string& problem);
  // Launches that were not told one by one, and the time of all that were
  // timed.
  void AddLaunches(size_t kernel, uint64_t launches, absl::Duration duration);

  // Why a launch of the kernel did not run, or was not recorded. After a few
  // failed recordings of a kernel no more are tried.
  void NoteProblem(const LaunchTicket& ticket, const std::string& problem);
  // The same for a kernel that cannot be launched at all. Applications ask once
  // and launch in vain after that, so these launches are not counted.
  void NoteRefusal(const std::string& symbol, const std::string& image_digest,
                   const std::string& problem);

  std::vector<RecordedInstance> Instances(size_t kernel) const;
  // A unit that lacks only what the run's end will tell.
  void AddUnit(const LaunchTicket& ticket, v1::Unit unit,
               RecordedInstance instance);

  // Completes units and adds them to the store (null where nothing is
  // recorded); the first error is returned, but every unit is tried. Describes
  // kernels and problems. Call once.
  absl::Status Finish(UnitStore* store, RecordResult* result);

 private:
  struct Kernel {
    std::string symbol;
    std::string display_name;
    bool matched = false;
    uint64_t launches = 0;
    bool refused = false;
    std::map<std::string, uint64_t> shapes;
    absl::Duration total;
    uint64_t failures = 0;
    std::string problem;
    uint64_t captured = 0;
    uint64_t underway = 0;  // neither captured nor given up yet
    std::vector<RecordedInstance> instances;
    std::vector<std::string> units;
    std::vector<std::string> known_units;
  };
  struct PendingUnit {
    size_t kernel;
    v1::Unit unit;
  };

  LaunchLedger(Options options, std::regex pattern)
      : options_(std::move(options)), pattern_(std::move(pattern)) {}
  // All require the mutex.
  size_t Find(const std::string& symbol, const std::string& image_digest);
  bool WantsMore(const Kernel& kernel) const;
  LaunchTicket Count(size_t kernel, const v1::LaunchConfig& launch);
  absl::Status Keep(UnitStore& store, PendingUnit& pending,
                    RecordResult* result);
  void Describe(RecordResult* result) const;
  std::string Problem() const;

  const Options options_;
  const std::regex pattern_;
  mutable std::mutex mutex_;
  std::vector<Kernel> kernels_;
  std::map<std::string, size_t> index_;  // by symbol and digest
  std::vector<PendingUnit> pending_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_LAUNCH_LEDGER_H_
