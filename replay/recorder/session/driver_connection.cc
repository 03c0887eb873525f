#include "replay/recorder/session/driver_connection.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/shared_memory.h"
#include "replay/base/status_macros.h"
#include "replay/recorder/cc/cubin.h"
#include "replay/recorder/cc/device_images.h"
#include "replay/recorder/driver/protocol.h"
#include "replay/recorder/session/host_memory.h"
#include "replay/recorder/session/image_window.h"
#include "replay/recorder/session/launch_request.h"
#include "replay/recorder/session/socket_message.h"
#include "replay/recorder/session/tuned_code.h"

namespace reprise {
namespace {

namespace wire = driver_wire;

// The counters that the process adds to; readable after its end.
class Counters {
 public:
  static constexpr size_t kBytes = sizeof(wire::ProcessCounters);

  Counters()
      : fd_(CreateSharedMemory("reprise-counters", kBytes).value_or(-1)) {
    if (fd_ < 0) return;
    void* mapping = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd_, 0);
    if (mapping != MAP_FAILED)
      counters_ = static_cast<const wire::ProcessCounters*>(mapping);
  }
  ~Counters() {
    if (counters_ != nullptr)
      munmap(const_cast<wire::ProcessCounters*>(counters_), kBytes);
    if (fd_ >= 0) close(fd_);
  }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  bool ok() const { return counters_ != nullptr; }
  int fd() const { return fd_; }
  wire::KernelCounter operator[](uint32_t kernel) const {
    return counters_->kernels[kernel];
  }
  uint64_t device_bytes() const {
    return counters_->device_bytes.load(std::memory_order_relaxed);
  }

 private:
  const int fd_;
  const wire::ProcessCounters* counters_ = nullptr;
};

// Names of the variables in an image's machine code, for every architecture
// that it has; none where it is PTX.
std::set<std::string> MachineCodeVariables(const std::string& image) {
  std::vector<std::string> cubins;
  if (const auto entries = FatbinEntries(image); entries.ok()) {
    for (const FatbinEntry& entry : *entries) {
      absl::StatusOr<std::string> cubin = CubinFor(image, entry.architecture);
      if (cubin.ok()) cubins.push_back(*std::move(cubin));
    }
  } else {
    cubins.push_back(image);
  }
  std::set<std::string> names;
  for (const std::string& cubin : cubins) {
    const auto variables = CubinVariables(cubin);
    if (!variables.ok()) continue;
    for (const CubinVariable& variable : *variables)
      names.insert(variable.symbol);
  }
  return names;
}

class DriverConnection {
 public:
  DriverConnection(int fd, const DriverConnectionOptions& options)
      : fd_(fd), options_(options) {}
  ~DriverConnection() {
    if (reserve_ != nullptr) --*options_.processes;
  }
  DriverConnection(const DriverConnection&) = delete;
  DriverConnection& operator=(const DriverConnection&) = delete;

  void Serve() {
    wire::MessageHeader header;
    while (ReceiveAll(fd_, &header, sizeof(header))) {
      if (header.bytes > wire::kMaxImageBytes + sizeof(wire::ModuleNotice))
        break;
      std::string bytes;
      if (!ReceiveBytes(fd_, header.bytes, &bytes)) break;
      Payload payload(std::move(bytes));
      if (!Handle(header.type, payload)) break;
    }
    GiveUp("");
    CountLaunches();
  }

 private:
  struct Kernel {
    v1::CompiledKernelInfo info;
    uint64_t module = 0;
    LaunchTicket ticket;
    uint64_t asked = 0;        // launches that the ledger has counted
    std::string refused_code;  // why tuned code of it is not launched
  };

  bool Handle(uint32_t type, Payload& payload);
  bool Hello(Payload& payload);
  bool AddKernel(Payload& payload);
  bool AddModule(Payload& payload);
  bool SendSubstitutes(Payload& payload);
  bool Begin(Payload& payload);
  bool Prologue(Payload& payload);
  bool Filled(Payload& payload);
  bool Epilogue(Payload& payload);
  bool Abandon(Payload& payload);
  bool Problem(Payload& payload);

