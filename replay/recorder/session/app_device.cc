#include "replay/recorder/session/app_device.h"

#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/kernel_symbols.h"
#include "replay/recorder/cc/device_images.h"

namespace reprise {
namespace {

// What CUDA would say of a fault, by the executor's words for it.
int32_t CodeOfFault(const LaunchReport& report) {
  if (report.kind == v1::OUTCOME_KIND_TIMEOUT) return kCudaLaunchTimeout;
  if (absl::StrContains(report.diagnostics, "out-of-bounds") ||
      absl::StrContains(report.diagnostics, "malformed address"))
    return kCudaIllegalAddress;
  if (absl::StrContains(report.diagnostics, "assertion `")) return kCudaAssert;
  return kCudaLaunchFailure;
}

}  // namespace

AppDevice::AppDevice(const Shared& shared, std::unique_ptr<ArenaMemory> memory)
    : shared_(shared), memory_(std::move(memory)), executor_([&] {
        ExecutorClient::Options options = shared.executor;
        options.memory_fd = memory_->fd();
        return options;
      }()) {}

absl::StatusOr<std::unique_ptr<AppDevice>> AppDevice::Create(
    const Shared& shared) {
  ASSIGN_OR_RETURN(std::unique_ptr<ArenaMemory> memory,
                   ArenaMemory::Create(shared.arena));
  return std::unique_ptr<AppDevice>(new AppDevice(shared, std::move(memory)));
}

void AppDevice::SayOnce(const std::string& text) {
  if (said_.insert(text).second)
    std::fprintf(stderr, "reprise: %s\n", text.c_str());
}

void AppDevice::RegisterModule(uint64_t id, std::string image,
                               std::vector<std::string> parts) {
  Module& module = modules_[id];
  module.digest = ImageDigest(image);
  module.image = std::move(image);
  module.parts = std::move(parts);
}

void AppDevice::Release(const Loaded& loaded) {
  for (const auto& [symbol, address] : loaded.addresses)
    memory_->RemoveGlobal(address);
  for (const uint64_t module : loaded.modules)
    (void)executor_.Unload(module);  // a dead executor has forgotten it
}

void AppDevice::UnregisterModule(uint64_t id) {
  const auto module = modules_.find(id);
  if (module == modules_.end()) return;
  for (const auto& [program, loaded] : module->second.loaded) {
    for (KnownFunction& function : functions_)
      if (function.loaded == loaded.get()) function.loaded = nullptr;
    Release(*loaded);
  }
  modules_.erase(module);
}

absl::StatusOr<std::unique_ptr<AppDevice::Loaded>> AppDevice::LoadProgram(
    std::shared_ptr<const Program> program) {
  auto loaded = std::make_unique<Loaded>();
  loaded->program = std::move(program);
  for (const v1::ModuleGlobal& global : loaded->program->globals()) {
    ASSIGN_OR_RETURN(loaded->addresses[global.symbol()],
                     memory_->AddGlobal(global));
  }
  RETURN_IF_ERROR(executor_.Map(*memory_));
  // Every variable gets its initial value from the first object that has it.
  std::set<std::string> initialized;
  for (const v1::CompileReply& object : loaded->program->objects()) {
    v1::CompileReply fresh = object;
    for (v1::ModuleGlobal& global : *fresh.mutable_globals())
      if (!initialized.insert(global.symbol()).second)
        global.clear_initial_symbol();
    ASSIGN_OR_RETURN(const uint64_t module,
                     executor_.Load(fresh, loaded->addresses, true));
    loaded->modules.push_back(module);
  }
  return loaded;
}

absl::StatusOr<AppDevice::Loaded*> AppDevice::Load(Module& module,
                                                   const std::string& name) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Program> program,
                   shared_.catalog->Find(module.image, module.parts, name));
  std::unique_ptr<Loaded>& loaded = module.loaded[program.get()];
  if (loaded == nullptr) {
    ASSIGN_OR_RETURN(loaded, LoadProgram(std::move(program)));
  }
  return loaded.get();
}

int32_t AppDevice::Refuse(const Module& module, const std::string& name,
                          const absl::Status& status, int32_t otherwise) {
  const std::string text(status.message());
  SayOnce(absl::StrCat(DemangledName(name), " cannot run here: ", text));
  shared_.ledger->NoteRefusal(name, module.digest, text);
  return absl::IsNotFound(status) ? kCudaNoKernelImage : otherwise;
}

AppDevice::Function AppDevice::FindFunction(uint64_t module_id,
                                            const std::string& name) {
  const auto found = modules_.find(module_id);
  if (found == modules_.end()) return {kCudaInvalidDeviceFunction, 0, nullptr};
  Module& module = found->second;
  const absl::StatusOr<Loaded*> loaded = Load(module, name);
  if (!loaded.ok()) {
    return {Refuse(module, name, loaded.status(), kCudaInvalidDeviceFunction),
            0, nullptr};
  }
  const absl::StatusOr<ProgramKernel> kernel =
      (*loaded)->program->FindKernel(name);
  if (!kernel.ok()) {
    Refuse(module, name, kernel.status(), kCudaInvalidDeviceFunction);
    return {kCudaInvalidDeviceFunction, 0, nullptr};
  }
  functions_.push_back(
      {*loaded, name, kernel->info->symbol(), module.digest, *kernel});
  return {kCudaSuccess, functions_.size(), kernel->info};
}

