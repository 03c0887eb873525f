#include "replay/recorder/session/launch_recorder.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/log.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/recorder/session/unit_description.h"

namespace reprise {
namespace {

constexpr uint64_t kPageBytes = ArenaMemory::kPageBytes;
// The run that notes accesses may take longer than a plain one by this.
constexpr int kObservedSlowdown = 20;

std::string ShapeAndArguments(const ChosenLaunch& chosen) {
  FieldHasher hasher;
  hasher.Bytes(chosen.symbol).Bytes(chosen.launch.SerializeAsString());
  return hasher.Bytes(chosen.arguments).Finish();
}

using AddressRanges = std::vector<std::pair<uint64_t, uint64_t>>;

std::string HashMemory(const ArenaMemory& memory, const AddressRanges& ranges) {
  FieldHasher hasher;
  for (const auto& [address, bytes] : ranges)
    hasher.U64(address).Bytes({memory.At(address), bytes});
  return hasher.Finish();
}

std::string HashSet(const ArenaMemory& memory, const IntervalSet& set) {
  FieldHasher hasher;
  for (const Interval& interval : set.intervals()) {
    hasher.Bytes({memory.At(interval.begin), interval.end - interval.begin});
  }
  return hasher.Finish();
}

// Bytes in which two memories differ, over everything live in `a`.
IntervalSet Differences(const ArenaMemory& a, const ArenaMemory& b) {
  IntervalSet differences;
  for (const auto& [address, range] : a.live()) {
    const uint64_t end = address + range.bytes;
    for (uint64_t page = address; page < end; page += kPageBytes) {
      const uint64_t bytes = std::min(kPageBytes, end - page);
      const char* left = a.At(page);
      const char* right = b.At(page);
      if (std::memcmp(left, right, bytes) == 0) continue;
      for (uint64_t i = 0; i < bytes; ++i)
        if (left[i] != right[i]) differences.Add(page + i, page + i + 1);
    }
  }
  return differences;
}

void CopySet(const ArenaMemory& from, const IntervalSet& set, ArenaMemory& to) {
  for (const Interval& interval : set.intervals()) {
    std::memcpy(to.At(interval.begin), from.At(interval.begin),
                interval.end - interval.begin);
  }
}

const v1::CompiledKernelInfo* FindInfo(const v1::CompileReply& code,
                                       const std::string& symbol) {
  for (const v1::CompiledKernelInfo& info : code.kernels())
    if (info.symbol() == symbol) return &info;
  return nullptr;
}

absl::Status NotRun(const LaunchReport& report, const char* which) {
  if (report.kind == v1::OUTCOME_KIND_OK) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(which, " of it ended badly: ", report.diagnostics));
}

}  // namespace

ScratchDevice::ScratchDevice(std::unique_ptr<ArenaMemory> memory,
                             ExecutorClient::Options executor)
    : memory_(std::move(memory)), executor_(std::move(executor)) {}

absl::StatusOr<std::unique_ptr<ScratchDevice>> ScratchDevice::Create(
    const ArenaMemory::Options& arena, ExecutorClient::Options executor) {
  ASSIGN_OR_RETURN(std::unique_ptr<ArenaMemory> memory,
                   ArenaMemory::Create(arena));
  executor.memory_fd = memory->fd();
  return std::unique_ptr<ScratchDevice>(
      new ScratchDevice(std::move(memory), std::move(executor)));
}

absl::StatusOr<LaunchReport> ScratchDevice::Launch(
    const v1::CompileReply& code, const std::string& symbol,
    const SymbolAddresses& addresses, const v1::LaunchConfig& launch,
    const std::string& arguments, bool instrumented, absl::Duration timeout) {
  const v1::CompiledKernelInfo* info = FindInfo(code, symbol);
  if (info == nullptr)
    return absl::InternalError(absl::StrCat("the code lacks ", symbol));
  RETURN_IF_ERROR(executor_.Map(*memory_));
  const auto key = std::make_pair(&code, &addresses);
  auto module = modules_.find(key);
  if (module == modules_.end()) {
    ASSIGN_OR_RETURN(const uint64_t loaded,
                     executor_.Load(code, addresses, /*initialize=*/false));
    module = modules_.emplace(key, loaded).first;
  }
  return executor_.Launch(module->second, *info, launch, arguments,
                          instrumented, timeout);
}

