// Values by key, up to a number of bytes; the least recently used ones go.
// Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_LRU_CACHE_H_
#define REPRISE_REPLAY_COMPILER_LRU_CACHE_H_

#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace reprise {

template <typename Value>
class LruCache {
 public:
  explicit LruCache(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  // Null: not there.
  std::shared_ptr<const Value> Find(const std::string& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return entries_.front().value;
  }

  // `value_bytes` count with the key's. Does not keep what alone is over the
  // limit.
  void Insert(const std::string& key, std::shared_ptr<const Value> value,
              uint64_t value_bytes) {
    const uint64_t bytes = key.size() + value_bytes;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = by_key_.find(key); found != by_key_.end())
      EraseLocked(found->second);
    if (bytes > max_bytes_) return;
    entries_.push_front({key, std::move(value), bytes});
    by_key_[key] = entries_.begin();
    bytes_ += bytes;
    while (bytes_ > max_bytes_) EraseLocked(std::prev(entries_.end()));
  }

  uint64_t bytes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Value> value;
    uint64_t bytes;
  };

  void EraseLocked(typename std::list<Entry>::iterator entry) {
    bytes_ -= entry->bytes;
    by_key_.erase(entry->key);
    entries_.erase(entry);
  }

  const uint64_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, typename std::list<Entry>::iterator> by_key_;
  uint64_t bytes_ = 0;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_LRU_CACHE_H_
