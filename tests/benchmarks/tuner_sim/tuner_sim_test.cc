// What the simulator reads, runs and scores, on spaces small enough to know the
// answers.
#include <zlib.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bayesopt/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replay/base/file_util.h"
#include "tests/benchmarks/tuner_sim/cache_file.h"
#include "tests/benchmarks/tuner_sim/campaign.h"
#include "tests/benchmarks/tuner_sim/comparison.h"
#include "tests/benchmarks/tuner_sim/report.h"
#include "tests/benchmarks/tuner_sim/samplers.h"
#include "tests/benchmarks/tuner_sim/score.h"
#include "tests/benchmarks/tuner_sim/synthetic_spaces.h"
#include "tests/benchmarks/tuner_sim/traces.h"
#include "tests/benchmarks/tuner_sim/warm_start.h"

namespace reprise::tuner_sim {
namespace {

using bayesopt::ParameterKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// x = 16, y = 2, code = 1 is missing; one fails.
constexpr char kCache[] = R"({
  "device_name": "D", "kernel_name": "k", "objective": "time",
  "tune_params_keys": ["x", "y", "code", "flag", "name", "one"],
  "tune_params": {"x": [1, 2, 4, 16]},
  "cache": {
    "a": {"x": 1, "y": 2, "code": 0, "flag": 0, "name": "a", "one": 7,
          "time": 2.0, "times": [1.9, 2.1]},
    "b": {"x": 2, "y": 4, "code": 1, "flag": 1, "name": "b", "one": 7,
          "time": 1.0, "times": [1.0, 1.01]},
    "c": {"x": 16, "y": 6, "code": 2, "flag": 1, "name": "a", "one": 7,
          "time": "CompilationFailedConfig"},
    "d": {"x": 4, "y": 2, "code": 2, "flag": 0, "name": "a", "one": 7,
          "time": 4.0, "times": [4.0, 4.0]}
  }})";

std::shared_ptr<const MeasuredSpace> Measured(const std::string& text) {
  const auto table = ParseCache(text, "test");
  EXPECT_TRUE(table.ok()) << table.status();
  auto measured = MeasuredSpace::FromTable("test", *table);
  EXPECT_TRUE(measured.ok()) << measured.status();
  return *measured;
}

// Times 1..count in some order over a grid of two parameters, every
// `fails_every`-th failing.
std::shared_ptr<const MeasuredSpace> Grid(int side, int fails_every) {
  auto space = bayesopt::Space::Create(
                   {bayesopt::Parameter::Integer("x", 0, side - 1, 0),
                    bayesopt::Parameter::Integer("y", 0, side - 1, 0)})
                   .value();
  return MeasuredSpace::FromFunction(
             "grid", space,
             [&](const bayesopt::Configuration& at) {
               const int64_t cell = std::get<int64_t>(at.values[0]) * side +
                                    std::get<int64_t>(at.values[1]);
               Measurement measurement;
               measurement.time_ms = 1 + static_cast<double>(cell);
               if (cell % fails_every == fails_every - 1) {
                 measurement.kind = v1::OUTCOME_KIND_TIMEOUT;
               }
               return measurement;
             })
      .value();
}

TEST(CacheFileTest, ReadsParametersByWhatTheirValuesAre) {
  const auto measured = Measured(kCache);
  const auto& parameters = measured->space()->parameters();
  std::map<std::string, const bayesopt::Parameter*> by_name;
  for (const auto& parameter : parameters) by_name[parameter.name] = &parameter;
  ASSERT_THAT(by_name, SizeIs(5));  // "one" does not vary
  EXPECT_EQ(by_name["x"]->kind, ParameterKind::kOrdinal);
  EXPECT_EQ(by_name["x"]->levels[3].position, 4);  // log2 of 16
  EXPECT_EQ(by_name["y"]->kind, ParameterKind::kOrdinal);
  EXPECT_EQ(by_name["y"]->levels[2].position, 6);
  EXPECT_EQ(by_name["code"]->kind, ParameterKind::kCategorical);
  EXPECT_EQ(by_name["flag"]->kind, ParameterKind::kBoolean);
  EXPECT_EQ(by_name["name"]->kind, ParameterKind::kCategorical);
}

