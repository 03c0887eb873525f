// The language model's emitter, against models that play every part.
#include "evolution/llm/llm_emitter.h"

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "evolution/archive.h"
#include "evolution/llm/scripted_model.h"
#include "evolution/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kPath[] = "/p/k.cu";

std::string Kernel(const std::string& statement) {
  return "void k(float* p) {\n  float old = p[0];\n  " + statement + "\n}";
}

EvolvableSource Source() {
  const std::string kernel = Kernel("p[0] = old * 1;");
  return EvolvableSource({{kPath, kernel + "\nint main() {}\n", false}},
                         {{kPath, 0, kernel.size(), RegionKind::kKernel, "k"}});
}

std::string File(const std::string& statement) {
  return Kernel(statement) + "\nint main() {}\n";
}

PromptBuilder Prompts() {
  PromptTask task;
  task.kernel = "k";
  return PromptBuilder(PromptTemplates::Load("").value(), Source(), task);
}

ChatReply Reply(const std::string& text) {
  ChatReply reply;
  reply.text = text;
  reply.usage = {100, 40, 10, 2};
  return reply;
}

std::string Region(const std::string& statement) {
  return "We compute it otherwise.\n\nR1\n```cuda\n" + Kernel(statement) +
         "\n```\n";
}

std::string User(const ChatRequest& request) {
  return request.messages[1].text;
}

bool WantsEdits(const ChatRequest& request) {
  return absl::StrContains(User(request), "form **Edits**");
}

// Answers region by region: number 1, 2, 3, ...
ScriptedModel::Script Counting() {
  return [count = 0](const ChatRequest&) mutable {
    return Reply(Region(absl::StrCat("p[0] = old + ", ++count, ";")));
  };
}

// The answers one after the other, the last one for ever.
ScriptedModel::Script Saying(std::vector<std::string> answers) {
  return [answers, next = size_t{0}](const ChatRequest&) mutable {
    const std::string answer = answers[std::min(next, answers.size() - 1)];
    ++next;
    return Reply(answer);
  };
}

LlmEmitter Make(ScriptedModel* model, LlmEmitterOptions options = {}) {
  return LlmEmitter(Source(), Prompts(), model, std::move(options));
}

Proposal EliteOf(uint64_t id, const std::string& statement,
                 const std::string& kind) {
  Proposal proposal;
  proposal.id = id;
  proposal.files = {{kPath, File(statement)}};
  proposal.kinds = {kind};
  proposal.description = "Elite " + std::to_string(id);
  return proposal;
}

TEST(LlmEmitterTest, AnAnswerBecomesAProposal) {
  ScriptedModel model(Saying(
      {"Multiplying is not needed.\n\nk.cu\n<<<<<<< SEARCH\n  p[0] = old * "
       "1;\n=======\n  p[0] = old;\n>>>>>>> REPLACE\n"}));
  LlmEmitter emitter = Make(&model);
  const auto proposals = emitter.Ask(Archive(), 1);
  ASSERT_TRUE(proposals.ok()) << proposals.status();
  ASSERT_THAT(*proposals, SizeIs(1));
  const Proposal& proposal = (*proposals)[0];
  EXPECT_EQ(proposal.files.at(kPath), File("p[0] = old;"));
  EXPECT_EQ(proposal.emitter, "llm");
  EXPECT_EQ(proposal.description, "Multiplying is not needed.");
  EXPECT_THAT(proposal.parents, ElementsAre(0u));
  EXPECT_THAT(proposal.kinds, ElementsAre("llm"));
  EXPECT_TRUE(proposal.inexact);
  EXPECT_FALSE(proposal.claim.empty());
  EXPECT_EQ(emitter.statistics().requests, 1u);
  EXPECT_EQ(emitter.statistics().usage.cached_tokens, 40u);
  EXPECT_THAT(emitter.Simplify(proposal).value(), IsEmpty());
}

