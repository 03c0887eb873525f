#include "replay/device/cpu/executor/module_loader.h"

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/AbsoluteSymbols.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/runtime/symbols.h"

namespace reprise::cpu {
namespace {

using llvm::orc::ExecutorAddr;
using llvm::orc::JITDylib;
using llvm::orc::SymbolMap;

absl::Status FromLlvm(llvm::Error error, const std::string& what) {
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", llvm::toString(std::move(error))));
}

class ModuleLoaderImpl : public ModuleLoader {
 public:
  explicit ModuleLoaderImpl(
      std::unique_ptr<llvm::orc::ExecutorProcessControl> control)
      : session_(std::move(control)),
        layer_(session_, session_.getExecutorProcessControl().getMemMgr()) {
    // Errors come back from lookups; none is printed.
    session_.setErrorReporter(
        [](llvm::Error error) { llvm::consumeError(std::move(error)); });
    for (const RuntimeSymbol& symbol : RuntimeSymbols()) {
      runtime_[session_.intern(symbol.name)] = {
          ExecutorAddr::fromPtr(symbol.address),
          llvm::JITSymbolFlags::Exported};
    }
  }
  ~ModuleLoaderImpl() override { llvm::consumeError(session_.endSession()); }

  absl::Status Load(const v1::LoadModuleRequest& request) override;
  absl::Status Unload(uint64_t module) override;
  absl::StatusOr<const void*> Find(uint64_t module,
                                   const std::string& symbol) override;

 private:
  absl::Status Link(JITDylib& library, const v1::LoadModuleRequest& request);
  absl::Status Initialize(const v1::LoadModuleRequest& request);

  llvm::orc::ExecutionSession session_;
  llvm::orc::ObjectLinkingLayer layer_;
  SymbolMap runtime_;
  std::map<uint64_t, JITDylib*> modules_;
  uint64_t loads_ = 0;
};

// A name the object defines, to have the linker do its work.
absl::StatusOr<std::string> AnyDefinedSymbol(llvm::MemoryBufferRef bytes) {
  auto object = llvm::object::ObjectFile::createELFObjectFile(bytes);
  if (!object) {
    return FromLlvm(object.takeError(), "the code is not an object file");
  }
  for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      llvm::consumeError(flags.takeError());
      llvm::consumeError(name.takeError());
      continue;
    }
    if ((*flags & llvm::object::SymbolRef::SF_Global) &&
        !(*flags & llvm::object::SymbolRef::SF_Undefined)) {
      return name->str();
    }
  }
  return absl::InvalidArgumentError("the object defines no symbol");
}

absl::Status ModuleLoaderImpl::Link(JITDylib& library,
                                    const v1::LoadModuleRequest& request) {
  SymbolMap symbols = runtime_;
  for (const auto& [name, address] : request.symbol_addresses()) {
    symbols[session_.intern(name)] = {ExecutorAddr(address),
                                      llvm::JITSymbolFlags::Exported};
  }
  RETURN_IF_ERROR(
      FromLlvm(library.define(llvm::orc::absoluteSymbols(std::move(symbols))),
               "cannot define symbols"));
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(
      llvm::StringRef(request.object().data(), request.object().size()),
      library.getName());
  ASSIGN_OR_RETURN(const std::string symbol,
                   AnyDefinedSymbol(buffer->getMemBufferRef()));
  RETURN_IF_ERROR(FromLlvm(layer_.add(library, std::move(buffer)),
                           "the object does not load"));
  auto found = session_.lookup({&library}, session_.intern(symbol));
  if (!found) {
    return FromLlvm(found.takeError(), "the object does not link");
  }
  return absl::OkStatus();
}

absl::Status ModuleLoaderImpl::Initialize(
    const v1::LoadModuleRequest& request) {
  for (const v1::ModuleGlobal& global : request.initialize()) {
    const auto address = request.symbol_addresses().find(global.symbol());
    if (address == request.symbol_addresses().end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no address was given for device variable ", global.symbol()));
    }
    void* target = reinterpret_cast<void*>(address->second);
    if (global.initial_symbol().empty()) {
      std::memset(target, 0, global.bytes());
      continue;
    }
    ASSIGN_OR_RETURN(const void* source,
                     Find(request.module(), global.initial_symbol()));
    std::memcpy(target, source, global.bytes());
  }
  return absl::OkStatus();
}

absl::Status ModuleLoaderImpl::Load(const v1::LoadModuleRequest& request) {
  if (modules_.contains(request.module())) {
    return absl::AlreadyExistsError(
        absl::StrCat("module ", request.module(), " is loaded"));
  }
  auto library = session_.createJITDylib(absl::StrCat("module.", ++loads_));
  if (!library) return FromLlvm(library.takeError(), "cannot load");
  modules_[request.module()] = &*library;
  absl::Status status = Link(*library, request);
  if (status.ok()) status = Initialize(request);
  if (!status.ok()) Unload(request.module()).IgnoreError();
  return status;
}

absl::Status ModuleLoaderImpl::Unload(uint64_t module) {
  const auto found = modules_.find(module);
  if (found == modules_.end()) {
    return absl::NotFoundError(
        absl::StrCat("module ", module, " is not loaded"));
  }
  JITDylib* library = found->second;
  modules_.erase(found);
  return FromLlvm(session_.removeJITDylib(*library), "cannot unload");
}

absl::StatusOr<const void*> ModuleLoaderImpl::Find(uint64_t module,
                                                   const std::string& symbol) {
  const auto found = modules_.find(module);
  if (found == modules_.end()) {
    return absl::NotFoundError(
        absl::StrCat("module ", module, " is not loaded"));
  }
  auto address = session_.lookup({found->second}, session_.intern(symbol));
  if (!address) {
    return absl::NotFoundError(llvm::toString(address.takeError()));
  }
  return address->getAddress().toPtr<const void*>();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModuleLoader>> ModuleLoader::Create() {
  auto control = llvm::orc::SelfExecutorProcessControl::Create();
  if (!control) {
    return absl::InternalError(llvm::toString(control.takeError()));
  }
  return std::make_unique<ModuleLoaderImpl>(std::move(*control));
}

}  // namespace reprise::cpu
