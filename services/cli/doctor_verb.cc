// reprise doctor: what of this machine Reprise can use, and what is missing.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "services/cli/context.h"

namespace reprise {
namespace {

struct Finding {
  std::string name;
  bool good = false;
  bool required = true;
  std::string detail;
};

constexpr char kTinyKernel[] =
    "__global__ void reprise_doctor(float* a) { a[threadIdx.x] *= 2.0f; }\n";

Finding CheckCompile(CompilePool* pool, const std::string& name,
                     v1::CompileTarget target) {
  Finding finding;
  finding.name = name;
  auto input = std::make_shared<v1::CompileInput>();
  input->set_key("doctor");
  input->set_architecture("sm_90");
  v1::CompileTranslationUnit* tu = input->add_translation_units();
  absl::StatusOr<TemporaryDirectory> scratch =
      TemporaryDirectory::Create("reprise-doctor");
  if (!scratch.ok()) {
    finding.detail = std::string(scratch.status().message());
    return finding;
  }
  tu->set_main_file(absl::StrCat(scratch->path(), "/doctor.cu"));
  tu->set_directory(scratch->path());
  if (absl::Status status = WriteFileAtomically(tu->main_file(), kTinyKernel);
      !status.ok()) {
    finding.detail = std::string(status.message());
    return finding;
  }
  absl::StatusOr<v1::CompileReply> reply =
      pool->Compile(input, v1::Variant(), target);
  finding.good = reply.ok() && reply->kind() == v1::OUTCOME_KIND_OK;
  finding.detail = !reply.ok() ? std::string(reply.status().message())
                   : finding.good
                       ? absl::StrFormat(
                             "front end %.0f ms, pipeline %.0f ms, code %.0f "
                             "ms, link %.0f ms",
                             reply->frontend_ms(), reply->pipeline_ms(),
                             reply->codegen_ms(), reply->link_ms())
                       : reply->diagnostics();
  return finding;
}

Finding CheckStore(const CliContext& context) {
  Finding finding;
  finding.name = "unit store";
  absl::StatusOr<std::unique_ptr<UnitStore>> store =
      context.OpenStore(/*create=*/true);
  finding.good = store.ok();
  finding.detail = store.ok() ? context.settings.Get("store")
                              : std::string(store.status().message());
  if (store.ok()) {
    std::error_code ignored;
    const auto space =
        std::filesystem::space(context.settings.Get("store"), ignored);
    absl::StrAppendFormat(&finding.detail, ", %.0f GiB free",
                          static_cast<double>(space.available) / 1073741824.0);
  }
  return finding;
}

std::vector<Finding> Examine(CliContext* context) {
  std::vector<Finding> findings;
  const std::string& cuda = context->settings.Get("cuda_home");
  const bool headers =
      std::filesystem::exists(cuda + "/include/cuda_runtime.h");
  findings.push_back(
      {"CUDA toolkit", headers, true,
       headers
           ? cuda
           : absl::StrCat("none at ", cuda, "; set --cuda-home or CUDA_HOME")});
  findings.push_back(CheckStore(*context));
  absl::StatusOr<std::unique_ptr<Device>> device = context->MakeDevice();
  findings.push_back({"device", device.ok(), true,
                      device.ok() ? absl::StrCat((*device)->facts().kind, ", ",
                                                 (*device)->facts().name)
                                  : std::string(device.status().message())});
  absl::StatusOr<std::unique_ptr<CompilePool>> pool = context->MakePool();
  if (pool.ok()) {
    findings.push_back(
        CheckCompile(pool->get(), "compile for cpu", v1::COMPILE_TARGET_CPU));
    findings.push_back(CheckCompile(pool->get(), "compile to cubin",
                                    v1::COMPILE_TARGET_CUBIN));
  } else {
    findings.push_back(
        {"compile workers", false, true, std::string(pool.status().message())});
  }
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  findings.push_back({"CUDA driver", driver != nullptr, false,
                      driver != nullptr
                          ? "libcuda.so.1"
                          : "none: kernels run on the cpu device"});
  return findings;
}

void RunDoctor(CliContext* context) {
  const std::vector<Finding> findings = Examine(context);
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    if (!finding.good && finding.required) context->exit_code = kExitFailed;
    checks.push_back({{"name", finding.name},
                      {"ok", finding.good},
                      {"required", finding.required},
                      {"detail", finding.detail}});
    if (!context->json) {
      std::printf("%-7s  %-16s  %s\n",
                  finding.good       ? "ok"
                  : finding.required ? "MISSING"
                                     : "absent",
                  finding.name.c_str(), finding.detail.c_str());
    }
  }
  if (!context->json) return;
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  for (const Setting& setting : context->settings.all()) {
    settings[setting.name] = {{"value", setting.value},
                              {"source", setting.source}};
  }
  PrintJson({{"schema", "reprise.doctor/1"},
             {"ok", context->exit_code == kExitDone},
             {"checks", checks},
             {"settings", settings}});
}

}  // namespace

void AddDoctorVerb(CLI::App* app, CliContext* context) {
  CLI::App* verb = app->add_subcommand(
      "doctor", "check what of this machine can be used, and what is missing");
  AddCommonOptions(verb, context, /*reports=*/true);
  verb->callback([context] { RunDoctor(context); });
}

}  // namespace reprise
