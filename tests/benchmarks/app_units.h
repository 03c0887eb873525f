// Every kernel of tests/apps as a compile input with its IR, for programs that
// compile many of them.
#ifndef REPRISE_TESTS_BENCHMARKS_APP_UNITS_H_
#define REPRISE_TESTS_BENCHMARKS_APP_UNITS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/compiler/compile_pool.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

struct AppKernel {
  std::string app;
  std::string main_file;
  std::shared_ptr<const v1::CompileInput> input;  // one kernel, with IR
  std::string clang_refused;  // why there is no IR; empty: there is
};

struct AppUnitOptions {
  std::string apps_directory;
  std::string table = "apps.tsv";
  std::vector<std::string> only;  // names; empty: all
  // Sources that Clang refuses are taken all the same, their kernels found by
  // NVIDIA's compiler.
  bool without_ir = false;
};

// Compiles the sources of the applications that the table lists with `pool`,
// one input per kernel. An application of several translation units with -rdc
// is linked.
absl::StatusOr<std::vector<AppKernel>> LoadAppKernels(
    CompilePool& pool, const AppUnitOptions& options);
absl::StatusOr<std::vector<AppKernel>> LoadAppKernels(
    CompilePool& pool, const std::string& apps_directory,
    const std::vector<std::string>& only);

// tests/apps of the source tree: $REPRISE_SOURCE_DIR/tests/apps, else
// ./tests/apps.
std::string DefaultAppsDirectory();

}  // namespace reprise

#endif  // REPRISE_TESTS_BENCHMARKS_APP_UNITS_H_
