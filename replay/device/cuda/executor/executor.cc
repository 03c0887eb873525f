#include "replay/device/cuda/executor/executor.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "replay/base/fault_point.h"
#include "replay/base/status_macros.h"
#include "replay/device/cuda/executor/access_recorder.h"
#include "replay/device/cuda/executor/ceilings.h"
#include "replay/device/cuda/executor/measure.h"

namespace reprise::cuda {
namespace {

L2Before L2BeforeLaunch(const v1::LaunchCudaRequest& request) {
  if (request.keep_l2() || request.warm_up()) return L2Before::kAsIs;
  return request.dirty_l2() ? L2Before::kDirty : L2Before::kClean;
}

// The argument buffer with addresses of the unit's variables as the bound
// module has them.
std::string RelocatedArguments(const UnitMemory& memory,
                               std::string arguments) {
  for (size_t i = 0; i < memory.ranges().size(); ++i) {
    const v1::CudaUnitRange& range = memory.ranges()[i];
    if (range.symbol().empty()) continue;
    const std::optional<uint64_t> address = memory.AddressOf(i);
    if (!address.has_value() || *address == range.address()) continue;
    for (size_t at = 0; at + 8 <= arguments.size(); at += 8) {
      uint64_t word;
      std::memcpy(&word, &arguments[at], sizeof(word));
      if (word < range.address() || word >= range.address() + range.bytes())
        continue;
      word += *address - range.address();
      std::memcpy(&arguments[at], &word, sizeof(word));
    }
  }
  return arguments;
}

}  // namespace

Executor::~Executor() {
  modules_.clear();
  units_.clear();
}

absl::Status Executor::Handle(const v1::CudaExecutorRequest& request,
                              v1::CudaExecutorReply* reply) {
  switch (request.request_case()) {
    case v1::CudaExecutorRequest::kDescribe:
      *reply->mutable_facts() = gpu_->facts();
      return absl::OkStatus();
    case v1::CudaExecutorRequest::kLoadUnit:
      return LoadUnit(request.load_unit());
    case v1::CudaExecutorRequest::kFillUnit:
      return FillUnit(request.fill_unit());
    case v1::CudaExecutorRequest::kUnloadUnit:
      return UnloadUnit(request.unload_unit().unit());
    case v1::CudaExecutorRequest::kLoadModule:
      return LoadModule(request.load_module());
    case v1::CudaExecutorRequest::kUnloadModule:
      return UnloadModule(request.unload_module().module());
    case v1::CudaExecutorRequest::kPrepare:
      return Prepare(request.prepare());
    case v1::CudaExecutorRequest::kLaunch:
      return Launch(request.launch(), reply);
    case v1::CudaExecutorRequest::kVerify:
      return Verify(request.verify(), reply->mutable_verdict());
    case v1::CudaExecutorRequest::kAdoptReference: {
      ASSIGN_OR_RETURN(UnitMemory * memory,
                       Activate(request.adopt_reference().unit()));
      return memory->AdoptReference(reply->mutable_adopted());
    }
    case v1::CudaExecutorRequest::kReadReference:
      return ReadReference(request.read_reference());
    case v1::CudaExecutorRequest::kMeasure:
      return Measure(request.measure(), reply->mutable_measurement());
    case v1::CudaExecutorRequest::kCount:
      return Count(request.count().launch(), reply);
    case v1::CudaExecutorRequest::kMeasureCeilings: {
      ASSIGN_OR_RETURN(*reply->mutable_ceilings(), MeasureCeilings(*gpu_));
      return absl::OkStatus();
    }
    default:
      return absl::InvalidArgumentError("the request asks for nothing");
  }
}

absl::Status Executor::DeactivateOthers(uint64_t id) {
  for (auto& [other, unit] : units_) {
    if (other != id) RETURN_IF_ERROR(unit->Deactivate());
  }
  return absl::OkStatus();
}

absl::StatusOr<UnitMemory*> Executor::Activate(uint64_t id) {
  const auto unit = units_.find(id);
  if (unit == units_.end())
    return absl::NotFoundError(absl::StrCat("unit ", id, " is not loaded"));
  RETURN_IF_ERROR(DeactivateOthers(id));
  RETURN_IF_ERROR(unit->second->Activate());
  return unit->second.get();
}

absl::Status Executor::LoadUnit(const v1::LoadCudaUnitRequest& request) {
  RETURN_IF_ERROR(DeactivateOthers(request.unit()));
  ASSIGN_OR_RETURN(units_[request.unit()], UnitMemory::Create(*gpu_, request));
  return absl::OkStatus();
}

absl::Status Executor::FillUnit(const v1::FillCudaUnitRequest& request) {
  const auto unit = units_.find(request.unit());
  if (unit == units_.end()) {
    return absl::NotFoundError(
        absl::StrCat("unit ", request.unit(), " is not loaded"));
  }
  RETURN_IF_ERROR(window_.Open(*gpu_, request.pieces()));
  return unit->second->Fill(request, window_.bytes());
}

absl::Status Executor::UnloadUnit(uint64_t id) {
  for (auto module = modules_.begin(); module != modules_.end();)
    module = module->second->unit() == id ? modules_.erase(module) : ++module;
  units_.erase(id);
  return absl::OkStatus();
}

absl::Status Executor::LoadModule(const v1::LoadCudaModuleRequest& request) {
  ASSIGN_OR_RETURN(modules_[request.module()], Module::Load(*gpu_, request));
  return absl::OkStatus();
}

absl::Status Executor::UnloadModule(uint64_t id) {
  const auto module = modules_.find(id);
  if (module == modules_.end()) return absl::OkStatus();
  const auto unit = units_.find(module->second->unit());
  if (unit != units_.end()) unit->second->Unbind(*module->second);
  modules_.erase(module);
  return absl::OkStatus();
}

absl::Status Executor::Prepare(const v1::PrepareCudaRequest& request) {
  ASSIGN_OR_RETURN(UnitMemory * memory, Activate(request.unit()));
  RETURN_IF_ERROR(memory->Prepare(request.prepare()));
  RETURN_IF_ERROR(memory->PrepareVariables(request.prepare()));
  return gpu_->Synchronize();
}

// Variables that only loading anew resets keep nothing from run to run.
absl::StatusOr<UnitMemory*> Executor::MakeReady(
    const v1::LaunchCudaRequest& request, Module** module) {
  const auto found = modules_.find(request.module());
  if (found == modules_.end()) {
    return absl::NotFoundError(
        absl::StrCat("module ", request.module(), " is not loaded"));
  }
  *module = found->second.get();
  ASSIGN_OR_RETURN(UnitMemory * memory, Activate(request.unit()));
  if ((*module)->NeedsReload()) {
    memory->Unbind(**module);
    RETURN_IF_ERROR((*module)->Reload());
  }
  RETURN_IF_ERROR(memory->Bind(*module));
  RETURN_IF_ERROR(memory->Prepare(request.prepare()));
  RETURN_IF_ERROR(memory->PrepareVariables(request.prepare()));
  return memory;
}

absl::Status Executor::Launch(const v1::LaunchCudaRequest& request,
                              v1::CudaExecutorReply* reply) {
  Module* module = nullptr;
  UnitMemory* memory = nullptr;
  for (int runs = request.warm_up() ? 2 : 1; runs > 0; --runs) {
    ASSIGN_OR_RETURN(memory, MakeReady(request, &module));
    RETURN_IF_ERROR(RunKernel(request, *module, *memory, reply));
    if (reply->launch().kind() != v1::OUTCOME_KIND_OK) break;
  }
  if (!request.has_verify_tolerance() ||
      reply->launch().kind() != v1::OUTCOME_KIND_OK)
    return absl::OkStatus();
  ASSIGN_OR_RETURN(*reply->mutable_verdict(),
                   memory->Verify(request.verify_tolerance()));
  return absl::OkStatus();
}

absl::Status Executor::RunKernel(const v1::LaunchCudaRequest& request,
                                 Module& module, UnitMemory& memory,
                                 v1::CudaExecutorReply* reply) {
  std::unique_ptr<AccessRecorder> recorder;
  if (request.instrumented()) {
    ASSIGN_OR_RETURN(recorder, AccessRecorder::Create(*gpu_, memory, module));
  }
  // What is asked for it now is not refused because of the kernel.
  if (request.sample_clocks()) RETURN_IF_ERROR(OpenClocks());
  RETURN_IF_ERROR(gpu_->Synchronize());
  if (!request.keep_mapped()) {
    RETURN_IF_ERROR(memory.Hide());
    RETURN_IF_ERROR(module.HideKept());
  }
  output_->Take();
  memory.NoteLaunch();
  watchdog_.Arm(request.timeout_ms());
  PassFaultPoint("launch");
  ASSIGN_OR_RETURN(const LaunchResult result,
                   RunLaunch(*gpu_, module.kernel(), request.launch(),
                             RelocatedArguments(memory, request.arguments()),
                             L2BeforeLaunch(request)));
  watchdog_.Disarm();
  reply->set_context_lost(result.context_lost);
  v1::LaunchReply* launch = reply->mutable_launch();
  launch->set_kind(result.kind);
  launch->set_diagnostics(result.diagnostics);
  launch->set_duration_ns(result.duration_ns);
  launch->set_wall_ns(result.wall_ns);
  if (request.sample_clocks()) SampleClocks(launch);
  launch->set_printf_output(output_->Take());
  if (recorder == nullptr || result.kind != v1::OUTCOME_KIND_OK)
    return absl::OkStatus();
  ASSIGN_OR_RETURN(*launch->mutable_accesses(),
                   recorder->Report(launch->mutable_diagnostics()));
  return absl::OkStatus();
}

absl::Status Executor::OpenClocks() {
  if (clocks_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string bus_id, gpu_->PciBusId());
  clocks_ = ClockReader::Create(bus_id);
  return absl::OkStatus();
}

void Executor::SampleClocks(v1::LaunchReply* launch) {
  std::optional<v1::ClockSample> sample = clocks_->SampleIfDue();
  if (sample.has_value()) *launch->mutable_clocks() = *std::move(sample);
}

absl::Status Executor::Verify(const v1::VerifyCudaRequest& request,
                              v1::CudaVerdict* verdict) {
  ASSIGN_OR_RETURN(UnitMemory * memory, Activate(request.unit()));
  ASSIGN_OR_RETURN(*verdict, memory->Verify(request.default_tolerance()));
  return absl::OkStatus();
}

absl::Status Executor::ReadReference(
    const v1::ReadCudaReferenceRequest& request) {
  ASSIGN_OR_RETURN(UnitMemory * memory, Activate(request.unit()));
  RETURN_IF_ERROR(window_.Open(*gpu_, request.pieces()));
  return memory->ReadReference(request, window_.bytes());
}

absl::Status Executor::Measure(const v1::MeasureCudaRequest& request,
                               v1::CudaMeasurement* measurement) {
  ASSIGN_OR_RETURN(UnitMemory * memory, Activate(request.unit()));
  return MeasureUnit(*gpu_, *memory, request, measurement);
}

// The L2 cache holds other bytes and clean ones, as in a cold launch: what was
// left there to be written back would be counted as the kernel's writes.
absl::StatusOr<LaunchResult> Executor::RunPass(
    const v1::LaunchCudaRequest& request, LaunchCounter& counter, bool* done) {
  Module* module = nullptr;
  ASSIGN_OR_RETURN(UnitMemory * memory, MakeReady(request, &module));
  RETURN_IF_ERROR(gpu_->Synchronize());
  RETURN_IF_ERROR(memory->Hide());
  RETURN_IF_ERROR(module->HideKept());
  if (!request.keep_l2()) RETURN_IF_ERROR(gpu_->CleanL2());
  RETURN_IF_ERROR(gpu_->Synchronize());
  memory->NoteLaunch();
  watchdog_.Arm(request.timeout_ms());
  absl::StatusOr<LaunchResult> result = RunLaunchBetween(
      *gpu_, module->kernel(), request.launch(),
      RelocatedArguments(*memory, request.arguments()),
      [&] { return counter.Begin(); }, [&] { return counter.End(done); });
  watchdog_.Disarm();
  output_->Take();
  return result;
}

absl::StatusOr<v1::Counters> Executor::CountPasses(
    const v1::LaunchCudaRequest& request, v1::CudaExecutorReply* reply) {
  ASSIGN_OR_RETURN(const auto counter,
                   LaunchCounter::Create(*gpu_, cuda_home_));
  for (bool done = false; !done;) {
    ASSIGN_OR_RETURN(const LaunchResult result,
                     RunPass(request, *counter, &done));
    reply->set_context_lost(result.context_lost);
    if (result.kind == v1::OUTCOME_KIND_OK) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the counted launch ended with ", v1::OutcomeKind_Name(result.kind),
        ": ", result.diagnostics));
  }
  return counter->Values();
}

// What keeps a launch from being counted is the answer, unless it is this
// process that cannot go on.
absl::Status Executor::Count(const v1::LaunchCudaRequest& request,
                             v1::CudaExecutorReply* reply) {
  absl::StatusOr<v1::Counters> counters = CountPasses(request, reply);
  if (counters.ok()) {
    *reply->mutable_counters() = *std::move(counters);
    return absl::OkStatus();
  }
  const bool lost = ContextIsLost() && !reply->context_lost();
  if (absl::IsAlreadyExists(counters.status()) || lost)
    return counters.status();
  reply->mutable_counters()->set_absent(
      std::string(counters.status().message()));
  return absl::OkStatus();
}

}  // namespace reprise::cuda
