// nlohmann::json for text of others: no exceptions, every access checked.
// Thread-safe: pure functions.
#ifndef REPRISE_EVOLUTION_LLM_JSON_UTIL_H_
#define REPRISE_EVOLUTION_LLM_JSON_UTIL_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace reprise::evolution {

using Json = nlohmann::ordered_json;

// Null where `text` is not JSON.
inline Json ParseJson(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Json() : json;
}

// One line; what is not UTF-8 becomes U+FFFD.
inline std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// `text` as it comes back from JSON: valid UTF-8.
inline std::string CleanJsonText(const std::string& text) {
  return ParseJson(DumpJson(text)).get<std::string>();
}

// The member of an object; null where there is none or `json` is no object.
inline const Json& Member(const Json& json, const char* key) {
  static const Json& null = *new Json();
  if (!json.is_object()) return null;
  const auto found = json.find(key);
  return found == json.end() ? null : *found;
}

// The string member; "" where there is none.
inline std::string Text(const Json& json, const char* key) {
  const Json& member = Member(json, key);
  return member.is_string() ? member.get<std::string>() : "";
}

// The whole number that is not negative; 0 where there is none. Bounded, so
// that sums of what others claim do not overflow.
inline uint64_t Count(const Json& json, const char* key) {
  const Json& member = Member(json, key);
  constexpr uint64_t kMost = 1'000'000'000'000;
  if (!member.is_number_unsigned()) return 0;
  const auto value = member.get<uint64_t>();
  return value < kMost ? value : kMost;
}

// What an error body says: {"error": {"message", "type", "code"}},
// {"error": "..."}, {"message": "..."} or {"detail": "..."}, in one line.
std::string ErrorWords(const Json& json);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_JSON_UTIL_H_
