// One page of memory shared by a worker and its pool: what the worker is doing
// now, readable after it died. The writer overwrites without locks; a reader
// that races may see a mix of two texts, never beyond the page.
#ifndef REPRISE_REPLAY_COMPILER_PROGRESS_PAGE_H_
#define REPRISE_REPLAY_COMPILER_PROGRESS_PAGE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace reprise {

class ProgressPage {
 public:
  static constexpr size_t kBytes = 4096;

  // A new page; its descriptor is closed on exec unless passed on.
  static absl::StatusOr<std::unique_ptr<ProgressPage>> Create();
  // The page behind an inherited descriptor, which this takes over.
  static absl::StatusOr<std::unique_ptr<ProgressPage>> Open(int fd);
  ~ProgressPage();
  ProgressPage(const ProgressPage&) = delete;
  ProgressPage& operator=(const ProgressPage&) = delete;

  int fd() const { return fd_; }
  void Write(std::string_view text);
  std::string Read() const;

 private:
  ProgressPage(int fd, char* bytes) : fd_(fd), bytes_(bytes) {}
  const int fd_;
  char* const bytes_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_PROGRESS_PAGE_H_
