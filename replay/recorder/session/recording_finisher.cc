#include "replay/recorder/session/recording_finisher.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "replay/base/log.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/kernel_symbols.h"
#include "replay/recorder/session/borrowed_chunks.h"
#include "replay/recorder/session/unit_description.h"

namespace reprise {
namespace {

v1::CompileTarget InstrumentedTarget(v1::CompileTarget target) {
  return target == v1::COMPILE_TARGET_CPU
             ? v1::COMPILE_TARGET_CPU_INSTRUMENTED
             : v1::COMPILE_TARGET_CUBIN_INSTRUMENTED;
}

// What the driver recorder cannot take out of an application, found in what the
// compiler says of the kernel; empty: nothing.
std::string Unsupported(const std::string& diagnostics) {
  if (diagnostics.find("__cudaCDP2") != std::string::npos)
    return "it launches kernels itself (dynamic parallelism)";
  for (const char* word : {" tex.", ".tex.", " tld4.", " suld.", " sust.",
                           ".suld.", ".sust.", " sured."}) {
    if (diagnostics.find(word) != std::string::npos)
      return "it uses a texture or surface, which lies outside plain memory";
  }
  return "";
}

// Long for the kernel, short for one that waits for something that is not
// there: the host, or another kernel.
absl::Duration TimeoutOf(const CapturedLaunch& captured, absl::Duration most,
                         bool observed) {
  const absl::Duration enough =
      observed ? absl::Seconds(30) + 100 * captured.duration
               : absl::Seconds(10) + 20 * captured.duration;
  return std::min(most, enough);
}

// How a run ended that did not end well, and what that may come from.
std::string BadEnd(const CapturedLaunch& captured, const LaunchReport& report) {
  if (report.kind == v1::OUTCOME_KIND_TIMEOUT) {
    return absl::StrCat(report.diagnostics,
                        ": it may wait for the host or for another kernel");
  }
  if (captured.host_pointer == 0) return report.diagnostics;
  return absl::StrFormat(
      "%s; it is given an address of host memory that CUDA does not manage "
      "(0x%x, of malloc or the like), which a replay does not have",
      report.diagnostics, captured.host_pointer);
}

// What `attempt` gives. A device may still be taking back the memory that the
// application had: lack of it is waited out.
template <typename Attempt>
auto Patiently(absl::Duration patience, const Attempt& attempt) {
  const absl::Time give_up = absl::Now() + patience;
  for (;;) {
    auto result = attempt();
    if (!absl::IsResourceExhausted(result.status()) || absl::Now() > give_up)
      return result;
    absl::SleepFor(absl::Milliseconds(100));
  }
}

// Everything live, as it is.
std::vector<ImageRange> WholeImage(const CapturedMemory& memory) {
  std::vector<ImageRange> image;
  for (const auto& [address, live] : memory.live()) {
    ImageRange range;
    range.address = address;
    range.bytes = live.bytes;
    range.origin = live.origin;
    range.symbol = live.symbol;
    image.push_back(std::move(range));
  }
  return image;
}

// The same without copies of the bytes.
absl::Status AddMemory(const CapturedMemory& memory, const ImageRange& image,
                       BorrowedChunks* chunks, v1::Unit* unit) {
  v1::MemoryRange* range = unit->add_memory();
  range->set_address(image.address);
  range->set_bytes(image.bytes);
  range->set_origin(image.origin);
  range->set_symbol(image.symbol);
  *range->mutable_prologue() =
      chunks->Borrow(memory.Prologue(image.address, image.bytes));
  const auto changed = [&](size_t chunk) -> const char* {
    const uint64_t at = image.address + chunk * kChunkBytes;
    const uint64_t bytes =
        std::min(kChunkBytes, image.address + image.bytes - at);
    return memory.MayDiffer(at, bytes) ? memory.Epilogue(at, bytes).data()
                                       : nullptr;
  };
  *range->mutable_epilogue() =
      chunks->BorrowChanged(range->prologue(), changed);
  // Where nobody watched, what changed is not all that may be written.
  if (image.reads.empty() && image.reads_before_write.empty())
    return absl::OkStatus();
  ASSIGN_OR_RETURN(*range->mutable_write_set(),
                   chunks->Put(image.writes.Encode()));
  ASSIGN_OR_RETURN(*range->mutable_read_before_write_set(),
                   chunks->Put(image.reads_before_write.Encode()));
  return absl::OkStatus();
}

// Variables get the names that the source's compiler gives them. Where the
// application has others, of the kernel too, these are kept beside.
void NameAsInSource(const CapturedLaunch& captured, v1::Unit* unit) {
  if (captured.program == nullptr) return;
  if (captured.kernel.symbol() != unit->kernel().symbol())
    unit->mutable_kernel()->set_application_symbol(captured.kernel.symbol());
  for (v1::MemoryRange& range : *unit->mutable_memory()) {
    if (range.symbol().empty()) continue;
    const std::string name =
        captured.program->FindSourceVariable(range.symbol());
    if (name.empty() || name == range.symbol()) continue;
    range.set_application_symbol(range.symbol());
    range.set_symbol(name);
  }
}

std::string InstanceHash(const CapturedLaunch& captured,
                         const std::vector<ImageRange>& image) {
  FieldHasher hasher;
  for (const ImageRange& range : image) {
    hasher.U64(range.address)
        .Bytes(captured.memory->Prologue(range.address, range.bytes));
  }
  return hasher.Finish();
}

}  // namespace

// What a run of the kernel's IR was seen to do.
struct RecordingFinisher::Observation {
  bool made = false;
  bool complete = false;  // every kind of access in the code is noted
  AccessSets accesses;
  v1::AccessReport report;
  std::set<uint64_t> whole;  // variables that the code has, by address
};

RecordingFinisher::RecordingFinisher(Options options, Device* device,
                                     UnitStore* store, LaunchLedger* ledger)
    : options_(std::move(options)),
      device_(device),
      ledger_(ledger),
      builder_(&store->chunks()) {}

absl::Status RecordingFinisher::Finish(const CapturedLaunch& captured) {
  v1::CompiledKernelInfo kernel = captured.kernel;
  if (captured.program != nullptr) {
    ASSIGN_OR_RETURN(
        const v1::CompiledKernelInfo* known,
        captured.program->FindSourceKernel(captured.kernel.symbol()));
    kernel = *known;
  }
  Observation observation;
  if (captured.program != nullptr) {
    ASSIGN_OR_RETURN(observation, Observe(captured, kernel));
  }
  ASSIGN_OR_RETURN(std::vector<ImageRange> image,
                   CutMemory(captured, observation));
  ASSIGN_OR_RETURN(const bool deterministic,
                   IsDeterministic(captured, kernel, image));
  uint64_t bytes = 0;
  RecordedInstance instance;
  for (const ImageRange& range : image) {
    bytes += range.bytes;
    instance.ranges.emplace_back(range.address, range.bytes);
  }
  if (bytes > options_.max_unit_bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("its memory image has ", bytes, " bytes, allowed are ",
                     options_.max_unit_bytes, " (--max-bytes)"));
  }
  instance.memory_hash = InstanceHash(captured, image);
  LaunchFacts facts = FactsOf(captured, kernel, std::move(image));
  if (observation.made) facts.accesses = &observation.report;
  facts.sources = captured.sources;
  // As those were compiled for, which may be less than the device.
  if (!captured.sources.empty())
    facts.architecture = captured.sources.front()->architecture();
  ASSIGN_OR_RETURN(v1::Unit unit, builder_.Build(facts));
  NameAsInSource(captured, &unit);
  unit.set_deterministic(deterministic);
  *unit.mutable_provenance() = Describe(captured);
  ledger_->AddUnit(captured.ticket, std::move(unit), std::move(instance));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ResidentUnit>> RecordingFinisher::Load(
    const CapturedLaunch& captured, const v1::CompiledKernelInfo& kernel,
    const std::vector<ImageRange>& image, const LoadOptions& options) {
  auto chunks = std::make_shared<BorrowedChunks>();
  LaunchFacts facts = FactsOf(captured, kernel, {});
  facts.program = nullptr;  // its sources serve nothing here
  ASSIGN_OR_RETURN(v1::Unit unit, UnitBuilder(chunks.get()).Build(facts));
  for (const ImageRange& range : image)
    RETURN_IF_ERROR(AddMemory(*captured.memory, range, chunks.get(), &unit));
  NameAsInSource(captured, &unit);
  *unit.mutable_provenance() = Describe(captured);
  const UnitReader reader("capture", std::move(unit), chunks);
  return Patiently(options_.memory_patience,
                   [&] { return device_->Load(reader, options); });
}

absl::StatusOr<RecordingFinisher::Observation> RecordingFinisher::Observe(
    const CapturedLaunch& captured, const v1::CompiledKernelInfo& kernel) {
  // Notes take registers; the launch must fit all the same.
  v1::Variant variant;
  const v1::Dim3& block = captured.launch.block();
  variant.mutable_codegen()->set_max_threads_per_block(block.x() * block.y() *
                                                       block.z());
  ASSIGN_OR_RETURN(const v1::CompileReply code,
                   captured.program->CompileKernel(
                       kernel.symbol(),
                       InstrumentedTarget(device_->compile_target()), variant));
  if (const std::string what = Unsupported(code.diagnostics()); !what.empty())
    return absl::FailedPreconditionError(what);
  if (code.kind() != v1::OUTCOME_KIND_OK) {
    return absl::FailedPreconditionError(
        absl::StrCat("its accesses cannot be observed: ", code.diagnostics()));
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ResidentUnit> resident,
      Load(captured, kernel, WholeImage(*captured.memory), {.run_once = true}));
  ASSIGN_OR_RETURN(const std::unique_ptr<LoadedKernel> loaded,
                   resident->LoadKernel(code, kernel.symbol()));
  RETURN_IF_ERROR(resident->Restore());
  LaunchOptions launch;
  launch.launch = captured.launch;
  launch.timeout = TimeoutOf(captured, options_.launch_timeout,
                             /*observed=*/true);
  launch.instrumented = true;
  // Notes of accesses take device memory too.
  ASSIGN_OR_RETURN(LaunchReport report,
                   Patiently(options_.memory_patience, [&] {
                     return resident->Launch(*loaded, launch);
                   }));
  // Memory that happens to be there in the other process too was not recorded.
  const bool strays = captured.host_pointer != 0 && !report.diagnostics.empty();
  if (report.kind != v1::OUTCOME_KIND_OK || strays) {
    return absl::FailedPreconditionError(absl::StrCat(
        "an observed run of it ended badly: ", BadEnd(captured, report)));
  }
  Observation observation;
  observation.made = true;
  observation.complete = code.diagnostics().empty();
  if (!observation.complete) {
    LOG_WARNING(
        "{} keeps all memory, since not all of its accesses are seen: {}",
        kernel.symbol(), code.diagnostics());
  }
  observation.accesses = AccessSets::FromReport(report.accesses);
  observation.report = std::move(report.accesses);
  std::set<std::string> symbols;
  for (const v1::ModuleGlobal& global : code.globals())
    symbols.insert(NormalizedSymbol(global.symbol()));
  for (const auto& [address, live] : captured.memory->live()) {
    if (!live.symbol.empty() &&
        symbols.count(NormalizedSymbol(live.symbol)) > 0)
      observation.whole.insert(address);
  }
  return observation;
}

// False too where the device does not run the application's machine code.
absl::StatusOr<bool> RecordingFinisher::IsDeterministic(
    const CapturedLaunch& captured, const v1::CompiledKernelInfo& kernel,
    const std::vector<ImageRange>& image) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ResidentUnit> resident,
                   Load(captured, kernel, image, LoadOptions()));
  const absl::StatusOr<std::unique_ptr<LoadedKernel>> own =
      resident->LoadApplicationKernel();
  if (!own.ok()) {
    LOG_DEBUG("{}: {}", captured.kernel.symbol(),
              std::string(own.status().message()));
    return false;
  }
  LaunchOptions launch;
  launch.launch = captured.launch;
  launch.timeout = TimeoutOf(captured, options_.launch_timeout,
                             /*observed=*/false);
  if (!resident->Restore().ok()) return false;
  const absl::StatusOr<LaunchReport> report = resident->Launch(**own, launch);
  RETURN_IF_ERROR(report.status());
  if (report->kind != v1::OUTCOME_KIND_OK) {
    return absl::FailedPreconditionError(
        absl::StrCat("the application's own code does not replay: ",
                     BadEnd(captured, *report)));
  }
  const absl::StatusOr<Verdict> verdict = resident->Verify(v1::Tolerance());
  return verdict.ok() && verdict->equal;
}

