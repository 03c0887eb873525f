// SHA-256 of bytes, over OpenSSL's libcrypto. Hasher is not thread-safe; the
// functions are.
#ifndef REPRISE_REPLAY_BASE_SHA256_H_
#define REPRISE_REPLAY_BASE_SHA256_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace reprise {

// 32 raw bytes of SHA-256.
std::string Sha256(std::string_view bytes);

// Lower-case hexadecimal of raw bytes.
std::string HexEncode(std::string_view bytes);

// Digests a sequence of fields, unambiguously: every field is preceded by its
// length.
class FieldHasher {
 public:
  FieldHasher();
  ~FieldHasher();
  FieldHasher(const FieldHasher&) = delete;
  FieldHasher& operator=(const FieldHasher&) = delete;

  FieldHasher& Bytes(std::string_view bytes);
  FieldHasher& U64(uint64_t value);
  FieldHasher& F64(double value);  // by its bits

  // 32 raw bytes; the hasher is spent afterwards.
  std::string Finish();

 private:
  void Update(const void* data, size_t size);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_BASE_SHA256_H_
