#include "tests/replay/device/device_test_util.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "replay/base/check.h"
#include "replay/base/status_macros.h"
#include "tests/replay/device/host_compiler.h"

namespace reprise {

std::string KernelBitcode(const std::string& name) {
  return absl::StrCat(REPRISE_TEST_KERNELS, "/", name, ".bc");
}

namespace {

// Tests load the same kernels over and over.
absl::StatusOr<v1::CompileReply> Compiled(const std::string& file,
                                          const LoweringOptions& options,
                                          const std::string& pipeline) {
  static auto& cache = *new std::map<std::string, v1::CompileReply>;
  const std::string key = absl::StrCat(
      file, "\n", options.instrument, "\n", options.launch.SerializeAsString(),
      "\n", absl::StrJoin(options.kernels, ","), "\n", pipeline);
  const auto found = cache.find(key);
  if (found != cache.end()) return found->second;
  ASSIGN_OR_RETURN(v1::CompileReply code,
                   CompileForHost(KernelBitcode(file), options, pipeline));
  cache[key] = code;
  return code;
}

}  // namespace

v1::LaunchConfig MakeLaunch(std::vector<uint32_t> grid,
                            std::vector<uint32_t> block,
                            uint32_t dynamic_shared_bytes) {
  v1::LaunchConfig launch;
  const auto set = [](std::vector<uint32_t>& sizes, v1::Dim3* dim) {
    sizes.resize(3, 1);
    dim->set_x(sizes[0]);
    dim->set_y(sizes[1]);
    dim->set_z(sizes[2]);
  };
  set(grid, launch.mutable_grid());
  set(block, launch.mutable_block());
  launch.set_dynamic_shared_bytes(dynamic_shared_bytes);
  return launch;
}

TestMachine::TestMachine(int threads) : next_(kAddress) {
  fd_ = memfd_create("test-memory", MFD_CLOEXEC);
  CHECK(fd_ >= 0 && ftruncate(fd_, kBytes) == 0);
  void* memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  CHECK(memory != MAP_FAILED);
  memory_ = static_cast<char*>(memory);
  ExecutorClient::Options options;
  options.memory_fd = fd_;
  options.threads = threads;
  auto client = ExecutorClient::Start(options);
  EXPECT_TRUE(client.ok()) << client.status();
  CHECK(client.ok());
  client_ = std::move(*client);
  v1::MemoryMapping mapping;
  mapping.set_address(kAddress);
  mapping.set_bytes(kBytes);
  mapping.set_writable(true);
  const absl::Status status = client_->MapMemory({mapping});
  EXPECT_TRUE(status.ok()) << status;
}

TestMachine::~TestMachine() {
  munmap(memory_, kBytes);
  close(fd_);
}

uint64_t TestMachine::Allocate(uint64_t bytes) {
  const uint64_t address = next_;
  next_ += (bytes + 255) / 256 * 256;
  CHECK(next_ <= kAddress + kBytes);
  return address;
}

absl::Status TestMachine::Load(const std::string& file,
                               const LoweringOptions& options,
                               const std::string& pipeline) {
  ASSIGN_OR_RETURN(const v1::CompileReply code,
                   Compiled(file, options, pipeline));
  return LoadCode(code, options.instrument);
}

absl::Status TestMachine::LoadCode(const v1::CompileReply& code,
                                   bool instrumented) {
  code_ = code;
  v1::LoadModuleRequest request;
  request.set_module(++module_);
  request.set_object(code_.code());
  for (const v1::ModuleGlobal& global : code_.globals()) {
    const uint64_t address = Allocate(global.bytes());
    symbols_[global.symbol()] = address;
    (*request.mutable_symbol_addresses())[global.symbol()] = address;
    *request.add_initialize() = global;
  }
  for (const v1::CompiledKernelInfo& info : code_.kernels()) {
    entries_[info.symbol()] = {module_, info.entry(), instrumented};
  }
  return client_->LoadModule(request);
}

absl::StatusOr<LaunchReport> TestMachine::Launch(const std::string& kernel,
                                                 const v1::LaunchConfig& launch,
                                                 const Arguments& arguments,
                                                 absl::Duration timeout) {
  const auto entry = entries_.find(kernel);
  if (entry == entries_.end()) return absl::NotFoundError(kernel);
  v1::LaunchRequest request;
  request.set_module(entry->second.module);
  request.set_entry(entry->second.name);
  *request.mutable_launch() = launch;
  request.set_arguments(arguments.bytes());
  request.set_instrumented(entry->second.instrumented);
  return client_->Launch(request, timeout);
}

LaunchReport TestMachine::Run(const std::string& kernel,
                              const v1::LaunchConfig& launch,
                              const Arguments& arguments) {
  auto report = Launch(kernel, launch, arguments);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  EXPECT_EQ(report->kind, v1::OUTCOME_KIND_OK) << report->diagnostics;
  return *report;
}

}  // namespace reprise
