#include "replay/device/cuda/executor/module.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/kernel_symbols.h"

namespace reprise::cuda {
namespace {

// Named in an error message at most.
constexpr size_t kNamesShown = 8;

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> Module::Load(
    Gpu& gpu, const v1::LoadCudaModuleRequest& request) {
  auto module = std::unique_ptr<Module>(new Module(gpu, request));
  RETURN_IF_ERROR(module->LoadImage());
  RETURN_IF_ERROR(module->KeepVariables());
  return module;
}

Module::~Module() {
  if (module_ != nullptr) gpu_.driver().ModuleUnload(module_);
}

absl::Status Module::LoadImage() {
  const Driver& d = gpu_.driver();
  RETURN_IF_ERROR(
      d.CheckLoad(d.ModuleLoadData(&module_, request_.image().data()),
                  {request_.image().data(), request_.image().size()}));
  return FindKernel(request_.kernel());
}

absl::Status Module::Reload() {
  CUDA_RETURN_IF_ERROR(gpu_.driver(), ModuleUnload,
                       (std::exchange(module_, nullptr)));
  RETURN_IF_ERROR(LoadImage());
  constants_set = was_launched = false;
  may_be_dirty = true;
  found_.clear();
  // A fresh module holds what it should.
  kept_.clear();
  return absl::OkStatus();
}

absl::Status Module::FindKernel(const std::string& name) {
  const Driver& d = gpu_.driver();
  const CUresult result = d.ModuleGetFunction(&kernel_, module_, name.c_str());
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  if (result != CUDA_ERROR_NOT_FOUND || d.ModuleEnumerateFunctions == nullptr ||
      d.ModuleGetFunctionCount == nullptr || d.FuncGetName == nullptr)
    return d.Check(result, absl::StrCat("cuModuleGetFunction of ", name));
  unsigned count = 0;
  CUDA_RETURN_IF_ERROR(d, ModuleGetFunctionCount, (&count, module_));
  std::vector<CUfunction> functions(count);
  CUDA_RETURN_IF_ERROR(d, ModuleEnumerateFunctions,
                       (functions.data(), count, module_));
  std::vector<std::string> names;
  for (const CUfunction function : functions) {
    const char* text = nullptr;
    CUDA_RETURN_IF_ERROR(d, FuncGetName, (&text, function));
    names.push_back(text);
  }
  const int found = FindSymbol(names, name);
  if (found >= 0) {
    kernel_ = functions[static_cast<size_t>(found)];
    return absl::OkStatus();
  }
  const size_t total = names.size();
  names.resize(std::min(total, kNamesShown));
  return absl::NotFoundError(
      absl::StrCat("the code holds no kernel ", name, "; it holds ",
                   total == 0 ? "none" : absl::StrJoin(names, ", "),
                   total > names.size() ? ", ..." : ""));
}

std::optional<Module::Variable> Module::AskDriver(
    const std::string& symbol) const {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  if (gpu_.driver().ModuleGetGlobal(&address, &bytes, module_,
                                    symbol.c_str()) != CUDA_SUCCESS)
    return std::nullopt;
  return Variable{address, bytes};
}

std::optional<Module::Variable> Module::FindVariable(
    const std::string& symbol) const {
  const auto known = found_.find(symbol);
  if (known != found_.end()) return known->second;
  return found_[symbol] = LookUp(symbol);
}

std::optional<Module::Variable> Module::LookUp(
    const std::string& symbol) const {
  if (const std::optional<Variable> named = AskDriver(symbol);
      named.has_value())
    return named;
  const v1::CudaModuleVariable* wanted = nullptr;
  for (const v1::CudaModuleVariable& variable : request_.variables()) {
    if (variable.symbol() == symbol || variable.range_symbol() == symbol)
      wanted = &variable;
  }
  if (wanted == nullptr) return std::nullopt;
  if (const std::optional<Variable> named = AskDriver(wanted->symbol());
      named.has_value())
    return named;
  if (wanted->section().empty()) return std::nullopt;
  // By another one of its section.
  for (const v1::CudaModuleVariable& other : request_.variables()) {
    if (other.section() != wanted->section()) continue;
    const std::optional<Variable> known = AskDriver(other.symbol());
    if (!known.has_value()) continue;
    return Variable{known->address - other.offset() + wanted->offset(),
                    wanted->bytes()};
  }
  return std::nullopt;
}

absl::Status Module::KeepVariables() {
  uint64_t bytes = 0;
  for (const v1::CudaModuleVariable& wanted : request_.variables()) {
    if (!wanted.keep()) continue;
    const std::optional<Variable> variable = FindVariable(wanted.symbol());
    if (!variable.has_value()) {
      has_lost_variable_ = true;
      continue;
    }
    kept_.push_back({*variable, bytes});
    bytes += (variable->bytes + 255) / 256 * 256;
  }
  if (kept_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(kept_bytes_, HiddenMemory::Create(gpu_, bytes));
  for (const Kept& kept : kept_) {
    RETURN_IF_ERROR(gpu_.Copy(kept_bytes_->address() + kept.offset,
                              kept.variable.address, kept.variable.bytes));
  }
  RETURN_IF_ERROR(gpu_.Synchronize());
  return kept_bytes_->Hide();
}

absl::Status Module::RestoreVariables() {
  RETURN_IF_ERROR(ShowKept());
  for (const Kept& kept : kept_) {
    RETURN_IF_ERROR(gpu_.Copy(kept.variable.address,
                              kept_bytes_->address() + kept.offset,
                              kept.variable.bytes));
  }
  return absl::OkStatus();
}

absl::Status Module::HideKept() {
  return kept_bytes_ == nullptr ? absl::OkStatus() : kept_bytes_->Hide();
}

absl::Status Module::ShowKept() {
  return kept_bytes_ == nullptr ? absl::OkStatus() : kept_bytes_->Show();
}

}  // namespace reprise::cuda
