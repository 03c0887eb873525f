// What the source says about kernels, carried inside the IR: written by the
// front end, read whenever the IR is compiled, so that a variant without
// source edits needs no front end to know it.
//
// Named metadata !reprise.kernels, one node per kernel: symbol, source path,
// line, parameter names, pointee types, tolerances. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_KERNEL_METADATA_H_
#define REPRISE_REPLAY_COMPILER_KERNEL_METADATA_H_

#include <string>
#include <vector>

#include "clang/AST/ASTContext.h"
#include "clang/CodeGen/ModuleBuilder.h"
#include "llvm/IR/Module.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// Describes the kernels that `generator` has made IR for.
std::vector<v1::CompiledKernelInfo> DescribeKernels(
    clang::ASTContext& context, clang::CodeGenerator& generator);

// Writes descriptions into the module, and takes out what annotate attributes
// leave in IR: it would keep annotated parameters in memory.
void AttachKernelMetadata(const std::vector<v1::CompiledKernelInfo>& kernels,
                          llvm::Module& module);

// Fills source, names, pointees and tolerances of `kernel` (by its symbol);
// leaves it alone where the module has no description.
void ReadKernelMetadata(const llvm::Module& module,
                        v1::CompiledKernelInfo& kernel);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_KERNEL_METADATA_H_
