#include "replay/recorder/preload/support.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

namespace reprise::standin {

void Say(const char* format, ...) {
  const int saved_errno = errno;
  char text[1024] = "reprise: ";
  const int prefix = 9;
  va_list arguments;
  va_start(arguments, format);
  int length =
      vsnprintf(text + prefix, sizeof(text) - prefix - 1, format, arguments);
  va_end(arguments);
  if (length < 0) length = 0;
  length += prefix;
  if (length > static_cast<int>(sizeof(text)) - 2) length = sizeof(text) - 2;
  text[length++] = '\n';
  for (int done = 0; done < length;) {
    const ssize_t written =
        write(STDERR_FILENO, text + done, static_cast<size_t>(length - done));
    if (written < 0 && errno != EINTR) break;
    if (written > 0) done += static_cast<int>(written);
  }
  errno = saved_errno;
}

int64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

}  // namespace reprise::standin
