#include "tests/guards/victims.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/check.h"
#include "replay/base/log.h"
#include "replay/base/process.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/cpu_device.h"
#include "tests/replay/recorder/recorded_app.h"

namespace reprise::testing {
namespace {

std::string ReplaceOnce(std::string text, const std::string& from,
                        const std::string& to) {
  const size_t at = text.find(from);
  CHECK(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

EvaluatorOptions QuickOptions() {
  EvaluatorOptions options;
  options.stopping.maximum_pairs = 8;
  options.time_per_variant = absl::Seconds(1);
  return options;
}

absl::StatusOr<std::unique_ptr<Victims>> Victims::Record() {
  auto victims = std::unique_ptr<Victims>(new Victims());
  ASSIGN_OR_RETURN(TemporaryDirectory directory,
                   TemporaryDirectory::Create("guards"));
  victims->directory_ =
      std::make_unique<TemporaryDirectory>(std::move(directory));
  RETURN_IF_ERROR(victims->Build());
  RETURN_IF_ERROR(victims->RecordUnits());
  ASSIGN_OR_RETURN(victims->device_, CreateCpuDevice({}));
  ASSIGN_OR_RETURN(victims->pool_, CompilePool::Create({}));
  return victims;
}

absl::Status Victims::Build() {
  const std::string directory = directory_->path();
  setenv("REPRISE_HOME", (directory + "/home").c_str(), 1);
  ASSIGN_OR_RETURN(const std::string self, SelfExecutable());
  const ShellResult built = Shell(
      directory,
      absl::StrCat(self, " cc ", ClangCuda(), " -O2 -c ", SourceDirectory(),
                   "/tests/guards/programs/victims.cu -o victims.o && "
                   "clang++-22 victims.o -L",
                   CudaHome(), "/lib64 -Wl,-rpath,", CudaHome(),
                   "/lib64 -lcudart -o victims"));
  if (built.exit_code() == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the victims do not build: ", built.err));
}

absl::Status Victims::RecordUnits() {
  RecordOptions options = TestOptions();
  options.store_directory = directory_->path() + "/units";
  options.skip = 1;
  const RecordedRun run = RunUnder(options, directory_->path(), "./victims");
  RETURN_IF_ERROR(run.status);
  ASSIGN_OR_RETURN(store_,
                   UnitStore::Open({.directory = options.store_directory}));
  for (const std::string& id : run.result.units) {
    ASSIGN_OR_RETURN(UnitReader unit, store_->Open(id));
    const std::string kernel = id.substr(0, id.rfind('-'));
    const v1::TranslationUnit& source = unit.manifest().translation_units(0);
    path_ = source.main_file();
    ASSIGN_OR_RETURN(source_,
                     unit.chunks().GetString(source.files(0).content()));
    units_.emplace(kernel, std::move(unit));
  }
  if (units_.size() == 5) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("got ", units_.size(), " units, expected 5: ", run.err));
}

const UnitReader& Victims::Unit(const std::string& kernel) const {
  const auto found = units_.find(kernel);
  CHECK(found != units_.end());
  return found->second;
}

std::unique_ptr<Evaluator> Victims::NewEvaluator(const std::string& kernel,
                                                 EvaluatorOptions options) {
  auto evaluator =
      Evaluator::Create(Unit(kernel), *device_, *pool_, std::move(options));
  CHECK(evaluator.ok());
  return *std::move(evaluator);
}

Evaluator& Victims::EvaluatorOf(const std::string& kernel) {
  std::unique_ptr<Evaluator>& evaluator = evaluators_[kernel];
  if (evaluator == nullptr) evaluator = NewEvaluator(kernel, QuickOptions());
  return *evaluator;
}

v1::Variant Victims::Replaced(const std::string& from,
                              const std::string& to) const {
  v1::Variant variant;
  v1::SourceOverlay* file = variant.add_sources();
  file->set_path(path_);
  file->set_content(ReplaceOnce(source_, from, to));
  return variant;
}

v1::Variant Victims::Replaced(const std::string& from, const std::string& to,
                              const std::string& from2,
                              const std::string& to2) const {
  v1::Variant variant = Replaced(from, to);
  v1::SourceOverlay& file = *variant.mutable_sources(0);
  file.set_content(ReplaceOnce(file.content(), from2, to2));
  return variant;
}

Victims& SharedVictims() {
  static Victims* const victims = [] {
    absl::StatusOr<std::unique_ptr<Victims>> recorded = Victims::Record();
    if (!recorded.ok()) LOG_ERROR("{}", recorded.status().ToString());
    CHECK(recorded.ok());
    return recorded->release();
  }();
  return *victims;
}

v1::Outcome Evaluate(const std::string& kernel, const v1::Variant& variant) {
  return SharedVictims().EvaluatorOf(kernel).Evaluate(variant);
}

}  // namespace reprise::testing
