#include "replay/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise {
namespace {

constexpr char kLoader[] = "/lib64/ld-linux-x86-64.so.2";

// Exit code of a command that is silent.
int ExitCode(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SelfExecutableTest, IsThisProgram) {
  const absl::StatusOr<std::string> path = SelfExecutable();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_THAT(*path, ::testing::EndsWith("base_process_test"));
}

TEST(ProgramCommandTest, StartsThisProgramAgain) {
  absl::StatusOr<std::vector<std::string>> words = ProgramCommand("");
  ASSERT_TRUE(words.ok()) << words.status();
  words->push_back("--gtest_filter=Nothing");
  EXPECT_EQ(ExitCode(*words), 0);
  words->back() = "--gtest_filter=ExitTest.*";
  words->push_back("--gtest_also_run_disabled_tests");
  EXPECT_EQ(ExitCode(*words), 73);
}

TEST(ExitTest, DISABLED_ExitsWith73) { _exit(73); }

TEST(ProgramCommandTest, IsTheGivenProgram) {
  EXPECT_THAT(ProgramCommand("/bin/true").value(),
              ::testing::ElementsAre("/bin/true"));
}

TEST(ProgramCommandTest, StartsThisProgramAgainByTheLoaderThatStartedIt) {
  if (access(kLoader, X_OK) != 0) GTEST_SKIP() << "no " << kLoader;
  const std::string self = SelfExecutable().value();
  // The path need not be in its plain form.
  const std::string odd =
      absl::StrCat(self.substr(0, self.rfind('/')), "/./base_process_test");
  const std::string filter =
      "--gtest_filter=SelfExecutableTest.*:*StartsThisProgramAgain";
  EXPECT_EQ(ExitCode({kLoader, "--library-path", "/lib:/usr/lib", odd, filter}),
            0);
  EXPECT_EQ(ExitCode({kLoader, odd, filter}), 0);
}

bool IsReadable(int fd, int timeout_ms) {
  pollfd wait = {fd, POLLIN, 0};
  return poll(&wait, 1, timeout_ms) == 1 && (wait.revents & POLLIN) != 0;
}

void ExpectWatches(absl::StatusOr<int> (*watch)(pid_t)) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    char byte;
    _exit(read(ends[0], &byte, 1) == 0 ? 5 : 6);
  }
  const absl::StatusOr<int> fd = watch(child);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_FALSE(IsReadable(*fd, 0));
  close(ends[1]);
  EXPECT_TRUE(IsReadable(*fd, 10000));
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 5);
  close(*fd);
  close(ends[0]);
}

TEST(WatchChildTest, IsReadableOnceTheChildHasEnded) {
  ExpectWatches(&WatchChild);
}

TEST(WatchChildTest, WorksWithoutPidfdOpen) {
  ExpectWatches(&process_internal::WatchChildByThread);
}

TEST(WatchChildTest, EndsWhereTheChildIsWaitedForByAnother) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const absl::StatusOr<int> fd = process_internal::WatchChildByThread(child);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_TRUE(IsReadable(*fd, 10000));
  close(*fd);
}

}  // namespace
}  // namespace reprise
