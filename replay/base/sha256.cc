#include "replay/base/sha256.h"

#include <openssl/evp.h>

#include <cstring>

#include "replay/base/check.h"

namespace reprise {

struct FieldHasher::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

std::string Sha256(std::string_view bytes) {
  std::string digest(32, '\0');
  unsigned int size = 0;
  CHECK(EVP_Digest(bytes.data(), bytes.size(),
                   reinterpret_cast<unsigned char*>(digest.data()), &size,
                   EVP_sha256(), nullptr) == 1);
  return digest;
}

std::string HexEncode(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (unsigned char byte : bytes) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

FieldHasher::FieldHasher() : state_(std::make_unique<State>()) {
  CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

FieldHasher::~FieldHasher() = default;

void FieldHasher::Update(const void* data, size_t size) {
  CHECK(EVP_DigestUpdate(state_->context, data, size) == 1);
}

FieldHasher& FieldHasher::Bytes(std::string_view bytes) {
  U64(bytes.size());
  Update(bytes.data(), bytes.size());
  return *this;
}

FieldHasher& FieldHasher::U64(uint64_t value) {
  unsigned char little_endian[8];
  for (int i = 0; i < 8; ++i)
    little_endian[i] = static_cast<unsigned char>(value >> (8 * i));
  Update(little_endian, sizeof(little_endian));
  return *this;
}

FieldHasher& FieldHasher::F64(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return U64(bits);
}

std::string FieldHasher::Finish() {
  std::string digest(32, '\0');
  unsigned int size = 0;
  CHECK(EVP_DigestFinal_ex(state_->context,
                           reinterpret_cast<unsigned char*>(digest.data()),
                           &size) == 1);
  return digest;
}

}  // namespace reprise
