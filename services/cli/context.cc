#include "services/cli/context.h"

#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/cpu_device.h"
#include "replay/device/cuda/cuda_device.h"
#include "replay/device/cuda/driver.h"

namespace reprise {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<const char*> worth_finishing{nullptr};
std::atomic<bool> stop_launches{false};

void OnInterrupt(int) {
  if (interrupted.exchange(true)) _exit(kExitInterrupted);
  const auto say = [](const char* text) {
    (void)!write(STDERR_FILENO, text, strlen(text));
  };
  const char* const what = worth_finishing.load();
  if (what == nullptr) stop_launches = true;
  say("\nreprise: interrupted");
  if (what != nullptr) {
    say("; ");
    say(what);
    say(" (once more to leave at once)");
  }
  say("\n");
}

}  // namespace

void CliContext::Fail(const absl::Status& status) {
  std::fprintf(stderr, "reprise: %s\n", std::string(status.message()).c_str());
  exit_code = absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed;
}

absl::StatusOr<std::unique_ptr<UnitStore>> CliContext::OpenStore(
    bool create) const {
  const std::string& directory = settings.Get("store");
  if (!create && !std::filesystem::exists(directory)) {
    return absl::NotFoundError(
        absl::StrCat("there is no store at ", directory,
                     "; record a unit first: reprise record -- ./application"));
  }
  return UnitStore::Open({.directory = directory, .create = create});
}

absl::StatusOr<UnitReader> CliContext::OpenUnit(const std::string& id) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<UnitStore> store,
                   OpenStore(/*create=*/false));
  return store->Open(id);
}

absl::StatusOr<std::string> CliContext::DeviceKind() const {
  const std::string& kind = settings.Get("device");
  if (kind == "auto") {
    const absl::StatusOr<int> gpus = CudaDeviceCount();
    return gpus.ok() && *gpus > 0 ? "cuda:0" : "cpu";
  }
  if (kind == "cpu") return kind;
  if (kind == "cuda") return "cuda:0";
  unsigned ordinal = 0;
  if (absl::StartsWith(kind, "cuda:") &&
      absl::SimpleAtoi(kind.substr(5), &ordinal))
    return kind;
  return absl::InvalidArgumentError(
      absl::StrCat("got device '", kind, "', expected cpu, cuda:N or auto"));
}

absl::StatusOr<std::unique_ptr<Device>> CliContext::MakeDevice() const {
  ASSIGN_OR_RETURN(const std::string kind, DeviceKind());
  return MakeDevice(kind);
}

absl::StatusOr<std::unique_ptr<Device>> CliContext::MakeDevice(
    const std::string& kind) const {
  if (kind != "cpu") {
    CudaDeviceOptions options;
    options.warm_l2 = l2 == "warm";
    if (!absl::SimpleAtoi(kind.substr(5), &options.ordinal))
      return absl::InternalError(absl::StrCat("got device ", kind));
    options.cuda_home = settings.Get("cuda_home");
    return CreateCudaDevice(options);
  }
  CpuDeviceOptions options;
  ASSIGN_OR_RETURN(const int64_t threads,
                   settings.GetInteger("threads", 0, 4096));
  options.threads = static_cast<int>(threads);
  options.stop = &stop_launches;
  return CreateCpuDevice(options);
}

absl::StatusOr<int> CliContext::CompileWorkers() const {
  ASSIGN_OR_RETURN(const int64_t workers,
                   settings.GetInteger("compile_workers", 0, 1024));
  const int processors =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return workers == 0 ? processors : static_cast<int>(workers);
}

absl::StatusOr<std::unique_ptr<CompilePool>> CliContext::MakePool(
    absl::Duration longest_compile) const {
  CompilePool::Options options;
  options.job_timeout = std::min(options.job_timeout, longest_compile);
  ASSIGN_OR_RETURN(options.workers, CompileWorkers());
  options.cuda_home = settings.Get("cuda_home");
  options.driver_cuda = cuda::DriverCudaVersion();
  return CompilePool::Create(options);
}

void AddCommonOptions(CLI::App* verb, CliContext* context, bool reports) {
  for (const Setting& setting : context->settings.all()) {
    std::string flag = absl::StrCat("--", setting.name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    verb->add_option_function<std::string>(
            flag,
            [context, name = setting.name, flag](const std::string& value) {
              context->settings.Set(name, value, absl::StrCat("flag ", flag))
                  .IgnoreError();
            },
            absl::StrCat(setting.description, " [", setting.value, "]"))
        ->group("Common options");
  }
  if (reports)
    verb->add_flag("--json", context->json,
                   "report as JSON on standard output");
}

void AddL2Option(CLI::App* verb, CliContext* context) {
  verb->add_option("--l2", context->l2,
                   "what every timed launch, the baseline's too, finds in a "
                   "GPU's L2 cache: cold, other bytes; or warm, what a "
                   "launch of the same kernel left there just before")
      ->check(CLI::IsMember({"cold", "warm"}))
      ->capture_default_str();
}

absl::StatusOr<absl::Duration> ParseDuration(const std::string& text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration > absl::ZeroDuration() &&
      duration < absl::InfiniteDuration()) {
    return duration;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("got duration '", text,
                   "', expected a positive one such as 20s, 5m or 1h30m"));
}

absl::StatusOr<uint64_t> ParseBytes(const std::string& text) {
  const size_t digits = text.find_first_not_of("0123456789.");
  double number = 0;
  const std::string unit =
      digits == std::string::npos ? "" : text.substr(digits);
  double factor = unit.empty() || unit == "B" ? 1 : 0;
  static constexpr struct {
    const char* name;
    double factor;
  } kUnits[] = {{"KiB", 1024.0},       {"MiB", 1048576.0},
                {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
                {"KB", 1e3},           {"MB", 1e6},
                {"GB", 1e9},           {"TB", 1e12}};
  for (const auto& known : kUnits) {
    if (unit == known.name) factor = known.factor;
  }
  if (factor > 0 && absl::SimpleAtod(text.substr(0, digits), &number) &&
      number > 0 && number * factor < 1e18) {
    return static_cast<uint64_t>(number * factor);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "got size '", text, "', expected one such as 512MiB, 10GB or 4096"));
}

absl::StatusOr<v1::Tolerance> ParseTolerance(const std::string& text) {
  v1::Tolerance tolerance;
  double value = 0;
  const auto good = [&value] { return std::isfinite(value) && value >= 0; };
  if (absl::SimpleAtod(text, &value) && good()) {
    tolerance.set_absolute(value);
    tolerance.set_relative(value);
    return tolerance;
  }
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  for (const std::string& part : parts) {
    const std::vector<std::string> pair = absl::StrSplit(part, '=');
    const bool number =
        pair.size() == 2 && absl::SimpleAtod(pair[1], &value) && good();
    if (number && pair[0] == "abs") {
      tolerance.set_absolute(value);
    } else if (number && pair[0] == "rel") {
      tolerance.set_relative(value);
    } else if (number && pair[0] == "outliers" && value <= 1) {
      tolerance.set_outlier_share(value);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("got tolerance '", text,
                       "', expected a number such as 1e-6, or "
                       "abs=1e-8,rel=1e-5,outliers=0.001"));
    }
  }
  return tolerance;
}

void PrintJson(const nlohmann::ordered_json& json) {
  std::printf("%s\n",
              json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                  .c_str());
}

const std::atomic<bool>* InterruptFlag() {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_handler = OnInterrupt;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    return true;
  }();
  (void)installed;
  return &interrupted;
}

void SetWorthFinishing(const char* what) { worth_finishing = what; }

}  // namespace reprise
