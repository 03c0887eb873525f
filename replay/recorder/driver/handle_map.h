// A map from handles to immortal objects that is read without a lock. Writers
// are serialized by their own mutex. Entries are never freed; an erased handle
// may be set again.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_HANDLE_MAP_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_HANDLE_MAP_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <atomic>
#include <new>

namespace reprise::driver {

template <typename T, size_t kBuckets>
class HandleMap {
 public:
  constexpr HandleMap() = default;

  T* Find(const void* handle) const {
    const Node* node = FindNode(handle);
    return node != nullptr ? node->value.load(std::memory_order_acquire)
                           : nullptr;
  }

  // False: memory is exhausted.
  bool Set(const void* handle, T* value) {
    Node* node = const_cast<Node*>(FindNode(handle));
    if (node != nullptr) {
      node->value.store(value, std::memory_order_release);
      return true;
    }
    void* memory = malloc(sizeof(Node));
    if (memory == nullptr) return false;
    std::atomic<Node*>& bucket = buckets_[BucketOf(handle)];
    node = new (memory)
        Node{handle, {value}, bucket.load(std::memory_order_relaxed)};
    bucket.store(node, std::memory_order_release);
    return true;
  }

  template <typename Visitor>
  void ForEach(Visitor visit) const {
    for (const std::atomic<Node*>& bucket : buckets_) {
      const Node* node = bucket.load(std::memory_order_acquire);
      for (; node != nullptr; node = node->next) {
        T* value = node->value.load(std::memory_order_acquire);
        if (value != nullptr) visit(value);
      }
    }
  }

  // Erases the handles whose object the predicate is true for.
  template <typename Predicate>
  void EraseIf(Predicate predicate) {
    for (std::atomic<Node*>& bucket : buckets_) {
      Node* node = bucket.load(std::memory_order_relaxed);
      for (; node != nullptr; node = node->next) {
        T* value = node->value.load(std::memory_order_relaxed);
        if (value != nullptr && predicate(value))
          node->value.store(nullptr, std::memory_order_release);
      }
    }
  }

 private:
  struct Node {
    const void* handle;
    std::atomic<T*> value;
    Node* next;
  };

  static size_t BucketOf(const void* handle) {
    const uint64_t mixed =
        (reinterpret_cast<uint64_t>(handle) >> 3) * 0x9e3779b97f4a7c15u;
    return (mixed >> 40) % kBuckets;
  }

  const Node* FindNode(const void* handle) const {
    const Node* node =
        buckets_[BucketOf(handle)].load(std::memory_order_acquire);
    while (node != nullptr && node->handle != handle) node = node->next;
    return node;
  }

  std::atomic<Node*> buckets_[kBuckets] = {};
};

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_HANDLE_MAP_H_
