#include "tests/replay/compiler/test_units.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

namespace reprise::testing {

const char kSaxpySource[] = R"cuda(// Scales and adds.
#include <cuda_runtime.h>

struct Scale {
  char tag;
  double factor;
};
__constant__ float offset;
static __device__ unsigned launches;
__device__ float unused_table[64];

__device__ float Twice(float x) { return x + x; }

extern "C" __global__ void __launch_bounds__(256)
    Saxpy(const float* x, __attribute__((annotate("tolerance:1e-6"))) float* y,
          Scale scale, int count) {
  __shared__ float tile[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x % 32] = offset;
  __syncthreads();
  if (i < count) y[i] += Twice(x[i]) * float(scale.factor) + tile[i % 32];
  if (i == 0) atomicAdd(&launches, 1u);
}

extern "C" __global__ void Other(int* out) { *out = 1; }

int main() {
  Saxpy<<<1, 32>>>(nullptr, nullptr, Scale{}, 0);
  Other<<<1, 1>>>(nullptr);
}
)cuda";

SourceTree::SourceTree(const std::map<std::string, std::string>& files)
    : directory_(
          std::move(TemporaryDirectory::Create("compiler-test")).value()) {
  for (const auto& [name, content] : files) Write(name, content);
}

std::string SourceTree::Path(const std::string& name) const {
  return directory_.path() + "/" + name;
}

void SourceTree::Write(const std::string& name, const std::string& content) {
  const std::string path = Path(name);
  ASSERT_TRUE(MakeDirectories(path.substr(0, path.rfind('/'))).ok());
  ASSERT_TRUE(WriteFileAtomically(path, content).ok());
}

std::string CudaHome() {
  const char* variable = std::getenv("CUDA_HOME");
  return variable != nullptr && *variable != '\0' ? variable
                                                  : "/usr/local/cuda";
}

std::string AppsDirectory() {
  const char* source = std::getenv("REPRISE_SOURCE_DIR");
  return std::string(source == nullptr ? "." : source) + "/tests/apps";
}

v1::CompileInput InputFor(const std::string& main_file,
                          const std::vector<std::string>& kernels) {
  v1::CompileInput input;
  input.set_key(main_file);
  input.set_architecture("sm_90");
  for (const std::string& kernel : kernels) input.add_kernels(kernel);
  v1::CompileTranslationUnit* unit = input.add_translation_units();
  unit->set_main_file(main_file);
  unit->set_directory(main_file.substr(0, main_file.rfind('/')));
  unit->add_clang_args("--cuda-path=" + CudaHome());
  unit->add_clang_args("-idirafter");
  unit->add_clang_args(CudaHome() + "/include/cccl");
  return input;
}

v1::Variant Edit(const std::string& path, const std::string& content) {
  v1::Variant variant;
  v1::SourceOverlay* overlay = variant.add_sources();
  overlay->set_path(path);
  overlay->set_content(content);
  return variant;
}

std::string Replace(std::string text, const std::string& from,
                    const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "no \"" << from << "\" to replace";
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

std::unique_ptr<Compiler> NewCompiler(bool use_pch) {
  Compiler::Options options;
  options.tools = FindToolchain(CudaHome());
  options.use_pch = use_pch;
  options.test_faults = true;
  return Compiler::Create(std::move(options));
}

std::string Describe(const v1::CompileReply& reply) {
  if (reply.kind() == v1::OUTCOME_KIND_OK) return "OK";
  return v1::OutcomeKind_Name(reply.kind()) + ": " + reply.diagnostics();
}

}  // namespace reprise::testing
