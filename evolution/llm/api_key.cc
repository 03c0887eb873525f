#include "evolution/llm/api_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "evolution/llm/text.h"
#include "replay/base/file_util.h"

namespace reprise::evolution {
namespace {

constexpr size_t kMaxKeyBytes = 4096;
constexpr size_t kPiece = 8;

}  // namespace

absl::StatusOr<ApiKey> ApiKey::Checked(std::string_view text,
                                       const std::string& source) {
  const std::string_view key = Stripped(text.substr(0, text.find('\n')));
  if (key.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no key in ", source));
  }
  const bool printable = std::all_of(
      key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!printable || key.size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "what is in ", source,
        " is no key: expected one word of printable characters, at most ",
        kMaxKeyBytes));
  }
  return ApiKey(std::string(key));
}

absl::StatusOr<ApiKey> ApiKey::FromFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoToStatus(errno, "cannot read the key file " + path);
  const absl::Cleanup close_it = [fd] { close(fd); };
  // The mode of what was opened, whatever the path means a moment later.
  struct stat info = {};
  if (fstat(fd, &info) != 0) {
    return ErrnoToStatus(errno, "cannot read the key file " + path);
  }
  if ((info.st_mode & 0077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("others may use the key file %s (mode %04o); run: "
                        "chmod 600 %s",
                        path, info.st_mode & 07777, path));
  }
  std::array<char, kMaxKeyBytes + 2> buffer = {};
  const ssize_t size = read(fd, buffer.data(), buffer.size());
  if (size < 0) return ErrnoToStatus(errno, "cannot read the key file " + path);
  return Checked({buffer.data(), static_cast<size_t>(size)},
                 "the key file " + path);
}

absl::StatusOr<ApiKey> ApiKey::FromEnvironment(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the environment variable ", variable,
                     ", which should hold a provider's key, is not set"));
  }
  return Checked(value, "the environment variable " + variable);
}

std::string ApiKey::Header(std::string_view prefix) const {
  return std::string(prefix) + value_;
}

std::string ApiKey::Redacted(std::string_view text) const {
  std::string clean;
  while (!text.empty()) {
    // The longest piece of the key that the rest begins with.
    size_t length = 0;
    for (size_t from = 0; from < value_.size(); ++from) {
      size_t same = 0;
      while (from + same < value_.size() && same < text.size() &&
             value_[from + same] == text[same]) {
        ++same;
      }
      length = std::max(length, same);
    }
    const bool secret = length > 0 && length >= std::min(kPiece, value_.size());
    clean += secret ? std::string_view("[key]") : text.substr(0, 1);
    text.remove_prefix(secret ? length : 1);
  }
  return clean;
}

}  // namespace reprise::evolution
