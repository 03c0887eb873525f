#include "services/replay_server/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "replay/base/file_util.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "services/common/certificates.h"
#include "services/replay_server/authorization.h"
#include "services/replay_server/metrics.h"
#include "services/replay_server/replay_service.h"
#include "services/replay_server/transfer_service.h"

namespace reprise {
namespace {

// A manifest of a unit of 100 GiB has 10 MiB.
constexpr int kMostMessageBytes = 64 << 20;
// Health is as old as this at most.
constexpr std::chrono::milliseconds kHealthInterval(50);
// From the last answer until connections are closed.
constexpr absl::Duration kLinger = absl::Milliseconds(200);
// How long before the end of the grace what still runs is given up.
constexpr absl::Duration kGivingUp = absl::Seconds(3);
// Clients may ask this often whether the connection lives.
constexpr int kLeastPingIntervalMs = 10'000;

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(
    const ReplayServer::Options& options) {
  if (!options.certificates.empty()) {
    ASSIGN_OR_RETURN(const TlsFiles files,
                     ReadTlsFiles(options.certificates, "server"));
    grpc::SslServerCredentialsOptions tls(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = files.authority;
    tls.pem_key_cert_pairs = {{files.key, files.certificate}};
    auto credentials = grpc::SslServerCredentials(tls);
    credentials->SetAuthMetadataProcessor(NewAuthorization());
    return credentials;
  }
  if (IsOnThisHost(options.listen)) return grpc::InsecureServerCredentials();
  return absl::InvalidArgumentError(absl::StrCat(
      "got --listen ", options.listen,
      " without certificates: whoever reaches that address could run code "
      "here. Make some (reprise certs DIR) and serve with --certs DIR"));
}

// A socket's directory is its owner's alone.
absl::Status PrepareSocket(const std::string& listen) {
  if (!absl::StartsWith(listen, "unix:")) return absl::OkStatus();
  const std::string path = listen.substr(5);
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || path[0] != '/') {
    return absl::InvalidArgumentError(absl::StrCat(
        "got --listen ", listen, ", expected unix: and an absolute path"));
  }
  return MakePrivateDirectory(path.substr(0, slash));
}

// gRPC takes a socket away from whoever listens there. Held while the server
// lives; goes with its process.
absl::StatusOr<int> LockSocket(const std::string& listen) {
  RETURN_IF_ERROR(PrepareSocket(listen));
  if (!absl::StartsWith(listen, "unix:")) return -1;
  const std::string path = listen.substr(5) + ".lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return absl::AlreadyExistsError(absl::StrCat(
      "another server listens at ", listen, "; choose another --listen"));
}

// What gRPC says goes where our log goes, to be seen by who asks for it; errors
// reach the user in our own words.
void TakeGrpcLog() {
  gpr_set_log_function([](gpr_log_func_args* said) {
    LOG_INFO("gRPC: {}:{}: {}", said->file, said->line, said->message);
  });
}

absl::StatusOr<std::unique_ptr<grpc::Server>> Listen(
    const ReplayServer::Options& options,
    const std::vector<grpc::Service*>& services, std::string* address) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(options));
  TakeGrpcLog();
  grpc::EnableDefaultHealthCheckService(true);
  if (options.reflection && IsOnThisHost(options.listen))
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen, credentials, &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.SetMaxSendMessageSize(kMostMessageBytes);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      kLeastPingIntervalMs);
  // Two servers on one port would share its clients.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen at ", options.listen,
                     ": it is no address of this host, or somebody else "
                     "listens there"));
  }
  *address = options.listen;
  if (!absl::StartsWith(*address, "unix:"))
    *address = absl::StrCat(address->substr(0, address->rfind(':')), ":", port);
  return server;
}

class ReplayServerImpl : public ReplayServer {
 public:
  ReplayServerImpl(UnitStore& store,
                   std::vector<std::unique_ptr<ReplayCore>> cores)
      : cores_(std::move(cores)), replay_(store, cores_), transfer_(store) {}
  ~ReplayServerImpl() override {
    Shutdown(absl::ZeroDuration());
    if (lock_fd_ >= 0) close(lock_fd_);
  }