  std::optional<std::vector<LiveRange>> TakeRanges(
      const wire::PrologueRequest& request, Payload& payload);
  void FindSource(CapturedLaunch* captured);
  std::string VariableNames(const CapturedLaunch& captured) const;
  // Memory for the image, and a window that it goes through.
  absl::Status MakeRoom(uint64_t image_bytes,
                        const std::vector<LiveRange>& ranges,
                        wire::PrologueReply* reply);
  void BeginIntake(void (CapturedMemory::*take)(uint64_t offset,
                                                std::string_view piece));
  uint32_t Refuse(const std::string& why);
  // What is being recorded, if anything is.
  void GiveUp(const std::string& why);
  void CountLaunches();
  void CountSubstituted(const Kernel& kernel,
                        const wire::KernelCounter& counter);

  template <typename T>
  bool Reply(uint32_t type, const T& body, const std::string& more = "",
             int descriptor = -1) {
    return SendAll(fd_, MessageBytes<wire::MessageHeader>(type, body, more),
                   descriptor);
  }

  const int fd_;
  const DriverConnectionOptions& options_;
  std::unique_ptr<Counters> counters_;    // null before Hello
  std::unique_ptr<HostReserve> reserve_;  // null where nothing is recorded
  std::string executable_;
  std::map<uint32_t, Kernel> kernels_;
  std::map<uint64_t, std::shared_ptr<const std::string>> modules_;
  std::unique_ptr<CapturedLaunch> current_;
  std::unique_ptr<ImageWindow> window_;
  std::unique_ptr<ImageIntake> intake_;  // of current_'s memory
  std::set<std::string> said_;
};

bool DriverConnection::Handle(uint32_t type, Payload& payload) {
  if (type == wire::kHello) return Hello(payload);
  if (counters_ == nullptr) return false;
  switch (type) {
    case wire::kKernel:
      return AddKernel(payload);
    case wire::kModule:
      return AddModule(payload);
    case wire::kSubstitutes:
      return SendSubstitutes(payload);
    case wire::kBegin:
      return Begin(payload);
    case wire::kPrologue:
      return Prologue(payload);
    case wire::kFilled:
      return Filled(payload);
    case wire::kEpilogue:
      return Epilogue(payload);
    case wire::kAbandon:
      return Abandon(payload);
    case wire::kProblem:
      return Problem(payload);
    default:
      return false;
  }
}

bool DriverConnection::Hello(Payload& payload) {
  wire::HelloRequest request;
  if (!payload.Take(&request) || counters_ != nullptr) return false;
  wire::HelloReply reply;
  if (request.version != wire::kProtocolVersion)
    return Reply(wire::kHello, reply);  // the library says what is wrong
  auto counters = std::make_unique<Counters>();
  if (!counters->ok()) return false;
  counters_ = std::move(counters);
  if (options_.ledger->Records()) {
    ++*options_.processes;
    reserve_ = std::make_unique<HostReserve>(
        [this] { return counters_->device_bytes(); },
        [this] { return options_.processes->load(); });
  }
  executable_ = payload.TakeRest();
  options_.on_hello();
  reply.flags = options_.flags;
  reply.arena_base = options_.arena_base;
  reply.arena_stride = options_.arena_stride;
  reply.patience_ms =
      static_cast<uint64_t>(absl::ToInt64Milliseconds(options_.patience));
  return Reply(wire::kHello, reply, "", counters_->fd());
}

bool DriverConnection::AddKernel(Payload& payload) {
  wire::KernelRequest request;
  if (!payload.Take(&request) || request.kernel >= wire::kMaxKernels ||
      request.parameter_count > wire::kMaxParameters ||
      kernels_.count(request.kernel) > 0)
    return false;
  Kernel kernel;
  kernel.module = request.module;
  kernel.info.set_static_shared_bytes(request.static_shared_bytes);
  kernel.info.set_max_threads_per_block(request.max_threads_per_block);
  for (uint32_t i = 0; i < request.parameter_count; ++i) {
    wire::Parameter parameter;
    if (!payload.Take(&parameter)) return false;
    kernel.info.add_parameter_offsets(parameter.offset);
    kernel.info.add_parameter_bytes(parameter.bytes);
  }
  kernel.info.set_symbol(payload.TakeRest());
  if (kernel.info.symbol().size() > wire::kMaxNameBytes) return false;
  // Modules are numbered as they are loaded: alike in processes that do the
  // same.
  kernel.ticket = options_.ledger->Meet(
      kernel.info.symbol(),
      absl::StrCat("module ", request.module, " of ", executable_));
  wire::KernelReply reply;
  reply.wanted = kernel.ticket.record ? 1 : 0;
  reply.substitutes =
      options_.substitutions->Of(kernel.info.symbol()).empty() ? 0 : 1;
  kernels_.emplace(request.kernel, std::move(kernel));
  return Reply(wire::kKernel, reply);
}

bool DriverConnection::AddModule(Payload& payload) {
  wire::ModuleNotice notice;
  if (!payload.Take(&notice)) return false;
  auto image = std::make_shared<const std::string>(payload.TakeRest());
  if (image->size() != notice.image_bytes) return false;
  modules_[notice.module] = std::move(image);
  return true;
}

bool DriverConnection::SendSubstitutes(Payload& payload) {
  wire::SubstitutesRequest request;
  if (!payload.Take(&request)) return false;
  const auto found = kernels_.find(request.kernel);
  if (found == kernels_.end()) return false;
  Kernel& kernel = found->second;
  std::set<std::string> variables;
  if (const auto module = modules_.find(kernel.module);
      module != modules_.end())
    variables = MachineCodeVariables(*module->second);
  wire::SubstitutesReply reply;
  std::string all;
  for (const Substitution* substitution :
       options_.substitutions->Of(kernel.info.symbol())) {
    if (reply.count == wire::kMaxSubstitutes) break;
    ++reply.count;
    const absl::StatusOr<std::string> message =
        TunedCodeMessage(*substitution, kernel.info, variables);
    if (!message.ok())
      kernel.refused_code = std::string(message.status().message());
    all += message.ok() ? *message : RefusedCodeMessage(*substitution);
  }
  reply.bytes = all.size();
  return Reply(wire::kSubstitutes, reply, all);
}

bool DriverConnection::Begin(Payload& payload) {
  wire::BeginRequest request;
  if (!payload.Take(&request)) return false;
  const auto kernel = kernels_.find(request.kernel);
  std::string arguments = payload.TakeRest();
  if (kernel == kernels_.end() || arguments.size() != request.argument_bytes ||
      arguments.size() > wire::kMaxArgumentBytes)
    return false;
  const v1::LaunchConfig launch = ToLaunch(request);
  GiveUp("");
  const LaunchTicket ticket =
      options_.ledger->BeginKnown(kernel->second.ticket.kernel, launch);
  ++kernel->second.asked;
  wire::BeginReply reply;
  if (!ticket.record) {
    reply.verdict =
        options_.ledger->IsDone(ticket.kernel) ? wire::kNever : wire::kPass;
    return Reply(wire::kBegin, reply);
  }
  const auto module = modules_.find(kernel->second.module);
  current_ = std::make_unique<CapturedLaunch>();
  current_->ticket = ticket;
  current_->device = request.device;
  current_->kernel = kernel->second.info;
  current_->launch = launch;
  current_->arguments = std::move(arguments);
  if (module == modules_.end()) {
    Refuse("the driver recorder does not know its machine code");
    reply.verdict = wire::kNever;
    return Reply(wire::kBegin, reply);
  }
  current_->machine_code = module->second;
  FindSource(current_.get());
  const std::string names = VariableNames(*current_);
  reply.verdict = wire::kRecord;
  reply.name_bytes = static_cast<uint32_t>(names.size());
  return Reply(wire::kBegin, reply, names);
}

// Without source the unit holds machine code only; with one that Clang refuses,
// that and the source.
void DriverConnection::FindSource(CapturedLaunch* captured) {
  const std::string& symbol = captured->kernel.symbol();
  const absl::StatusOr<std::shared_ptr<const Program>> program =
      options_.catalog->Find(*captured->machine_code, {}, symbol);
  absl::Status status = program.status();
  if (program.ok()) status = (*program)->FindSourceKernel(symbol).status();
  if (status.ok()) {
    captured->program = *program;
    return;
  }
  captured->no_source = std::string(status.message());
  if (absl::IsFailedPrecondition(status))
    captured->sources =
        options_.catalog->FindSources(*captured->machine_code, symbol);
}

std::string DriverConnection::VariableNames(
    const CapturedLaunch& captured) const {
  std::set<std::string> names = MachineCodeVariables(*captured.machine_code);
  if (captured.program != nullptr) {
    for (const std::string& name : captured.program->SourceVariables())
      names.insert(name);
  }
  std::string list;
  for (const std::string& name : names) {
    list += name;
    list += '\0';
  }
  return list;
}

std::optional<std::vector<LiveRange>> DriverConnection::TakeRanges(
    const wire::PrologueRequest& request, Payload& payload) {
  if (request.range_count > wire::kMaxRanges) return std::nullopt;
  std::vector<wire::LiveRange> sent;
  while (sent.size() < request.range_count)
    if (!payload.Take(&sent.emplace_back())) return std::nullopt;
  const std::string symbols = payload.TakeRest();
  if (symbols.size() != request.symbol_bytes ||
      (!symbols.empty() && symbols.back() != '\0'))
    return std::nullopt;
  std::vector<LiveRange> ranges;
  for (const wire::LiveRange& range : sent) {
    LiveRange live;
    live.address = range.address;
    live.bytes = range.bytes;
    if (!v1::MemoryOrigin_IsValid(static_cast<int>(range.origin)))
      return std::nullopt;
    live.origin = static_cast<v1::MemoryOrigin>(range.origin);
    if (range.symbol_offset < symbols.size())
      live.symbol = symbols.c_str() + range.symbol_offset;
    ranges.push_back(std::move(live));
  }
  return ranges;
}

uint32_t DriverConnection::Refuse(const std::string& why) {
  std::fprintf(stderr, "reprise: %s is not recorded: %s\n",
               current_->kernel.symbol().c_str(), why.c_str());
  GiveUp(why);
  return wire::kRefuse;
}

void DriverConnection::GiveUp(const std::string& why) {
  if (current_ == nullptr) return;
  options_.ledger->NoteGivenUp(current_->ticket, why);
  intake_.reset();
  current_.reset();
}

bool DriverConnection::Prologue(Payload& payload) {
  wire::PrologueRequest request;
  if (!payload.Take(&request) || current_ == nullptr || intake_ != nullptr)
    return false;
  const std::optional<std::vector<LiveRange>> ranges =
      TakeRanges(request, payload);
  if (!ranges.has_value()) return false;
  wire::PrologueReply reply;
  if ((request.hints & wire::kHintTexture) != 0 &&
      current_->program == nullptr) {
    Refuse(
        "it may be given a texture or surface object, whose handle means "
        "nothing in another process, and no source tells that it is not");
    reply.verdict = wire::kNever;
    return Reply(wire::kPrologue, reply);
  }
  current_->host_pointer = request.host_pointer;
  if (const absl::Status status =
          MakeRoom(request.image_bytes, *ranges, &reply);
      !status.ok()) {
    reply.verdict = Refuse(std::string(status.message()));
    return Reply(wire::kPrologue, reply);
  }
  CapturedMemory* memory = current_->memory.get();
  if (memory->image_bytes() != request.image_bytes) return false;
  BeginIntake(&CapturedMemory::TakePrologue);
  reply.verdict = wire::kRecord;
  reply.slots = window_->slots();
  return Reply(wire::kPrologue, reply, "",
               reply.new_window != 0 ? window_->fd() : -1);
}

absl::Status DriverConnection::MakeRoom(uint64_t image_bytes,
                                        const std::vector<LiveRange>& ranges,
                                        wire::PrologueReply* reply) {
  // Without source nobody can tell what the kernel touches: all is kept.
  if (current_->program == nullptr && image_bytes > options_.max_unit_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "its memory image has ", image_bytes, " bytes, allowed are ",
        options_.max_unit_bytes, " (--max-bytes)"));
  }
  ASSIGN_OR_RETURN(
      current_->memory,
      CapturedMemory::Create(ranges, reserve_.get(), options_.budget.get()));
  if (window_ != nullptr &&
      window_->slots() >= ImageWindow::SlotsFor(image_bytes))
    return absl::OkStatus();
  ASSIGN_OR_RETURN(window_, ImageWindow::Create(image_bytes));
  reply->new_window = 1;
  return absl::OkStatus();
}

