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
  const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1000000};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word),
          FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value,
          timeout_ms < 0 ? nullptr : &timeout, nullptr, 0);
}

void WakeAll(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word),
          FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace reprise::driver
