#include "replay/device/cuda/cuda_device.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/kernel_symbols.h"
#include "replay/device/cuda/executor_client.h"
#include "replay/device/cuda/unit_image.h"
#include "replay/recorder/cc/cubin.h"
#include "replay/unit/unit_store.h"

namespace reprise {
namespace {

class CudaKernel : public LoadedKernel {
 public:
  CudaKernel(CudaExecutorClient& executor, uint64_t module,
             bool is_applications)
      : executor_(executor),
        module_(module),
        is_applications_(is_applications) {}
  ~CudaKernel() override { executor_.UnloadModule(module_); }
  uint64_t module() const { return module_; }
  bool is_applications() const { return is_applications_; }

 private:
  CudaExecutorClient& executor_;
  const uint64_t module_;
  const bool is_applications_;
};

class CudaResidentUnit : public ResidentUnit {
 public:
  static absl::StatusOr<std::unique_ptr<ResidentUnit>> Create(
      const UnitReader& unit, const LoadOptions& load,
      const CudaDeviceOptions& options, CudaExecutorClient& executor) {
    ASSIGN_OR_RETURN(auto image, cuda::UnitImage::Create(unit, load));
    ASSIGN_OR_RETURN(const uint64_t id, executor.LoadUnit(std::move(image)));
    return std::unique_ptr<ResidentUnit>(
        new CudaResidentUnit(unit, options, executor, id));
  }
  ~CudaResidentUnit() override { executor_.UnloadUnit(id_); }

  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(
      const v1::CompileReply& code, const std::string& kernel_symbol) override {
    v1::LoadCudaModuleRequest request;
    request.set_image(code.code());
    request.set_kernel(kernel_symbol);
    absl::StatusOr<std::vector<CubinVariable>> variables =
        CubinVariables(code.code());
    if (!variables.ok()) {
      // Not machine code yet: what the compiler knows of.
      variables.emplace();
      for (const v1::ModuleGlobal& global : code.globals()) {
        CubinVariable& variable = variables->emplace_back();
        variable.symbol = global.symbol();
        variable.bytes = global.bytes();
        variable.constant = global.constant();
      }
    }
    AddVariables(*variables, /*is_applications=*/false, &request);
    return Load(std::move(request));
  }

  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadApplicationKernel()
      override {
    const v1::Unit& manifest = unit_.manifest();
    if (!manifest.has_machine_code() || manifest.machine_code().bytes() == 0) {
      return absl::UnimplementedError(absl::StrCat(
          "unit ", unit_.id(), " holds no machine code of its application"));
    }
    v1::LoadCudaModuleRequest request;
    ASSIGN_OR_RETURN(*request.mutable_image(),
                     unit_.chunks().GetString(manifest.machine_code()));
    request.set_kernel(manifest.kernel().application_symbol().empty()
                           ? manifest.kernel().symbol()
                           : manifest.kernel().application_symbol());
    // The unit holds all that the application's kernel touches.
    const absl::StatusOr<std::string> cubin =
        CubinFor(request.image(), manifest.architecture());
    const absl::StatusOr<std::vector<CubinVariable>> variables =
        CubinVariables(cubin.ok() ? *cubin : request.image());
    if (variables.ok())
      AddVariables(*variables, /*is_applications=*/true, &request);
    return Load(std::move(request), /*is_applications=*/true);
  }

  absl::Status Restore() override {
    pending_.Clear();
    pending_.set_restore(true);
    return absl::OkStatus();
  }
  absl::Status Poison(uint64_t seed) override {
    pending_.set_poison(true);
    pending_.set_poison_seed(seed);
    return absl::OkStatus();
  }

  absl::StatusOr<LaunchReport> Launch(LoadedKernel& kernel,
                                      const LaunchOptions& options) override {
    const auto& loaded = static_cast<const CudaKernel&>(kernel);
    v1::LaunchCudaRequest request = RequestFor(loaded, options);
    ASSIGN_OR_RETURN(LaunchReport report,
                     executor_.Launch(request, options.timeout));
    if (report.kind != v1::OUTCOME_KIND_DEVICE_FAULT ||
        !loaded.is_applications() || all_writable_)
      return report;
    // What it writes where nobody saw it write must be its right.
    LOG_WARNING(
        "unit {}: the application's own code faults ({}); again with "
        "all memory writable",
        unit_.id(), report.diagnostics);
    all_writable_ = true;
    executor_.MakeAllWritable(id_);
    return executor_.Launch(request, options.timeout);
  }