TEST(CacheFileTest, KnowsWhatIsAbsentAndWhatFails) {
  const auto measured = Measured(kCache);
  std::set<v1::OutcomeKind> kinds;
  int count = 0;
  measured->space()->Enumerate(0, [&](const bayesopt::Configuration& at) {
    kinds.insert(measured->At(at).kind);
    return ++count > 0;
  });
  EXPECT_EQ(count, 4);
  EXPECT_THAT(kinds,
              ElementsAre(v1::OUTCOME_KIND_OK, v1::OUTCOME_KIND_COMPILE_ERROR));
  EXPECT_THAT(measured->times_ms(), ElementsAre(4, 2, 1));
  EXPECT_EQ(measured->size(), 4u);
  EXPECT_TRUE(measured->replayable());
  EXPECT_EQ(measured->At(measured->Fastest(1)[0]).time_ms, 1);
}

TEST(CacheFileTest, NeverReplaysSamplesThatDisagreeWithTheTime) {
  std::string text = kCache;
  text.replace(text.find("[1.9, 2.1]"), 10, "[1.0, 1.1]");
  EXPECT_FALSE(Measured(text)->replayable());
}

TEST(CacheFileTest, ReadsACacheThatWasNotClosed) {
  std::string text = kCache;
  text.resize(text.rfind('}', text.rfind('}') - 1));
  EXPECT_EQ(Measured(text + ",\n")->size(), 4u);
}

TEST(CacheFileTest, ReadsT4) {
  const auto measured = Measured(R"({"schema_version": "1.0.0", "results": [
    {"configuration": {"x": 1, "y": true}, "invalidity": "correct",
     "times": {"runtimes": [3.0, 3.0]}, "objectives": ["time"],
     "measurements": [{"name": "power", "value": 9, "unit": "W"},
                      {"name": "time", "value": 3.0, "unit": "ms"}]},
    {"configuration": {"x": 2, "y": true}, "invalidity": "correctness",
     "measurements": []},
    {"configuration": {"x": 2, "y": false}, "invalidity": "constraints",
     "measurements": []},
    {"configuration": {"x": 1, "y": false}, "invalidity": "timeout",
     "measurements": []}]})");
  EXPECT_EQ(measured->size(), 3u);
  EXPECT_THAT(measured->times_ms(), ElementsAre(3));
}

TEST(CacheFileTest, SaysWhatIsWrong) {
  EXPECT_THAT(ParseCache("{}", "f.json").status().message(),
              HasSubstr("f.json: expected JSON with"));
  std::string unknown = kCache;
  unknown.replace(unknown.find("CompilationFailed"), 17, "ComputationFailed");
  EXPECT_THAT(ParseCache(unknown, "f").status().message(),
              HasSubstr("unknown failure \"ComputationFailedConfig\""));
  std::string negative = kCache;
  negative.replace(negative.find("4.0,"), 4, "-4.0,");
  EXPECT_THAT(ParseCache(negative, "f").status().message(),
              HasSubstr("got the time -4.0"));
}

TEST(CacheFileTest, UnpacksGzipAndRefusesItsRemains) {
  const std::string text(3'000'000, 'x');
  std::string packed(1 << 16, '\0');
  z_stream stream = {};
  ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, 0), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  EXPECT_EQ(Gunzip(packed).value(), text);
  EXPECT_EQ(Gunzip("plain").value(), "plain");
  EXPECT_FALSE(Gunzip(packed.substr(0, packed.size() / 2)).ok());
}

TEST(ScorerTest, BaselineIsTheExpectedRankOfTheBest) {
  // All orders of drawing 3 of 5, of which the ranks 0..3 are valid.
  const Scorer scorer({8, 7, 6, 5}, 5);
  double sum = 0;
  int draws = 0;
  for (int a = 0; a < 5; ++a) {
    for (int b = 0; b < 5; ++b) {
      for (int c = 0; c < 5; ++c) {
        if (a == b || b == c || a == c) continue;
        int best = 0;
        for (const int rank : {a, b, c}) {
          if (rank < 4) best = std::max(best, rank);  // 4 fails
        }
        sum += best;
        ++draws;
      }
    }
  }
  EXPECT_NEAR(scorer.BaselineRank(3), sum / draws, 1e-9);
}

TEST(ScorerTest, MapsTimesToRanksAndBack) {
  const Scorer scorer({8, 7, 7, 5}, 4);
  EXPECT_EQ(scorer.RankOf(8), 0);
  EXPECT_EQ(scorer.RankOf(7), 2);
  EXPECT_EQ(scorer.RankOf(5), 3);
  EXPECT_EQ(scorer.RankOf(std::numeric_limits<double>::infinity()), 0);
  EXPECT_EQ(scorer.TimeAt(2.5), 6);
  EXPECT_EQ(scorer.TimeAt(3), 5);
}

