#include "replay/device/cuda/transfer_window.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_format.h"
#include "replay/base/file_util.h"

namespace reprise::cuda {

absl::StatusOr<std::unique_ptr<TransferWindow>> TransferWindow::Create() {
  const int fd = memfd_create("reprise-window", MFD_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, "cannot create shared memory");
  if (ftruncate(fd, static_cast<off_t>(kWindowBytes)) != 0) {
    const int error = errno;
    close(fd);
    return ErrnoToStatus(
        error,
        absl::StrFormat("cannot size shared memory to %d bytes", kWindowBytes));
  }
  return Open(fd);
}

absl::StatusOr<std::unique_ptr<TransferWindow>> TransferWindow::Open(int fd) {
  auto window = std::unique_ptr<TransferWindow>(new TransferWindow(fd));
  void* bytes =
      mmap(nullptr, kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED)
    return ErrnoToStatus(errno, "cannot map shared memory");
  window->bytes_ = static_cast<char*>(bytes);
  return window;
}

TransferWindow::~TransferWindow() {
  if (bytes_ != nullptr) munmap(bytes_, kWindowBytes);
  close(fd_);
}

}  // namespace reprise::cuda