TEST(LlmEmitterTest, OneRepairWithTheNearestMiss) {
  ScriptedModel model(Saying(
      {"<<<<<<< SEARCH\n  p[0] = older * 1;\n=======\n  x;\n>>>>>>> REPLACE\n",
       Region("p[0] = old;")}));
  LlmEmitter emitter = Make(&model);
  ASSERT_THAT(emitter.Ask(Archive(), 1).value(), SizeIs(1));
  const auto requests = model.requests();
  ASSERT_THAT(requests, SizeIs(2));
  ASSERT_THAT(requests[1].messages, SizeIs(4));
  EXPECT_EQ(User(requests[1]), User(requests[0]));
  EXPECT_THAT(requests[1].messages[2].text, HasSubstr("older"));
  EXPECT_THAT(requests[1].messages[3].text,
              AllOf(HasSubstr("nearest is /p/k.cu:3-3"),
                    HasSubstr("-  p[0] = old * 1;"),
                    HasSubstr("+  p[0] = older * 1;")));
  EXPECT_EQ(emitter.statistics().repaired, 1u);
  EXPECT_EQ(emitter.statistics().prompts.prompts, 2u);
}

TEST(LlmEmitterTest, NoSecondRepairAndNoEndlessTries) {
  ScriptedModel model(Saying({"I would rather not."}));
  LlmEmitterOptions options;
  options.max_attempts = 3;
  LlmEmitter emitter = Make(&model, options);
  EXPECT_THAT(emitter.Ask(Archive(), 2).value(), IsEmpty());
  EXPECT_THAT(model.requests(), SizeIs(6));
  EXPECT_EQ(emitter.statistics().unusable, 3u);
}

TEST(LlmEmitterTest, WhatWasTriedIsRefusedBeforeItIsCompiled) {
  ScriptedModel model(
      Saying({Region("p[0] = old * 1; // the recorded one"),
              Region("p[0] = old * 2;"),  // the elite
              Region("p[0] = old + 1;"), Region("p[0]  =  old + 0x1;"),
              absl::StrCat("R1\n```\nvoid k(float* p) {\n float x = p[0];\n"
                           "p[0] = x + 1; }\n```"),
              Region("p[0] = old + 2;")}));
  Archive archive;
  ASSERT_TRUE(archive.Add(EliteOf(5, "p[0] = old * 2;", "moves"), 0.1).ok());
  LlmEmitter emitter = Make(&model);
  const auto proposals = emitter.Ask(archive, 2).value();
  ASSERT_THAT(proposals, SizeIs(2));
  EXPECT_EQ(proposals[0].files.at(kPath), File("p[0] = old + 1;"));
  EXPECT_EQ(proposals[1].files.at(kPath), File("p[0] = old + 2;"));
  EXPECT_EQ(emitter.statistics().duplicates, 4u);
  EXPECT_EQ(emitter.statistics().unusable, 0u);
}

TEST(LlmEmitterTest, EachModelGetsTheFormThatItCanUse) {
  int count = 0;
  ScriptedModel model([&](const ChatRequest& request) {
    return WantsEdits(request)
               ? Reply("<<<<<<< SEARCH\nnowhere\n=======\n>>>>>>> REPLACE\n")
               : Reply(Region(absl::StrCat("p[0] = old + ", ++count, ";")));
  });
  LlmEmitterOptions options;
  options.max_attempts = 100;
  LlmEmitter emitter = Make(&model, options);
  ASSERT_THAT(emitter.Ask(Archive(), 40).value(), SizeIs(40));
  EXPECT_LT(emitter.statistics().unusable, 10u);
  // What one model learned says nothing of another.
  EXPECT_TRUE(WantsEdits(emitter.Begin(Archive(), "another")->request));
}

