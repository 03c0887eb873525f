// A file's bytes, mapped for reading while this lives. A file that shrinks
// meanwhile ends the process (SIGBUS): map only where that is survived.
#ifndef REPRISE_REPLAY_RECORDER_CC_MAPPED_FILE_H_
#define REPRISE_REPLAY_RECORDER_CC_MAPPED_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace reprise {

class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}

  const char* data_;
  size_t size_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_CC_MAPPED_FILE_H_
