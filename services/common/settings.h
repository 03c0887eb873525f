// What holds for every verb: where units live, which device, how many workers.
// Flags beat environment (REPRISE_*) beat project file (reprise.yaml in this
// directory or a parent) beat user file ($XDG_CONFIG_HOME/reprise/reprise.yaml)
// beat defaults. Plain values.
#ifndef REPRISE_SERVICES_COMMON_SETTINGS_H_
#define REPRISE_SERVICES_COMMON_SETTINGS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

struct Setting {
  std::string name;  // as in files: "store"; REPRISE_STORE in the environment;
                     // --store as a flag
  std::string description;  // for --help and docs
  std::string value;
  std::string source;  // "default", "flag --store", "environment
                       // REPRISE_STORE", "/a/reprise.yaml:3"
};

class Settings {
 public:
  // Defaults, files and environment of this process. INVALID_ARGUMENT names
  // file and line of a key that is unknown or not a scalar.
  static absl::StatusOr<Settings> Load(const std::string& directory);

  // Overrides by flag. INVALID_ARGUMENT for an unknown name.
  absl::Status Set(const std::string& name, const std::string& value,
                   const std::string& source);

  const std::string& Get(const std::string& name) const;
  // INVALID_ARGUMENT says where the value came from.
  absl::StatusOr<int64_t> GetInteger(const std::string& name, int64_t minimum,
                                     int64_t maximum) const;
  const std::vector<Setting>& all() const { return settings_; }

 private:
  Settings();
  absl::Status LoadFile(const std::string& path);
  Setting* Find(const std::string& name);

  std::vector<Setting> settings_;
};

}  // namespace reprise

#endif  // REPRISE_SERVICES_COMMON_SETTINGS_H_
