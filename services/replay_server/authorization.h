// Who may call what. Over TLS the role in a client's certificate decides
// (services/common/certificates.h): "client" may do everything, "viewer" may
// look at units, devices, statistics and health. Without TLS, which is served
// on this host alone, everybody may.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_AUTHORIZATION_H_
#define REPRISE_SERVICES_REPLAY_SERVER_AUTHORIZATION_H_

#include <grpcpp/security/auth_metadata_processor.h>

#include <memory>
#include <string>

#include "absl/status/status.h"

namespace reprise {

// `method` as gRPC has it, "/reprise.v1.ReplayService/Evaluate". A method that
// nobody listed is refused to viewers. PERMISSION_DENIED names the role that is
// needed.
absl::Status MayCall(const std::string& role, const std::string& method);

// Asks MayCall before every call.
std::shared_ptr<grpc::AuthMetadataProcessor> NewAuthorization();

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_AUTHORIZATION_H_
