// The gRPC front, over a real connection, with a fake device behind it.
#include "services/replay_server/server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>
#include <sys/stat.h>

#include <limits>

#include "absl/time/clock.h"
#include "replay/base/sha256.h"
#include "reprise/v1/replay.grpc.pb.h"
#include "services/common/certificates.h"
#include "services/replay_server/authorization.h"
#include "services/replay_server/metrics.h"
#include "tests/services/replay_server/fake_node.h"

namespace reprise {
namespace {

using testing::HasSubstr;

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    unit_ = node_.AddUnit("a");
    options_.listen = "unix:" + directory_.path() + "/socket";
  }
  void TearDown() override {
    node_.gate.Open();
    server_.reset();
  }
  absl::Status Start() {
    std::vector<std::unique_ptr<ReplayCore>> cores;
    cores.push_back(ReplayCore::Create(node_.options, node_.store(),
                                       std::move(node_.device), node_.pool));
    auto server =
        ReplayServer::Start(options_, node_.store(), std::move(cores));
    if (server.ok()) server_ = *std::move(server);
    return server.status();
  }
  void Connect(const std::shared_ptr<grpc::ChannelCredentials>& credentials =
                   grpc::InsecureChannelCredentials()) {
    channel_ = grpc::CreateChannel(server_->address(), credentials);
    replay_ = v1::ReplayService::NewStub(channel_);
    transfer_ = v1::UnitTransferService::NewStub(channel_);
  }
  grpc::Status Load() {
    grpc::ClientContext context;
    v1::LoadUnitRequest request;
    request.set_unit_id(unit_);
    v1::LoadUnitResponse response;
    return replay_->LoadUnit(&context, request, &response);
  }
  v1::DeviceStatistics Statistics() {
    grpc::ClientContext context;
    v1::GetStatisticsResponse response;
    EXPECT_TRUE(replay_->GetStatistics(&context, {}, &response).ok());
    return response.devices(0);
  }
  grpc::Status Evaluate(const std::vector<std::string>& codes,
                        std::map<uint32_t, v1::EvaluateResponse>* responses) {
    grpc::ClientContext context;
    v1::EvaluateRequest request;
    request.set_unit_id(unit_);
    for (const std::string& code : codes) *request.add_variants() = Code(code);
    auto reader = replay_->Evaluate(&context, request);
    v1::EvaluateResponse response;
    while (reader->Read(&response)) (*responses)[response.index()] = response;
    return reader->Finish();
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("server-test");
  FakeNode node_;
  std::string unit_;
  ReplayServer::Options options_;
  std::unique_ptr<ReplayServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ReplayService::Stub> replay_;
  std::unique_ptr<v1::UnitTransferService::Stub> transfer_;
};

TEST(MetricsTest, SaysWhatTheStatisticsSay) {
  v1::DeviceStatistics device;
  device.set_device("cuda:0");
  (*device.mutable_outcomes())["OK"] = 3;
  device.set_busy_s(1.5);
  v1::Histogram& outcome =
      *(*device.mutable_stages())["WRONG_RESULT"].mutable_outcome();
  for (const double bound : {1.0, 2.0}) outcome.add_bounds_ms(bound);
  for (const uint64_t count : {4, 0, 1}) outcome.add_counts(count);
  outcome.set_count(5);
  outcome.set_sum_ms(250);
  const std::string text =
      prometheus::TextSerializer().Serialize(MetricsOf({device}));
  for (const char* line :
       {"# TYPE reprise_outcomes_total counter\n",
        "reprise_outcomes_total{device=\"cuda:0\",kind=\"OK\"} 3",
        "reprise_device_busy_seconds_total{device=\"cuda:0\"} 1.5",
        "reprise_waiting{device=\"cuda:0\",for=\"compiler\"} 0",
        "stage=\"outcome\",le=\"0.001\"} 4",
        "stage=\"outcome\",le=\"0.002\"} 4", "stage=\"outcome\",le=\"+Inf\"} 5",
        "reprise_stage_seconds_sum{device=\"cuda:0\",kind=\"WRONG_RESULT\","
        "stage=\"outcome\"} 0.25",
        "reprise_stage_seconds_count{device=\"cuda:0\",kind=\"WRONG_RESULT\","
        "stage=\"outcome\"} 5",
        "reprise_recovery_seconds_count{device=\"cuda:0\"} 0"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST_F(ServerTest, ServesMetricsOnThisHostAlone) {
  options_.metrics = "0.0.0.0:0";
  EXPECT_THAT(std::string(Start().message()), HasSubstr("loopback"));
  node_.device = std::make_unique<GatedDevice>(&node_.gate);
  options_.metrics = "127.0.0.1:0";
  ASSERT_EQ(Start(), absl::OkStatus());
  EXPECT_THAT(server_->metrics_address(), testing::StartsWith("127.0.0.1:"));
  // A second one does not get the same port.
  const auto taken = MetricsPort::Start(server_->metrics_address(), [] {
    return std::vector<v1::DeviceStatistics>();
  });
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ServerTest, StreamsAnOutcomeForEveryVariant) {
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect();
  std::map<uint32_t, v1::EvaluateResponse> responses;
  EXPECT_EQ(Evaluate({"time=50"}, &responses).error_code(),
            grpc::StatusCode::NOT_FOUND);
  ASSERT_TRUE(Load().ok());
  const grpc::Status status =
      Evaluate({"time=50", "wrong", "syntax"}, &responses);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(responses.size(), 3u);
  EXPECT_EQ(responses[0].outcome().kind(), v1::OUTCOME_KIND_OK);
  EXPECT_EQ(responses[1].outcome().kind(), v1::OUTCOME_KIND_WRONG_RESULT);
  EXPECT_EQ(responses[2].outcome().kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
}

TEST_F(ServerTest, BadRequestsSayWhatWasExpected) {
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect();
  std::map<uint32_t, v1::EvaluateResponse> responses;
  const grpc::Status none = Evaluate({}, &responses);
  EXPECT_EQ(none.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(none.error_message(), HasSubstr("expected 1 to 1000"));
  grpc::ClientContext context;
  v1::LoadUnitRequest request;
  request.set_unit_id(unit_);
  request.set_device("cuda:7");
  v1::LoadUnitResponse response;
  const grpc::Status status = replay_->LoadUnit(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("this server has cpu"));
}

TEST_F(ServerTest, ClientThatGoesLeavesNothingBehind) {
  GatedDevice& device = *node_.device;
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect();
  ASSERT_TRUE(Load().ok());
  node_.gate.Shut();
  {
    grpc::ClientContext context;
    v1::EvaluateRequest request;
    request.set_unit_id(unit_);
    for (int i = 0; i < 100; ++i)
      *request.add_variants() = Code(absl::StrCat("time=", i + 1));
    auto reader = replay_->Evaluate(&context, request);
    node_.gate.WaitForSomebody();
    context.TryCancel();
    reader->Finish();
  }
  while (Statistics().cancelled() < 100) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(Statistics().compiled(), 0u);
  node_.gate.Open();
  std::map<uint32_t, v1::EvaluateResponse> responses;
  ASSERT_TRUE(Evaluate({"time=200"}, &responses).ok());
  EXPECT_LT(device.last->loads, 20);
}

TEST_F(ServerTest, TunesByEverySearchThereIs) {
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect();
  ASSERT_TRUE(Load().ok());
  for (const char* sampler : {"model", "random", "local-search",
                              "hill-climbing", "genetic", "annealing"}) {
    grpc::ClientContext context;
    v1::TuneRequest request;
    request.set_unit_id(unit_);
    request.set_trials(20);
    request.set_sampler(sampler);
    auto reader = replay_->Tune(&context, request);
    v1::TuneResponse response;
    uint64_t trials = 0;
    while (reader->Read(&response))
      trials = response.has_end() ? response.end().trials() : trials;
    EXPECT_TRUE(reader->Finish().ok()) << sampler;
    EXPECT_EQ(trials, 20u) << sampler;
  }
}

TEST_F(ServerTest, TunesBesideTheDevice) {
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect();
  ASSERT_TRUE(Load().ok());
  grpc::ClientContext context;
  v1::TuneRequest request;
  request.set_unit_id(unit_);
  request.set_trials(40);
  request.set_sampler("random");
  auto reader = replay_->Tune(&context, request);
  v1::TuneResponse response;
  int starts = 0, trials = 0, ends = 0, same = 0;
  while (reader->Read(&response)) {
    starts += response.has_start() ? 1 : 0;
    ends += response.has_end() ? 1 : 0;
    if (response.has_end()) {
      EXPECT_EQ(response.end().stopped_by(), "trials");
      EXPECT_EQ(response.end().trials(), 40u);
      EXPECT_EQ(response.end().same_code(), static_cast<uint64_t>(same));
      EXPECT_GT(response.end().best(), 0u);
    }
    if (!response.has_trial()) continue;
    ++trials;
    const v1::Trial& trial = response.trial();
    if (trial.same_as() != 0) {
      ++same;
      EXPECT_FALSE(trial.has_outcome());
    } else {
      EXPECT_EQ(trial.outcome().kind(), v1::OUTCOME_KIND_OK)
          << trial.outcome().diagnostics();
    }
  }
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(starts, 1);
  EXPECT_EQ(trials, 40);
  EXPECT_EQ(ends, 1);
  EXPECT_GT(same, 0);  // the fake compiler knows pipelines only
}

// Compiles end when the session is long over.
TEST_F(ServerTest, TuningThatIsGivenUpLeavesItsCompilesAlone) {
  node_.options.compile_threads = 4;
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect();
  ASSERT_TRUE(Load().ok());
  node_.pool.gate_all = true;
  node_.pool.gate.Shut();
  {
    grpc::ClientContext context;
    v1::TuneRequest request;
    request.set_unit_id(unit_);
    request.set_trials(100);
    request.set_parallel(16);
    request.set_sampler("random");
    auto reader = replay_->Tune(&context, request);
    while (Statistics().waiting() < 16) absl::SleepFor(absl::Milliseconds(1));
    context.TryCancel();
    reader->Finish();
  }
  while (Statistics().cancelled() < 16) absl::SleepFor(absl::Milliseconds(1));
  node_.pool.gate.Open();
  std::map<uint32_t, v1::EvaluateResponse> responses;
  ASSERT_TRUE(Evaluate({"time=200"}, &responses).ok());
  EXPECT_EQ(responses[0].outcome().kind(), v1::OUTCOME_KIND_OK);
}

TEST_F(ServerTest, TermsThatAcceptAnythingAreRefused) {
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect();
  const auto code = [&](const v1::LoadUnitRequest& request) {
    grpc::ClientContext context;
    v1::LoadUnitResponse response;
    return replay_->LoadUnit(&context, request, &response).error_code();
  };
  v1::LoadUnitRequest request;
  request.set_unit_id(unit_);
  request.mutable_tolerance()->set_outlier_share(1);
  EXPECT_EQ(code(request), grpc::StatusCode::INVALID_ARGUMENT);
  request.mutable_tolerance()->set_outlier_share(0);
  request.mutable_tolerance()->set_relative(
      std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(code(request), grpc::StatusCode::INVALID_ARGUMENT);
  request.clear_tolerance();
  request.add_frontends("gcc");
  EXPECT_EQ(code(request), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, SocketOfAServerThatLivesIsNotTaken) {
  ASSERT_EQ(Start(), absl::OkStatus());
  const std::unique_ptr<ReplayServer> first = std::move(server_);
  EXPECT_EQ(ReplayServer::Start(options_, node_.store(), {}).status().code(),
            absl::StatusCode::kAlreadyExists);
  first->Shutdown(absl::ZeroDuration());
}

TEST_F(ServerTest, TuningWithoutAnEndIsRefused) {
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect();
  ASSERT_TRUE(Load().ok());
  for (const bool sampler : {false, true}) {
    grpc::ClientContext context;
    v1::TuneRequest request;
    request.set_unit_id(unit_);
    if (sampler) {
      request.set_trials(1);
      request.set_sampler("guess");
    }
    auto reader = replay_->Tune(&context, request);
    v1::TuneResponse response;
    EXPECT_FALSE(reader->Read(&response));
    EXPECT_EQ(reader->Finish().error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(ServerTest, DevicesSayWhetherTheyServe) {
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect();
  ASSERT_TRUE(Load().ok());
  const auto serving = [&] {
    grpc::ClientContext context;
    v1::GetDevicesResponse devices;
    EXPECT_TRUE(replay_->GetDevices(&context, {}, &devices).ok());
    EXPECT_EQ(devices.devices(0).device(), "cpu");
    return devices.devices(0).serving();
  };
  EXPECT_TRUE(serving());
  std::map<uint32_t, v1::EvaluateResponse> responses;
  ASSERT_TRUE(Evaluate({"fault", "time=50"}, &responses).ok());
  EXPECT_EQ(responses[1].outcome().kind(), v1::OUTCOME_KIND_OK);
  while (!serving()) absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(ServerTest, ShutdownHandsBackWhatHasNotBegun) {
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect();
  ASSERT_TRUE(Load().ok());
  node_.gate.Shut();
  std::map<uint32_t, v1::EvaluateResponse> responses;
  std::thread client([&] {
    const grpc::Status status =
        Evaluate({"time=1", "time=2", "time=3"}, &responses);
    EXPECT_TRUE(status.ok()) << status.error_message();
  });
  node_.gate.WaitForSomebody();
  std::thread shutdown([&] { server_->Shutdown(absl::Seconds(60)); });
  for (v1::GetDevicesResponse devices;;) {
    grpc::ClientContext context;
    ASSERT_TRUE(replay_->GetDevices(&context, {}, &devices).ok());
    if (devices.devices(0).reason() == "the server ends") break;
  }
  node_.gate.Open();
  client.join();
  shutdown.join();
  int judged = 0, handed_back = 0;
  for (const auto& [index, response] : responses) {
    judged += response.code() == 0 ? 1 : 0;
    handed_back += response.code() == grpc::StatusCode::UNAVAILABLE ? 1 : 0;
  }
  EXPECT_EQ(judged, 1);
  EXPECT_EQ(handed_back, 2);
}

TEST_F(ServerTest, UnitsTravelInChunksThatAreChecked) {
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect();
  const std::string bytes(1000, 'x');
  v1::PutChunksRequest put;
  put.mutable_chunk()->set_sha256(Sha256(bytes));
  put.mutable_chunk()->set_bytes(bytes.size());
  v1::FindMissingChunksRequest find;
  *find.add_chunks() = put.chunk();
  find.add_chunks()->set_bytes(4096);  // zeros
  const auto missing = [&] {
    grpc::ClientContext context;
    v1::FindMissingChunksResponse found;
    EXPECT_TRUE(transfer_->FindMissingChunks(&context, find, &found).ok());
    return found.missing_size();
  };
  EXPECT_EQ(missing(), 1);
  for (const bool right : {false, true}) {
    grpc::ClientContext context;
    v1::PutChunksResponse taken;
    auto writer = transfer_->PutChunks(&context, &taken);
    put.set_data(right ? bytes : std::string(1000, 'y'));
    writer->Write(put);
    writer->WritesDone();
    EXPECT_EQ(
        writer->Finish().error_code(),
        right ? grpc::StatusCode::OK : grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(missing(), right ? 0 : 1);
  }
  // A unit under another name, from the one that is there.
  v1::GetUnitResponse unit;
  {
    grpc::ClientContext context;
    v1::GetUnitRequest request;
    request.set_unit_id(unit_);
    ASSERT_TRUE(transfer_->GetUnit(&context, request, &unit).ok());
  }
  v1::AddUnitRequest add;
  *add.mutable_unit() = unit.unit();
  add.mutable_unit()->set_arguments("another");
  v1::AddUnitResponse added;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(transfer_->AddUnit(&context, add, &added).ok());
  }
  EXPECT_NE(added.unit_id(), unit_);
  v1::GetChunksRequest chunks;
  *chunks.add_chunks() = put.chunk();
  grpc::ClientContext context;
  auto reader = transfer_->GetChunks(&context, chunks);
  v1::GetChunksResponse chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.data(), bytes);
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ServerTest, PlaintextStaysOnThisHost) {
  options_.listen = "0.0.0.0:0";
  const absl::Status status = Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("reprise certs"));
  EXPECT_TRUE(IsOnThisHost("127.0.0.1:80"));
  EXPECT_TRUE(IsOnThisHost("[::1]:80"));
  EXPECT_TRUE(IsOnThisHost("localhost:80"));
  EXPECT_FALSE(IsOnThisHost("[::]:80"));
  EXPECT_FALSE(IsOnThisHost("localhost.example.org:80"));
  EXPECT_FALSE(IsOnThisHost("127.example.org:80"));
}

TEST_F(ServerTest, SocketIsInADirectoryOfItsOwners) {
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
  EXPECT_EQ(Start().code(), absl::StatusCode::kFailedPrecondition);
}

class TlsTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    certificates_ = directory_.path() + "/certs";
    ASSERT_EQ(MakeCertificates(certificates_, {}), absl::OkStatus());
    options_.listen = "127.0.0.1:0";
    options_.certificates = certificates_;
  }
  static std::shared_ptr<grpc::ChannelCredentials> As(
      const std::string& directory, const std::string& role) {
    const absl::StatusOr<TlsFiles> files = ReadTlsFiles(directory, role);
    EXPECT_TRUE(files.ok()) << files.status();
    return grpc::SslCredentials(
        {files->authority, files->key, files->certificate});
  }
  grpc::Status Look() {
    grpc::ClientContext context;
    v1::ListUnitsResponse response;
    return replay_->ListUnits(&context, {}, &response);
  }

  std::string certificates_;
};

TEST_F(TlsTest, RoleDecidesWhatAClientMayDo) {
  ASSERT_EQ(Start(), absl::OkStatus());
  Connect(As(certificates_, "client"));
  EXPECT_TRUE(Load().ok());
  Connect(As(certificates_, "viewer"));
  EXPECT_TRUE(Look().ok());
  const grpc::Status refused = Load();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("needs role client"));
}

TEST_F(TlsTest, StrangersGetNoConnection) {
  ASSERT_EQ(Start(), absl::OkStatus());
  const std::string strange = directory_.path() + "/strange";
  ASSERT_EQ(MakeCertificates(strange, {}), absl::OkStatus());
  Connect();  // in plaintext
  EXPECT_EQ(Look().error_code(), grpc::StatusCode::UNAVAILABLE);
  // Signed by another authority, though it knows ours.
  const absl::StatusOr<TlsFiles> theirs = ReadTlsFiles(strange, "client");
  const absl::StatusOr<TlsFiles> ours = ReadTlsFiles(certificates_, "client");
  Connect(grpc::SslCredentials(
      {ours->authority, theirs->key, theirs->certificate}));
  EXPECT_EQ(Look().error_code(), grpc::StatusCode::UNAVAILABLE);
  Connect(grpc::SslCredentials({ours->authority, "", ""}));
  EXPECT_EQ(Look().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(AuthorizationTest, WhatNobodyListedNeedsTheClientsRole) {
  EXPECT_EQ(MayCall("client", "/x/Y"), absl::OkStatus());
  EXPECT_EQ(MayCall("viewer", "/x/Y").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(MayCall("", "/reprise.v1.ReplayService/ListUnits").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(MayCall("server", "/reprise.v1.ReplayService/Evaluate").code(),
            absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace reprise
