#include "services/replay_server/authorization.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/common/certificates.h"
#include "services/replay_server/grpc_status.h"

namespace reprise {
namespace {

constexpr const char* kToLookAt[] = {
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/reprise.v1.ReplayService/GetDevices",
    "/reprise.v1.ReplayService/GetStatistics",
    "/reprise.v1.ReplayService/ListUnits",
};

std::string Text(const grpc::string_ref& text) {
  return {text.data(), text.size()};
}

class Authorization : public grpc::AuthMetadataProcessor {
 public:
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata,
                       grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const auto path = metadata.find(":path");
    const auto names = context->FindPropertyValues("x509_common_name");
    return ToGrpc(MayCall(names.empty() ? "" : RoleOf(Text(names.front())),
                          path == metadata.end() ? "" : Text(path->second)));
  }
};

}  // namespace

absl::Status MayCall(const std::string& role, const std::string& method) {
  if (role == "client") return absl::OkStatus();
  const bool to_look_at = std::find(std::begin(kToLookAt), std::end(kToLookAt),
                                    method) != std::end(kToLookAt);
  if (role == "viewer" && to_look_at) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("got a certificate of role '", role, "', ", method,
                   " needs role ", to_look_at ? "viewer or client" : "client",
                   ": what it is given runs as code"));
}

std::shared_ptr<grpc::AuthMetadataProcessor> NewAuthorization() {
  return std::make_shared<Authorization>();
}

}  // namespace reprise