TEST(LlmEmitterTest, CombinesTwoElites) {
  ScriptedModel model(Counting());
  Archive archive;
  ASSERT_TRUE(archive.Add(EliteOf(5, "p[0] = old * 2;", "a"), 0.1).ok());
  ASSERT_TRUE(archive.Add(EliteOf(6, "p[0] = old * 3;", "b"), 0.2).ok());
  LlmEmitter emitter = Make(&model);
  const auto proposals = emitter.Ask(archive, 8).value();
  const auto requests = model.requests();
  ASSERT_EQ(proposals.size(), requests.size());
  int crossovers = 0;
  for (size_t i = 0; i < proposals.size(); ++i) {
    const bool two =
        absl::StrContains(User(requests[i]), "# The second variant");
    EXPECT_EQ(proposals[i].parents.size(), two ? 2u : 1u);
    if (!two) continue;
    ++crossovers;
    EXPECT_NE(proposals[i].parents[0], proposals[i].parents[1]);
    if (proposals[i].parents == std::vector<uint64_t>{5, 6}) {
      EXPECT_THAT(proposals[i].kinds, ElementsAre("a", "b", "llm"));
    }
  }
  EXPECT_GT(crossovers, 0);
  EXPECT_LT(crossovers, 8);
}

TEST(LlmEmitterTest, WhatFailedAndWhatWasMeasuredIsInTheNextPrompt) {
  ScriptedModel model(Counting());
  LlmEmitter emitter = Make(&model);
  Archive archive;
  auto failed = emitter.Ask(archive, 1).value()[0];
  failed.id = 1;
  Evaluation evaluation;
  evaluation.kind = v1::OUTCOME_KIND_COMPILE_ERROR;
  evaluation.diagnostics = "k.cu:3:1: error: no such thing";
  emitter.Tell(failed, evaluation);
  auto good = emitter.Ask(archive, 1).value()[0];
  EXPECT_THAT(
      User(model.requests()[1]),
      AllOf(HasSubstr("does not compile"), HasSubstr("+  p[0] = old + 1;"),
            HasSubstr("k.cu:3:1: error: no such thing")));

  good.id = 2;
  v1::Outcome outcome;
  outcome.mutable_code()->set_registers(77);
  evaluation = {v1::OUTCOME_KIND_OK, 0.5, 0.4, "",
                std::make_shared<v1::Outcome>(outcome)};
  ASSERT_TRUE(archive.Add(good, 0.5).ok());
  emitter.Tell(good, evaluation);
  // The best elite is the parent half of the time.
  bool seen = false;
  for (int i = 0; i < 10; ++i) {
    ASSERT_THAT(emitter.Ask(archive, 1).value(), SizeIs(1));
    seen |= absl::StrContains(User(model.requests().back()),
                              "- registers: 77 per thread");
  }
  EXPECT_TRUE(seen);
}

TEST(LlmEmitterTest, OnlyTheLatestFailuresAreShown) {
  ScriptedModel model(Counting());
  LlmEmitterOptions options;
  options.failures = 2;
  LlmEmitter emitter = Make(&model, options);
  for (uint64_t i = 1; i <= 5; ++i) {
    auto proposal = emitter.Ask(Archive(), 1).value()[0];
    proposal.id = i;
    Evaluation evaluation;
    evaluation.kind = v1::OUTCOME_KIND_WRONG_RESULT;
    evaluation.diagnostics = absl::StrCat("failure ", i);
    emitter.Tell(proposal, evaluation);
  }
  ASSERT_THAT(emitter.Ask(Archive(), 1).value(), SizeIs(1));
  EXPECT_THAT(User(model.requests().back()),
              AllOf(HasSubstr("failure 5"), HasSubstr("failure 4"),
                    Not(HasSubstr("failure 3"))));
}

