#include "replay/recorder/session/host_code.h"

#include <utility>

#include "replay/base/status_macros.h"

namespace reprise {

HostExecutor::HostExecutor(ExecutorClient::Options options)
    : options_(std::move(options)) {}

absl::Status HostExecutor::Start() {
  if (client_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(client_, ExecutorClient::Start(options_));
  return absl::OkStatus();
}

absl::Status HostExecutor::Map(const ArenaMemory& memory) {
  RETURN_IF_ERROR(Start());
  if (mapped_ && mapped_generation_ == memory.generation())
    return absl::OkStatus();
  RETURN_IF_ERROR(client_->MapMemory(memory.Mappings()));
  mapped_generation_ = memory.generation();
  mapped_ = true;
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> HostExecutor::Load(const v1::CompileReply& code,
                                            const SymbolAddresses& addresses,
                                            bool initialize) {
  RETURN_IF_ERROR(Start());
  v1::LoadModuleRequest request;
  request.set_module(next_module_++);
  request.set_object(code.code());
  for (const v1::ModuleGlobal& global : code.globals()) {
    const auto address = addresses.find(global.symbol());
    if (address == addresses.end()) {
      return absl::NotFoundError(
          "the code needs a device variable that the application does not "
          "have: " +
          global.symbol());
    }
    (*request.mutable_symbol_addresses())[global.symbol()] = address->second;
    if (initialize && !global.initial_symbol().empty())
      *request.add_initialize() = global;
  }
  RETURN_IF_ERROR(client_->LoadModule(request));
  return request.module();
}

absl::Status HostExecutor::Unload(uint64_t module) {
  return client_ == nullptr ? absl::OkStatus() : client_->UnloadModule(module);
}

absl::StatusOr<LaunchReport> HostExecutor::Launch(
    uint64_t module, const v1::CompiledKernelInfo& kernel,
    const v1::LaunchConfig& launch, const std::string& arguments,
    bool instrumented, absl::Duration timeout) {
  v1::LaunchRequest request;
  request.set_module(module);
  request.set_entry(kernel.entry());
  request.set_has_barriers(kernel.has_barriers());
  request.set_static_shared_bytes(kernel.static_shared_bytes());
  *request.mutable_launch() = launch;
  request.set_arguments(arguments);
  request.set_instrumented(instrumented);
  return client_->Launch(request, timeout);
}

}  // namespace reprise
