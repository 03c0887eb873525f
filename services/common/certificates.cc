#include "services/common/certificates.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

constexpr char kNamePrefix[] = "reprise ";
constexpr const char* kRoles[] = {"server", "client", "viewer"};
constexpr int kSerialBits = 127;
// Clocks of a fleet differ; a certificate holds a little earlier than now.
constexpr long kBackdateSeconds = -3600;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;

struct Identity {
  Key key;
  Certificate certificate;
};

absl::Status CryptoError(const std::string& what) {
  char text[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0)
    ERR_error_string_n(code, text, sizeof(text));
  return absl::InternalError(absl::StrCat(what, ": ", text));
}

bool SetSerial(X509* certificate) {
  const std::unique_ptr<BIGNUM, Deleter<BN_free>> serial(BN_new());
  return serial != nullptr &&
         BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY,
                 BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) !=
             nullptr;
}

bool AddExtension(X509* certificate, X509* issuer, int nid,
                  const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr &&
         X509_add_ext(certificate, extension.get(), -1) == 1;
}

struct Extension {
  int nid;
  std::string value;
};

// Signed by `issuer`, or by itself where that is null.
absl::StatusOr<Identity> Make(const std::string& name, int days,
                              const std::vector<Extension>& extensions,
                              const Identity* issuer) {
  Identity made;
  made.key.reset(EVP_EC_gen("P-256"));
  made.certificate.reset(X509_new());
  if (made.key == nullptr || made.certificate == nullptr)
    return CryptoError("cannot make a key");
  X509* const certificate = made.certificate.get();
  const std::string common_name = absl::StrCat(kNamePrefix, name);
  X509_NAME* const subject = X509_get_subject_name(certificate);
  X509* const signer =
      issuer == nullptr ? certificate : issuer->certificate.get();
  const bool described =
      X509_set_version(certificate, X509_VERSION_3) == 1 &&
      SetSerial(certificate) &&
      X509_gmtime_adj(X509_getm_notBefore(certificate), kBackdateSeconds) !=
          nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(certificate), 86400L * days) !=
          nullptr &&
      X509_NAME_add_entry_by_txt(
          subject, "CN", MBSTRING_UTF8,
          reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
          0) == 1 &&
      X509_set_issuer_name(certificate, X509_get_subject_name(signer)) == 1 &&
      X509_set_pubkey(certificate, made.key.get()) == 1;
  if (!described) return CryptoError("cannot describe a certificate");
  for (const Extension& extension : extensions) {
    if (!AddExtension(certificate, signer, extension.nid, extension.value))
      return CryptoError(
          absl::StrCat("cannot say ", extension.value, " in a certificate"));
  }
  EVP_PKEY* const signing =
      issuer == nullptr ? made.key.get() : issuer->key.get();
  if (X509_sign(certificate, signing, EVP_sha256()) == 0)
    return CryptoError("cannot sign a certificate");
  return made;
}

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

absl::Status WriteIdentity(const std::string& directory,
                           const std::string& name, const Identity& identity) {
  const Bio certificate(BIO_new(BIO_s_mem())), key(BIO_new(BIO_s_mem()));
  if (certificate == nullptr || key == nullptr ||
      PEM_write_bio_X509(certificate.get(), identity.certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key.get(), identity.key.get(), nullptr, nullptr,
                               0, nullptr, nullptr) != 1)
    return CryptoError("cannot write a certificate");
  const std::string base = absl::StrCat(directory, "/", name);
  RETURN_IF_ERROR(
      WriteFileAtomically(base + ".key", Contents(key.get()), 0600));
  return WriteFileAtomically(base + ".pem", Contents(certificate.get()), 0600);
}

// Null where the text holds none.
Certificate ParseCertificate(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

Key ParseKey(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return Key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
}

absl::StatusOr<Identity> ReadIdentity(const std::string& directory,
                                      const std::string& name) {
  const std::string base = absl::StrCat(directory, "/", name);
  ASSIGN_OR_RETURN(const std::string certificate, ReadFile(base + ".pem"));
  ASSIGN_OR_RETURN(const std::string key, ReadFile(base + ".key"));
  Identity read;
  read.certificate = ParseCertificate(certificate);
  read.key = ParseKey(key);
  if (read.certificate == nullptr || read.key == nullptr) {
    return absl::DataLossError(absl::StrCat(
        base,
        ".pem or .key holds no certificate and key; remove both to make "
        "a new authority"));
  }
  return read;
}

bool IsHostName(const std::string& host) {
  return !host.empty() && host.size() < 254 &&
         std::all_of(
             host.begin(), host.end(),
             [](unsigned char c) {
               return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '*';
             });
}

// "DNS:localhost,IP:127.0.0.1,..."
absl::StatusOr<std::string> AlternativeNames(
    const std::vector<std::string>& hosts) {
  std::vector<std::string> names = {"DNS:localhost", "IP:127.0.0.1", "IP:::1"};
  for (const std::string& host : hosts) {
    unsigned char address[16];
    const bool is_address = inet_pton(AF_INET, host.c_str(), address) == 1 ||
                            inet_pton(AF_INET6, host.c_str(), address) == 1;
    if (!is_address && !IsHostName(host)) {
      return absl::InvalidArgumentError(
          absl::StrCat("got host '", host, "', expected a name or an address"));
    }
    names.push_back(absl::StrCat(is_address ? "IP:" : "DNS:", host));
  }
  return absl::StrJoin(names, ",");
}

absl::Time EndOf(const X509* certificate) {
  tm utc = {};
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &utc);
  return absl::FromTM(utc, absl::UTCTimeZone());
}

