#include "replay/device/cuda/executor/output_capture.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "replay/base/file_util.h"

namespace reprise::cuda {
namespace {

constexpr off_t kMaximumBytes = 1 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<OutputCapture>> OutputCapture::Begin() {
  const int fd = memfd_create("reprise-printf", MFD_CLOEXEC);
  if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
    return ErrnoToStatus(errno, "cannot capture the output of kernels");
  close(fd);
  return std::unique_ptr<OutputCapture>(new OutputCapture);
}

std::string OutputCapture::Take() {
  std::fflush(stdout);
  const off_t end = lseek(STDOUT_FILENO, 0, SEEK_CUR);
  if (end <= 0) return "";
  std::string text(static_cast<size_t>(std::min(end, kMaximumBytes)), '\0');
  const ssize_t got = pread(STDOUT_FILENO, text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (ftruncate(STDOUT_FILENO, 0) != 0) return text;
  lseek(STDOUT_FILENO, 0, SEEK_SET);
  return text;
}

}  // namespace reprise::cuda
