// This process and its children: the program's own file, how to start it again,
// and when a child has ended. Thread-safe.
#ifndef REPRISE_REPLAY_BASE_PROCESS_H_
#define REPRISE_REPLAY_BASE_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

// Path of this program's file, beside which the rest of the installation lies.
// Not always /proc/self/exe: a bundle on a host with an old glibc starts the
// program by a loader of its own ("ld.so --library-path DIR FILE"), and that
// file is then the loader.
absl::StatusOr<std::string> SelfExecutable();

// The words that start a program, arguments to follow: `executable`, or where
// that is empty this program again, the same file even if it was replaced since
// this process started, by the loader that started this process.
absl::StatusOr<std::vector<std::string>> ProgramCommand(
    const std::string& executable);

// A new descriptor that becomes readable when the child has ended; the child is
// not waited for. Needs no pidfd_open, which Linux has since 5.3.
absl::StatusOr<int> WatchChild(pid_t child);

namespace process_internal {
// What WatchChild does where there is no pidfd_open.
absl::StatusOr<int> WatchChildByThread(pid_t child);
}  // namespace process_internal

}  // namespace reprise

#endif  // REPRISE_REPLAY_BASE_PROCESS_H_
