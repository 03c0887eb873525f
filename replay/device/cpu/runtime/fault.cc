#include "replay/device/cpu/runtime/fault.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "replay/base/check.h"
#include "replay/device/cpu/runtime/host_thread.h"

namespace reprise::cpu {
namespace {

constexpr size_t kHandlerStackBytes = 64 * 1024;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

std::atomic<FaultRecord*> fault_record{nullptr};

// Claims the record, or stops this thread until the process ends.
FaultRecord* Claim() {
  FaultRecord* record = fault_record.load();
  if (record == nullptr) return nullptr;
  uint32_t none = 0;
  while (!record->state.compare_exchange_strong(none, 1)) pause();
  return record;
}

[[noreturn]] void Finish(FaultRecord* record) {
  const HostThread& host = CurrentHostThread();
  record->has_block = host.block != nullptr;
  if (host.block != nullptr)
    std::memcpy(record->block, host.block->block, sizeof(record->block));
  record->has_thread = host.current != nullptr;
  if (host.current != nullptr) {
    std::memcpy(record->thread, host.current->thread, sizeof(record->thread));
  }
  record->state.store(2);
  _exit(kFaultExitCode);
}

// Whether an access failed where the stack pointer is: behind a stack's end.
// Threads that run as one loop share the host thread's stack, whose bounds are
// not kept.
bool IsAtStackPointer(uint64_t address, const ucontext_t& context) {
  constexpr uint64_t kLargestFrame = 64 * 1024;
  const auto pointer =
      static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
  return address - (pointer - kLargestFrame) < 2 * kLargestFrame;
}

void Handle(int signal, siginfo_t* info, void* raw_context) {
  const auto* context = static_cast<const ucontext_t*>(raw_context);
  const auto address = reinterpret_cast<uint64_t>(info->si_addr);
  // Bit 1 of the page fault's error code.
  const bool is_write = (context->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  FaultRecord* record = Claim();
  if (record == nullptr) _exit(kFaultExitCode);
  const HostThread& host = CurrentHostThread();
  record->address = address;
  record->is_write = 0;
  if (signal == SIGFPE) {
    record->kind = FaultKind::kArithmetic;
  } else if (signal == SIGILL) {
    record->kind = FaultKind::kIllegal;
  } else if ((address >= host.stacks_begin && address < host.stacks_end) ||
             IsAtStackPointer(address, *context)) {
    record->kind = FaultKind::kStackOverflow;
  } else {
    record->kind = FaultKind::kMemory;
    record->is_write = is_write;
    const bool shared =
        address >= host.shared_begin && address < host.shared_end;
    if (shared && host.block != nullptr) {
      const auto base = reinterpret_cast<uint64_t>(host.block->shared);
      std::snprintf(record->message, sizeof(record->message),
                    "byte %lld of shared memory",
                    static_cast<long long>(address - base));
    }
  }
  Finish(record);
}

}  // namespace

HostThread& CurrentHostThread() {
  static thread_local HostThread host;
  return host;
}

void SetFaultRecord(FaultRecord* record) { fault_record.store(record); }

void InstallFaultHandlers() {
  struct sigaction action = {};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int signal : kSignals)
    CHECK(sigaction(signal, &action, nullptr) == 0);
}

void UseFaultStack() {
  CurrentHostThread();  // a handler must not be the first to touch it
  void* memory = mmap(nullptr, kHandlerStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kHandlerStackBytes;
  CHECK(sigaltstack(&stack, nullptr) == 0);
}

void ReportFault(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  FaultRecord* record = Claim();
  if (record == nullptr) {  // outside of an executor: nobody else says it
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    _exit(kFaultExitCode);
  }
  record->kind = FaultKind::kReported;
  std::vsnprintf(record->message, sizeof(record->message), format, arguments);
  va_end(arguments);
  Finish(record);
}

}  // namespace reprise::cpu
