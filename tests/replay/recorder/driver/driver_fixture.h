// Runs test applications with libreprise_cuda.so preloaded, over the fake
// driver and against a parent that follows a script.
#ifndef REPRISE_TESTS_REPLAY_RECORDER_DRIVER_DRIVER_FIXTURE_H_
#define REPRISE_TESTS_REPLAY_RECORDER_DRIVER_DRIVER_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "replay/base/file_util.h"
#include "tests/replay/recorder/driver/scripted_parent.h"
#include "tests/replay/recorder/shell.h"

namespace reprise::testing {

inline std::string Binaries() {
  const char* directory = std::getenv("REPRISE_BINARY_DIR");
  return directory != nullptr ? directory : ".";
}

class DriverFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create("driver");
    ASSERT_TRUE(directory.ok());
    directory_ = std::make_unique<TemporaryDirectory>(*std::move(directory));
  }

  std::string Socket() const { return directory_->path() + "/socket"; }

  // Runs a program with the library preloaded and, with a script, a parent.
  ShellResult Run(const std::string& program, const Script* script = nullptr,
                  const std::string& preload_first = "",
                  const std::string& preload_last = "") {
    std::unique_ptr<ScriptedParent> parent;
    std::string environment = "LD_LIBRARY_PATH=" + Binaries() + "/tests/" +
                              driver_ + " LD_PRELOAD='" + preload_first + " " +
                              Binaries() + "/lib/libreprise_cuda.so " +
                              preload_last + "' ";
    if (script != nullptr) {
      parent = std::make_unique<ScriptedParent>(Socket(), *script);
      environment += "REPRISE_DRIVER_SOCKET=" + Socket() + " ";
    }
    const ShellResult result = Shell(
        directory_->path(), environment + Binaries() + "/tests/bin/" + program);
    if (parent != nullptr) heard_ = parent->Heard();
    unlink(Socket().c_str());
    return result;
  }

  const HeardProcess& OneProcess() {
    EXPECT_THAT(heard_, ::testing::SizeIs(1));
    static const HeardProcess none;
    return heard_.size() == 1 ? heard_[0] : none;
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::string driver_ = "fake_driver";  // folder of its libcuda.so.1
  std::vector<HeardProcess> heard_;
};

// The value that a line "name value" of the output gives, as hexadecimal.
inline uint64_t Printed(const std::string& out, const std::string& name) {
  const size_t at = out.find(name + " ");
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos
             ? 0
             : std::stoull(out.substr(at + name.size() + 1), nullptr, 16);
}

}  // namespace reprise::testing

#endif  // REPRISE_TESTS_REPLAY_RECORDER_DRIVER_DRIVER_FIXTURE_H_