  absl::StatusOr<v1::Counters> Count(LoadedKernel& kernel,
                                     const LaunchOptions& options) override {
    return executor_.Count(
        RequestFor(static_cast<const CudaKernel&>(kernel), options),
        options.timeout);
  }

  absl::StatusOr<Verdict> Verify(
      const v1::Tolerance& default_tolerance) override {
    RETURN_IF_ERROR(PrepareNow());
    v1::VerifyCudaRequest request;
    request.set_unit(id_);
    *request.mutable_default_tolerance() = default_tolerance;
    ASSIGN_OR_RETURN(const v1::CudaVerdict reply, executor_.Verify(request));
    Verdict verdict;
    verdict.equal = reply.equal();
    verdict.ranges.assign(reply.ranges().begin(), reply.ranges().end());
    return verdict;
  }

  absl::Status AdoptReference() override {
    RETURN_IF_ERROR(PrepareNow());
    return executor_.AdoptReference(id_);
  }

 private:
  CudaResidentUnit(const UnitReader& unit, const CudaDeviceOptions& options,
                   CudaExecutorClient& executor, uint64_t id)
      : unit_(unit), options_(options), executor_(executor), id_(id) {}

  // With what Restore and Poison asked for.
  v1::LaunchCudaRequest RequestFor(const CudaKernel& kernel,
                                   const LaunchOptions& options) {
    v1::LaunchCudaRequest request;
    request.set_unit(id_);
    request.set_module(kernel.module());
    *request.mutable_prepare() = std::exchange(pending_, v1::PrepareCuda());
    *request.mutable_launch() = options.launch;
    request.set_arguments(unit_.manifest().arguments());
    request.set_instrumented(options.instrumented);
    if (options.verify_tolerance.has_value())
      *request.mutable_verify_tolerance() = *options.verify_tolerance;
    request.set_sample_clocks(options.sample_clocks);
    const bool warm = options.l2.has_value() ? *options.l2 == v1::L2_POLICY_WARM
                                             : options_.warm_l2;
    request.set_warm_up(warm && !options.instrumented);
    request.set_dirty_l2(options.l2 == v1::L2_POLICY_DIRTY);
    request.set_keep_mapped(options_.keep_golden_mapped);
    return request;
  }

  bool IsRange(const std::string& symbol) const {
    for (const v1::MemoryRange& range : unit_.manifest().memory()) {
      if (range.symbol() == symbol) return true;
    }
    return false;
  }

  // What the code declares. Of code that is not the application's, variables
  // that are no range keep what they are loaded with.
  void AddVariables(const std::vector<CubinVariable>& declared,
                    bool is_applications,
                    v1::LoadCudaModuleRequest* request) const {
    const std::map<std::string, std::string> ranges =
        RangesUnderOtherNames(declared, is_applications);
    for (const CubinVariable& in_code : declared) {
      v1::CudaModuleVariable* variable = request->add_variables();
      variable->set_symbol(in_code.symbol);
      if (const auto other = ranges.find(in_code.symbol);
          other != ranges.end()) {
        variable->set_range_symbol(other->second);
      }
      variable->set_bytes(in_code.bytes);
      variable->set_section(in_code.section);
      variable->set_offset(in_code.offset);
      variable->set_keep(!is_applications && !in_code.constant &&
                         variable->range_symbol().empty() &&
                         !IsRange(in_code.symbol));
    }
  }

