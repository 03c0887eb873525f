// The compiler itself, in this process: from a unit's source or IR and a
// variant to code for a target. The compile pool runs it in worker processes;
// whoever can bear a crash of LLVM may run it directly.
//
// Not thread-safe, and one per process at a time while it compiles: some of
// LLVM's options are globals that a job sets and puts back.
#ifndef REPRISE_REPLAY_COMPILER_COMPILER_H_
#define REPRISE_REPLAY_COMPILER_COMPILER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "replay/compiler/toolchain.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

class Compiler {
 public:
  struct Options {
    Toolchain tools;
    // Hears what the compiler is about to do ("pass gvn on Kernel"), so that a
    // crash can be named; called often, must be quick and must not throw.
    std::function<void(std::string_view)> note;
    bool use_pch = true;
    // For files that NVIDIA's compilers read; empty: a new temporary one.
    std::string scratch_directory;
    // Inputs kept with their front ends and precompiled headers; the least
    // recently used one goes.
    size_t max_inputs = 16;
    // Pipelines may hold passes that fail on purpose (test_faults.h).
    bool test_faults = false;
  };
  static std::unique_ptr<Compiler> Create(Options options);
  virtual ~Compiler() = default;

  virtual bool Knows(const std::string& key) const = 0;
  // Replaces an input of the same key.
  virtual void Remember(v1::CompileInput input) = 0;
  // Gives back the memory of all inputs but this one.
  virtual void ForgetAllBut(const std::string& key) = 0;

  // Never fails by itself: kind COMPILE_ERROR is the variant's fault (source,
  // pipeline, options, a construct the target cannot run), REJECTED too (edited
  // sources that read or do what the recorded ones do not, docs/guards.md),
  // INFRASTRUCTURE is this machine's (a missing toolkit, damaged IR). An
  // unknown key gives need_input.
  virtual v1::CompileReply Compile(const std::string& key,
                                   const v1::Variant& variant,
                                   v1::CompileTarget target) = 0;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_COMPILER_H_
