// What the driver recorder (libreprise_cuda.so, inside an application that runs
// on a GPU) and `reprise record`, its parent, say to each other.
//
// Transport: one AF_UNIX SOCK_STREAM connection per application process, to the
// path in kSocketVariable. Every message is a MessageHeader and `bytes` bytes
// of payload: one of the structs below, then what its comment says follows it.
// Both ends are the same machine and the same build: structs go as they lie in
// memory; kProtocolVersion refuses a library of another build.
//
// The library asks, the parent answers; messages marked (no answer) are notices
// and are handled in order. A launch that is not recorded sends nothing: it
// adds to its kernel's counter, which lies in a memfd that both map, so that
// counts survive any end of the application.
//
// One recording, in order:
//   kModule (once per module)   the image that holds the kernel
//   kBegin                      shall this launch be recorded? -> names of the
//                               module's variables to look up
//   kPrologue                   everything live -> a window (below); the
//                               library puts the image through it
//   kFilled                     the parent has all of it
//   (the launch runs and is waited for; the image goes through again)
//   kEpilogue                   the parent has all of that
// A library that cannot go on sends kAbandon instead of any of them.
//
// Tuned code (`reprise apply`): KernelReply says that there is some, kModule
// and kSubstitutes fetch it before the kernel's first launch. From then on the
// library alone decides which launches run it, and counts both kinds.
//
// The window: a memfd that both ends map, WindowControl in its first
// kWindowControlBytes and then slots of kSlotBytes. The image goes through it
// in passes: chunk c, kSlotBytes of the image (the last one fewer), lies in
// slot c % slots once control.ready is greater than c, and the slot is free
// again once the parent has taken all its pieces of kPieceBytes. The parent
// zeroes the control before it answers what begins a pass: kPrologue and
// kFilled.
//
// Plain C++ without the standard library's run-time part.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_PROTOCOL_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_PROTOCOL_H_

#include <atomic>
#include <cstdint>

