// Device code of an application, from the image it registers to code that an
// executor runs: found in the build registry or a compilation database,
// compiled for the host where that is asked for.
//
//   ProgramCatalog   makes Programs, one per image; shared by all processes of
//                    an application
//   Program          the units an image was compiled from, and what they became
//
// Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_PROGRAM_H_
#define REPRISE_REPLAY_RECORDER_SESSION_PROGRAM_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/compiler/compile_pool.h"
#include "replay/recorder/cc/build_registry.h"
#include "replay/recorder/session/unit_source.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// A kernel of a program and the host code it is in.
struct ProgramKernel {
  const v1::CompiledKernelInfo* info = nullptr;
  size_t object = 0;  // index into Program::objects()
};

class Program {
 public:
  // 64 hexadecimal digits of the image's SHA-256.
  const std::string& image_digest() const { return image_digest_; }
  const std::string& image() const { return image_; }
  const std::string& architecture() const { return input_.architecture(); }
  const std::vector<std::shared_ptr<const SourceUnit>>& units() const {
    return units_;
  }

  // As the IR describes it. NOT_FOUND: no unit defines it.
  absl::StatusOr<const v1::CompiledKernelInfo*> FindSourceKernel(
      const std::string& name) const;
  // Every device variable of the units.
  std::vector<std::string> SourceVariables() const;
  // The one of them that another compiler calls `name`; empty: none, or
  // several.
  std::string FindSourceVariable(const std::string& name) const;
  // The kernel alone. An instrumented cubin keeps every variable: addresses in
  // memory may lead to any.
  absl::StatusOr<v1::CompileReply> CompileKernel(
      const std::string& symbol, v1::CompileTarget target,
      const v1::Variant& variant) const {
    return CompileKernels({symbol}, target, variant);
  }

  // --- Host code; nothing where the catalog makes none.

  // NOT_FOUND: no unit defines it. FAILED_PRECONDITION: the cpu device cannot
  // run it; the message names the kernel and the instruction.
  absl::StatusOr<ProgramKernel> FindKernel(const std::string& name) const;
  // NOT_FOUND: no unit defines it.
  absl::StatusOr<const v1::ModuleGlobal*> FindVariable(
      const std::string& name) const;

  // Host code, to be loaded in this order; together it holds every kernel that
  // the cpu device can run.
  const std::vector<v1::CompileReply>& objects() const { return objects_; }
  const std::vector<v1::ModuleGlobal>& globals() const { return globals_; }

  // The kernel alone, its memory accesses noted; compiled on the first call.
  absl::StatusOr<const v1::CompileReply*> Instrumented(
      const std::string& symbol) const;
  // Index in units() of the one that defines the kernel or variable.
  size_t UnitOf(const std::string& symbol) const;

 private:
  friend class ProgramCatalog;

  Program() = default;
  absl::Status ReadIr(std::vector<std::shared_ptr<const SourceUnit>> units);
  absl::Status CompileForHost();
  absl::Status CompileEach(const std::vector<std::string>& kernels,
                           const std::string& why);
  // Those of the symbols that are of the unit whose tag is in `name`; all where
  // none is.
  std::vector<std::string> OfNamedUnit(std::vector<std::string> symbols,
                                       const std::string& name) const;
  absl::StatusOr<v1::CompileReply> CompileKernels(
      const std::vector<std::string>& kernels, v1::CompileTarget target,
      const v1::Variant& variant = v1::Variant()) const;

  std::string image_digest_;
  std::string image_;
  CompilePool* pool_ = nullptr;
  std::vector<std::shared_ptr<const SourceUnit>> units_;
  v1::CompileInput input_;  // IR only
  std::vector<v1::CompileReply> objects_;
  std::vector<v1::ModuleGlobal> globals_;
  std::map<std::string, size_t> object_of_;     // by kernel
  std::map<std::string, std::string> refused_;  // kernel -> why
  std::map<std::string, size_t> unit_of_;       // by kernel or variable
  std::map<std::string, const v1::CompiledKernelInfo*> source_kernels_;

  mutable std::mutex mutex_;
  mutable std::map<std::string, v1::CompileReply> instrumented_;
};

class ProgramCatalog {
 public:
  struct Options {
    std::string registry_directory;
    std::string compile_commands;  // may be empty
    std::string cuda_home;
    bool host_code = true;  // programs can run on the cpu device
  };
  // `pool` outlives the catalog and its programs. A registry that does not
  // exist is none; INVALID_ARGUMENT: compile_commands cannot be read.
  static absl::StatusOr<std::unique_ptr<ProgramCatalog>> Create(
      Options options, CompilePool* pool);

  // The program of a registered fatbin that defines `name`, a kernel or a
  // device variable. `parts` are the fatbins that nvcc's device linker made it
  // from. NOT_FOUND says how to build the application so that its source is
  // known; FAILED_PRECONDITION holds the compiler's errors.
  absl::StatusOr<std::shared_ptr<const Program>> Find(
      const std::string& image, const std::vector<std::string>& parts,
      const std::string& name);

  // The units that an image was compiled from, whether Clang can compile them
  // or not; the one whose main file names the kernel first. Empty: not known,
  // or several that are not linked may be it.
  std::vector<std::shared_ptr<const SourceUnit>> FindSources(
      const std::string& image, const std::string& kernel);

 private:
  // What is known of an image: units that are all of it, or units of which one
  // is it.
  struct Source {
    std::vector<std::shared_ptr<const SourceUnit>> units;
    bool linked = false;
  };

  ProgramCatalog(Options options, CompilePool* pool)
      : options_(std::move(options)), pool_(pool) {}
  absl::StatusOr<Source> FindSource(const std::string& digest,
                                    const std::vector<std::string>& parts);
  absl::StatusOr<std::shared_ptr<const SourceUnit>> UnitFromRegistry(
      const BuiltUnit& built);
  absl::StatusOr<std::shared_ptr<const Program>> Compile(
      const std::string& image, const std::string& digest,
      std::vector<std::shared_ptr<const SourceUnit>> units);

  const Options options_;
  CompilePool* const pool_;
  std::unique_ptr<BuildRegistry> registry_;  // may be null
  std::vector<std::shared_ptr<const SourceUnit>> database_;

  std::mutex mutex_;  // held while compiling: processes of one application
                      // mostly wait for the same code
  std::map<std::string, Source> sources_;  // by image digest
  std::map<std::string, std::shared_ptr<const SourceUnit>> units_;  // by id
  std::map<std::string, absl::StatusOr<std::shared_ptr<const Program>>>
      programs_;  // by image digest and unit ids
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_PROGRAM_H_