struct LaunchRecorder::Recording {
  ChosenLaunch chosen;
  ScratchDevice* scratch = nullptr;
  const v1::CompileReply* observed_code = nullptr;
  AccessSets accesses;
  v1::AccessReport report;
  IntervalSet plain_changes;  // by the plain run, and the hash of the bytes
  std::string plain_result;   // that it left there
};

LaunchRecorder::LaunchRecorder(Options options, UnitStore* store,
                               LaunchLedger* ledger)
    : options_(std::move(options)),
      builder_(&store->chunks()),
      ledger_(ledger) {}

bool LaunchRecorder::IsRecorded(const ChosenLaunch& chosen) const {
  const std::string shape = ShapeAndArguments(chosen);
  for (const RecordedInstance& instance :
       ledger_->Instances(chosen.ticket.kernel)) {
    if (instance.shape_and_arguments != shape) continue;
    bool live = true;
    for (const auto& [address, bytes] : instance.ranges) {
      const LiveRange* range = chosen.memory->Find(address);
      live = live && range != nullptr &&
             bytes <= range->bytes - (address - range->address);
    }
    if (live &&
        HashMemory(*chosen.memory, instance.ranges) == instance.memory_hash)
      return true;
  }
  return false;
}

absl::StatusOr<std::shared_ptr<LaunchRecorder::Recording>>
LaunchRecorder::Before(const ChosenLaunch& chosen,
                       std::unique_ptr<ScratchDevice>* scratch) {
  if (IsRecorded(chosen)) return std::shared_ptr<Recording>();
  if (*scratch == nullptr) {
    ASSIGN_OR_RETURN(*scratch, ScratchDevice::Create(chosen.memory->options(),
                                                     options_.executor));
  }
  auto recording = std::make_shared<Recording>();
  recording->chosen = chosen;
  recording->scratch = scratch->get();
  (*scratch)->memory().CopyFrom(*chosen.memory);
  // The plain run first: a kernel that does not end is given up soonest so.
  RETURN_IF_ERROR(RunPlain(*recording));
  RETURN_IF_ERROR(Observe(*recording));
  return recording;
}

absl::Status LaunchRecorder::RunPlain(Recording& recording) {
  const ChosenLaunch& chosen = recording.chosen;
  ASSIGN_OR_RETURN(const ProgramKernel kernel,
                   chosen.program->FindKernel(chosen.symbol));
  ASSIGN_OR_RETURN(const LaunchReport report,
                   recording.scratch->Launch(
                       chosen.program->objects()[kernel.object], chosen.symbol,
                       *chosen.addresses, chosen.launch, chosen.arguments,
                       /*instrumented=*/false, options_.launch_timeout));
  RETURN_IF_ERROR(NotRun(report, "a trial run"));
  ArenaMemory& scratch = recording.scratch->memory();
  recording.plain_changes = Differences(*chosen.memory, scratch);
  recording.plain_result = HashSet(scratch, recording.plain_changes);
  CopySet(*chosen.memory, recording.plain_changes, scratch);
  return absl::OkStatus();
}

