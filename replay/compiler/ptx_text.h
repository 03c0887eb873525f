// PTX as NVIDIA's compilers write it, read and changed as text: which kernels
// stay, what they are called, launch bounds, and what a reply says of them.
//
// Definitions begin in the first column, as NVRTC and nvcc print them.
// Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_PTX_TEXT_H_
#define REPRISE_REPLAY_COMPILER_PTX_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

std::vector<std::string> PtxKernelNames(const std::string& ptx);

// Without the bodies of all other kernels.
std::string KeepPtxKernels(const std::string& ptx,
                           const std::vector<std::string>& kernels);

// Every use of a name replaced by another; NAME_param_0 and the like stay.
std::string RenamePtxSymbol(const std::string& ptx, const std::string& from,
                            const std::string& to);

// __launch_bounds__ of all kernels, where `options` states them instead of the
// source; and a cap on registers per thread, 0: none.
std::string SetPtxLimits(const std::string& ptx,
                         const v1::CodegenOptions& options,
                         uint32_t max_registers);

// Layout of parameters and launch bound of one kernel. NOT_FOUND.
absl::StatusOr<v1::CompiledKernelInfo> DescribePtxKernel(
    const std::string& ptx, const std::string& kernel);

// Variables in global and constant memory that this text defines, but not what
// the compiler made itself (texts, tables).
std::vector<v1::ModuleGlobal> PtxVariables(const std::string& ptx);

// Index in `symbols` of the kernel that another compiler calls `wanted`: equal,
// equal when normalized, or the only one of that name without signature and
// template arguments. -1: none or several.
int FindKernelSymbol(const std::vector<std::string>& symbols,
                     const std::string& wanted);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_PTX_TEXT_H_
