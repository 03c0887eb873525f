#include "replay/recorder/session/program.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/kernel_symbols.h"
#include "replay/recorder/cc/device_images.h"

namespace reprise {
namespace {

using Units = std::vector<std::shared_ptr<const SourceUnit>>;

std::vector<std::string> KernelSymbols(const v1::CompileReply& reply) {
  std::vector<std::string> symbols;
  for (const v1::CompiledKernelInfo& kernel : reply.kernels())
    symbols.push_back(kernel.symbol());
  return symbols;
}

std::vector<std::string> Symbols(const std::vector<v1::ModuleGlobal>& globals) {
  std::vector<std::string> symbols;
  for (const v1::ModuleGlobal& global : globals)
    symbols.push_back(global.symbol());
  return symbols;
}

bool Defines(const v1::CompileReply& ir, const std::string& name) {
  if (FindSymbol(KernelSymbols(ir), name) >= 0) return true;
  return FindSymbol(Symbols({ir.globals().begin(), ir.globals().end()}),
                    name) >= 0;
}

template <typename Map>
std::vector<std::string> Keys(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  return keys;
}

}  // namespace

std::vector<std::string> Program::OfNamedUnit(std::vector<std::string> symbols,
                                              const std::string& name) const {
  for (size_t i = 0; i < units_.size(); ++i) {
    if (!units_[i]->IsNamedIn(name)) continue;
    std::erase_if(symbols, [&](const std::string& symbol) {
      return UnitOf(symbol) != i;
    });
    break;
  }
  return symbols;
}

absl::StatusOr<const v1::CompiledKernelInfo*> Program::FindSourceKernel(
    const std::string& name) const {
  const std::vector<std::string> candidates =
      OfNamedUnit(Keys(source_kernels_), name);
  const int found = FindSymbol(candidates, name);
  if (found >= 0) return source_kernels_.at(candidates[found]);
  return absl::NotFoundError(absl::StrCat(
      "the source of the device code has no kernel ", DemangledName(name)));
}

std::vector<std::string> Program::SourceVariables() const {
  std::vector<std::string> symbols;
  for (const auto& [symbol, unit] : unit_of_)
    if (source_kernels_.count(symbol) == 0) symbols.push_back(symbol);
  return symbols;
}

std::string Program::FindSourceVariable(const std::string& name) const {
  const std::vector<std::string> candidates =
      OfNamedUnit(SourceVariables(), name);
  const int found = FindSymbol(candidates, name);
  return found >= 0 ? candidates[static_cast<size_t>(found)] : "";
}

absl::StatusOr<ProgramKernel> Program::FindKernel(
    const std::string& name) const {
  const std::vector<std::string> runnable = OfNamedUnit(Keys(object_of_), name);
  const int found = FindSymbol(runnable, name);
  if (found >= 0) {
    const size_t object = object_of_.at(runnable[found]);
    for (const v1::CompiledKernelInfo& info : objects_[object].kernels())
      if (info.symbol() == runnable[found]) return ProgramKernel{&info, object};
  }
  const std::vector<std::string> refused = OfNamedUnit(Keys(refused_), name);
  const int why = FindSymbol(refused, name);
  if (why >= 0) return absl::FailedPreconditionError(refused_.at(refused[why]));
  return absl::NotFoundError(absl::StrCat(
      "the source of the device code has no kernel ", DemangledName(name),
      "; it has: ",
      absl::StrJoin(runnable, ", ", [](std::string* out, const auto& symbol) {
        absl::StrAppend(out, DemangledName(symbol));
      })));
}

absl::StatusOr<const v1::ModuleGlobal*> Program::FindVariable(
    const std::string& name) const {
  const std::vector<std::string> candidates =
      OfNamedUnit(Symbols(globals_), name);
  const int found = FindSymbol(candidates, name);
  if (found < 0) {
    return absl::NotFoundError(absl::StrCat(
        "the source of the device code has no variable ", DemangledName(name)));
  }
  const std::vector<std::string> all = Symbols(globals_);
  return &globals_[std::find(all.begin(), all.end(), candidates[found]) -
                   all.begin()];
}

size_t Program::UnitOf(const std::string& symbol) const {
  const auto found = unit_of_.find(symbol);
  return found != unit_of_.end() ? found->second : 0;
}

absl::StatusOr<v1::CompileReply> Program::CompileKernels(
    const std::vector<std::string>& kernels, v1::CompileTarget target,
    const v1::Variant& variant) const {
  auto input = std::make_shared<v1::CompileInput>(input_);
  // A program keeps variables that only addresses in memory lead to; a unit
  // gets those of them that its launch touches.
  input->set_keep_variables(target == v1::COMPILE_TARGET_CPU ||
                            target == v1::COMPILE_TARGET_CUBIN_INSTRUMENTED);
  for (const std::string& kernel : kernels) input->add_kernels(kernel);
  FieldHasher key;
  key.Bytes("program").Bytes(input_.key()).U64(input->keep_variables());
  for (const std::string& kernel : kernels) key.Bytes(kernel);
  input->set_key(HexEncode(key.Finish()));
  return pool_->Compile(input, variant, target);
}

absl::Status Program::ReadIr(Units units) {
  units_ = std::move(units);
  // Side by side; errors come again below.
  std::vector<std::thread> ahead;
  for (size_t i = 1; i < units_.size(); ++i)
    ahead.emplace_back([this, i] { (void)units_[i]->Ir(*pool_); });
  const absl::StatusOr<const v1::CompileReply*> first = units_[0]->Ir(*pool_);
  for (std::thread& thread : ahead) thread.join();
  RETURN_IF_ERROR(first.status());
  FieldHasher key;
  for (size_t i = 0; i < units_.size(); ++i) {
    ASSIGN_OR_RETURN(const v1::CompileReply* ir, units_[i]->Ir(*pool_));
    v1::CompileTranslationUnit* unit = input_.add_translation_units();
    unit->set_main_file(units_[i]->unit().main_file());
    unit->set_directory(units_[i]->unit().directory());
    *unit->mutable_clang_args() = units_[i]->unit().clang_args();
    unit->set_ir(ir->code());
    key.Bytes(units_[i]->id()).Bytes(units_[i]->architecture());
    for (const v1::CompiledKernelInfo& kernel : ir->kernels()) {
      // The same template may be in several units; the first one counts.
      if (unit_of_.emplace(kernel.symbol(), i).second)
        source_kernels_[kernel.symbol()] = &kernel;
    }
    for (const v1::ModuleGlobal& global : ir->globals())
      unit_of_.emplace(global.symbol(), i);
  }
  input_.set_architecture(units_.front()->architecture());
  input_.set_key(HexEncode(key.Finish()));
  return absl::OkStatus();
}

absl::Status Program::CompileForHost() {
  const std::vector<std::string> kernels = Keys(source_kernels_);
  if (kernels.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(v1::CompileReply all,
                   CompileKernels(kernels, v1::COMPILE_TARGET_CPU));
  if (all.kind() == v1::OUTCOME_KIND_INFRASTRUCTURE)
    return absl::InternalError(all.diagnostics());
  // One kernel that the cpu device cannot run must not take the others along.
  if (all.kind() != v1::OUTCOME_KIND_OK)
    return CompileEach(kernels, all.diagnostics());
  globals_.assign(all.globals().begin(), all.globals().end());
  for (const std::string& kernel : kernels) object_of_[kernel] = 0;
  objects_.push_back(std::move(all));
  return absl::OkStatus();
}

absl::Status Program::CompileEach(const std::vector<std::string>& kernels,
                                  const std::string& why) {
  for (const std::string& kernel : kernels) {
    v1::CompileReply reply;
    if (kernels.size() > 1) {
      ASSIGN_OR_RETURN(reply, CompileKernels({kernel}, v1::COMPILE_TARGET_CPU));
    } else {
      reply.set_kind(v1::OUTCOME_KIND_COMPILE_ERROR);
      reply.set_diagnostics(why);
    }
    if (reply.kind() != v1::OUTCOME_KIND_OK) {
      refused_[kernel] = reply.diagnostics();
      continue;
    }
    object_of_[kernel] = objects_.size();
    std::vector<std::string> known = Symbols(globals_);
    for (const v1::ModuleGlobal& global : reply.globals()) {
      if (std::find(known.begin(), known.end(), global.symbol()) ==
          known.end()) {
        globals_.push_back(global);
        known.push_back(global.symbol());
      }
    }
    objects_.push_back(std::move(reply));
  }
  return absl::OkStatus();
}

absl::StatusOr<const v1::CompileReply*> Program::Instrumented(
    const std::string& symbol) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = instrumented_.find(symbol);
  if (known != instrumented_.end()) return &known->second;
  ASSIGN_OR_RETURN(
      v1::CompileReply reply,
      CompileKernels({symbol}, v1::COMPILE_TARGET_CPU_INSTRUMENTED));
  if (reply.kind() != v1::OUTCOME_KIND_OK) {
    return absl::FailedPreconditionError(
        absl::StrCat("its accesses cannot be observed: ", reply.diagnostics()));
  }
  return &(instrumented_[symbol] = std::move(reply));
}

absl::StatusOr<std::unique_ptr<ProgramCatalog>> ProgramCatalog::Create(
    Options options, CompilePool* pool) {
  if (options.registry_directory.empty())
    options.registry_directory = BuildRegistry::DefaultDirectory();
  std::unique_ptr<ProgramCatalog> catalog(
      new ProgramCatalog(std::move(options), pool));
  absl::StatusOr<std::unique_ptr<BuildRegistry>> registry =
      BuildRegistry::Open(catalog->options_.registry_directory, false);
  if (registry.ok()) {
    catalog->registry_ = *std::move(registry);
  } else if (!absl::IsNotFound(registry.status())) {
    return registry.status();
  }
  if (!catalog->options_.compile_commands.empty()) {
    ASSIGN_OR_RETURN(catalog->database_,
                     ReadCompileCommands(catalog->options_.compile_commands,
                                         catalog->options_.cuda_home));
  }
  return catalog;
}

absl::StatusOr<std::shared_ptr<const SourceUnit>>
ProgramCatalog::UnitFromRegistry(const BuiltUnit& built) {
  std::shared_ptr<const SourceUnit>& unit = units_[absl::StrCat(
      built.use.unit, built.use.architecture, built.use.tag)];
  if (unit == nullptr) {
    unit = std::make_shared<SourceUnit>(
        built.use, built.unit, &registry_->chunks(), options_.cuda_home);
  }
  return unit;
}

absl::StatusOr<ProgramCatalog::Source> ProgramCatalog::FindSource(
    const std::string& digest, const std::vector<std::string>& parts) {
  Source source;
  std::vector<BuiltUnit> built;
  if (registry_ != nullptr) {
    ASSIGN_OR_RETURN(built, registry_->FindUnits(digest));
    if (built.empty()) {
      for (const std::string& part : parts) {
        ASSIGN_OR_RETURN(const std::vector<BuiltUnit> more,
                         registry_->FindUnits(ImageDigest(part)));
        built.insert(built.end(), more.begin(), more.end());
      }
    }
  }
  for (const BuiltUnit& unit : built) {
    ASSIGN_OR_RETURN(std::shared_ptr<const SourceUnit> known,
                     UnitFromRegistry(unit));
    source.units.push_back(std::move(known));
  }
  if (source.units.empty()) source.units = database_;
  if (source.units.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "the source of this device code is not known (image ",
        digest.substr(0, 12), "); build the application with reprise cc (",
        options_.registry_directory,
        " has nothing of it), or give --compile-commands"));
  }
  source.linked = source.units.front()->relocatable();
  return source;
}