absl::Status LaunchRecorder::Observe(Recording& recording) {
  const ChosenLaunch& chosen = recording.chosen;
  ASSIGN_OR_RETURN(recording.observed_code,
                   chosen.program->Instrumented(chosen.symbol));
  ASSIGN_OR_RETURN(
      LaunchReport report,
      recording.scratch->Launch(*recording.observed_code, chosen.symbol,
                                *chosen.addresses, chosen.launch,
                                chosen.arguments, /*instrumented=*/true,
                                options_.launch_timeout * kObservedSlowdown));
  RETURN_IF_ERROR(NotRun(report, "an observed run"));
  recording.accesses = AccessSets::FromReport(report.accesses);
  recording.report = std::move(report.accesses);

  ArenaMemory& scratch = recording.scratch->memory();
  const IntervalSet changed = Differences(*chosen.memory, scratch);
  const IntervalSet unseen = changed.Subtract(recording.accesses.writes);
  if (!unseen.empty()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%d bytes changed that it was not seen to write, first at 0x%x",
        unseen.bytes(), unseen.intervals().front().begin));
  }
  CopySet(*chosen.memory, changed, scratch);
  return absl::OkStatus();
}

absl::Status LaunchRecorder::After(Recording& recording,
                                   const LaunchReport& report) {
  const ChosenLaunch& chosen = recording.chosen;
  AccessSets& accesses = recording.accesses;
  ArenaMemory& prologue = recording.scratch->memory();
  const IntervalSet changes = Differences(*chosen.memory, prologue);
  const IntervalSet unseen = changes.Subtract(accesses.writes);
  const bool deterministic =
      unseen.empty() && changes == recording.plain_changes &&
      HashSet(*chosen.memory, changes) == recording.plain_result;
  if (!unseen.empty()) {
    LOG_WARNING(
        "{}: {} bytes were written that an observed run did not write; they "
        "count as read and written",
        chosen.symbol, unseen.bytes());
    accesses.reads = accesses.reads.Union(unseen);
    accesses.writes = accesses.writes.Union(unseen);
    accesses.reads_before_write = accesses.reads_before_write.Union(unseen);
  }
  std::set<uint64_t> whole;
  for (const v1::ModuleGlobal& global : recording.observed_code->globals()) {
    const auto address = chosen.addresses->find(global.symbol());
    if (address != chosen.addresses->end()) whole.insert(address->second);
  }
  ASSIGN_OR_RETURN(
      const std::vector<ImageRange> image,
      CutImage(prologue.live(), accesses, recording.report.types(), whole));
  if (accesses.writes.empty())
    return absl::FailedPreconditionError("it wrote nothing");
  uint64_t bytes = 0;
  RecordedInstance instance{ShapeAndArguments(chosen), {}, ""};
  for (const ImageRange& range : image) {
    bytes += range.bytes;
    instance.ranges.emplace_back(range.address, range.bytes);
  }
  if (bytes > options_.max_unit_bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("its memory image has ", bytes, " bytes, allowed are ",
                     options_.max_unit_bytes, " (--max-bytes)"));
  }
  instance.memory_hash = HashMemory(prologue, instance.ranges);
  ASSIGN_OR_RETURN(v1::Unit unit, builder_.Build(FactsOf(recording, image)));
  unit.set_deterministic(deterministic);
  *unit.mutable_provenance() =
      DescribeRecording(options_.command, report.device_time);
  ledger_->AddUnit(chosen.ticket, std::move(unit), std::move(instance));
  return absl::OkStatus();
}

LaunchFacts LaunchRecorder::FactsOf(const Recording& recording,
                                    std::vector<ImageRange> image) {
  const ChosenLaunch& chosen = recording.chosen;
  const auto contents = [](const ArenaMemory* memory) {
    return [memory](uint64_t address, uint64_t bytes) {
      return std::string_view(memory->At(address), bytes);
    };
  };
  LaunchFacts facts;
  facts.program = chosen.program;
  facts.kernel = FindInfo(*recording.observed_code, chosen.symbol);
  facts.launch = chosen.launch;
  facts.arguments = chosen.arguments;
  facts.architecture = chosen.program->architecture();
  facts.machine_code = chosen.program->image();
  facts.image = std::move(image);
  facts.prologue = contents(&recording.scratch->memory());
  facts.epilogue = contents(chosen.memory);
  facts.accesses = &recording.report;
  return facts;
}

}  // namespace reprise
