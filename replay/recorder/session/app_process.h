// The application's first process: started with an environment of its own, its
// signals passed on, waited for. Not thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_APP_PROCESS_H_
#define REPRISE_REPLAY_RECORDER_SESSION_APP_PROCESS_H_

#include <signal.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

// While it lives, signals that end programs wait for RunApplication instead of
// acting on this process, and children that it starts ignore them: a Ctrl-C is
// for the application, not for the executors beside it. Create it before any
// thread or child.
class SignalsForApplication {
 public:
  SignalsForApplication();
  ~SignalsForApplication();
  SignalsForApplication(const SignalsForApplication&) = delete;
  SignalsForApplication& operator=(const SignalsForApplication&) = delete;

  const sigset_t& signals() const { return signals_; }
  const sigset_t& original_mask() const { return original_mask_; }
  // Those that the application must find with their default action again.
  sigset_t ReplacedSignals() const;

 private:
  sigset_t signals_;
  sigset_t original_mask_;
  std::map<int, struct sigaction> original_actions_;
};

struct ApplicationEnd {
  int exit_code = 0;
  int signal = 0;  // that ended it; 0: it exited
};

// Runs argv (found on PATH) with this process's streams, directory and
// environment, changed by `environment`. Signals that a terminal sends reach
// the application by themselves; those sent to this process are passed on.
// `silent`: its standard output goes nowhere. NOT_FOUND, PERMISSION_DENIED: it
// cannot be run.
absl::StatusOr<ApplicationEnd> RunApplication(
    const std::vector<std::string>& argv,
    const std::map<std::string, std::string>& environment,
    const SignalsForApplication& signals, bool silent = false);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_APP_PROCESS_H_