absl::StatusOr<std::shared_ptr<const Program>> ProgramCatalog::Compile(
    const std::string& image, const std::string& digest, Units units) {
  std::string key = digest;
  for (const auto& unit : units) absl::StrAppend(&key, " ", unit->id());
  const auto known = programs_.find(key);
  if (known != programs_.end()) return known->second;
  std::shared_ptr<Program> program(new Program());
  program->image_digest_ = digest;
  program->image_ = image;
  program->pool_ = pool_;
  absl::Status status = program->ReadIr(std::move(units));
  if (status.ok() && options_.host_code) status = program->CompileForHost();
  using Result = absl::StatusOr<std::shared_ptr<const Program>>;
  Result result = status.ok() ? Result(std::move(program)) : Result(status);
  return programs_.emplace(key, std::move(result)).first->second;
}

absl::StatusOr<std::shared_ptr<const Program>> ProgramCatalog::Find(
    const std::string& image, const std::vector<std::string>& parts,
    const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string digest = ImageDigest(image);
  auto source = sources_.find(digest);
  if (source == sources_.end()) {
    ASSIGN_OR_RETURN(Source found, FindSource(digest, parts));
    source = sources_.emplace(digest, std::move(found)).first;
  }
  if (source->second.linked || source->second.units.size() == 1)
    return Compile(image, digest, source->second.units);
  absl::Status last = absl::NotFoundError(
      absl::StrCat("none of ", source->second.units.size(),
                   " sources that the device code may come from defines ",
                   DemangledName(name)));
  for (const std::shared_ptr<const SourceUnit>& unit : source->second.units) {
    const absl::StatusOr<const v1::CompileReply*> ir = unit->Ir(*pool_);
    if (!ir.ok()) {
      last = ir.status();
    } else if (Defines(**ir, name)) {
      return Compile(image, digest, {unit});
    }
  }
  return last;
}

std::vector<std::shared_ptr<const SourceUnit>> ProgramCatalog::FindSources(
    const std::string& image, const std::string& kernel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::StatusOr<Source> source = FindSource(ImageDigest(image), {});
  if (!source.ok()) return {};
  const std::string name = QualifiedKernelName(kernel);
  const std::string last = name.substr(name.rfind(':') + 1);
  const auto names_it = [&](const std::shared_ptr<const SourceUnit>& unit) {
    const absl::StatusOr<std::string> text = unit->MainText();
    return text.ok() && text->find(last) != std::string::npos;
  };
  if (source->linked) {
    std::stable_partition(source->units.begin(), source->units.end(), names_it);
    return source->units;
  }
  std::erase_if(source->units,
                [&](const auto& unit) { return !names_it(unit); });
  if (source->units.size() != 1) return {};
  return source->units;
}

}  // namespace reprise