TEST(LlmEmitterTest, TheCheckIsShownToTheModel) {
  ScriptedModel model(Saying({Region("p[0] = typo;"), Region("p[0] = old;")}));
  LlmEmitterOptions options;
  options.check = [](const FileContents& files) {
    return absl::StrContains(files.at(kPath), "typo")
               ? absl::InvalidArgumentError("undeclared typo")
               : absl::OkStatus();
  };
  LlmEmitter emitter = Make(&model, options);
  const auto proposals = emitter.Ask(Archive(), 1).value();
  ASSERT_THAT(proposals, SizeIs(1));
  EXPECT_EQ(proposals[0].files.at(kPath), File("p[0] = old;"));
  EXPECT_THAT(model.requests()[1].messages[3].text,
              HasSubstr("undeclared typo"));
}

TEST(LlmEmitterTest, ErrorsOfModels) {
  const auto ask = [](ScriptedModel::Script script, LlmStatistics* statistics) {
    ScriptedModel model(std::move(script));
    LlmEmitter emitter = Make(&model);
    const auto proposals = emitter.Ask(Archive(), 2);
    *statistics = emitter.statistics();
    return proposals;
  };
  LlmStatistics statistics;
  // Later is worth a try.
  auto flaky = [count = 0](const ChatRequest&) mutable {
    ++count;
    return count % 2 == 1
               ? absl::StatusOr<ChatReply>(absl::UnavailableError("busy"))
               : Reply(Region(absl::StrCat("p[0] = old + ", count, ";")));
  };
  EXPECT_THAT(ask(flaky, &statistics).value(), SizeIs(2));
  EXPECT_EQ(statistics.no_reply, 2u);
  // A budget that is used up is an end.
  EXPECT_THAT(ask(
                  [](const ChatRequest&) -> absl::StatusOr<ChatReply> {
                    return absl::ResourceExhaustedError("no money");
                  },
                  &statistics)
                  .value(),
              IsEmpty());
  EXPECT_EQ(statistics.no_reply, 1u);
  EXPECT_EQ(ask(
                [](const ChatRequest&) -> absl::StatusOr<ChatReply> {
                  return absl::PermissionDeniedError("key");
                },
                &statistics)
                .status()
                .code(),
            absl::StatusCode::kPermissionDenied);
  // Cut off is not wrong: no repair.
  auto cut = [](const ChatRequest&) {
    ChatReply reply = Reply(Region("p[0] = old;"));
    reply.finish = FinishReason::kLength;
    return reply;
  };
  EXPECT_THAT(ask(cut, &statistics).value(), IsEmpty());
  EXPECT_EQ(statistics.cut_off, statistics.requests);
  EXPECT_EQ(statistics.usage.prompt_tokens, 100 * statistics.requests);
  LlmEmitter none = Make(nullptr);
  EXPECT_EQ(none.Ask(Archive(), 1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Asks, evaluates by the number in the kernel, tells; what was sent and what
// came of it.
std::string Campaign(uint64_t seed, int rounds, double* best = nullptr) {
  Random answers(11);
  ScriptedModel model([&](const ChatRequest& request) {
    const uint64_t number = answers.Below(60);
    if (answers.Below(5) == 0) return Reply("nothing");
    return Reply(Region(absl::StrCat("p[0] = old + ", number, ";")));
  });
  LlmEmitterOptions options;
  options.seed = seed;
  LlmEmitter emitter = Make(&model, options);
  Archive archive;
  std::string log;
  uint64_t id = 0;
  for (int i = 0; i < rounds; ++i) {
    auto proposals = emitter.Ask(archive, 1).value();
    for (Proposal& proposal : proposals) {
      proposal.id = ++id;
      const std::string& text = proposal.files.at(kPath);
      const double number = std::stod(text.substr(text.find("old + ") + 6));
      Evaluation evaluation;
      evaluation.kind =
          number < 10 ? v1::OUTCOME_KIND_WRONG_RESULT : v1::OUTCOME_KIND_OK;
      evaluation.objective = number / 100;
      if (number >= 10) {
        EXPECT_TRUE(archive.Add(proposal, evaluation.objective).ok());
      }
      emitter.Tell(proposal, evaluation);
      absl::StrAppend(&log, proposal.genome, text);
    }
  }
  for (const ChatRequest& request : model.requests())
    absl::StrAppend(&log, request.seed, User(request));
  if (best != nullptr) *best = archive.BestElite()->objective;
  return log;
}

TEST(LlmEmitterTest, TheSameSeedGivesTheSameCampaign) {
  double best = 0;
  const std::string log = Campaign(1, 30, &best);
  EXPECT_EQ(Campaign(1, 30), log);
  EXPECT_NE(Campaign(2, 30), log);
  EXPECT_GT(best, 0.4);
}

TEST(LlmEmitterTest, SeveralJobsUnderWay) {
  LlmEmitter emitter = Make(nullptr);
  Archive archive;
  const auto first = emitter.Begin(archive, "m");
  const auto second = emitter.Begin(archive, "m");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->request.seed, second->request.seed);
  const auto step = emitter.Finish(second->id, Reply(Region("p[0] = 2;")));
  ASSERT_TRUE(step.ok() && step->proposal);
  // The same code from the other one.
  const auto again = emitter.Finish(first->id, Reply(Region("p[0] = 2;")));
  EXPECT_TRUE(again.ok() && !again->proposal && !again->repair);
  EXPECT_EQ(emitter.Finish(first->id, Reply("")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(emitter.Finish(99, Reply("")).status().code(),
            absl::StatusCode::kNotFound);
}

// A model that mangles what it says in all ways: nothing breaks, every request
// is accounted for, and what comes out is within the kernel.
TEST(LlmEmitterTest, AThousandHostileAnswers) {
  Random random(5);
  ScriptedModel model([&](const ChatRequest& request) {
    std::string text = random.Below(2) == 0
                           ? Region(absl::StrCat("p[0] = ", random.Next(), ";"))
                           : absl::StrCat(
                                 "<<<<<<< SEARCH\n  float old = p[0];\n"
                                 "=======\n  float old = p[",
                                 random.Below(1000), "];\n>>>>>>> REPLACE\n");
    for (size_t i = random.Below(4); i > 0 && !text.empty(); --i) {
      const size_t at = random.Below(text.size());
      switch (random.Below(5)) {
        case 0:
          text.resize(at);
          break;
        case 1:
          text.insert(at, User(request).substr(
                              random.Below(User(request).size()), 300));
          break;
        case 2:
          text.insert(at, "}\nint main() { return 1; }\n/*");
          break;
        case 3:
          text[at] = static_cast<char>(random.Next());
          break;
        default:
          text += std::string(random.Below(100'000), '`');
      }
    }
    ChatReply reply = Reply(text);
    if (random.Below(20) == 0) reply.finish = FinishReason::kLength;
    return reply;
  });
  LlmEmitterOptions options;
  options.max_attempts = 1;
  LlmEmitter emitter = Make(&model, options);
  uint64_t proposals = 0;
  std::set<std::string> seen;
  while (model.requests().size() < 1000) {
    const auto asked = emitter.Ask(Archive(), 1);
    ASSERT_TRUE(asked.ok()) << asked.status();
    for (const Proposal& proposal : *asked) {
      ++proposals;
      const std::string& file = proposal.files.at(kPath);
      EXPECT_TRUE(file.ends_with("\nint main() {}\n")) << file;
      EXPECT_TRUE(Source().CheckConfined(proposal.files).ok());
      EXPECT_TRUE(seen.insert(file).second);
    }
  }
  const LlmStatistics statistics = emitter.statistics();
  EXPECT_EQ(statistics.requests, model.requests().size());
  EXPECT_EQ(statistics.usage.output_tokens, 10 * statistics.requests);
  EXPECT_EQ(statistics.proposals, proposals);
  EXPECT_GT(proposals, 100u);
  EXPECT_GT(statistics.unusable, 50u);
  EXPECT_GT(statistics.cut_off, 10u);
}

}  // namespace
}  // namespace reprise::evolution