std::string DayOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone());
}

// Empty: the authority vouches for the certificate at `now`. Else why not.
std::string Objection(X509* authority, X509* certificate, absl::Time now) {
  const std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>> store(
      X509_STORE_new());
  const std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>> context(
      X509_STORE_CTX_new());
  if (store == nullptr || context == nullptr ||
      X509_STORE_add_cert(store.get(), authority) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr) !=
          1)
    return "there is no memory to look at it";
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  if (X509_verify_cert(context.get()) == 1) return "";
  return X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
}

// What somebody who has the files would find when it is too late.
absl::Status CheckTlsFiles(const std::string& directory,
                           const std::string& role, absl::Time now,
                           TlsFiles* files) {
  const Certificate authority = ParseCertificate(files->authority);
  const Certificate certificate = ParseCertificate(files->certificate);
  const Key key = ParseKey(files->key);
  const std::string remedy =
      absl::StrCat("; make new ones: reprise certs ", directory);
  if (authority == nullptr || certificate == nullptr || key == nullptr) {
    return absl::DataLossError(absl::StrCat(
        directory, "/",
        authority == nullptr ? "ca.pem" : role + (key ? ".pem" : ".key"),
        " holds no ", authority && !key ? "key" : "certificate", remedy));
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, "/", role, ".key is not the key of ", role,
                     ".pem; copy both from one directory"));
  }
  files->expires = EndOf(certificate.get());
  const std::string objection =
      Objection(authority.get(), certificate.get(), now);
  if (objection.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      directory, "/", role, ".pem does not hold under ca.pem: ", objection,
      " (it ends on ", DayOf(files->expires), ")", remedy));
}

absl::StatusOr<Identity> Authority(const std::string& directory, int days) {
  // One that is half there is not replaced: what it signed is in use.
  if (std::filesystem::exists(directory + "/ca.pem") ||
      std::filesystem::exists(directory + "/ca.key")) {
    ASSIGN_OR_RETURN(Identity there, ReadIdentity(directory, "ca"));
    const absl::Time ends = EndOf(there.certificate.get());
    if (absl::Now() + absl::Hours(24) * days < ends) return there;
    return absl::FailedPreconditionError(absl::StrCat(
        "the authority in ", directory, " ends on ", DayOf(ends),
        ", before certificates of ", days,
        " days would; ask for fewer --days, or make another authority in "
        "another directory"));
  }
  // Longer than what it signs, which is made anew meanwhile.
  ASSIGN_OR_RETURN(Identity made,
                   Make("authority", 10 * days,
                        {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                         {NID_key_usage, "critical,keyCertSign,cRLSign"},
                         {NID_subject_key_identifier, "hash"}},
                        nullptr));
  RETURN_IF_ERROR(WriteIdentity(directory, "ca", made));
  return made;
}

}  // namespace

absl::Status MakeCertificates(const std::string& directory,
                              const CertificateOptions& options) {
  if (options.days < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", options.days, " days, expected 1 or more"));
  }
  ASSIGN_OR_RETURN(const std::string names, AlternativeNames(options.hosts));
  RETURN_IF_ERROR(MakePrivateDirectory(directory));
  ASSIGN_OR_RETURN(const Identity authority,
                   Authority(directory, options.days));
  for (const char* role : kRoles) {
    const bool server = std::string(role) == "server";
    std::vector<Extension> extensions = {
        {NID_basic_constraints, "critical,CA:FALSE"},
        {NID_key_usage, "critical,digitalSignature"},
        {NID_ext_key_usage, server ? "serverAuth,clientAuth" : "clientAuth"},
        {NID_authority_key_identifier, "keyid"}};
    if (server) extensions.push_back({NID_subject_alt_name, names});
    ASSIGN_OR_RETURN(const Identity made,
                     Make(role, options.days, extensions, &authority));
    RETURN_IF_ERROR(WriteIdentity(directory, role, made));
  }
  return absl::OkStatus();
}

absl::StatusOr<TlsFiles> ReadTlsFiles(const std::string& directory,
                                      const std::string& role, absl::Time now) {
  TlsFiles files;
  const std::string base = absl::StrCat(directory, "/", role);
  RETURN_IF_ERROR(CheckOwnersAlone(base + ".key"));
  const struct {
    std::string path;
    std::string* text;
  } parts[] = {{directory + "/ca.pem", &files.authority},
               {base + ".pem", &files.certificate},
               {base + ".key", &files.key}};
  for (const auto& part : parts) {
    absl::StatusOr<std::string> text = ReadFile(part.path);
    if (absl::IsNotFound(text.status())) {
      return absl::NotFoundError(absl::StrCat(
          "there is no ", part.path, "; make it: reprise certs ", directory));
    }
    if (!text.ok()) return text.status();
    *part.text = *std::move(text);
  }
  RETURN_IF_ERROR(CheckTlsFiles(directory, role, now, &files));
  return files;
}

std::string RoleOf(const std::string& common_name) {
  for (const char* role : kRoles) {
    if (common_name == absl::StrCat(kNamePrefix, role)) return role;
  }
  return "";
}

}  // namespace reprise