void DriverConnection::BeginIntake(
    void (CapturedMemory::*take)(uint64_t offset, std::string_view piece)) {
  CapturedMemory* memory = current_->memory.get();
  intake_.reset();
  intake_ = std::make_unique<ImageIntake>(
      window_.get(), memory->image_bytes(),
      [memory, take](uint64_t offset, std::string_view piece) {
        (memory->*take)(offset, piece);
      });
}

bool DriverConnection::Filled(Payload& payload) {
  wire::FilledRequest request;
  if (!payload.Take(&request) || intake_ == nullptr || !intake_->Finish())
    return false;
  current_->copy_time = absl::Nanoseconds(request.copy_ns);
  current_->memory->ExpectEpilogue();
  BeginIntake(&CapturedMemory::TakeEpilogue);
  wire::FilledReply reply;
  reply.verdict = wire::kRecord;
  return Reply(wire::kFilled, reply);
}

bool DriverConnection::Epilogue(Payload& payload) {
  wire::EpilogueNotice notice;
  if (!payload.Take(&notice) || intake_ == nullptr) return false;
  if (notice.error != 0) {
    Refuse(absl::StrCat("the kernel failed by itself (CUDA error ",
                        notice.error, ")"));
    return true;
  }
  if (!intake_->Finish()) return false;
  intake_.reset();
  if (const absl::Status status = current_->memory->FinishEpilogue();
      !status.ok()) {
    Refuse(std::string(status.message()));
    return true;
  }
  current_->duration = absl::Nanoseconds(notice.duration_ns);
  options_.ledger->NoteCaptured(current_->ticket);
  options_.captures->Add(std::move(*current_));
  current_.reset();
  return true;
}

