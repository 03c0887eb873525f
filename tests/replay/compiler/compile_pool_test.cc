// Workers as processes: they die, the pool lives. This program is its own
// worker.
#include "replay/compiler/compile_pool.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "replay/base/file_util.h"
#include "tests/replay/compiler/test_units.h"

namespace reprise::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Processes whose parent is this one.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  std::ifstream file("/proc/self/task/" + std::to_string(getpid()) +
                     "/children");
  // Threads have children of their own; the pool's workers are theirs.
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* task = readdir(tasks)) {
    std::ifstream list(std::string("/proc/self/task/") + task->d_name +
                       "/children");
    pid_t child = 0;
    while (list >> child) children.push_back(child);
  }
  closedir(tasks);
  return children;
}

class CompilePoolTest : public ::testing::Test {
 protected:
  CompilePoolTest()
      : tree_({{"saxpy.cu", kSaxpySource}}), path_(tree_.Path("saxpy.cu")) {
    // With its IR, so that jobs are short.
    v1::CompileInput input = InputFor(path_);
    const std::unique_ptr<Compiler> compiler = NewCompiler();
    compiler->Remember(input);
    const v1::CompileReply ir =
        compiler->Compile(path_, {}, v1::COMPILE_TARGET_DEVICE_IR);
    EXPECT_EQ(Describe(ir), "OK");
    input.mutable_translation_units(0)->set_ir(ir.code());
    input.add_kernels("Saxpy");
    input_ = std::make_shared<v1::CompileInput>(input);
  }

  static CompilePool::Options OneWorker() {
    CompilePool::Options options;
    options.worker_arguments = {"compile-worker", "--test-faults"};
    options.workers = 1;
    options.cuda_home = CudaHome();
    return options;
  }
  void Start(CompilePool::Options options) {
    auto pool = CompilePool::Create(std::move(options));
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }
  v1::CompileReply Compile(const v1::Variant& variant,
                           v1::CompileTarget target = v1::COMPILE_TARGET_PTX) {
    auto reply = pool_->Compile(input_, variant, target);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : v1::CompileReply();
  }
  static v1::Variant Pipeline(const std::string& text) {
    v1::Variant variant;
    variant.set_pipeline(text);
    return variant;
  }
  void ExpectTheNextOneCompiles() {
    EXPECT_EQ(Describe(Compile(Pipeline("default<O2>"))), "OK");
  }

  SourceTree tree_;
  const std::string path_;
  std::shared_ptr<const v1::CompileInput> input_;
  std::unique_ptr<CompilePool> pool_;
};

TEST_F(CompilePoolTest, CompilesAndRemembersResults) {
  Start(OneWorker());
  const v1::CompileReply first = Compile({});
  ASSERT_EQ(Describe(first), "OK");
  EXPECT_EQ(pool_->statistics().cache_hits, 0u);
  const v1::CompileReply again = Compile({});
  EXPECT_EQ(again.code(), first.code());
  EXPECT_EQ(pool_->statistics().cache_hits, 1u);
  // A launch says nothing to PTX, but something to code for the host.
  v1::Variant launch;
  launch.mutable_launch()->mutable_block()->set_x(64);
  launch.mutable_launch()->mutable_block()->set_y(1);
  launch.mutable_launch()->mutable_block()->set_z(1);
  Compile(launch);
  EXPECT_EQ(pool_->statistics().cache_hits, 2u);
  EXPECT_EQ(Describe(Compile({}, v1::COMPILE_TARGET_CPU)), "OK");
  EXPECT_EQ(Describe(Compile(launch, v1::COMPILE_TARGET_CPU)), "OK");
  EXPECT_EQ(pool_->statistics().cache_hits, 2u);
  EXPECT_EQ(pool_->statistics().jobs, 5u);
  EXPECT_EQ(pool_->statistics().workers_lost, 0u);
}

