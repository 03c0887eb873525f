#include "replay/compiler/progress_page.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "replay/base/file_util.h"

namespace reprise {

absl::StatusOr<std::unique_ptr<ProgressPage>> ProgressPage::Create() {
  const int fd = memfd_create("reprise-progress", MFD_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, "cannot create shared memory");
  if (ftruncate(fd, kBytes) != 0) {
    const absl::Status status = ErrnoToStatus(errno, "cannot size memory");
    close(fd);
    return status;
  }
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