absl::StatusOr<std::vector<ImageRange>> RecordingFinisher::CutMemory(
    const CapturedLaunch& captured, Observation& observation) {
  AccessSets& accesses = observation.accesses;
  const IntervalSet changed = captured.memory->Differences();
  if (!observation.made) {
    if (changed.empty()) {
      return absl::FailedPreconditionError(
          "it changed no memory, and without its source there is no other way "
          "to tell what it writes");
    }
    std::vector<ImageRange> image = WholeImage(*captured.memory);
    for (ImageRange& range : image) {
      IntervalSet own;
      own.Add(range.address, range.address + range.bytes);
      const IntervalSet here = changed.Intersect(own);
      for (const Interval& part : here.intervals())
        range.writes.Add(part.begin - range.address, part.end - range.address);
    }
    return image;
  }
  // Blocks may wait for what others write: who read a byte first is another
  // one in every run. So no byte that anyone reads may be poisoned.
  accesses.reads_before_write = accesses.reads;
  if (!observation.complete) {
    for (const auto& [address, live] : captured.memory->live())
      accesses.reads.Add(address, address + live.bytes);
    accesses.reads_before_write = accesses.reads;
  }
  const IntervalSet unseen = changed.Subtract(accesses.writes);
  if (!unseen.empty()) {
    LOG_WARNING(
        "{}: {} bytes changed that an observed run did not write; they count "
        "as read and written",
        captured.kernel.symbol(), unseen.bytes());
    accesses.reads = accesses.reads.Union(unseen);
    accesses.writes = accesses.writes.Union(unseen);
    accesses.reads_before_write = accesses.reads_before_write.Union(unseen);
  }
  if (accesses.writes.empty())
    return absl::FailedPreconditionError("it wrote nothing");
  return CutImage(captured.memory->live(), accesses, observation.report.types(),
                  observation.whole);
}

LaunchFacts RecordingFinisher::FactsOf(const CapturedLaunch& captured,
                                       const v1::CompiledKernelInfo& kernel,
                                       std::vector<ImageRange> image) const {
  LaunchFacts facts;
  facts.program = captured.program;
  facts.kernel = &kernel;
  facts.launch = captured.launch;
  facts.arguments = captured.arguments;
  facts.architecture = captured.program != nullptr
                           ? captured.program->architecture()
                           : device_->facts().architecture;
  facts.machine_code = *captured.machine_code;
  facts.image = std::move(image);
  const CapturedMemory* memory = captured.memory.get();
  facts.prologue = [memory](uint64_t address, uint64_t bytes) {
    return memory->Prologue(address, bytes);
  };
  facts.epilogue = [memory](uint64_t address, uint64_t bytes) {
    return memory->Epilogue(address, bytes);
  };
  return facts;
}

v1::Provenance RecordingFinisher::Describe(
    const CapturedLaunch& captured) const {
  v1::Provenance provenance =
      DescribeRecording(options_.command, captured.duration);
  provenance.set_device(device_->facts().kind);
  provenance.set_device_name(device_->facts().name);
  return provenance;
}

}  // namespace reprise
