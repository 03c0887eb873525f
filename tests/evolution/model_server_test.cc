// The client of models against a real server on loopback that plays what
// providers do at their worst (model_server.py).
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "evolution/archive.h"
#include "evolution/llm/cassette.h"
#include "evolution/llm/http_chat.h"
#include "evolution/llm/json_util.h"
#include "evolution/llm/llm_emitter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replay/base/file_util.h"

extern char** environ;

namespace reprise::evolution {
namespace {

using ::testing::HasSubstr;

// The server lives as long as this.
class ModelServer {
 public:
  ModelServer() {
    int to_child[2] = {};
    int from_child[2] = {};
    EXPECT_EQ(pipe2(to_child, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(from_child, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to_child[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from_child[1], 1);
    std::string program = "python3";
    std::string script = absl::StrCat(std::getenv("REPRISE_SOURCE_DIR"),
                                      "/tests/evolution/model_server.py");
    char* argv[] = {program.data(), script.data(), nullptr};
    EXPECT_EQ(
        posix_spawnp(&child_, "python3", &actions, nullptr, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(to_child[0]);
    close(from_child[1]);
    input_ = to_child[1];
    char byte = 0;
    while (read(from_child[0], &byte, 1) == 1 && byte != '\n') port_ += byte;
    close(from_child[0]);
  }
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;
  ~ModelServer() {
    close(input_);
    waitpid(child_, nullptr, 0);
  }

  std::string url() const {
    return absl::StrCat("http://127.0.0.1:", port_, "/v1");
  }

 private:
  pid_t child_ = -1;
  int input_ = -1;
  std::string port_;
};

class Gather : public HttpSink {
 public:
  void Head(const HttpHead&) override {}
  bool Body(std::string_view bytes) override {
    body.append(bytes);
    return true;
  }
  bool complete() const override { return false; }
  std::string body;
};

class ModelServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ModelServer(); }
  static void TearDownTestSuite() { delete std::exchange(server_, nullptr); }

  HttpChatOptions Options(const std::string& play) {
    HttpChatOptions options;
    options.url = server_->url();
    options.form.model = play;
    options.price = {0.25, 1.5, 0.025, {}};
    options.max_attempts = 2;
    options.first_backoff = absl::Milliseconds(1);
    return options;
  }

  absl::StatusOr<ChatReply> Ask(HttpChatOptions options,
                                ChatLimits limits = {}) {
    auto chat =
        HttpChat::Create(std::move(options), budget_.get(), *transport_);
    if (!chat.ok()) return chat.status();
    ChatRequest request;
    request.messages = {{ChatRole::kUser, "hello"}};
    request.seed = 41;
    return (*chat)->Complete(request, limits);
  }

  Json Ledger() {
    const std::string url = server_->url();
    Gather gather;
    EXPECT_TRUE(transport_
                    ->Post({url.substr(0, url.size() - 3) + "/ledger", {}, ""},
                           {}, &gather)
                    .ok());
    return ParseJson(gather.body);
  }

  static ModelServer* server_;
  std::unique_ptr<HttpTransport> transport_ = MakeCurlTransport();
  std::unique_ptr<Budget> budget_ = Budget::Create({}).value();
};

ModelServer* ModelServerTest::server_ = nullptr;

TEST_F(ModelServerTest, StreamsAndDocumentsGiveTheSameAnswer) {
  const auto streamed = Ask(Options("good"));
  ASSERT_TRUE(streamed.ok()) << streamed.status();
  EXPECT_THAT(streamed->text, HasSubstr("p[0] = old + 41.0f;"));
  const auto whole = Ask(Options("document"));
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->text, streamed->text);
  EXPECT_EQ(whole->usage.output_tokens, streamed->usage.output_tokens);
  EXPECT_EQ(whole->usage.reasoning_tokens, 1u);
}

TEST_F(ModelServerTest, AnswersOfAHundredKilobytesComeWhole) {
  const auto reply = Ask(Options("big"));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_GT(reply->text.size(), 99'000u);
  EXPECT_TRUE(reply->text.ends_with(">>>>>>> REPLACE\n"));
}

TEST_F(ModelServerTest, AnswersCutOffByTheirLengthSaySo) {
  EXPECT_EQ(Ask(Options("length"))->finish, FinishReason::kLength);
}

TEST_F(ModelServerTest, WhatGoesWrongIsSaidClearly) {
  const std::pair<std::string, std::string> plays[] = {
      {"truncated", "the connection broke within the answer"},
      {"garbage", "got an event that is no JSON object"},
      {"html", "got an answer of type \"text/html\""},
      {"500", "HTTP 500: the model is on fire (the last of 2 attempts)"},
      {"429", "HTTP 429: rate_limit: slow down (the last of 2 attempts)"},
  };
  for (const auto& [play, words] : plays) {
    const absl::Status status = Ask(Options(play)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << play;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words)) << play;
  }
  EXPECT_EQ(Ask(Options("429quota")).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Ask(Options("401")).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(ModelServerTest, AnAnswerThatIsWholeNeedsNoEndOfItsStream) {
  HttpChatOptions options = Options("lingering");
  options.idle_timeout = absl::Seconds(2);
  const auto reply = Ask(options);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_THAT(reply->text, HasSubstr("p[0] = old + 41.0f;"));
}

TEST_F(ModelServerTest, AStreamThatStallsIsGivenUp) {
  HttpChatOptions options = Options("stall");
  options.idle_timeout = absl::Milliseconds(200);
  EXPECT_THAT(std::string(Ask(options).status().message()),
              HasSubstr("nothing came for 200ms"));
}

TEST_F(ModelServerTest, AStreamThatNeverEndsIsGivenUp) {
  HttpChatOptions options = Options("endless");
  options.attempt_timeout = absl::Milliseconds(200);
  EXPECT_THAT(std::string(Ask(options).status().message()),
              HasSubstr("took longer than it may (the last of 2 attempts)"));
  options.attempt_timeout = absl::Minutes(1);
  options.total_timeout = absl::Milliseconds(200);
  EXPECT_EQ(Ask(options).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ModelServerTest, CancellingGivesUpWhatIsUnderWay) {
  const uint64_t before = Count(Ledger(), "endless");
  std::atomic<bool> cancelled = false;
  absl::Status status;
  std::thread asking([&] {
    status =
        Ask(Options("endless"), {absl::InfiniteFuture(), &cancelled}).status();
  });
  while (Count(Ledger(), "endless") == before) {
  }
  cancelled = true;
  asking.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(budget_->Spent().uncertain, 1u);
}

TEST_F(ModelServerTest, NobodyThereIsAnErrorThatCostsNothing) {
  HttpChatOptions options = Options("good");
  options.url = "http://127.0.0.1:1/v1";
  EXPECT_EQ(Ask(options).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(budget_->Spent().tokens(), 0u);
}

// --- A campaign of proposals.

constexpr char kModel[] = "mix";

constexpr char kKernel[] =
    "void k(float* p) {\n  float old = p[0];\n  p[0] = old * 1;\n}";

EvolvableSource Source() {
  const std::string kernel = kKernel;
  return EvolvableSource(
      {{"/p/k.cu", kernel + "\nint main() {}\n", false}},
      {{"/p/k.cu", 0, kernel.size(), RegionKind::kKernel, "k"}});
}

LlmEmitter Emitter() {
  PromptTask task;
  task.kernel = "k";
  return LlmEmitter(
      Source(),
      PromptBuilder(PromptTemplates::Load("").value(), Source(), task),
      nullptr);
}

// Asks a model for proposals from several threads; where there is a cassette,
// through it, and what comes of a proposal goes to the archive.
class Campaign {
 public:
  explicit Campaign(ChatModel* model, Cassette* cassette = nullptr)
      : model_(model), cassette_(cassette) {}

  void Run(int jobs, int threads) {
    left_ = jobs;
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i) running.emplace_back([this] { Work(); });
    for (std::thread& thread : running) thread.join();
  }

  LlmEmitter emitter = Emitter();
  Archive archive;
  std::vector<Proposal> proposals;
  uint64_t ended = 0;
  uint64_t evaluated = 0;

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (left_-- > 0) {
      auto job = emitter.Begin(archive, kModel);
      ASSERT_TRUE(job.ok()) << job.status();
      std::unique_ptr<ChatModel> recorded;
      if (cassette_ != nullptr) {
        recorded = cassette_->ModelFor(job->id, kModel, model_);
      }
      ChatModel& model = recorded != nullptr ? *recorded : *model_;
      std::optional<ChatRequest> request = std::move(job->request);
      while (request.has_value()) {
        lock.unlock();
        const auto reply = model.Complete(*request, {});
        lock.lock();
        auto step = emitter.Finish(job->id, reply);
        ASSERT_TRUE(step.ok()) << step.status();
        if (step->proposal) Keep(job->id, *std::move(step->proposal));
        request = std::move(step->repair);
      }
      ++ended;
    }
  }

  void Keep(uint64_t id, Proposal proposal) {
    proposal.id = id;
    proposals.push_back(proposal);
    if (cassette_ == nullptr) return;
    // Evaluated where that is not recorded.
    auto outcome = cassette_->Outcome(id);
    if (!outcome.ok()) {
      outcome = absl::StrCat(
          std::hash<std::string>()(proposal.files.at("/p/k.cu")) % 100);
      ++evaluated;
    }
    ASSERT_TRUE(cassette_->RecordOutcome(id, *outcome).ok());
    Evaluation evaluation;
    evaluation.kind = v1::OUTCOME_KIND_OK;
    evaluation.objective = std::stod(*outcome) / 100;
    ASSERT_TRUE(archive.Add(proposal, evaluation.objective).ok());
    emitter.Tell(proposal, evaluation);
  }

  ChatModel* const model_;
  Cassette* const cassette_;
  std::mutex mutex_;  // guards all of the campaign
  int left_ = 0;
};

TEST_F(ModelServerTest, TwoThousandProposalsAreCountedExactly) {
  constexpr int kJobs = 2000;
  HttpChatOptions options = Options(kModel);
  options.max_attempts = 8;
  options.idle_timeout = absl::Seconds(5);
  options.longest_backoff = absl::Milliseconds(200);
  options.rate = {1e6, 1e10};  // beyond what is asked for
  auto chat = HttpChat::Create(options, budget_.get(), *transport_).value();
  const Json before = Ledger();
  Campaign campaign(chat.get());
  campaign.Run(kJobs, 16);
  const Json after = Ledger();
  const auto grown = [&](const char* key) {
    return Count(after, key) - Count(before, key);
  };

  // Every job came to an end, and every request of it is in one of the counts.
  const LlmStatistics counts = campaign.emitter.statistics();
  EXPECT_EQ(campaign.ended, uint64_t{kJobs});
  EXPECT_EQ(counts.proposals, campaign.proposals.size());
  EXPECT_EQ(counts.proposals + counts.duplicates + counts.unusable +
                counts.cut_off + counts.no_reply,
            uint64_t{kJobs});
  EXPECT_GT(counts.proposals, 1500u);
  EXPECT_GT(counts.repaired, 50u);

  // Everything was played.
  for (const char* play : {"good", "document", "malformed", "outside",
                           "injection", "big", "length", "truncated", "stall",
                           "drip", "html", "garbage", "429", "500"}) {
    EXPECT_GT(grown(play), 0u) << play;
  }

  // The client, the emitter and the budget know what the server knows.
  EXPECT_EQ(chat->statistics().calls, counts.requests);
  EXPECT_EQ(chat->statistics().attempts, grown("requests"));
  EXPECT_EQ(counts.usage.prompt_tokens, grown("prompt_tokens"));
  EXPECT_EQ(counts.usage.cached_tokens, grown("cached_tokens"));
  EXPECT_EQ(counts.usage.output_tokens, grown("output_tokens"));
  const Spending spent = budget_->Spent();
  EXPECT_EQ(spent.requests, grown("requests"));
  EXPECT_EQ(spent.uncertain, grown("truncated") + grown("stall") +
                                 grown("html") + grown("garbage"));
  EXPECT_EQ(spent.usage.output_tokens,
            grown("output_tokens") + spent.uncertain * 8192);
  EXPECT_EQ(spent.money, int64_t{250'000} * (spent.usage.prompt_tokens -
                                             grown("cached_tokens")) +
                             int64_t{25'000} * grown("cached_tokens") +
                             int64_t{1'500'000} * spent.usage.output_tokens);

  // Nothing outside of the region ever changed.
  std::set<std::string> sources;
  for (const Proposal& proposal : campaign.proposals) {
    const std::string& file = proposal.files.at("/p/k.cu");
    EXPECT_TRUE(file.ends_with("}\nint main() {}\n")) << file;
    sources.insert(file);
  }
  EXPECT_EQ(sources.size(), campaign.proposals.size());
}

std::string Described(const Archive& archive) {
  std::string text;
  for (const Elite* elite : archive.elites()) {
    const Proposal& solution = elite->solution;
    absl::StrAppend(&text, solution.id, " ", elite->objective, " ",
                    solution.description, " ", solution.genome, "\n",
                    solution.files.at("/p/k.cu"));
    for (const uint64_t parent : solution.parents) {
      absl::StrAppend(&text, parent, " ");
    }
  }
  return text;
}

TEST_F(ModelServerTest, ARecordedCampaignRunsAgainWithoutModelAndEvaluation) {
  const auto directory = TemporaryDirectory::Create("campaign").value();
  const std::string path = directory.path() + "/cassette";
  HttpChatOptions options = Options(kModel);
  options.longest_backoff = absl::Milliseconds(50);
  auto chat = HttpChat::Create(options, nullptr, *transport_).value();
  std::string archive;
  {
    const auto cassette = Cassette::Record(path).value();
    Campaign campaign(chat.get(), cassette.get());
    campaign.Run(60, 1);
    EXPECT_GT(campaign.evaluated, 10u);
    archive = Described(campaign.archive);
  }
  const auto cassette = Cassette::Replay(path).value();
  Campaign campaign(nullptr, cassette.get());
  campaign.Run(60, 1);
  EXPECT_EQ(campaign.ended, 60u);
  EXPECT_EQ(campaign.evaluated, 0u);
  EXPECT_EQ(Described(campaign.archive), archive);
}

TEST_F(ModelServerTest, ABudgetEndsACampaignWithoutBeingPassed) {
  auto budget = Budget::Create({1'000'000, std::nullopt}).value();
  HttpChatOptions options = Options("good");
  auto chat = HttpChat::Create(options, budget.get(), *transport_).value();
  std::atomic<int> ended = 0;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      ChatRequest request;
      request.messages = {{ChatRole::kUser, std::string(80'000, 'x')}};
      absl::StatusOr<ChatReply> reply;
      do {
        request.seed += i + 1;
        reply = chat->Complete(request, {});
      } while (reply.ok());
      ended += absl::IsResourceExhausted(reply.status()) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 8);
  EXPECT_LE(budget->Spent().tokens(), 1'000'000u);
  // Until no further request is certain to fit.
  EXPECT_GT(budget->Spent().tokens() + 80'000 + 8192 + 100, 1'000'000u);
}

}  // namespace
}  // namespace reprise::evolution
