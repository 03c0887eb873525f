#include "replay/device/cuda/transfer_window.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "replay/base/file_util.h"
#include "replay/base/shared_memory.h"
#include "replay/base/status_macros.h"

namespace reprise::cuda {

absl::StatusOr<std::unique_ptr<TransferWindow>> TransferWindow::Create() {
  ASSIGN_OR_RETURN(const int fd,
                   CreateSharedMemory("reprise-window", kWindowBytes));
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
