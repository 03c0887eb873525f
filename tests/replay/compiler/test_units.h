// Compile inputs for tests: sources written to a temporary directory, and the
// applications under tests/apps.
#ifndef REPRISE_TESTS_REPLAY_COMPILER_TEST_UNITS_H_
#define REPRISE_TESTS_REPLAY_COMPILER_TEST_UNITS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "replay/base/file_util.h"
#include "replay/compiler/compiler.h"
#include "reprise/v1/node.pb.h"

namespace reprise::testing {

// Files of one test, below a directory that goes away with it.
class SourceTree {
 public:
  explicit SourceTree(const std::map<std::string, std::string>& files);
  std::string Path(const std::string& name) const;
  void Write(const std::string& name, const std::string& content);

 private:
  TemporaryDirectory directory_;
};

// $CUDA_HOME or /usr/local/cuda.
std::string CudaHome();
// tests/apps of this source tree; from $REPRISE_SOURCE_DIR.
std::string AppsDirectory();

// An input of one translation unit that is read from disk.
v1::CompileInput InputFor(const std::string& main_file,
                          const std::vector<std::string>& kernels = {});

// A variant that replaces a file.
v1::Variant Edit(const std::string& path, const std::string& content);

// `text` with the first `from` replaced; fails the test where there is none.
std::string Replace(std::string text, const std::string& from,
                    const std::string& to);

// A compiler in this process.
std::unique_ptr<Compiler> NewCompiler(bool use_pch = true);

// A small kernel with one of each thing that a reply describes.
extern const char kSaxpySource[];

// "OK", or the kind and the diagnostics, for messages of tests.
std::string Describe(const v1::CompileReply& reply);

}  // namespace reprise::testing

#endif  // REPRISE_TESTS_REPLAY_COMPILER_TEST_UNITS_H_