  // Ranges of the unit that the code has under another name: code's name to
  // range's. A variable that has some range's name is no other range's.
  std::map<std::string, std::string> RangesUnderOtherNames(
      const std::vector<CubinVariable>& in_code, bool is_applications) const {
    const auto wanted = [&](const v1::MemoryRange& range) {
      return is_applications && !range.application_symbol().empty()
                 ? range.application_symbol()
                 : range.symbol();
    };
    std::set<std::string> claimed;
    for (const v1::MemoryRange& range : unit_.manifest().memory())
      claimed.insert(wanted(range));
    std::set<std::string> declared;
    std::vector<std::string> unclaimed;
    for (const CubinVariable& variable : in_code) {
      declared.insert(variable.symbol);
      if (!claimed.contains(variable.symbol))
        unclaimed.push_back(variable.symbol);
    }
    std::map<std::string, std::string> names;
    for (const v1::MemoryRange& range : unit_.manifest().memory()) {
      if (range.symbol().empty()) continue;
      std::string name = wanted(range);
      if (!declared.contains(name)) {
        const int found = FindSymbol(unclaimed, name);
        if (found < 0) continue;
        name = unclaimed[static_cast<size_t>(found)];
      }
      if (name != range.symbol()) names[name] = range.symbol();
    }
    return names;
  }

  absl::StatusOr<std::unique_ptr<LoadedKernel>> Load(
      v1::LoadCudaModuleRequest request, bool is_applications = false) {
    request.set_unit(id_);
    ASSIGN_OR_RETURN(const uint64_t module,
                     executor_.LoadModule(std::move(request)));
    return std::make_unique<CudaKernel>(executor_, module, is_applications);
  }

  // What was asked for without a launch behind it.
  absl::Status PrepareNow() {
    if (!pending_.restore() && !pending_.poison()) return absl::OkStatus();
    v1::PrepareCudaRequest request;
    request.set_unit(id_);
    *request.mutable_prepare() = std::exchange(pending_, v1::PrepareCuda());
    return executor_.Prepare(request);
  }

  const UnitReader unit_;
  const CudaDeviceOptions options_;
  CudaExecutorClient& executor_;
  const uint64_t id_;
  v1::PrepareCuda pending_;
  bool all_writable_ = false;
};

class CudaDevice : public Device {
 public:
  CudaDevice(CudaDeviceOptions options,
             std::unique_ptr<CudaExecutorClient> executor)
      : options_(std::move(options)), executor_(std::move(executor)) {
    const v1::CudaDeviceFacts& facts = executor_->facts();
    facts_.kind = absl::StrCat("cuda:", options_.ordinal);
    facts_.name = facts.name();
    facts_.architecture = absl::StrCat("sm_", facts.compute_capability_major(),
                                       facts.compute_capability_minor());
    facts_.max_threads_per_block = facts.max_threads_per_block();
    facts_.max_shared_bytes_per_block = facts.max_shared_bytes_per_block();
    facts_.parallel_units = facts.multiprocessors();
    facts_.uuid = facts.uuid();
    facts_.driver = absl::StrCat(facts.driver_version() / 1000, ".",
                                 facts.driver_version() % 1000 / 10);
    facts_.l2 = options_.warm_l2 ? v1::L2_POLICY_WARM : v1::L2_POLICY_COLD;
  }
  const DeviceFacts& facts() const override { return facts_; }
  v1::CompileTarget compile_target() const override {
    return v1::COMPILE_TARGET_CUBIN;
  }
  absl::StatusOr<std::unique_ptr<ResidentUnit>> Load(
      const UnitReader& unit, const LoadOptions& load) override {
    return CudaResidentUnit::Create(unit, load, options_, *executor_);
  }
  absl::StatusOr<std::unique_ptr<Device>> OpenForCounting() override {
    return CreateCudaDevice(options_);
  }
  absl::StatusOr<v1::DeviceCeilings> MeasureCeilings() override {
    return executor_->MeasureCeilings();
  }

 private:
  const CudaDeviceOptions options_;
  const std::unique_ptr<CudaExecutorClient> executor_;
  DeviceFacts facts_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(
    CudaDeviceOptions options) {
  CudaExecutorClient::Options client;
  client.executable = options.executor_executable;
  client.arguments = options.executor_arguments;
  client.ordinal = options.ordinal;
  client.cuda_home = options.cuda_home;
  ASSIGN_OR_RETURN(auto executor, CudaExecutorClient::Start(std::move(client)));
  return std::make_unique<CudaDevice>(std::move(options), std::move(executor));
}

}  // namespace reprise