TEST_F(CompilePoolTest, SourceErrorsCostNoWorker) {
  Start(OneWorker());
  const v1::CompileReply reply =
      Compile(Edit(path_, Replace(kSaxpySource, "x + x", "x + y")));
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(), HasSubstr("saxpy.cu:12:"));
  EXPECT_EQ(pool_->statistics().workers_lost, 0u);
}

TEST_F(CompilePoolTest, SurvivesACrashAndNamesThePass) {
  Start(OneWorker());
  const v1::CompileReply reply =
      Compile(Pipeline("function(sroa,reprise-crash)"));
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(),
              AllOf(HasSubstr("crashed (signal 11"), HasSubstr("FaultPass"),
                    HasSubstr("Twice")));
  EXPECT_EQ(pool_->statistics().workers_lost, 1u);
  ExpectTheNextOneCompiles();
}

TEST_F(CompilePoolTest, PassesOnWhatLlvmSaidLast) {
  Start(OneWorker());
  const v1::CompileReply reply = Compile(Pipeline("function(reprise-abort)"));
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(), HasSubstr("a fault on purpose"));
  ExpectTheNextOneCompiles();
}

TEST_F(CompilePoolTest, SurvivesAHang) {
  CompilePool::Options options = OneWorker();
  options.job_timeout = absl::Seconds(4);
  Start(std::move(options));
  const v1::CompileReply reply = Compile(Pipeline("function(reprise-hang)"));
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(),
              AllOf(HasSubstr("took longer than 4s"), HasSubstr("FaultPass")));
  EXPECT_EQ(pool_->statistics().workers_lost, 1u);
  ExpectTheNextOneCompiles();
}

TEST_F(CompilePoolTest, AnswersWhatHangsWhenItIsAbandoned) {
  Start(OneWorker());
  std::vector<std::thread> callers;
  std::atomic<int> unavailable = 0;
  for (const char* pipeline : {"function(reprise-hang)", "function(sroa)"}) {
    callers.emplace_back([&, pipeline] {
      const auto reply =
          pool_->Compile(input_, Pipeline(pipeline), v1::COMPILE_TARGET_CPU);
      unavailable += absl::IsUnavailable(reply.status()) ? 1 : 0;
    });
  }
  while (pool_->statistics().jobs < 2) absl::SleepFor(absl::Milliseconds(1));
  pool_->Abandon();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(unavailable, 2);
  EXPECT_EQ(pool_->statistics().workers_lost, 0u);
}

