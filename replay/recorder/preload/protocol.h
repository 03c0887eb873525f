// What the CUDA runtime stand-in (libreprise_cudart.so, inside the application)
// and the recorder (its parent, `reprise record`) say to each other.
//
// Transport: one AF_UNIX SOCK_STREAM connection per application process, to the
// path in kSocketVariable. Every message is a MessageHeader and `bytes` bytes
// of payload: one of the structs below, then what its comment says follows it.
// Both ends are the same machine and the same build: structs go as they lie in
// memory; kProtocolVersion refuses a library of another build.
//
// The application asks, the recorder answers; messages marked (no answer) are
// notices and are handled in order before any later question. Device memory
// never crosses the socket: it lives in a memfd that the recorder creates and
// sends with its HelloReply (SCM_RIGHTS). Inside the arena,
//   [arena_base, arena_base + globals_bytes)   module globals; the recorder's
//   the rest                                   allocations; the library's
//
// Plain C++ without the standard library's run-time part: the stand-in links
// none.
#ifndef REPRISE_REPLAY_RECORDER_PRELOAD_PROTOCOL_H_
#define REPRISE_REPLAY_RECORDER_PRELOAD_PROTOCOL_H_

#include <cstdint>

namespace reprise::wire {

inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr char kSocketVariable[] = "REPRISE_RECORDER_SOCKET";

// Bounds that both ends check before they believe a header.
inline constexpr uint64_t kMaxImageBytes = uint64_t{4} << 30;
inline constexpr uint64_t kMaxNameBytes = 1 << 20;
inline constexpr uint32_t kMaxParameters = 4096;
inline constexpr uint32_t kMaxArgumentBytes = 32764;  // as CUDA has it
inline constexpr uint64_t kMaxTextBytes = 64 << 20;

enum MessageType : uint32_t {
  kHello = 1,             // HelloRequest -> HelloReply
  kStaticRuntime = 2,     // text: path of the executable (no answer)
  kAllocate = 3,          // AllocateNotice (no answer)
  kFree = 4,              // FreeNotice (no answer)
  kRegisterModule = 5,    // RegisterModuleNotice, sizes, images (no answer)
  kUnregisterModule = 6,  // UnregisterModuleNotice (no answer)
  kFunction = 7,          // NameRequest, name -> FunctionReply, parameters
  kVariable = 8,          // NameRequest, name -> VariableReply
  kLaunch = 9,            // LaunchRequest, arguments -> LaunchReply, text
  kReset = 10,            // empty (no answer)
};

struct MessageHeader {
  uint32_t type = 0;
  uint32_t reserved = 0;
  uint64_t bytes = 0;  // of the payload
};

struct HelloRequest {
  uint32_t version = kProtocolVersion;
  int32_t pid = 0;
};

struct HelloReply {
  uint32_t version = kProtocolVersion;
  int32_t error = 0;  // a cudaError_t; the rest is meaningless unless 0
  uint64_t arena_base = 0;
  uint64_t arena_bytes = 0;
  uint64_t globals_bytes = 0;
  uint64_t device_memory_bytes = 0;  // what all allocations may come to
  uint32_t compute_major = 0;
  uint32_t compute_minor = 0;
  char device_name[256] = {};
};

// Values of reprise.v1.MemoryOrigin.
enum Origin : uint32_t {
  kOriginDevice = 1,
  kOriginPool = 2,
  kOriginManaged = 3,
  kOriginPinned = 4,
};

struct AllocateNotice {
  uint64_t address = 0;
  uint64_t bytes = 0;  // as the application asked for
  uint32_t origin = 0;
  uint32_t reserved = 0;
};

struct FreeNotice {
  uint64_t address = 0;
};

// Followed by image_count sizes (u64) and then the images. The first is the
// fatbin that the application registered; the others are those that nvcc's
// device linker made it from.
struct RegisterModuleNotice {
  uint64_t module = 0;
  uint64_t image_count = 0;
};

struct UnregisterModuleNotice {
  uint64_t module = 0;
};

// Followed by the name of a kernel or device variable, as registered.
struct NameRequest {
  uint64_t module = 0;
};

// Followed by parameter_count Parameters.
struct FunctionReply {
  int32_t error = 0;  // a cudaError_t
  uint32_t parameter_count = 0;
  uint32_t argument_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t max_threads_per_block = 0;
  uint32_t reserved = 0;
  uint64_t function = 0;     // names it in LaunchRequest
  uint64_t excluded_ns = 0;  // spent on compiling; the device clock stood still
};

struct Parameter {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

struct VariableReply {
  int32_t error = 0;  // a cudaError_t
  uint32_t reserved = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t excluded_ns = 0;
};

// Followed by argument_bytes bytes of arguments.
struct LaunchRequest {
  uint64_t function = 0;
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t cluster[3] = {};  // zeros: none
  uint32_t dynamic_shared_bytes = 0;
  uint32_t cooperative = 0;
  uint32_t argument_bytes = 0;
};

// Followed by text_bytes bytes that the kernel printed.
struct LaunchReply {
  int32_t error = 0;   // what the launch call returns
  int32_t sticky = 0;  // what the context is broken with from now on; 0: whole
  uint64_t excluded_ns = 0;  // spent on recording
  uint64_t text_bytes = 0;
};

}  // namespace reprise::wire

#endif  // REPRISE_REPLAY_RECORDER_PRELOAD_PROTOCOL_H_