AppDevice::Variable AppDevice::FindVariable(uint64_t module_id,
                                            const std::string& name) {
  const auto found = modules_.find(module_id);
  if (found == modules_.end()) return {kCudaInvalidSymbol, 0, 0};
  absl::StatusOr<Loaded*> loaded = Load(found->second, name);
  absl::Status status = loaded.status();
  if (status.ok()) {
    const absl::StatusOr<const v1::ModuleGlobal*> global =
        (*loaded)->program->FindVariable(name);
    status = global.status();
    if (status.ok()) {
      return {kCudaSuccess, (*loaded)->addresses.at((*global)->symbol()),
              (*global)->bytes()};
    }
  }
  SayOnce(absl::StrCat("device variable ", DemangledName(name),
                       " is not to be had: ", std::string(status.message())));
  return {kCudaInvalidSymbol, 0, 0};
}

absl::StatusOr<LaunchReport> AppDevice::Run(const KnownFunction& function,
                                            const v1::LaunchConfig& launch,
                                            const std::string& arguments) {
  RETURN_IF_ERROR(executor_.Map(*memory_));
  const Substitution* substitution =
      shared_.substitutions->Choose(function.symbol, launch);
  if (substitution == nullptr) {
    return executor_.Launch(function.loaded->modules[function.kernel.object],
                            *function.kernel.info, launch, arguments, false,
                            shared_.launch_timeout);
  }
  const auto key =
      std::make_pair(substitution, static_cast<const Loaded*>(function.loaded));
  auto module = substitutes_.find(key);
  if (module == substitutes_.end()) {
    ASSIGN_OR_RETURN(
        const uint64_t loaded,
        executor_.Load(substitution->code, function.loaded->addresses, false));
    module = substitutes_.emplace(key, loaded).first;
  }
  for (const v1::CompiledKernelInfo& info : substitution->code.kernels()) {
    if (info.symbol() != substitution->kernel) continue;
    return executor_.Launch(module->second, info, substitution->launch,
                            arguments, false, shared_.launch_timeout);
  }
  return absl::NotFoundError(
      absl::StrCat("the tuned code has no kernel ", substitution->kernel));
}

void AppDevice::Conclude(const KnownFunction& function,
                         const LaunchReport& report, LaunchResult* result) {
  result->text = report.printf_output;
  if (report.kind == v1::OUTCOME_KIND_OK) return;
  SayOnce(absl::StrCat(DemangledName(function.name), ": ", report.diagnostics));
  if (report.kind == v1::OUTCOME_KIND_INVALID_LAUNCH)
    result->error = kCudaInvalidValue;
  else
    result->sticky = CodeOfFault(report);
}

AppDevice::LaunchResult AppDevice::Launch(uint64_t id,
                                          const v1::LaunchConfig& launch,
                                          const std::string& arguments) {
  LaunchResult result;
  if (id == 0 || id > functions_.size() ||
      functions_[id - 1].loaded == nullptr) {
    result.error = kCudaInvalidDeviceFunction;
    return result;
  }
  const KnownFunction& function = functions_[id - 1];
  const LaunchTicket ticket =
      shared_.ledger->Begin(function.name, function.digest, launch);
  std::shared_ptr<LaunchRecorder::Recording> recording;
  absl::Status recorded;
  const absl::Time before = absl::Now();
  if (ticket.record && shared_.recorder != nullptr) {
    ChosenLaunch chosen{ticket,
                        memory_.get(),
                        function.loaded->program,
                        function.symbol,
                        &function.loaded->addresses,
                        launch,
                        arguments};
    absl::StatusOr<std::shared_ptr<LaunchRecorder::Recording>> begun =
        shared_.recorder->Before(chosen, &scratch_);
    recorded = begun.status();
    if (begun.ok()) recording = *std::move(begun);
  }
  result.recording_time = absl::Now() - before;

  const absl::StatusOr<LaunchReport> report = Run(function, launch, arguments);
  if (report.ok()) {
    shared_.ledger->End(ticket, report->device_time);
    Conclude(function, *report, &result);
  } else {
    if (!absl::IsCancelled(report.status()))
      SayOnce(absl::StrCat(DemangledName(function.name), " could not be run: ",
                           std::string(report.status().message())));
    result.sticky = kCudaUnknown;
  }

  const absl::Time after = absl::Now();
  if (recorded.ok() && recording != nullptr) {
    recorded = !report.ok() ? report.status()
               : report->kind != v1::OUTCOME_KIND_OK
                   ? absl::FailedPreconditionError(report->diagnostics)
                   : shared_.recorder->After(*recording, *report);
  }
  if (!recorded.ok()) {
    scratch_.reset();
    // Said when the run has ended, beside the kernel's other launches.
    shared_.ledger->NoteProblem(
        ticket,
        absl::StrCat("not recorded: ", absl::IsCancelled(recorded)
                                           ? "the application ended first"
                                           : std::string(recorded.message())));
  }
  result.recording_time += absl::Now() - after;
  return result;
}

void AppDevice::Reset() {
  for (auto& [id, module] : modules_)
    for (const auto& [program, loaded] : module.loaded) Release(*loaded);
  modules_.clear();
  // Ids stay taken: the stand-in asks again before it launches again.
  for (KnownFunction& function : functions_) function.loaded = nullptr;
  substitutes_.clear();
  scratch_.reset();
  memory_->Clear();
}

}  // namespace reprise
