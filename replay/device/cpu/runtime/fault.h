// How a fault of device code leaves the executor: a record in a page that the
// parent also maps, after which the process ends.
//
// Thread-safety: any thread may report; the first one wins, the others stop.
// Everything here is safe in a signal handler.
#ifndef REPRISE_REPLAY_DEVICE_CPU_RUNTIME_FAULT_H_
#define REPRISE_REPLAY_DEVICE_CPU_RUNTIME_FAULT_H_

#include <atomic>
#include <cstdint>

namespace reprise::cpu {

enum class FaultKind : uint32_t {
  kNone,
  kMemory,         // address and is_write are set
  kStackOverflow,  // of one CUDA thread
  kArithmetic,     // integer division by zero
  kIllegal,        // instruction
  kReported,       // message says all: trap, assertion, divergent barrier
};

struct FaultRecord {
  std::atomic<uint32_t> state;  // 0 none, 1 being written, 2 complete
  FaultKind kind;
  uint64_t address;
  uint32_t is_write;
  uint32_t has_block;
  uint32_t block[3];
  uint32_t has_thread;
  uint32_t thread[3];
  char message[1024];
};

inline constexpr uint64_t kFaultPageBytes = 4096;
static_assert(sizeof(FaultRecord) <= kFaultPageBytes);
inline constexpr int kFaultExitCode = 97;

// Where records go from now on; `record` outlives every launch.
void SetFaultRecord(FaultRecord* record);
// Turns SIGSEGV, SIGBUS, SIGFPE and SIGILL into records.
void InstallFaultHandlers();
// Gives the calling host thread a stack for these handlers. Call once per
// thread that runs blocks.
void UseFaultStack();

// Records "message" (printf format) for the block and thread that the calling
// host thread runs, and ends the process.
[[noreturn]] void ReportFault(const char* format, ...)
    __attribute__((format(printf, 1, 2)));

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RUNTIME_FAULT_H_
