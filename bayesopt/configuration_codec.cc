#include "bayesopt/configuration_codec.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::bayesopt {

void WriteValue(const Value& value, StateWriter& writer) {
  writer.U64(value.index());
  if (const auto* b = std::get_if<bool>(&value)) writer.U64(*b ? 1 : 0);
  if (const auto* i = std::get_if<int64_t>(&value)) {
    writer.U64(static_cast<uint64_t>(*i));
  }
  if (const auto* d = std::get_if<double>(&value)) writer.F64(*d);
  if (const auto* s = std::get_if<std::string>(&value)) writer.Text(*s);
}

Value ReadValue(StateReader& reader) {
  switch (reader.U64()) {
    case 1:
      return reader.U64() != 0;
    case 2:
      return static_cast<int64_t>(reader.U64());
    case 3:
      return reader.F64();
    case 4:
      return reader.Text();
    default:
      return std::monostate();
  }
}

void WriteConfiguration(const Configuration& configuration,
                        StateWriter& writer) {
  writer.U64(configuration.values.size());
  for (const Value& value : configuration.values) WriteValue(value, writer);
}

Configuration ReadConfiguration(StateReader& reader) {
  Configuration configuration;
  configuration.values.resize(reader.Count(8));
  for (Value& value : configuration.values) value = ReadValue(reader);
  return configuration;
}

void WriteOptional(const std::optional<Configuration>& configuration,
                   StateWriter& writer) {
  writer.U64(configuration ? 1 : 0);
  if (configuration) WriteConfiguration(*configuration, writer);
}

std::optional<Configuration> ReadOptional(StateReader& reader) {
  if (reader.U64() == 0) return std::nullopt;
  return ReadConfiguration(reader);
}

bool IsOf(const Space& space,
          const std::optional<Configuration>& configuration) {
  return !configuration || space.Check(*configuration).ok();
}

absl::Status DamagedState(std::string_view sampler) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(sampler),
                   " sampler: got damaged state, expected what Save gave"));
}

}  // namespace reprise::bayesopt
