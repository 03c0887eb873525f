// Tuned code in place of a program's own (`reprise apply`).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "replay/base/file_util.h"
#include "replay/base/process.h"
#include "replay/compiler/compile_pool.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/recorder/recorded_app.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using testing::RecordedRun;
using testing::Shell;

class ApplyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create("apply");
    ASSERT_TRUE(directory.ok());
    directory_ = std::make_unique<TemporaryDirectory>(*std::move(directory));
    setenv("REPRISE_HOME", Path("home").c_str(), 1);
    const std::string source = testing::SourceDirectory() +
                               "/tests/replay/recorder/programs/behaviours.cu";
    const auto built =
        Shell(directory_->path(),
              *SelfExecutable() + " cc " + testing::ClangCuda() + " -O2 -c " +
                  source + " -o app.o && clang++-22 app.o -L" +
                  testing::CudaHome() + "/lib64 -Wl,-rpath," +
                  testing::CudaHome() + "/lib64 -lcudart -o app");
    ASSERT_EQ(built.exit_code(), 0) << built.err;
  }

  std::string Path(const std::string& name) const {
    return directory_->path() + "/" + name;
  }

  // The kernel of a recorded unit, compiled with its source edited.
  v1::CompileReply CompileEdited(const UnitReader& unit,
                                 const std::string& from,
                                 const std::string& to) {
    auto pool = CompilePool::Create({});
    EXPECT_TRUE(pool.ok()) << pool.status();
    auto input = std::make_shared<v1::CompileInput>();
    input->set_key("edited");
    input->set_architecture(unit.manifest().architecture());
    input->add_kernels(unit.manifest().kernel().symbol());
    const v1::TranslationUnit& kept = unit.manifest().translation_units(0);
    v1::CompileTranslationUnit* compile = input->add_translation_units();
    compile->set_main_file(kept.main_file());
    compile->set_directory(kept.directory());
    *compile->mutable_clang_args() = kept.clang_args();
    v1::Variant variant;
    for (const v1::SourceFile& file : kept.files()) {
      v1::CompileFile* copy = compile->add_files();
      copy->set_path(file.path());
      copy->set_content(*unit.chunks().GetString(file.content()));
      if (file.path() != kept.main_file()) continue;
      std::string edited = copy->content();
      edited.replace(edited.find(from), from.size(), to);
      v1::SourceOverlay* overlay = variant.add_sources();
      overlay->set_path(file.path());
      overlay->set_content(edited);
    }
    const auto reply = (*pool)->Compile(input, variant, v1::COMPILE_TARGET_CPU);
    EXPECT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->kind(), v1::OUTCOME_KIND_OK) << reply->diagnostics();
    return *reply;
  }

  std::unique_ptr<TemporaryDirectory> directory_;
};

TEST_F(ApplyTest, GuardedLaunchesRunTheTunedCode) {
  RecordOptions record = testing::TestOptions();
  record.store_directory = Path("units");
  const RecordedRun recorded =
      testing::RunUnder(record, directory_->path(), "./app instances");
  ASSERT_EQ(recorded.result.units.size(), 1u) << recorded.result.problem;
  EXPECT_EQ(recorded.out, "27\n");
  auto store = UnitStore::Open({.directory = record.store_directory});
  ASSERT_TRUE(store.ok());
  const auto unit = (*store)->Open(recorded.result.units[0]);
  ASSERT_TRUE(unit.ok());

  // Code that gives another result shows that it is what ran; it is launched
  // with half the threads, so it has to do two elements each.
  Substitution tuned;
  tuned.kernel = unit->manifest().kernel().symbol();
  tuned.guard = unit->manifest().launch();
  tuned.code = CompileEdited(*unit, "if (i < count) x[i] *= by;",
                             "for (int j = i; j < count; j += gridDim.x * "
                             "blockDim.x) x[j] *= by + 1;");
  tuned.launch = tuned.guard;
  tuned.launch.mutable_grid()->set_x(2);
  RecordOptions apply = testing::TestOptions();
  apply.substitutions = {tuned};
  const RecordedRun run =
      testing::RunUnder(apply, directory_->path(), "./app instances");
  // Two launches by 3 + 1; the last one has another shape: by 3.
  EXPECT_EQ(run.out, "48\n");
  EXPECT_EQ(run.result.ExitCode(), 0) << run.result.problem;
  ASSERT_EQ(run.result.substitutions.size(), 1u);
  EXPECT_EQ(run.result.substitutions[0].applied, 5u);
  EXPECT_EQ(run.result.substitutions[0].declined, 1u);
  EXPECT_TRUE(run.result.units.empty());
}

}  // namespace
}  // namespace reprise
