// Bitcode of device code to a host object, in process: what the compile pool's
// workers do, without the pool. For tests and benchmarks of the cpu device.
// Thread-safe.
#ifndef REPRISE_TESTS_REPLAY_DEVICE_HOST_COMPILER_H_
#define REPRISE_TESTS_REPLAY_DEVICE_HOST_COMPILER_H_

#include <string>

#include "absl/status/statusor.h"
#include "replay/device/cpu/lowering/lowering.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// kind OK with code, kernels and globals set, or an error of the lowering.
// `pipeline` is LLVM's text form. `ir` may be null; it gets the optimized IR.
absl::StatusOr<v1::CompileReply> CompileForHost(
    const std::string& bitcode_path, const LoweringOptions& options,
    const std::string& pipeline = "default<O3>", std::string* ir = nullptr);

}  // namespace reprise

#endif  // REPRISE_TESTS_REPLAY_DEVICE_HOST_COMPILER_H_
