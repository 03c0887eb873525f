// Certificates for servers and clients of one fleet: an authority of its own,
// and one certificate per role, each for elliptic curve P-256 and signed with
// SHA-256.
//
// A directory holds ca.pem, ca.key, and for each of the roles server, client
// and viewer ROLE.pem and ROLE.key; it has mode 0700 and every file 0600. What
// goes to another machine is ca.pem and one role's two files, never ca.key. The
// role is the certificate's common name, "reprise ROLE".
//
// Thread-safe.
#ifndef REPRISE_SERVICES_COMMON_CERTIFICATES_H_
#define REPRISE_SERVICES_COMMON_CERTIFICATES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace reprise {

struct CertificateOptions {
  // Names and addresses that clients reach servers by, besides localhost,
  // 127.0.0.1 and ::1.
  std::vector<std::string> hosts;
  int days = 365;
};

// Makes the authority where the directory has none, and all roles' certificates
// anew. INVALID_ARGUMENT: days below 1, or a host that is no name or address.
// FAILED_PRECONDITION: the directory is there and others may enter it, or its
// authority ends before what it would sign.
absl::Status MakeCertificates(const std::string& directory,
                              const CertificateOptions& options);

// PEM text of one role's files.
struct TlsFiles {
  std::string authority;
  std::string certificate;
  std::string key;
  absl::Time expires;  // the certificate
};
// As they hold at `now`. NOT_FOUND names the file and the command that makes
// it. FAILED_PRECONDITION: others than its owner may read the key, the key is
// another certificate's, or the certificate has expired or is not the
// authority's. DATA_LOSS: there is something else in a file.
absl::StatusOr<TlsFiles> ReadTlsFiles(const std::string& directory,
                                      const std::string& role,
                                      absl::Time now = absl::Now());

// Of a certificate's common name; empty: none of ours.
std::string RoleOf(const std::string& common_name);

}  // namespace reprise

#endif  // REPRISE_SERVICES_COMMON_CERTIFICATES_H_