namespace reprise::driver_wire {

inline constexpr uint32_t kProtocolVersion = 3;
inline constexpr char kSocketVariable[] = "REPRISE_DRIVER_SOCKET";

// Bounds that both ends check before they believe a header.
inline constexpr uint64_t kMaxImageBytes = uint64_t{4} << 30;
inline constexpr uint64_t kMaxNameBytes = 1 << 20;
inline constexpr uint32_t kMaxParameters = 4096;
inline constexpr uint32_t kMaxArgumentBytes = 32764;
inline constexpr uint32_t kMaxRanges = 1 << 24;
inline constexpr uint32_t kMaxSubstitutes = 64;  // of one kernel
inline constexpr uint64_t kMaxSubstituteBytes = uint64_t{1} << 30;
// Kernels beyond these are launched and not counted.
inline constexpr uint32_t kMaxKernels = 1 << 15;

inline constexpr uint64_t kWindowControlBytes = 4096;
inline constexpr uint64_t kSlotBytes = 8 << 20;
inline constexpr uint32_t kMaxSlots = 8;
inline constexpr uint64_t kPieceBytes = 1 << 20;

enum MessageType : uint32_t {
  kHello = 1,     // HelloRequest, path of the executable -> HelloReply and, as
                  // SCM_RIGHTS, a memfd of ProcessCounters
  kKernel = 2,    // KernelRequest, parameters, name -> KernelReply
  kModule = 3,    // ModuleNotice, image (no answer)
  kBegin = 4,     // BeginRequest, arguments -> BeginReply, names
  kPrologue = 5,  // PrologueRequest, ranges, symbols -> PrologueReply and,
                  // where it says new_window, a memfd
  kFilled = 6,    // FilledRequest -> FilledReply
  kEpilogue = 7,  // EpilogueNotice (no answer)
  kAbandon = 8,   // AbandonNotice, text: why (no answer)
  kProblem = 9,   // text for a person, said once (no answer)
  kSubstitutes = 10,  // SubstitutesRequest -> SubstitutesReply, Substitutes
};

struct MessageHeader {
  uint32_t type = 0;
  uint32_t reserved = 0;
  uint64_t bytes = 0;  // of the payload
};

// Why a launch of a kernel with tuned code runs the application's own.
enum Decline : uint32_t {
  kOtherLaunch = 0,  // no guard is like it
  kInGraph = 1,      // a CUDA graph launches it
  kRefused = 2,      // the parent said so, and knows why
  kNotLoaded = 3,    // the driver does not load the code
  kNotLaunched = 4,  // the driver does not launch it
  kDeclines = 5,
};

// Written by the library only. Index: KernelRequest.kernel.
struct KernelCounter {
  uint64_t launches = 0;
  uint64_t total_ns = 0;  // of the launches that were timed
  uint64_t timed = 0;
  uint64_t substituted = 0;  // of the launches
  uint64_t declined[kDeclines] = {};
};

struct ProcessCounters {
  KernelCounter kernels[kMaxKernels];
  // Of device memory that the application has now.
  std::atomic<uint64_t> device_bytes;
};

struct HelloRequest {
  uint32_t version = kProtocolVersion;
  int32_t pid = 0;
};

enum Flags : uint32_t {
  kFlagProfile = 1,          // time every launch by events
  kFlagNativeAllocator = 2,  // leave allocations to the driver
};

struct HelloReply {
  uint32_t version = kProtocolVersion;
  uint32_t flags = 0;
  // Device d's allocations lie in
  // [arena_base + d * arena_stride, + arena_stride).
  uint64_t arena_base = 0;
  uint64_t arena_stride = 0;
  // How long a recording may wait, with the rest of the application standing
  // still, for work before the launch and for the launch.
  uint64_t patience_ms = 0;
};

struct Parameter {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

// The first launch of a kernel. Followed by parameter_count Parameters (the
// driver's own table) and the kernel's name as the driver gives it.
struct KernelRequest {
  uint32_t kernel = 0;  // counts up from 0 in each process
  uint32_t parameter_count = 0;
  uint64_t module = 0;  // the library's number of it
  uint32_t static_shared_bytes = 0;
  uint32_t max_threads_per_block = 0;
  uint32_t registers = 0;
  uint32_t local_bytes = 0;
};

struct KernelReply {
  uint32_t wanted = 0;       // 0: never ask again about its launches
  uint32_t substitutes = 0;  // 1: there is tuned code; kModule, kSubstitutes
};

struct LaunchShape {
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t cluster[3] = {};  // zeros: none
  uint32_t dynamic_shared_bytes = 0;
  uint32_t cooperative = 0;
};

struct SubstitutesRequest {
  uint32_t kernel = 0;
  uint32_t reserved = 0;
};

// Followed by `bytes` bytes: `count` times a Substitute and what follows it.
struct SubstitutesReply {
  uint32_t count = 0;
  uint32_t reserved = 0;
  uint64_t bytes = 0;
};

// Tuned code for the launches of one shape; of several for the same shape the
// first counts. Followed by name_bytes of NUL-ended names, then code_bytes of
// machine code. The names: the kernel in the code, then for each of
// constant_count constants its name in the code and in the application's
// module. Before every launch each of these takes the value of the
// application's.
struct Substitute {
  LaunchShape guard;
  // What is launched in place of it; cluster and cooperative are the guard's.
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t dynamic_shared_bytes = 0;
  uint32_t refused = 0;  // 1: not to be launched after all; nothing follows
  uint32_t constant_count = 0;
  uint32_t name_bytes = 0;
  uint64_t code_bytes = 0;
};

// Followed by image_bytes bytes: what the application gave the driver (fatbin
// without its wrapper, cubin or PTX).
struct ModuleNotice {
  uint64_t module = 0;
  uint64_t image_bytes = 0;
};

// Followed by argument_bytes bytes, laid out as the parameters say.
struct BeginRequest {
  uint32_t kernel = 0;
  uint32_t device = 0;
  uint64_t occurrence = 0;  // 0-based, among the kernel's launches here
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t cluster[3] = {};  // zeros: none
  uint32_t dynamic_shared_bytes = 0;
  uint32_t cooperative = 0;
  uint32_t argument_bytes = 0;
};

enum Verdict : uint32_t {
  kRecord = 1,
  kPass = 2,   // not this launch
  kNever = 3,  // nor any later one of this kernel
  kRefuse = 4,
};

// Followed by name_bytes bytes: names of device variables, each ended by a NUL.
// Those that the module does not have are skipped.
struct BeginReply {
  uint32_t verdict = 0;
  uint32_t name_bytes = 0;
};

// Values of reprise.v1.MemoryOrigin.
enum Origin : uint32_t {
  kOriginDevice = 1,
  kOriginPool = 2,
  kOriginManaged = 3,
  kOriginPinned = 4,
  kOriginGlobal = 5,
  kOriginConstant = 6,
};

struct LiveRange {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t origin = 0;
  // Into the symbols that follow the ranges, for globals; else ~0.
  uint32_t symbol_offset = ~uint32_t{0};
};

enum Hints : uint32_t {
  // An argument may be a texture or surface object.
  kHintTexture = 1,
};

// Followed by range_count LiveRanges, ascending and disjoint, and symbol_bytes
// bytes of NUL-ended names. The image is the ranges' bytes in this order, each
// range beginning at a multiple of 4096 of the image.
struct PrologueRequest {
  uint32_t range_count = 0;
  uint32_t symbol_bytes = 0;
  uint64_t image_bytes = 0;  // multiple of 4096
  uint32_t hints = 0;
  uint32_t reserved = 0;
  // In the arguments, and perhaps an address of memory that CUDA was never
  // given (malloc); 0: nothing is.
  uint64_t host_pointer = 0;
};

struct WindowControl {
  std::atomic<uint32_t> ready{0};            // chunks; a futex
  std::atomic<uint32_t> taken[kMaxSlots]{};  // pieces, by slot; futexes
};
static_assert(sizeof(WindowControl) <= kWindowControlBytes);

// kRecord; or kRefuse or kNever (the parent says why).
struct PrologueReply {
  uint32_t verdict = 0;
  uint32_t slots = 0;       // of the window
  uint32_t new_window = 0;  // 0: the one that came before serves
};

struct FilledRequest {
  uint64_t copy_ns = 0;  // of the pass
};

struct FilledReply {
  uint32_t verdict = 0;  // kRecord
  uint32_t reserved = 0;
};

struct EpilogueNotice {
  int32_t error = 0;  // CUresult of the launch and its completion; not 0: the
                      // kernel failed by itself and no unit is made
  uint32_t reserved = 0;
  double duration_ns = 0;  // by events around the launch
  uint64_t copy_ns = 0;
};

struct AbandonNotice {
  uint32_t kernel = 0;
  uint32_t never = 0;  // 1: later launches of it would fail alike
};

}  // namespace reprise::driver_wire

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_PROTOCOL_H_
