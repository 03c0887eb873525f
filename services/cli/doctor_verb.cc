// reprise doctor: what of this machine Reprise can use, and what is missing.
#include <cstdio>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/device/cuda/driver.h"
#include "services/cli/context.h"
#include "services/common/certificates.h"
#include "services/replay_server/server.h"

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

// The toolkit's CUDA version, 13000, by its cuda.h; 0: it does not say.
int ToolkitVersion(const std::string& cuda_home) {
  constexpr std::string_view kDefine = "#define CUDA_VERSION ";
  const std::string header =
      ReadFile(cuda_home + "/include/cuda.h").value_or("");
  const size_t at = header.find(kDefine);
  int version = 0;
  if (at == std::string::npos) return 0;
  const size_t begin = at + kDefine.size();
  const std::string digits = header.substr(
      begin, header.find_first_not_of("0123456789", begin) - begin);
  return absl::SimpleAtoi(digits, &version) ? version : 0;
}

Finding CheckToolkit(const std::string& cuda_home) {
  Finding finding;
  finding.name = "CUDA toolkit";
  finding.good = std::filesystem::exists(cuda_home + "/include/cuda_runtime.h");
  finding.detail =
      finding.good
          ? absl::StrCat(cuda_home, ", CUDA ",
                         cuda::CudaVersionText(ToolkitVersion(cuda_home)))
          : absl::StrCat("none at ", cuda_home,
                         "; set --cuda-home or CUDA_HOME");
  return finding;
}

// Whether the driver takes machine code that is made here, of which `cubin` is
// an example; empty: none could be made.
Finding CheckDriver(const std::string& cubin, bool required) {
  Finding finding;
  finding.name = "CUDA driver";
  finding.required = false;
  const auto driver = cuda::Driver::Load();
  if (!driver.ok()) {
    finding.detail = absl::IsNotFound(driver.status())
                         ? "none: kernels run on the cpu device"
                         : std::string(driver.status().message());
    return finding;
  }
  const int version = cuda::DriverCudaVersion();
  const std::string maker = cuda::CodeMaker(cubin);
  finding.detail =
      absl::StrCat("for CUDA ", cuda::CudaVersionText(version),
                   maker.empty() ? "" : "; machine code is made by " + maker);
  finding.good = version >= 13000 || !absl::StartsWith(maker, "CUDA 13");
  if (finding.good) return finding;
  finding.required = required;
  absl::StrAppend(&finding.detail,
                  ", which it does not take: install a driver for CUDA 13 (580 "
                  "or newer), or let --cuda-home name a toolkit of CUDA 12, or "
                  "put CUDA 12's libnvJitLink.so.12 into the bundle's lib/");
  return finding;
}

Finding CheckCompile(CompilePool* pool, const std::string& name,
                     v1::CompileTarget target, std::string* code) {
  Finding finding;
  finding.name = name;
  absl::StatusOr<TemporaryDirectory> scratch =
      TemporaryDirectory::Create("reprise-doctor");
  if (!scratch.ok()) {
    finding.detail = std::string(scratch.status().message());
    return finding;
  }
  auto input = std::make_shared<v1::CompileInput>();
  input->set_key(scratch->path());
  input->set_architecture("sm_90");
  v1::CompileTranslationUnit* tu = input->add_translation_units();
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
  if (finding.good) *code = reply->code();
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

struct DoctorOptions {
  std::string certificates;
  std::string listen;
};

Finding CheckCertificates(const std::string& directory) {
  constexpr absl::Duration kSoon = absl::Hours(24 * 14);
  Finding finding;
  finding.name = "certificates";
  const absl::StatusOr<TlsFiles> files = ReadTlsFiles(directory, "server");
  finding.good = files.ok();
  if (!files.ok()) {
    finding.detail = std::string(files.status().message());
    return finding;
  }
  finding.detail = absl::StrCat(
      directory, ", server's until ",
      absl::FormatTime("%Y-%m-%d", files->expires, absl::UTCTimeZone()));
  if (files->expires - absl::Now() < kSoon)
    absl::StrAppend(&finding.detail, ": soon; reprise certs ", directory);
  return finding;
}

// Whether `reprise serve` could listen there now.
Finding CheckListen(const DoctorOptions& options) {
  Finding finding;
  finding.name = "address";
  ReplayServer::Options server;
  server.listen = options.listen;
  server.certificates = options.certificates;
  const absl::Status status = CheckAddress(server);
  finding.good = status.ok();
  finding.detail = status.ok() ? absl::StrCat(options.listen, " is free")
                               : std::string(status.message());
  return finding;
}

std::vector<Finding> Examine(const DoctorOptions& options,
                             CliContext* context) {
  std::vector<Finding> findings;
  findings.push_back(CheckToolkit(context->settings.Get("cuda_home")));
  findings.push_back(CheckStore(*context));
  if (!options.certificates.empty())
    findings.push_back(CheckCertificates(options.certificates));
  if (!options.listen.empty()) findings.push_back(CheckListen(options));
  absl::StatusOr<std::unique_ptr<Device>> device = context->MakeDevice();
  findings.push_back({"device", device.ok(), true,
                      device.ok() ? absl::StrCat((*device)->facts().kind, ", ",
                                                 (*device)->facts().name)
                                  : std::string(device.status().message())});
  absl::StatusOr<std::unique_ptr<CompilePool>> pool = context->MakePool();
  std::string code;
  if (pool.ok()) {
    findings.push_back(CheckCompile(pool->get(), "compile for cpu",
                                    v1::COMPILE_TARGET_CPU, &code));
    code.clear();
    findings.push_back(CheckCompile(pool->get(), "compile to cubin",
                                    v1::COMPILE_TARGET_CUBIN, &code));
  } else {
    findings.push_back(
        {"compile workers", false, true, std::string(pool.status().message())});
  }
  findings.push_back(
      CheckDriver(code, device.ok() && (*device)->facts().kind != "cpu"));
  return findings;
}

void RunDoctor(const DoctorOptions& options, CliContext* context) {
  const std::vector<Finding> findings = Examine(options, context);
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
  auto options = std::make_shared<DoctorOptions>();
  verb->add_option("--certs", options->certificates,
                   "also the server's certificates of this directory");
  verb->add_option("--listen", options->listen,
                   "also whether `reprise serve` could listen here");
  AddCommonOptions(verb, context, /*reports=*/true);
  verb->callback([options, context] { RunDoctor(*options, context); });
}

}  // namespace reprise