  absl::Status Start(const Options& options) {
    ASSIGN_OR_RETURN(lock_fd_, LockSocket(options.listen));
    ASSIGN_OR_RETURN(server_,
                     Listen(options, {&replay_, &transfer_}, &address_));
    health_ = std::thread([this] { WatchHealth(); });
    return StartMetrics(options.metrics);
  }

  const std::string& address() const override { return address_; }
  const std::string& metrics_address() const override {
    static const std::string none;
    return metrics_ == nullptr ? none : metrics_->address();
  }

  void Shutdown(absl::Duration grace) override {
    const std::lock_guard<std::mutex> once(shutdown_mutex_);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (ending_) return;
      ending_ = true;
    }
    changed_.notify_all();
    if (health_.joinable()) health_.join();
    for (const auto& core : cores_) core->Drain();
    if (server_ != nullptr) {
      const absl::Time end = absl::Now() + grace;
      server_->GetHealthCheckService()->Shutdown();
      WaitForStreams(end - std::min(kGivingUp, grace / 4));
      // A long sample, or a compiler that hangs, ends now.
      for (const auto& core : cores_) core->Abandon();
      WaitForStreams(end);
      // A connection that is closed at once may take the last answers with it.
      absl::SleepFor(std::min(kLinger, grace));
      server_->Shutdown(absl::ToChronoTime(std::max(end, absl::Now())));
    }
    // Calls may still be in them.
    metrics_.reset();
    server_.reset();
    cores_.clear();
  }

 private:
  absl::Status StartMetrics(const std::string& listen) {
    if (listen.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(metrics_, MetricsPort::Start(listen, [this] {
                       std::vector<v1::DeviceStatistics> statistics;
                       for (const auto& core : cores_)
                         statistics.push_back(core->Statistics());
                       return statistics;
                     }));
    return absl::OkStatus();
  }
  void WaitForStreams(absl::Time end) {
    while (replay_.streams() > 0 && absl::Now() < end)
      absl::SleepFor(absl::Milliseconds(5));
  }
  void WatchHealth() {
    std::unique_lock<std::mutex> lock(mutex_);
    do {
      const bool serving = std::all_of(
          cores_.begin(), cores_.end(),
          [](const auto& core) { return core->Describe().serving(); });
      for (const char* service : {"", "reprise.v1.ReplayService"})
        server_->GetHealthCheckService()->SetServingStatus(service, serving);
    } while (
        !changed_.wait_for(lock, kHealthInterval, [this] { return ending_; }));
  }

  std::vector<std::unique_ptr<ReplayCore>> cores_;
  ReplayServiceImpl replay_;
  TransferServiceImpl transfer_;
  std::string address_;
  int lock_fd_ = -1;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<MetricsPort> metrics_;
  std::mutex shutdown_mutex_, mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread health_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ReplayServer>> ReplayServer::Start(
    Options options, UnitStore& store,
    std::vector<std::unique_ptr<ReplayCore>> cores) {
  auto server = std::make_unique<ReplayServerImpl>(store, std::move(cores));
  RETURN_IF_ERROR(server->Start(options));
  return server;
}

absl::Status CheckAddress(const ReplayServer::Options& options) {
  ASSIGN_OR_RETURN(const int lock_fd, LockSocket(options.listen));
  std::string address;
  const absl::Status status = Listen(options, {}, &address).status();
  if (lock_fd >= 0) close(lock_fd);
  return status;
}

bool IsOnThisHost(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const std::string host = address.substr(0, address.rfind(':'));
  in_addr number = {};
  const bool loopback = inet_pton(AF_INET, host.c_str(), &number) == 1 &&
                        ntohl(number.s_addr) >> 24 == 127;
  return loopback || host == "localhost" || host == "[::1]";
}

}  // namespace reprise