TEST_F(CompilePoolTest, SurvivesAnAppetiteForMemory) {
  Start(OneWorker());
  const v1::CompileReply reply =
      Compile(Pipeline("function(reprise-exhaust-memory)"));
  EXPECT_EQ(reply.kind(), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_THAT(reply.diagnostics(),
              AllOf(HasSubstr("ran out of memory (limit 4096 MiB)"),
                    HasSubstr("FaultPass")));
  EXPECT_EQ(pool_->statistics().workers_lost, 1u);
  ExpectTheNextOneCompiles();
}

TEST_F(CompilePoolTest, AWorkerKilledFromOutsideIsNotTheVariantsFault) {
  Start(OneWorker());
  ExpectTheNextOneCompiles();
  const std::vector<pid_t> before = Children();
  ASSERT_EQ(before.size(), 1u);
  kill(before[0], SIGKILL);
  EXPECT_EQ(Describe(Compile(Pipeline("default<O1>"))), "OK");
  EXPECT_EQ(pool_->statistics().workers_lost, 1u);
}

TEST_F(CompilePoolTest, ServesManyThreads) {
  CompilePool::Options options = OneWorker();
  options.workers = 2;
  Start(std::move(options));
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 4; ++i) {
        v1::Variant variant;
        variant.mutable_codegen()->set_unroll_threshold(100 + (t + i) % 6);
        good += Compile(variant).kind() == v1::OUTCOME_KIND_OK;
        // Some fall beside.
        if (t == 0 && i == 1) Compile(Pipeline("function(reprise-crash)"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 24);
  EXPECT_EQ(pool_->statistics().jobs, 25u);
  EXPECT_EQ(pool_->statistics().workers_lost, 1u);
  EXPECT_EQ(pool_->statistics().cache_hits, 18u);
}

TEST_F(CompilePoolTest, JobsInARowStayWithTheWorkerThatKnowsTheirInput) {
  CompilePool::Options options = OneWorker();
  options.workers = 3;
  Start(std::move(options));
  for (uint32_t i = 0; i < 8; ++i) {
    v1::Variant variant;
    variant.mutable_codegen()->set_unroll_threshold(100 + i);
    EXPECT_EQ(Describe(Compile(variant)), "OK");
  }
  EXPECT_EQ(pool_->statistics().inputs_sent, 1u);
}

TEST_F(CompilePoolTest, AllWorkersGetReadyWhenAsked) {
  CompilePool::Options options = OneWorker();
  options.workers = 3;
  Start(std::move(options));
  pool_->Prepare(input_, v1::COMPILE_TARGET_PTX);
  // Jobs are done all the same, whoever is busy.
  for (uint32_t i = 0; i < 4; ++i) {
    v1::Variant variant;
    variant.mutable_codegen()->set_unroll_threshold(100 + i);
    EXPECT_EQ(Describe(Compile(variant)), "OK");
  }
  while (pool_->statistics().chores < 3) std::this_thread::yield();
  EXPECT_EQ(pool_->statistics().jobs, 4u);
  EXPECT_EQ(pool_->statistics().workers_lost, 0u);
}

TEST_F(CompilePoolTest, EndsWhileWorkersGetReady) {
  Start(OneWorker());
  for (int i = 0; i < 10; ++i) pool_->Prepare(input_, v1::COMPILE_TARGET_PTX);
  pool_.reset();
  EXPECT_TRUE(Children().empty());
}

TEST_F(CompilePoolTest, SendsInputsAgainThatAWorkerForgot) {
  Start(OneWorker());
  // More inputs than a worker keeps.
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; ++i) {
      v1::CompileInput input = *input_;
      input.set_key("input " + std::to_string(i));
      v1::Variant variant;
      variant.mutable_codegen()->set_unroll_threshold(100 + round);
      auto reply = pool_->Compile(std::make_shared<v1::CompileInput>(input),
                                  variant, v1::COMPILE_TARGET_PTX);
      ASSERT_TRUE(reply.ok()) << reply.status();
      ASSERT_EQ(Describe(*reply), "OK");
    }
  }
  EXPECT_EQ(pool_->statistics().cache_hits, 0u);
}

TEST_F(CompilePoolTest, LeavesNoProcessBehind) {
  Start(OneWorker());
  ExpectTheNextOneCompiles();
  EXPECT_EQ(Children().size(), 1u);
  pool_.reset();
  EXPECT_TRUE(Children().empty());
}

TEST_F(CompilePoolTest, AnExecutableThatIsNoWorkerIsAnErrorOfThisMachine) {
  CompilePool::Options options = OneWorker();
  options.executable = "/bin/false";
  Start(std::move(options));
  auto reply = pool_->Compile(input_, {}, v1::COMPILE_TARGET_PTX);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(reply.status().message()),
              AllOf(HasSubstr("/bin/false"), HasSubstr("exit code 1")));
  options = OneWorker();
  options.executable = "/nonexistent";
  Start(std::move(options));
  reply = pool_->Compile(input_, {}, v1::COMPILE_TARGET_PTX);
  EXPECT_FALSE(reply.ok());
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("/nonexistent"));
}

TEST_F(CompilePoolTest, RefusesNoWorkers) {
  CompilePool::Options options = OneWorker();
  options.workers = 0;
  EXPECT_EQ(CompilePool::Create(std::move(options)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace reprise::testing

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "compile-worker") == 0)
    return reprise::CompileWorkerMain(argc - 2, argv + 2);
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
