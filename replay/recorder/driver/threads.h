// Threads of the recorder's own, with all signals blocked. The calls are looked
// up at run time: newer glibcs have them under a newer version. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_THREADS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_THREADS_H_

#include <pthread.h>
#include <stdint.h>

#include <atomic>

namespace reprise::driver {

using ThreadBody = void* (*)(void* argument);

// False: no thread.
bool StartThread(ThreadBody body, void* argument, pthread_t* thread);
void JoinThread(pthread_t thread);
void DetachThread(pthread_t thread);

// Waits while *word is `value`, at most timeout_ms (negative: forever); may
// return early.
void WaitWhile(std::atomic<uint32_t>* word, uint32_t value,
               int64_t timeout_ms = -1);
void WakeAll(std::atomic<uint32_t>* word);
// The same for a word that processes share.
void WaitWhileShared(std::atomic<uint32_t>* word, uint32_t value,
                     int64_t timeout_ms);
void WakeAllShared(std::atomic<uint32_t>* word);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_THREADS_H_
