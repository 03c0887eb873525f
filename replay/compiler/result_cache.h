// Replies of the compiler by what was asked, up to a number of bytes; the least
// recently used ones go. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_RESULT_CACHE_H_
#define REPRISE_REPLAY_COMPILER_RESULT_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "reprise/v1/node.pb.h"

namespace reprise {

class ResultCache {
 public:
  explicit ResultCache(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  // Null: not there.
  std::shared_ptr<const v1::CompileReply> Find(const std::string& key);
  // Does not keep a reply that alone is over the limit.
  void Insert(const std::string& key,
              std::shared_ptr<const v1::CompileReply> reply);
  uint64_t bytes() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const v1::CompileReply> reply;
    uint64_t bytes;
  };

  void EraseLocked(std::list<Entry>::iterator entry);

  const uint64_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  uint64_t bytes_ = 0;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_RESULT_CACHE_H_
