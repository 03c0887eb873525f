#include "replay/base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"

namespace reprise {

absl::StatusOr<int> CreateSharedMemory(const char* name, uint64_t bytes) {
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return ErrnoToStatus(errno, "cannot create shared memory");
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const int error = errno;
    close(fd);
    return ErrnoToStatus(
        error, absl::StrCat("cannot size shared memory to ", bytes, " bytes"));
  }
  return fd;
}

}  // namespace reprise
