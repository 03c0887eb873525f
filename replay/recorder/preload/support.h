// The little that the stand-in needs of a standard library: it may bring none
// into the application. Everything here is usable before main and after exit
// handlers ran.
#ifndef REPRISE_REPLAY_RECORDER_PRELOAD_SUPPORT_H_
#define REPRISE_REPLAY_RECORDER_PRELOAD_SUPPORT_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace reprise::standin {

// Writes "reprise: <text>" and a newline to standard error in one call. Cuts
// what does not fit into 1,000 bytes.
__attribute__((format(printf, 1, 2))) void Say(const char* format, ...);

// Nanoseconds of the monotonic clock.
int64_t MonotonicNs();

class Mutex {
 public:
  constexpr Mutex() = default;
  void Lock() { pthread_mutex_lock(&mutex_); }
  void Unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A growing array of trivially copyable elements. Never frees its memory at
// exit: calls may still come from exit handlers. Append says false when memory
// is exhausted.
template <typename T>
class Array {
 public:
  constexpr Array() = default;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* data() { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  void clear() { size_ = 0; }

  bool Reserve(size_t capacity) {
    if (capacity <= capacity_) return true;
    size_t grown = capacity_ < 8 ? 16 : capacity_ * 2;
    if (grown < capacity) grown = capacity;
    void* data = realloc(static_cast<void*>(data_), grown * sizeof(T));
    if (data == nullptr) return false;
    data_ = static_cast<T*>(data);
    capacity_ = grown;
    return true;
  }
  bool Append(const T& value) { return Insert(size_, value); }
  bool Append(const T* values, size_t count) {
    if (!Reserve(size_ + count)) return false;
    if (count > 0)
      memcpy(static_cast<void*>(data_ + size_), values, count * sizeof(T));
    size_ += count;
    return true;
  }
  bool Insert(size_t at, const T& value) {
    const T copy = value;
    if (!Reserve(size_ + 1)) return false;
    memmove(static_cast<void*>(data_ + at + 1), data_ + at,
            (size_ - at) * sizeof(T));
    data_[at] = copy;
    ++size_;
    return true;
  }
  void Remove(size_t at) { RemoveFront(at, 1); }
  void RemoveFront(size_t at, size_t count) {
    memmove(static_cast<void*>(data_ + at), data_ + at + count,
            (size_ - at - count) * sizeof(T));
    size_ -= count;
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace reprise::standin

#endif  // REPRISE_REPLAY_RECORDER_PRELOAD_SUPPORT_H_
