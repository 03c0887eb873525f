#include "bayesopt/trial_space.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::bayesopt {
namespace {

using std::string_literals::operator""s;

// A number, or "default" standing where the compiler's own number lies.
Level At(int64_t number) {
  return {number,
          std::log2(std::max<double>(static_cast<double>(number), 0.5))};
}
Level DefaultAt(double number) { return {"default"s, std::log2(number)}; }

Parameter Switch(const std::string& name) {
  return Parameter::Categorical("codegen." + name, {"default"s, "on"s, "off"s},
                                "default"s);
}

class Builder {
 public:
  explicit Builder(const TrialSpaceOptions& options)
      : options_(options), cuda_(options.device_kind == "cuda") {}

  absl::StatusOr<std::shared_ptr<const Space>> Build() {
    Pipeline();
    FloatingPoint();
    if (cuda_) {
      Cuda();
    } else {
      VectorBits();
    }
    if (options_.block_may_change) Block();
    SharedBytes();
    if (!options_.has_clang) {
      std::erase_if(parameters_, [&](const Parameter& parameter) {
        return clang_only_.count(parameter.name) > 0;
      });
    }
    return Space::Create(std::move(parameters_), std::move(constraints_));
  }

 private:
  // NVRTC has a pipeline of its own.
  Parameter ClangOnly(Parameter parameter) {
    clang_only_.insert(parameter.name);
    if (!options_.has_nvrtc || !options_.has_clang) return parameter;
    return std::move(parameter).When("frontend", {"clang"s});
  }

  void Pipeline() {
    if (options_.has_nvrtc && options_.has_clang) {
      parameters_.push_back(
          Parameter::Categorical("frontend", {"clang"s, "nvrtc"s}, "clang"s));
    }
    PipelineSpace::Options pipelines;
    pipelines.target = cuda_ ? PipelineTarget::kNvptx : PipelineTarget::kHost;
    pipelines.max_edits = options_.max_pipeline_edits;
    parameters_.push_back(ClangOnly(Parameter::Pipeline(
        "pipeline", std::make_shared<PipelineSpace>(pipelines))));
    // LLVM's own at -O3: 300 and 250.
    parameters_.push_back(ClangOnly(Parameter::OrdinalLevels(
        "codegen.unroll_threshold",
        {At(0), At(75), At(150), DefaultAt(300), At(600), At(1200), At(2400)},
        "default"s)));
    parameters_.push_back(ClangOnly(Parameter::OrdinalLevels(
        "codegen.inline_threshold",
        {At(25), At(75), DefaultAt(250), At(1000), At(5000)}, "default"s)));
  }

  void FloatingPoint() {
    if (options_.allow_fp_contract) {
      parameters_.push_back(Switch("fp_contract"));
    }
    if (!options_.allow_inexact) return;
    parameters_.push_back(Switch("approximate_division"));
    parameters_.push_back(ClangOnly(Switch("reassociate")));
    parameters_.push_back(ClangOnly(Switch("no_signed_zeros")));
    parameters_.push_back(ClangOnly(Switch("finite_math_only")));
    if (!cuda_) return;
    parameters_.push_back(Switch("approximate_sqrt"));
    parameters_.push_back(Switch("flush_denormals"));
  }

  void VectorBits() {
    std::vector<Value> widths = {"default"s};
    for (int64_t bits = 128; bits <= options_.max_vector_bits; bits *= 2) {
      widths.emplace_back(bits);
    }
    parameters_.push_back(Parameter::Categorical("codegen.prefer_vector_bits",
                                                 widths, "default"s));
  }

  void Cuda() {
    parameters_.push_back(
        Parameter::OrdinalLevels("codegen.max_registers",
                                 {At(32), At(40), At(48), At(64), At(80),
                                  At(96), At(128), At(168), DefaultAt(255)},
                                 "default"s));
    std::vector<Value> bounds;
    std::vector<Value> choices = {"default"s};
    for (const uint32_t bound : {RecordedThreads(), 1024u}) {
      const Value value = static_cast<int64_t>(bound);
      if (std::find(bounds.begin(), bounds.end(), value) == bounds.end()) {
        bounds.push_back(value);
        choices.push_back(value);
      }
    }
    parameters_.push_back(Parameter::Categorical(
        "codegen.max_threads_per_block", choices, "default"s));
    parameters_.push_back(
        Parameter::OrdinalLevels(
            "codegen.min_blocks_per_multiprocessor",
            {DefaultAt(0.5), At(1), At(2), At(3), At(4), At(6), At(8), At(16)},
            "default"s)
            .When("codegen.max_threads_per_block", bounds));
    parameters_.push_back(Parameter::Categorical(
        "ptxas.level", {"default"s, int64_t{1}, int64_t{2}}, "default"s));
  }

  uint32_t RecordedThreads() const {
    const v1::Dim3& block = options_.recorded.block();
    return block.x() * block.y() * block.z();
  }

  // Powers of two and the recorded size.
  void BlockDimension(const std::string& name, uint32_t recorded,
                      uint32_t maximum) {
    if (recorded <= 1) return;
    std::set<int64_t> sizes = {int64_t{recorded}};
    for (int64_t size = 1; size <= int64_t{maximum}; size *= 2) {
      sizes.insert(size);
    }
    block_.push_back(name);
    parameters_.push_back(Parameter::Ordinal(
        name, std::vector<int64_t>(sizes.begin(), sizes.end()), recorded,
        /*log_scale=*/true));
  }

