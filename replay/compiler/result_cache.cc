#include "replay/compiler/result_cache.h"

namespace reprise {

std::shared_ptr<const v1::CompileReply> ResultCache::Find(
    const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().reply;
}

void ResultCache::Insert(const std::string& key,
                         std::shared_ptr<const v1::CompileReply> reply) {
  const uint64_t bytes = key.size() + reply->ByteSizeLong();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = by_key_.find(key); found != by_key_.end())
    EraseLocked(found->second);
  if (bytes > max_bytes_) return;
  entries_.push_front({key, std::move(reply), bytes});
  by_key_[key] = entries_.begin();
  bytes_ += bytes;
  while (bytes_ > max_bytes_) EraseLocked(std::prev(entries_.end()));
}

uint64_t ResultCache::bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bytes_;
}

void ResultCache::EraseLocked(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace reprise
