#include "services/common/settings.h"

#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "replay/base/check.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

std::string EnvironmentOr(const char* name, std::string fallback) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(fallback)
                                            : std::string(value);
}

std::string HomeFor(const char* xdg, const std::string& below_home) {
  return absl::StrCat(
      EnvironmentOr(xdg,
                    absl::StrCat(EnvironmentOr("HOME", "."), "/", below_home)),
      "/reprise");
}

// The nearest reprise.yaml upwards; empty: none.
std::string ProjectFile(const std::string& directory) {
  std::error_code ignored;
  for (std::filesystem::path at = directory;; at = at.parent_path()) {
    if (std::filesystem::exists(at / "reprise.yaml", ignored))
      return at / "reprise.yaml";
    if (at == at.parent_path()) return "";
  }
}

}  // namespace

Settings::Settings() {
  settings_ = {
      {"store", "directory of recorded units",
       HomeFor("XDG_DATA_HOME", ".local/share") + "/units", "default"},
      {"home", "directory where 'reprise cc' keeps what it learns of builds",
       HomeFor("XDG_CACHE_HOME", ".cache"), "default"},
      {"device", "device to record and replay on: cpu, cuda:N or auto", "auto",
       "default"},
      {"threads", "host threads of the cpu device; 0: all", "0", "default"},
      {"compile_workers", "compile processes; 0: one per processor", "0",
       "default"},
      {"cuda_home", "CUDA toolkit",
       EnvironmentOr("CUDA_HOME", "/usr/local/cuda"), "default"},
  };
}

Setting* Settings::Find(const std::string& name) {
  for (Setting& setting : settings_) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

absl::Status Settings::Set(const std::string& name, const std::string& value,
                           const std::string& source) {
  Setting* setting = Find(name);
  if (setting == nullptr) {
    std::vector<std::string> known;
    for (const Setting& each : settings_) known.push_back(each.name);
    return absl::InvalidArgumentError(absl::StrCat(source, ": got setting '",
                                                   name, "', expected one of ",
                                                   absl::StrJoin(known, ", ")));
  }
  setting->value = value;
  setting->source = source;
  return absl::OkStatus();
}

absl::Status Settings::LoadFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  try {
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) return absl::OkStatus();
    if (!root.IsMap())
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": expected 'setting: value' lines"));
    for (const auto& entry : root) {
      const std::string at =
          absl::StrCat(path, ":", entry.first.Mark().line + 1);
      if (!entry.second.IsScalar()) {
        return absl::InvalidArgumentError(absl::StrCat(
            at, ": got a list or map for '", entry.first.as<std::string>(),
            "', expected one value"));
      }
      RETURN_IF_ERROR(Set(entry.first.as<std::string>(),
                          entry.second.as<std::string>(), at));
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", error.mark.line + 1, ": ", error.msg));
  }
  return absl::OkStatus();
}

absl::StatusOr<Settings> Settings::Load(const std::string& directory) {
  Settings settings;
  const std::string user_file =
      HomeFor("XDG_CONFIG_HOME", ".config") + "/reprise.yaml";
  std::error_code ignored;
  if (std::filesystem::exists(user_file, ignored))
    RETURN_IF_ERROR(settings.LoadFile(user_file));
  const std::string project_file = ProjectFile(directory);
  if (!project_file.empty()) RETURN_IF_ERROR(settings.LoadFile(project_file));
  for (Setting& setting : settings.settings_) {
    const std::string variable =
        absl::StrCat("REPRISE_", absl::AsciiStrToUpper(setting.name));
    const char* value = std::getenv(variable.c_str());
    if (value == nullptr || *value == '\0') continue;
    setting.value = value;
    setting.source = absl::StrCat("environment ", variable);
  }
  return settings;
}

const std::string& Settings::Get(const std::string& name) const {
  for (const Setting& setting : settings_) {
    if (setting.name == name) return setting.value;
  }
  CHECK(false);
}

absl::StatusOr<int64_t> Settings::GetInteger(const std::string& name,
                                             int64_t minimum,
                                             int64_t maximum) const {
  for (const Setting& setting : settings_) {
    int64_t value = 0;
    if (setting.name != name) continue;
    if (absl::SimpleAtoi(setting.value, &value) && minimum <= value &&
        value <= maximum)
      return value;
    return absl::InvalidArgumentError(absl::StrCat(
        setting.source, ": got ", name, " '", setting.value,
        "', expected a whole number from ", minimum, " to ", maximum));
  }
  CHECK(false);
}

}  // namespace reprise
