#include "replay/device/cpu/cpu_device.h"

#include <fstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/executor_client.h"
#include "replay/device/cpu/resident/unit_memory.h"
#include "replay/unit/unit_store.h"

namespace reprise {
namespace {

constexpr uint32_t kMaxSharedBytes = 227 << 10;

std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "unknown processor";
}

class CpuKernel : public LoadedKernel {
 public:
  CpuKernel(ExecutorClient& executor, cpu::UnitMemory& memory, uint64_t module)
      : executor_(executor), memory_(memory), module_(module) {}
  ~CpuKernel() override {
    if (absl::Status status = executor_.UnloadModule(module_); !status.ok()) {
      LOG_DEBUG("cannot unload module {}: {}", module_,
                std::string(status.message()));
    }
    for (const uint64_t address : spare_) memory_.FreeSpare(address);
  }
  // It owns memory of a variable from then on.
  void AddSpare(uint64_t address) { spare_.push_back(address); }
  void set_info(v1::CompiledKernelInfo info) { info_ = std::move(info); }

  uint64_t module() const { return module_; }
  const v1::CompiledKernelInfo& info() const { return info_; }
  const std::vector<uint64_t>& spare() const { return spare_; }

 private:
  ExecutorClient& executor_;
  cpu::UnitMemory& memory_;
  const uint64_t module_;
  v1::CompiledKernelInfo info_;
  std::vector<uint64_t> spare_;  // addresses
};

class CpuResidentUnit : public ResidentUnit {
 public:
  static absl::StatusOr<std::unique_ptr<ResidentUnit>> Create(
      const UnitReader& unit, const LoadOptions& options,
      ExecutorClient::Options executor) {
    auto resident =
        std::unique_ptr<CpuResidentUnit>(new CpuResidentUnit(unit.manifest()));
    ASSIGN_OR_RETURN(resident->memory_, cpu::UnitMemory::Create(unit, options));
    executor.memory_fd = resident->memory_->fd();
    ASSIGN_OR_RETURN(resident->executor_,
                     ExecutorClient::Start(std::move(executor)));
    RETURN_IF_ERROR(
        resident->executor_->MapMemory(resident->memory_->mappings()));
    return resident;
  }

  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(
      const v1::CompileReply& code, const std::string& kernel_symbol) override {
    const v1::CompiledKernelInfo* info = nullptr;
    for (const v1::CompiledKernelInfo& kernel : code.kernels()) {
      if (kernel.symbol() == kernel_symbol) info = &kernel;
    }
    if (info == nullptr)
      return absl::NotFoundError(
          absl::StrCat("the code holds no kernel ", kernel_symbol));
    v1::LoadModuleRequest request;
    request.set_module(next_module_++);
    request.set_object(code.code());
    auto kernel =
        std::make_unique<CpuKernel>(*executor_, *memory_, request.module());
    kernel->set_info(*info);
    RETURN_IF_ERROR(BindGlobals(code, &request, *kernel));
    RETURN_IF_ERROR(executor_->LoadModule(request));
    for (const uint64_t address : kernel->spare())
      memory_->CaptureSpare(address);
    return kernel;
  }

  absl::Status Restore() override {
    memory_->Restore();
    return absl::OkStatus();
  }
  absl::Status Poison(uint64_t seed) override {
    memory_->Poison(seed);
    return absl::OkStatus();
  }
  absl::StatusOr<LaunchReport> Launch(LoadedKernel& kernel,
                                      const LaunchOptions& options) override {
    const auto& loaded = static_cast<const CpuKernel&>(kernel);
    v1::LaunchRequest request;
    request.set_module(loaded.module());
    request.set_entry(loaded.info().entry());
    request.set_has_barriers(loaded.info().has_barriers());
    request.set_static_shared_bytes(loaded.info().static_shared_bytes());
    *request.mutable_launch() = options.launch;
    request.set_arguments(manifest_.arguments());
    request.set_poison_shared(options.poison_seed != 0);
    request.set_poison_byte(
        static_cast<uint32_t>(options.poison_seed >> 8 & 0xff));
    request.set_instrumented(options.instrumented);
    return executor_->Launch(request, options.timeout);
  }
  absl::StatusOr<Verdict> Verify(
      const v1::Tolerance& default_tolerance) override {
    return memory_->Verify(default_tolerance);
  }
  absl::Status AdoptReference() override {
    memory_->AdoptReference();
    return absl::OkStatus();
  }

 private:
  explicit CpuResidentUnit(v1::Unit manifest)
      : manifest_(std::move(manifest)) {}

  // Globals of the unit are where they were recorded; others get a place of
  // their own, set up by the code.
  absl::Status BindGlobals(const v1::CompileReply& code,
                           v1::LoadModuleRequest* request, CpuKernel& kernel) {
    auto& addresses = *request->mutable_symbol_addresses();
    for (const v1::MemoryRange& range : manifest_.memory()) {
      if (!range.symbol().empty()) addresses[range.symbol()] = range.address();
    }
    for (const v1::ModuleGlobal& global : code.globals()) {
      if (addresses.contains(global.symbol())) continue;
      ASSIGN_OR_RETURN(
          addresses[global.symbol()],
          memory_->AllocateSpare(global.bytes(), global.alignment()));
      kernel.AddSpare(addresses[global.symbol()]);
      *request->add_initialize() = global;
    }
    return absl::OkStatus();
  }

  v1::Unit manifest_;
  std::unique_ptr<cpu::UnitMemory> memory_;
  std::unique_ptr<ExecutorClient> executor_;
  uint64_t next_module_ = 1;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(CpuDeviceOptions options) : options_(std::move(options)) {
    const unsigned all = std::max(1u, std::thread::hardware_concurrency());
    facts_.kind = "cpu";
    facts_.parallel_units =
        options_.threads > 0 ? static_cast<uint32_t>(options_.threads) : all;
    facts_.name =
        absl::StrCat(ProcessorName(), ", ", facts_.parallel_units, " threads");
    facts_.architecture = "x86-64";
    facts_.clocks_unknown = "the cpu device does not read them";
    facts_.max_shared_bytes_per_block = kMaxSharedBytes;
  }
  const DeviceFacts& facts() const override { return facts_; }
  v1::CompileTarget compile_target() const override {
    return v1::COMPILE_TARGET_CPU;
  }
  absl::StatusOr<std::unique_ptr<ResidentUnit>> Load(
      const UnitReader& unit, const LoadOptions& options) override {
    ExecutorClient::Options executor;
    executor.executable = options_.executor_executable;
    executor.arguments = options_.executor_arguments;
    executor.threads = options_.threads;
    executor.stop = options_.stop;
    return CpuResidentUnit::Create(unit, options, std::move(executor));
  }

 private:
  CpuDeviceOptions options_;
  DeviceFacts facts_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CreateCpuDevice(
    CpuDeviceOptions options) {
  return std::make_unique<CpuDevice>(std::move(options));
}

}  // namespace reprise