bool DriverConnection::Abandon(Payload& payload) {
  wire::AbandonNotice notice;
  if (!payload.Take(&notice)) return false;
  const std::string why = payload.TakeRest();
  if (current_ != nullptr) Refuse(why);
  return true;
}

bool DriverConnection::Problem(Payload& payload) {
  const std::string text = payload.TakeRest();
  if (said_.insert(text).second)
    std::fprintf(stderr, "reprise: %s\n", text.c_str());
  return true;
}

void DriverConnection::CountLaunches() {
  if (counters_ == nullptr) return;
  for (const auto& [index, kernel] : kernels_) {
    const wire::KernelCounter counter = (*counters_)[index];
    options_.ledger->AddLaunches(
        kernel.ticket.kernel,
        counter.launches > kernel.asked ? counter.launches - kernel.asked : 0,
        absl::Nanoseconds(static_cast<int64_t>(counter.total_ns)));
    CountSubstituted(kernel, counter);
  }
}

void DriverConnection::CountSubstituted(const Kernel& kernel,
                                        const wire::KernelCounter& counter) {
  const std::string& symbol = kernel.info.symbol();
  const auto decline = [&](wire::Decline reason, const std::string& why) {
    options_.substitutions->AddDeclined(symbol, why, counter.declined[reason]);
  };
  options_.substitutions->AddApplied(symbol, counter.substituted);
  decline(wire::kOtherLaunch, Substitutions::kOtherLaunch);
  decline(wire::kInGraph, "launched by a CUDA graph");
  decline(wire::kRefused, kernel.refused_code);
  decline(wire::kNotLoaded, "the driver did not load the tuned code");
  decline(wire::kNotLaunched, "the driver did not launch the tuned code");
}

}  // namespace

void ServeDriverConnection(int fd, const DriverConnectionOptions& options) {
  DriverConnection(fd, options).Serve();
}

}  // namespace reprise
