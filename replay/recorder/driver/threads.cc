#include "replay/recorder/driver/threads.h"

#include <dlfcn.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "replay/recorder/driver/hooks.h"

namespace reprise::driver {
namespace {

template <typename Function>
Function Find(const char* name) {
  return reinterpret_cast<Function>(RealDlsym(RTLD_DEFAULT, name));
}

void Wait(std::atomic<uint32_t>* word, uint32_t value, int64_t timeout_ms,
          int flags) {
  const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1000000};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT | flags,
          value, timeout_ms < 0 ? nullptr : &timeout, nullptr, 0);
}

void Wake(std::atomic<uint32_t>* word, int flags) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE | flags,
          INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

bool StartThread(ThreadBody body, void* argument, pthread_t* thread) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, ThreadBody, void*);
  const auto create = Find<Create>("pthread_create");
  if (create == nullptr) return false;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const bool started = create(thread, nullptr, body, argument) == 0;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void JoinThread(pthread_t thread) {
  const auto join = Find<int (*)(pthread_t, void**)>("pthread_join");
  if (join != nullptr) join(thread, nullptr);
}

void DetachThread(pthread_t thread) {
  const auto detach = Find<int (*)(pthread_t)>("pthread_detach");
  if (detach != nullptr) detach(thread);
}

void WaitWhile(std::atomic<uint32_t>* word, uint32_t value,
               int64_t timeout_ms) {
  Wait(word, value, timeout_ms, FUTEX_PRIVATE_FLAG);
}

void WakeAll(std::atomic<uint32_t>* word) { Wake(word, FUTEX_PRIVATE_FLAG); }

void WaitWhileShared(std::atomic<uint32_t>* word, uint32_t value,
                     int64_t timeout_ms) {
  Wait(word, value, timeout_ms, 0);
}

void WakeAllShared(std::atomic<uint32_t>* word) { Wake(word, 0); }

}  // namespace reprise::driver
