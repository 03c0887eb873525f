#include "replay/compiler/progress_page.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "replay/base/file_util.h"
#include "replay/base/shared_memory.h"
#include "replay/base/status_macros.h"

namespace reprise {

absl::StatusOr<std::unique_ptr<ProgressPage>> ProgressPage::Create() {
  ASSIGN_OR_RETURN(const int fd,
                   CreateSharedMemory("reprise-progress", kBytes));
  return Open(fd);
}

absl::StatusOr<std::unique_ptr<ProgressPage>> ProgressPage::Open(int fd) {
  void* bytes =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED) {
    const absl::Status status = ErrnoToStatus(errno, "cannot map a page");
    close(fd);
    return status;
  }
  return std::unique_ptr<ProgressPage>(
      new ProgressPage(fd, static_cast<char*>(bytes)));
}

ProgressPage::~ProgressPage() {
  munmap(bytes_, kBytes);
  close(fd_);
}

void ProgressPage::Write(std::string_view text) {
  const size_t size = std::min(text.size(), kBytes - 1);
  std::memcpy(bytes_, text.data(), size);
  bytes_[size] = '\0';
}

std::string ProgressPage::Read() const {
  return std::string(bytes_, strnlen(bytes_, kBytes));
}

}  // namespace reprise
