// Memory at device addresses, an executor over it, and kernels compiled from
// tests/replay/device/kernels. Not thread-safe.
#ifndef REPRISE_TESTS_REPLAY_DEVICE_DEVICE_TEST_UTIL_H_
#define REPRISE_TESTS_REPLAY_DEVICE_DEVICE_TEST_UTIL_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/device/cpu/executor_client.h"
#include "replay/device/cpu/lowering/lowering.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// The bitcode of kernels/<name>.cu; built beside the tests.
std::string KernelBitcode(const std::string& name);

// A kernel's argument buffer, laid out as CUDA does.
class Arguments {
 public:
  template <typename T>
  Arguments& Add(const T& value) {
    const size_t offset =
        (bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    bytes_.resize(offset + sizeof(T));
    std::memcpy(&bytes_[offset], &value, sizeof(T));
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

v1::LaunchConfig MakeLaunch(std::vector<uint32_t> grid,
                            std::vector<uint32_t> block,
                            uint32_t dynamic_shared_bytes = 0);

// A stretch of memory that device code sees at `address` and this process at
// host<T>().
class TestMachine {
 public:
  static constexpr uint64_t kAddress = 0x200000000000;
  static constexpr uint64_t kBytes = 64 << 20;

  explicit TestMachine(int threads = 2);
  ~TestMachine();

  ExecutorClient& client() { return *client_; }

  // Device memory, each allocation on pages of its own with an unmapped page
  // behind it when `guarded`.
  uint64_t Allocate(uint64_t bytes);
  template <typename T>
  uint64_t Upload(const std::vector<T>& values) {
    const uint64_t address = Allocate(values.size() * sizeof(T));
    std::memcpy(host<T>(address), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <typename T>
  std::vector<T> Download(uint64_t address, size_t count) {
    return std::vector<T>(host<T>(address), host<T>(address) + count);
  }
  template <typename T>
  T* host(uint64_t address) {
    return reinterpret_cast<T*>(memory_ + (address - kAddress));
  }

  // Compiles kernels/<file>.cu and loads it; device variables get memory.
  absl::Status Load(const std::string& file,
                    const LoweringOptions& options = {},
                    const std::string& pipeline = "default<O3>");
  // Loads code that CompileForHost made.
  absl::Status LoadCode(const v1::CompileReply& code, bool instrumented);
  uint64_t symbol(const std::string& name) const { return symbols_.at(name); }
  const v1::CompileReply& code() const { return code_; }

  absl::StatusOr<LaunchReport> Launch(
      const std::string& kernel, const v1::LaunchConfig& launch,
      const Arguments& arguments, absl::Duration timeout = absl::Seconds(60));
  // Fails the test unless the launch is OK.
  LaunchReport Run(const std::string& kernel, const v1::LaunchConfig& launch,
                   const Arguments& arguments);

 private:
  int fd_;
  char* memory_;
  uint64_t next_;
  std::unique_ptr<ExecutorClient> client_;
  uint64_t module_ = 0;
  v1::CompileReply code_;
  std::map<std::string, uint64_t> symbols_;
  struct Entry {
    uint64_t module = 0;
    std::string name;
    bool instrumented = false;
  };
  std::map<std::string, Entry> entries_;  // by kernel, as last loaded
};

}  // namespace reprise

#endif  // REPRISE_TESTS_REPLAY_DEVICE_DEVICE_TEST_UTIL_H_