TEST(ScorerTest, TheOptimumAtOnceIsOneAndNothingAtAllIsNegative) {
  const auto grid = Grid(40, 1000);
  const Scorer scorer(grid->times_ms(), grid->size());
  EXPECT_EQ(scorer.Score({Trace(kMaximumHorizon, 1.0)}), 1);
  EXPECT_LT(scorer.Score({Trace(kMaximumHorizon,
                                std::numeric_limits<double>::infinity())}),
            -1);
  const std::vector<Trace> traces = {Trace(kMaximumHorizon, 4.0),
                                     Trace(kMaximumHorizon, 2.0)};
  EXPECT_EQ(scorer.OptimumFraction(traces, 50), 0.375);
  EXPECT_EQ(scorer.EvaluationsTo(traces, 0.95),
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(scorer.EvaluationsTo(traces, 0.2), 1);
}

TEST(ScorerTest, IntervalsHoldTheScore) {
  const auto grid = Grid(40, 3);
  const Scorer scorer(grid->times_ms(), grid->size());
  bayesopt::Random random(1);
  std::vector<Trace> traces;
  for (int i = 0; i < 30; ++i) {
    traces.push_back(
        Trace(kMaximumHorizon, 1 + static_cast<double>(random.Below(40))));
  }
  const auto resamples = scorer.Bootstrap(traces, 500, 1);
  const Interval interval = MeanInterval({scorer.Score(traces)}, {resamples});
  EXPECT_LT(interval.low, interval.value);
  EXPECT_GT(interval.high, interval.value);
}

// The scorer checks itself: random search is 0, whether one in three fails or
// none does.
TEST(CampaignTest, RandomSearchScoresNothing) {
  for (const int fails_every : {3, 100000}) {
    const TestSpace space = {Grid(60, fails_every), Group::kMeasured};
    SimulationOptions options;
    options.sampler = "random";
    const auto results = RunCampaign({space}, options, 1000, 1, 2, nullptr);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_NEAR(results->front().p.value, 0, 0.05);
    if (fails_every == 3) {
      EXPECT_NEAR(results->front().failure_share, 1.0 / 3, 0.01);
    }
  }
}

TEST(CampaignTest, GivesTheSameOnAnyNumberOfThreads) {
  const auto spaces = SyntheticSpaces().value();
  std::vector<TestSpace> tests;
  for (const auto& space : spaces) tests.push_back({space, Group::kSynthetic});
  SimulationOptions options;
  options.batch = 8;
  options.noise_samples = 3;
  options.sampler = "local_search";
  const auto one = RunCampaign(tests, options, 4, 7, 1, nullptr).value();
  const auto many = RunCampaign(tests, options, 4, 7, 3, nullptr).value();
  for (size_t i = 0; i < tests.size(); ++i) {
    EXPECT_EQ(one[i].p.value, many[i].p.value);
    EXPECT_GT(one[i].p.value, 0);
  }
}

TEST(CampaignTest, EverySamplerIsFoundAndUnknownOnesAreNamed) {
  const TestSpace space = {Grid(30, 4), Group::kMeasured};
  for (const std::string& name : SamplerNames()) {
    SimulationOptions options;
    options.sampler = name;
    options.evaluations = 60;
    EXPECT_TRUE(Simulate(*space.measured, options, 1).ok()) << name;
  }
  SimulationOptions options;
  options.sampler = "clairvoyant";
  EXPECT_THAT(Simulate(*space.measured, options, 1).status().message(),
              HasSubstr("got the sampler \"clairvoyant\", expected one of"));
}

TEST(SyntheticSpacesTest, AreAsTheySay) {
  const auto spaces = SyntheticSpaces().value();
  ASSERT_THAT(spaces, SizeIs(3));
  for (const auto& space : spaces) EXPECT_TRUE(space->replayable());
  EXPECT_EQ(spaces[0]->times_ms().size(), spaces[0]->size());
  EXPECT_EQ(spaces[1]->size(), 4 * spaces[0]->size());
  const double failing = 1 - static_cast<double>(spaces[2]->times_ms().size()) /
                                 static_cast<double>(spaces[2]->size());
  EXPECT_NEAR(failing, 0.4, 0.05);
}

TEST(WarmStartTest, TheFastestOfTheSameKernelElsewhereAreSeeds) {
  const auto named = [](const std::string& name) {
    const auto table = ParseCache(kCache, name).value();
    return TestSpace{MeasuredSpace::FromTable(name, table).value(),
                     Group::kMeasured};
  };
  const auto pairs =
      RunWarmStarts({named("k/A"), named("k/B"), named("other/A")},
                    SimulationOptions{}, 3, 1, 1);
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  ASSERT_THAT(*pairs, SizeIs(2));
  EXPECT_EQ((*pairs)[0].space, "k/A");
  EXPECT_EQ((*pairs)[0].donor, "k/B");
  EXPECT_EQ((*pairs)[0].warm_p, 1);  // the same space: its best comes first
}

TEST(TracesTest, AreReadAsTheyAreWritten) {
  const auto grid = Grid(20, 5);
  SimulationOptions options;
  options.sampler = "random";
  std::vector<std::vector<Simulation>> simulations;
  ASSERT_TRUE(
      RunCampaign({{grid, Group::kMeasured}}, options, 2, 1, 1, &simulations)
          .ok());
  const auto directory = TemporaryDirectory::Create("tuner-sim-test").value();
  const std::string path = directory.path() + "/traces.jsonl";
  ASSERT_TRUE(
      WriteFileAtomically(path, FormatTraces("mine", "grid", 1, simulations[0]))
          .ok());
  const auto traces = ReadTraces(path);
  ASSERT_TRUE(traces.ok()) << traces.status();
  ASSERT_THAT(traces->at("mine").at("grid"), SizeIs(2));
  EXPECT_EQ(traces->at("mine").at("grid")[1], simulations[0][1].trace);

  ASSERT_TRUE(WriteFileAtomically(path, "{\"method\": 1}\n").ok());
  EXPECT_THAT(ReadTraces(path).status().message(), HasSubstr("jsonl:1: "));
}

TEST(ComparisonTest, LeadsAreOverTheBestOther) {
  const auto method = [](const std::string& name, double a, double b) {
    MethodResults made{name, {}};
    for (const auto& [space, p] : {std::pair("k/A", a), std::pair("k/B", b)}) {
      SpaceResult& result = made.results.emplace_back();
      result.space = space;
      result.p.value = p;
      result.p_resamples = {p - 0.1, p, p + 0.1};
    }
    return made;
  };
  const std::vector<MethodResults> methods = {method("default", 0.8, 0.5),
                                              method("x", 0.7, 0.2),
                                              method("y", 0.1, 0.6)};
  const auto leads = Leads(methods[0], methods);
  ASSERT_THAT(leads, SizeIs(2));
  EXPECT_EQ(leads[0].method, "x");
  EXPECT_NEAR(leads[0].lead.value, 0.1, 1e-9);
  EXPECT_EQ(leads[1].method, "y");
  EXPECT_NEAR(leads[1].lead.value, -0.1, 1e-9);
  EXPECT_LT(leads[1].lead.low, -0.1);
  const auto metrics = ComparisonMetrics("run", methods);
  EXPECT_EQ(metrics[0].metric, "bayesopt.least_lead_p");
  EXPECT_NEAR(metrics[0].value, -0.1, 1e-9);
  EXPECT_THAT(FormatComparison(methods),
              HasSubstr("| k/B | 0.50 | y | 0.60 |"));
  EXPECT_TRUE(ComparisonMetrics("run", {methods[0]}).empty());
}

TEST(ReportTest, NamesMetricsAndTheirTargets) {
  SpaceResult result;
  result.space = "k/A";
  result.p = {0.5, 0.4, 0.6};
  result.p_resamples = {0.4, 0.5, 0.6};
  std::map<std::string, BenchmarkResult> metrics;
  for (const auto& metric : Metrics("default", "batch8_", "run", {result})) {
    metrics[metric.metric] = metric;
  }
  EXPECT_EQ(metrics["bayesopt.batch8_mean_p"].value, 0.5);
  EXPECT_EQ(metrics["bayesopt.batch8_mean_p"].target, ">= 0.68");
  EXPECT_EQ(metrics["bayesopt.batch8_p.k/A"].value, 0.5);
  const auto random = Metrics("random", "", "run", {result});
  EXPECT_EQ(random[0].metric, "bayesopt.random_p");
  EXPECT_EQ(random[0].target, "-0.05 to 0.05");
}

}  // namespace
}  // namespace reprise::tuner_sim
