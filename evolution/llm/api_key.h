// A provider's key: read once, sent in one header, and in no text.
// Thread-safe: immutable.
#ifndef REPRISE_EVOLUTION_LLM_API_KEY_H_
#define REPRISE_EVOLUTION_LLM_API_KEY_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace reprise::evolution {

class ApiKey {
 public:
  ApiKey() = default;  // none: a server that needs none

  // The first line of a file that only its owner may read.
  // FAILED_PRECONDITION: others may. NOT_FOUND. INVALID_ARGUMENT: it is empty
  // or no key.
  static absl::StatusOr<ApiKey> FromFile(const std::string& path);
  // NOT_FOUND: no such variable. INVALID_ARGUMENT as above.
  static absl::StatusOr<ApiKey> FromEnvironment(const std::string& variable);

  bool empty() const { return value_.empty(); }
  // A line of a request's head that begins with `prefix`
  // ("Authorization: Bearer ").
  std::string Header(std::string_view prefix) const;
  // `text` without the key, or pieces of it of eight bytes and more.
  std::string Redacted(std::string_view text) const;

 private:
  explicit ApiKey(std::string value) : value_(std::move(value)) {}
  static absl::StatusOr<ApiKey> Checked(std::string_view text,
                                        const std::string& source);
  std::string value_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_API_KEY_H_
