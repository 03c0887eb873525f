// reprise record: run an application and keep launches of its kernels as units.
#include <algorithm>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/device/cuda/cuda_device.h"
#include "services/cli/context.h"
#include "services/cli/session_options.h"
#include "services/common/terminal.h"

namespace reprise {
namespace {

struct RecordVerbOptions {
  std::string kernel;
  uint64_t skip = 0;
  uint64_t count = 1;
  std::string max_bytes = "16GiB";
  std::string compile_commands;
  std::string timeout = "10m";
  std::string stall_timeout = "20s";
  std::string allocator = "arena";
  std::string arena_base = "0x200000000000";
  int top = 0;
  std::string report;
  std::vector<std::string> command;
};

nlohmann::ordered_json ReportJson(const RecordResult& result) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const KernelSeen& kernel : result.kernels) {
    kernels.push_back({{"symbol", kernel.symbol},
                       {"name", kernel.display_name},
                       {"launches", kernel.launches},
                       {"total_ms", kernel.total_ms},
                       {"matched", kernel.matched},
                       {"refused", kernel.refused},
                       {"units", kernel.units},
                       {"known_units", kernel.known_units},
                       {"problem", kernel.problem}});
  }
  nlohmann::ordered_json captures = nlohmann::ordered_json::array();
  for (const CaptureCost& capture : result.captures) {
    captures.push_back(
        {{"kernel", capture.kernel},
         {"image_bytes", capture.image_bytes},
         {"copy_ms", absl::ToDoubleMilliseconds(capture.copy_time)}});
  }
  return {{"schema", "reprise.record/1"},
          {"application_exit_code", result.application_exit_code},
          {"units", result.units},
          {"kernels", kernels},
          {"captures", captures},
          {"problem", result.problem}};
}

// What was recorded, on standard error: standard output is the application's.
void PrintSummary(const RecordResult& result) {
  Terminal terminal;
  for (const KernelSeen& kernel : result.kernels) {
    for (const std::string& unit : kernel.units) {
      const bool known =
          std::find(kernel.known_units.begin(), kernel.known_units.end(),
                    unit) != kernel.known_units.end();
      // On a GPU launches are timed only where that is asked for.
      const std::string time =
          kernel.total_ms > 0
              ? absl::StrFormat(", %.3g ms in all", kernel.total_ms)
              : "";
      terminal.Line(absl::StrFormat("reprise: %s %s (%d launch%s%s)",
                                    known ? "already recorded:" : "recorded",
                                    terminal.Bold(unit), kernel.launches,
                                    kernel.launches == 1 ? "" : "es", time));
    }
    // Otherwise the problem below names all kernels.
    if (!kernel.problem.empty() && result.problem.empty()) {
      terminal.Line(
          absl::StrCat("reprise: ", kernel.display_name, ": ", kernel.problem));
    }
  }
  if (!result.problem.empty())
    terminal.Line(absl::StrCat("reprise: ", result.problem));
  if (!result.units.empty()) {
    terminal.Line(
        absl::StrCat("reprise: next: reprise optimize ", result.units.front()));
  }
}

// Where drivers give addresses, and below what replaying processes keep for
// themselves with an arena for each device.
absl::StatusOr<uint64_t> ParseArenaBase(const std::string& text) {
  constexpr uint64_t kLeast = 0x1000000000;
  constexpr uint64_t kMost = 0x400000000000;
  constexpr uint64_t kMultiple = uint64_t{1} << 30;
  uint64_t base = 0;
  if (!absl::SimpleHexAtoi(text, &base) || base < kLeast || base > kMost ||
      base % kMultiple != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "got --arena-base %s, expected a hexadecimal multiple of 0x%x from "
        "0x%x to 0x%x",
        text, kMultiple, kLeast, kMost));
  }
  return base;
}

// Applications may run for hours: what is wrong with the report's path is said
// before.
absl::Status CheckReportPath(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const std::string trial = path + ".trial";
  RETURN_IF_ERROR(WriteFileAtomically(trial, ""));
  std::remove(trial.c_str());
  return absl::OkStatus();
}