  void Block() {
    const v1::Dim3& block = options_.recorded.block();
    const uint32_t most = options_.max_threads_per_block;
    BlockDimension("launch.block.x", block.x(), most);
    BlockDimension("launch.block.y", block.y(), most);
    BlockDimension("launch.block.z", block.z(), std::min(most, 64u));
    if (block_.empty()) return;
    const int64_t fewest = std::min<int64_t>(32, RecordedThreads());
    constraints_.push_back(
        {absl::StrCat("a block has ", fewest, " to ", most, " threads"), block_,
         [fewest, most](const std::vector<Value>& sizes) {
           const int64_t threads = Product(sizes, 0);
           return threads >= fewest && threads <= int64_t{most};
         }});
    if (!cuda_) return;
    std::vector<std::string> names = {"codegen.max_threads_per_block"};
    names.insert(names.end(), block_.begin(), block_.end());
    constraints_.push_back(
        {"a block fits its launch bounds", names,
         [](const std::vector<Value>& values) {
           const auto* bound = std::get_if<int64_t>(&values[0]);
           return bound == nullptr || Product(values, 1) <= *bound;
         }});
  }

  static int64_t Product(const std::vector<Value>& values, size_t from) {
    int64_t product = 1;
    for (size_t i = from; i < values.size(); ++i) {
      product *= std::get<int64_t>(values[i]);
    }
    return product;
  }

  void SharedBytes() {
    if (options_.dynamic_shared_bytes.empty()) return;
    const int64_t recorded = options_.recorded.dynamic_shared_bytes();
    std::set<int64_t> sizes = {recorded};
    for (const uint32_t bytes : options_.dynamic_shared_bytes) {
      sizes.insert(int64_t{bytes});
    }
    parameters_.push_back(Parameter::Ordinal(
        "launch.dynamic_shared_bytes",
        std::vector<int64_t>(sizes.begin(), sizes.end()), recorded,
        /*log_scale=*/true));
  }

  const TrialSpaceOptions& options_;
  const bool cuda_;
  std::vector<Parameter> parameters_;
  std::set<std::string> clang_only_;
  std::vector<Constraint> constraints_;
  std::vector<std::string> block_;
};

// Passes that a GPU kernel's address arithmetic gains from, after -O3.
constexpr char kAddressPasses[] =
    "default<O3>,function(separate-const-offset-from-gep,slsr,early-cse<memssa>"
    ",loop-mssa(licm<allowspeculation>))";
constexpr char kVectorizeAgain[] =
    "default<O3>,function(load-store-vectorizer,slp-vectorizer)";

std::vector<Assignment> SeedAssignments(const Space& space) {
  std::vector<Assignment> seeds = {
      {{"codegen.fp_contract", "on"s}},
      {{"codegen.prefer_vector_bits", int64_t{512}}},
      {{"codegen.prefer_vector_bits", int64_t{256}}},
      {{"codegen.reassociate", "on"s}, {"codegen.no_signed_zeros", "on"s}},
      {{"codegen.reassociate", "on"s},
       {"codegen.no_signed_zeros", "on"s},
       {"codegen.finite_math_only", "on"s},
       {"codegen.approximate_division", "on"s},
       {"codegen.approximate_sqrt", "on"s},
       {"codegen.flush_denormals", "on"s}},
      {{"codegen.unroll_threshold", int64_t{1200}}},
      {{"codegen.unroll_threshold", int64_t{0}}},
      {{"pipeline", "default<O2>"s}},
      {{"pipeline", std::string(kAddressPasses)}},
      {{"pipeline", std::string(kVectorizeAgain)}},
      {{"frontend", "nvrtc"s}},
      {{"codegen.max_registers", int64_t{64}}},
      {{"codegen.max_registers", int64_t{128}}},
  };
  const auto x = space.Find("launch.block.x");
  if (!x) return seeds;
  const Parameter& block = space.parameters()[*x];
  const int64_t recorded = std::get<int64_t>(block.initial);
  for (const int64_t size : {2 * recorded, recorded / 2, 4 * recorded}) {
    seeds.push_back({{"launch.block.x", size}});
  }
  return seeds;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Space>> BuildTrialSpace(
    const TrialSpaceOptions& options) {
  if (options.device_kind != "cpu" && options.device_kind != "cuda") {
    return absl::InvalidArgumentError(
        absl::StrCat("trial space: got device kind \"", options.device_kind,
                     "\", expected cpu or cuda"));
  }
  const v1::Dim3& block = options.recorded.block();
  if (block.x() == 0 || block.y() == 0 || block.z() == 0) {
    return absl::InvalidArgumentError(
        "trial space: got an empty recorded block, expected at least one "
        "thread in each dimension");
  }
  return Builder(options).Build();
}

std::vector<Configuration> SeedConfigurations(const Space& space) {
  std::vector<Configuration> seeds;
  std::set<ConfigurationHash> seen = {space.Hash(space.Default())};
  for (Assignment assignment : SeedAssignments(space)) {
    std::erase_if(assignment, [&](const auto& choice) {
      return !space.Find(choice.first).has_value();
    });
    auto configuration = space.FromAssignment(assignment);
    if (!configuration.ok()) continue;
    if (!seen.insert(space.Hash(*configuration)).second) continue;
    seeds.push_back(*std::move(configuration));
  }
  return seeds;
}

}  // namespace reprise::bayesopt
