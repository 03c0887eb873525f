#include "replay/compiler/compiler.h"

#include <list>
#include <optional>
#include <utility>

#include "replay/base/file_util.h"
#include "replay/compiler/clang_driver.h"
#include "replay/compiler/compile_job.h"

namespace reprise {
namespace {

// Template errors may fill many pages.
constexpr size_t kMaxDiagnosticsBytes = 32 << 10;

v1::OutcomeKind KindOf(const absl::Status& status) {
  if (status.ok()) return v1::OUTCOME_KIND_OK;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
      return v1::OUTCOME_KIND_COMPILE_ERROR;
    default:
      return v1::OUTCOME_KIND_INFRASTRUCTURE;
  }
}

class CompilerImpl : public Compiler {
 public:
  explicit CompilerImpl(Options options) : options_(std::move(options)) {}

  bool Knows(const std::string& key) const override {
    for (const auto& known : known_) {
      if (known->input.key() == key) return true;
    }
    return false;
  }

  void Remember(v1::CompileInput input) override {
    known_.remove_if(
        [&](const auto& known) { return known->input.key() == input.key(); });
    known_.push_front(std::make_unique<KnownInput>(std::move(input)));
    if (known_.size() > options_.max_inputs) known_.pop_back();
  }

  void ForgetAllBut(const std::string& key) override {
    known_.remove_if(
        [&](const auto& known) { return known->input.key() != key; });
  }

  v1::CompileReply Compile(const std::string& key, const v1::Variant& variant,
                           v1::CompileTarget target) override {
    v1::CompileReply reply;
    KnownInput* known = Find(key);
    if (known == nullptr) {
      reply.set_need_input(true);
      return reply;
    }
    InitializeLlvm();
    absl::Status status = WantScratchDirectory(variant);
    if (status.ok())
      status =
          CompileJob(*known, variant, target, options_, shared_, reply).Run();
    if (reply.kind() != v1::OUTCOME_KIND_REJECTED)
      reply.set_kind(KindOf(status));
    if (!status.ok()) {
      reply.clear_code();
      reply.set_diagnostics(
          std::string(status.message().substr(0, kMaxDiagnosticsBytes)));
    }
    return reply;
  }

 private:
  KnownInput* Find(const std::string& key) {
    for (auto it = known_.begin(); it != known_.end(); ++it) {
      if ((*it)->input.key() != key) continue;
      known_.splice(known_.begin(), known_, it);
      return known_.front().get();
    }
    return nullptr;
  }

  absl::Status WantScratchDirectory(const v1::Variant& variant) {
    if (variant.frontend() != "nvrtc" || !shared_.scratch_directory.empty())
      return absl::OkStatus();
    shared_.scratch_directory = options_.scratch_directory;
    if (!shared_.scratch_directory.empty()) return absl::OkStatus();
    absl::StatusOr<TemporaryDirectory> made =
        TemporaryDirectory::Create("reprise-nvidia");
    if (!made.ok()) return absl::UnavailableError(made.status().message());
    temporary_ = *std::move(made);
    shared_.scratch_directory = temporary_->path();
    return absl::OkStatus();
  }

  const Options options_;
  std::list<std::unique_ptr<KnownInput>> known_;  // most recently used first
  std::optional<TemporaryDirectory> temporary_;
  SharedTools shared_;
};

}  // namespace

std::unique_ptr<Compiler> Compiler::Create(Options options) {
  return std::make_unique<CompilerImpl>(std::move(options));
}

}  // namespace reprise