absl::Status RunRecord(const RecordVerbOptions& verb, CliContext* context) {
  if (verb.count == 0)
    return absl::InvalidArgumentError("got --count 0, expected 1 or more");
  ASSIGN_OR_RETURN(RecordOptions options, SessionOptions(*context));
  options.store_directory = context->settings.Get("store");
  options.kernel_regex = verb.kernel;
  options.skip = verb.skip;
  options.count = verb.count;
  options.top = verb.top;
  options.compile_commands = verb.compile_commands;
  ASSIGN_OR_RETURN(options.max_unit_bytes, ParseBytes(verb.max_bytes));
  ASSIGN_OR_RETURN(options.launch_timeout, ParseDuration(verb.timeout));
  ASSIGN_OR_RETURN(options.stall_timeout, ParseDuration(verb.stall_timeout));
  ASSIGN_OR_RETURN(options.arena_base, ParseArenaBase(verb.arena_base));
  RETURN_IF_ERROR(ChooseRecordingDevice(*context, &options));
  RETURN_IF_ERROR(CheckReportPath(verb.report));
  options.native_allocator = verb.allocator == "native";
  ASSIGN_OR_RETURN(const RecordResult result,
                   RunRecorded(options, verb.command));
  PrintSummary(result);
  if (!verb.report.empty()) {
    const std::string json = ReportJson(result).dump(
        2, ' ', false, nlohmann::json::error_handler_t::replace);
    RETURN_IF_ERROR(WriteFileAtomically(verb.report, json + "\n"));
  }
  context->exit_code = result.ExitCode();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RecordOptions> SessionOptions(const CliContext& context) {
  RecordOptions options;
  options.registry_directory = context.settings.Get("home") + "/build";
  options.cuda_home = context.settings.Get("cuda_home");
  ASSIGN_OR_RETURN(const int64_t threads,
                   context.settings.GetInteger("threads", 0, 4096));
  options.executor_threads = static_cast<int>(threads);
  ASSIGN_OR_RETURN(options.compile_workers, context.CompileWorkers());
  return options;
}

absl::Status ChooseRecordingDevice(const CliContext& context,
                                   RecordOptions* options) {
  ASSIGN_OR_RETURN(const std::string device, context.DeviceKind());
  if (device == "cpu") return absl::OkStatus();
  // Before the application runs for nothing.
  RETURN_IF_ERROR(CudaDeviceCount().status());
  options->open_gpu = [](uint32_t ordinal) {
    CudaDeviceOptions cuda;
    cuda.ordinal = static_cast<int>(ordinal);
    return CreateCudaDevice(cuda);
  };
  return absl::OkStatus();
}

void AddRecordVerb(CLI::App* app, CliContext* context) {
  CLI::App* verb = app->add_subcommand(
      "record", "run an application and keep launches of its kernels as units");
  auto options = std::make_shared<RecordVerbOptions>();
  verb->add_option("--kernel", options->kernel,
                   "only kernels whose name matches this regular expression");
  verb->add_option("--top", options->top,
                   "of these kernels, only the N that take most time; the "
                   "application runs once before to find them, its standard "
                   "output put aside")
      ->check(CLI::Range(1, 1000));
  verb->add_option("--skip", options->skip,
                   "launches of a kernel to let pass first")
      ->capture_default_str();
  verb->add_option(
          "--count", options->count,
          "units per kernel; launches with equal shape and data count once")
      ->capture_default_str();
  verb->add_option("--max-bytes", options->max_bytes,
                   "do not record launches with more memory")
      ->capture_default_str();
  verb->add_option("--compile-commands", options->compile_commands,
                   "compile_commands.json of an application that was not built "
                   "with 'reprise cc'");
  verb->add_option("--launch-timeout", options->timeout,
                   "give up on a launch that runs longer, compilation not "
                   "counted; the run that notes a recorded launch's accesses "
                   "may take 20 times as long")
      ->capture_default_str();
  verb->add_option("--stall-timeout", options->stall_timeout,
                   "on a GPU, how long a launch to record, or the work before "
                   "it, may keep the application waiting; a kernel that takes "
                   "longer may wait for another one or for the host, and is "
                   "not recorded")
      ->capture_default_str();
  verb->add_option("--allocator", options->allocator,
                   "on a GPU, who places device memory: arena (Reprise, at "
                   "addresses that are free again at replay) or native (the "
                   "driver, for programs that share device memory between "
                   "processes)")
      ->check(CLI::IsMember({"arena", "native"}))
      ->capture_default_str();
  verb->add_option("--arena-base", options->arena_base,
                   "address of the arena, for applications that have something "
                   "else there")
      ->capture_default_str();
  verb->add_option("--report", options->report,
                   "write what was seen and recorded to this file as JSON");
  verb->add_option("command", options->command,
                   "the application and its arguments, after --")
      ->required();
  AddCommonOptions(verb, context, /*reports=*/false);
  verb->callback([options, context] {
    if (absl::Status status = RunRecord(*options, context); !status.ok())
      context->Fail(status);
  });
}

}  // namespace reprise
