#include "tests/benchmarks/tuner_sim/cache_file.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"

namespace reprise::tuner_sim {
namespace {

using nlohmann::json;

constexpr size_t kMaximumBytes = size_t{1} << 30;

// What tools call a failure, as an outcome.
const std::map<std::string, v1::OutcomeKind>& FailureKinds() {
  static const auto* kinds = new std::map<std::string, v1::OutcomeKind>{
      {"CompilationFailedConfig", v1::OUTCOME_KIND_COMPILE_ERROR},
      {"RuntimeFailedConfig", v1::OUTCOME_KIND_DEVICE_FAULT},
      {"InvalidConfig", v1::OUTCOME_KIND_INVALID_LAUNCH},
      {"compile", v1::OUTCOME_KIND_COMPILE_ERROR},
      {"runtime", v1::OUTCOME_KIND_DEVICE_FAULT},
      {"correctness", v1::OUTCOME_KIND_WRONG_RESULT},
      {"timeout", v1::OUTCOME_KIND_TIMEOUT}};
  return *kinds;
}

absl::StatusOr<v1::OutcomeKind> FailureKind(const std::string& word) {
  const auto found = FailureKinds().find(word);
  if (found != FailureKinds().end()) return found->second;
  return absl::InvalidArgumentError(
      absl::StrCat("got the unknown failure \"", word, "\""));
}

absl::StatusOr<bayesopt::Value> ToValue(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return absl::InvalidArgumentError(absl::StrCat(
      "got the parameter value ", value.dump(), ", expected a scalar"));
}

absl::StatusOr<std::vector<bayesopt::Value>> ValuesOf(
    const json& record, const std::vector<std::string>& names) {
  std::vector<bayesopt::Value> values;
  for (const std::string& name : names) {
    const auto found = record.find(name);
    if (found == record.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("got a record without the parameter ", name));
    }
    ASSIGN_OR_RETURN(bayesopt::Value value, ToValue(*found));
    values.push_back(std::move(value));
  }
  return values;
}

absl::Status SetTime(const json& time, const json* samples,
                     Measurement* measurement) {
  if (!time.is_number() || !(time.get<double>() > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got the time ", time.dump(), ", expected a positive number"));
  }
  measurement->time_ms = time.get<double>();
  if (samples == nullptr || !samples->is_array()) return absl::OkStatus();
  for (const json& sample : *samples) {
    if (!sample.is_number()) continue;
    measurement->samples_ms.push_back(sample.get<float>());
  }
  return absl::OkStatus();
}

absl::StatusOr<Table::Row> CacheRow(const json& record,
                                    const std::vector<std::string>& names) {
  Table::Row row;
  ASSIGN_OR_RETURN(row.values, ValuesOf(record, names));
  const auto time = record.find("time");
  if (time == record.end()) {
    return absl::InvalidArgumentError("got a record without \"time\"");
  }
  if (time->is_string()) {
    ASSIGN_OR_RETURN(row.measurement.kind,
                     FailureKind(time->get<std::string>()));
    return row;
  }
  const auto samples = record.find("times");
  RETURN_IF_ERROR(SetTime(*time, samples == record.end() ? nullptr : &*samples,
                          &row.measurement));
  return row;
}

absl::StatusOr<Table> FromCache(const json& file) {
  Table table;
  for (const json& key : file["tune_params_keys"]) {
    table.names.push_back(key.get<std::string>());
  }
  for (const auto& [key, record] : file["cache"].items()) {
    ASSIGN_OR_RETURN(Table::Row row, CacheRow(record, table.names));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// The value of the first objective among the measurements.
const json* Objective(const json& result) {
  const std::string objective =
      result.contains("objectives") && !result["objectives"].empty()
          ? result["objectives"][0].get<std::string>()
          : "time";
  for (const json& measurement : result["measurements"]) {
    if (measurement["name"] == objective) return &measurement["value"];
  }
  return nullptr;
}

absl::StatusOr<Table> FromT4(const json& file) {
  Table table;
  for (const json& result : file["results"]) {
    const std::string invalidity = result["invalidity"].get<std::string>();
    if (invalidity == "constraints") continue;
    if (table.names.empty()) {
      for (const auto& [key, value] : result["configuration"].items()) {
        table.names.push_back(key);
      }
    }
    Table::Row row;
    ASSIGN_OR_RETURN(row.values,
                     ValuesOf(result["configuration"], table.names));
    if (invalidity != "correct") {
      ASSIGN_OR_RETURN(row.measurement.kind, FailureKind(invalidity));
      table.rows.push_back(std::move(row));
      continue;
    }
    const json* time = Objective(result);
    if (time == nullptr) {
      return absl::InvalidArgumentError("got a result without its objective");
    }
    const json* samples =
        result.contains("times") && result["times"].contains("runtimes")
            ? &result["times"]["runtimes"]
            : nullptr;
    RETURN_IF_ERROR(SetTime(*time, samples, &row.measurement));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Kernel Tuner appends to an open cache and closes it at the end.
json ParseMaybeOpen(std::string_view text) {
  json file = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!file.is_discarded()) return file;
  while (!text.empty() &&
         (std::isspace(static_cast<unsigned char>(text.back())) != 0 ||
          text.back() == ',')) {
    text.remove_suffix(1);
  }
  return json::parse(std::string(text) + "}}", nullptr, false);
}

}  // namespace

absl::StatusOr<std::string> Gunzip(std::string_view bytes) {
  if (!bytes.starts_with("\x1f\x8b")) return std::string(bytes);
  z_stream stream = {};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) {
    return absl::InternalError("zlib does not start");
  }
  absl::Cleanup end = [&stream] { inflateEnd(&stream); };
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  std::string piece(1 << 20, '\0');
  for (int state = Z_OK; state != Z_STREAM_END;) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    if ((state != Z_OK && state != Z_STREAM_END) ||
        text.size() > kMaximumBytes) {
      return absl::InvalidArgumentError(
          "the gzip data are broken, cut short, or larger than 1 GiB");
    }
    text.append(piece, 0, piece.size() - stream.avail_out);
  }
  return text;
}

absl::StatusOr<Table> ParseCache(std::string_view text,
                                 const std::string& name) {
  const json file = ParseMaybeOpen(text);
  const bool cache = file.is_object() && file.contains("cache") &&
                     file.contains("tune_params_keys");
  if (!cache && !(file.is_object() && file.contains("results"))) {
    return absl::InvalidArgumentError(
        absl::StrCat(name,
                     ": expected JSON with \"cache\" and "
                     "\"tune_params_keys\", or T4 with \"results\""));
  }
  absl::StatusOr<Table> table;
  try {
    table = cache ? FromCache(file) : FromT4(file);
  } catch (const json::exception& error) {
    table = absl::InvalidArgumentError(error.what());
  }
  if (!table.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", table.status().message()));
  }
  return table;
}

absl::StatusOr<std::shared_ptr<const MeasuredSpace>> ReadMeasuredSpace(
    const std::string& path) {
  const std::filesystem::path file(path);
  std::string stem = file.filename().string();
  stem = std::string(absl::StripSuffix(stem, ".gz"));
  stem = std::string(absl::StripSuffix(stem, ".json"));
  const std::string folder = file.parent_path().filename().string();
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  const absl::StatusOr<std::string> text = Gunzip(bytes);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", text.status().message()));
  }
  ASSIGN_OR_RETURN(const Table table, ParseCache(*text, path));
  return MeasuredSpace::FromTable(absl::StrCat(folder, "/", stem), table);
}

absl::StatusOr<std::vector<std::string>> ListCacheFiles(
    const std::string& directory) {
  std::error_code error;
  std::vector<std::string> files;
  std::filesystem::recursive_directory_iterator entries(directory, error);
  if (error) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", directory, ": ", error.message()));
  }
  for (const auto& entry : entries) {
    const std::string path = entry.path().string();
    if (path.ends_with(".json") || path.ends_with(".json.gz")) {
      files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace reprise::tuner_sim
