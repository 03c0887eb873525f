#include "replay/unit/unit_json.h"

#include <google/protobuf/descriptor.h>

#include <cctype>

#include "absl/status/status.h"
#include "replay/base/sha256.h"
#include "replay/unit/describe.h"

namespace reprise {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using nlohmann::ordered_json;

// "ELEMENT_TYPE_F32" of ElementType is "f32".
std::string ShortEnumName(const EnumValueDescriptor& value) {
  std::string prefix;
  for (char c : value.type()->name()) {
    if (std::isupper(static_cast<unsigned char>(c)) && !prefix.empty())
      prefix.push_back('_');
    prefix.push_back(
        static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  }
  prefix.push_back('_');
  std::string name(value.name());
  if (name.rfind(prefix, 0) == 0) name.erase(0, prefix.size());
  for (char& c : name)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

ordered_json EnumToJson(const FieldDescriptor& field, int number) {
  const EnumValueDescriptor* value =
      field.enum_type()->FindValueByNumber(number);
  if (value == nullptr) return number;  // of a newer writer
  return ShortEnumName(*value);
}

ordered_json TextOrHex(const FieldDescriptor& field, const std::string& value) {
  return field.type() == FieldDescriptor::TYPE_BYTES ? HexEncode(value) : value;
}

ordered_json ElementToJson(const Message& message, const FieldDescriptor& field,
                           int i, const JsonOptions& options) {
  const Reflection& get = *message.GetReflection();
  const FieldDescriptor* f = &field;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return get.GetRepeatedInt32(message, f, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return get.GetRepeatedInt64(message, f, i);
    case FieldDescriptor::CPPTYPE_UINT32:
      return get.GetRepeatedUInt32(message, f, i);
    case FieldDescriptor::CPPTYPE_UINT64:
      return get.GetRepeatedUInt64(message, f, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return get.GetRepeatedDouble(message, f, i);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return get.GetRepeatedFloat(message, f, i);
    case FieldDescriptor::CPPTYPE_BOOL:
      return get.GetRepeatedBool(message, f, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumToJson(field, get.GetRepeatedEnumValue(message, f, i));
    case FieldDescriptor::CPPTYPE_STRING:
      return TextOrHex(field, get.GetRepeatedString(message, f, i));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageToJson(get.GetRepeatedMessage(message, f, i), options);
  }
  return nullptr;
}

ordered_json SingleToJson(const Message& message, const FieldDescriptor& field,
                          const JsonOptions& options) {
  const Reflection& get = *message.GetReflection();
  const FieldDescriptor* f = &field;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return get.GetInt32(message, f);
    case FieldDescriptor::CPPTYPE_INT64:
      return get.GetInt64(message, f);
    case FieldDescriptor::CPPTYPE_UINT32:
      return get.GetUInt32(message, f);
    case FieldDescriptor::CPPTYPE_UINT64:
      return get.GetUInt64(message, f);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return get.GetDouble(message, f);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return get.GetFloat(message, f);
    case FieldDescriptor::CPPTYPE_BOOL:
      return get.GetBool(message, f);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumToJson(field, get.GetEnumValue(message, f));
    case FieldDescriptor::CPPTYPE_STRING:
      return TextOrHex(field, get.GetString(message, f));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageToJson(get.GetMessage(message, f), options);
  }
  return nullptr;
}

ordered_json MapToJson(const Message& message, const FieldDescriptor& field,
                       const JsonOptions& options) {
  const FieldDescriptor* value = field.message_type()->map_value();
  const Reflection& get = *message.GetReflection();
  // Sorted, as a map has no order of its own.
  std::map<std::string, ordered_json> sorted;
  for (int i = 0; i < get.FieldSize(message, &field); ++i) {
    const Message& entry = get.GetRepeatedMessage(message, &field, i);
    const ordered_json key =
        SingleToJson(entry, *field.message_type()->map_key(), options);
    sorted[key.is_string() ? key.get<std::string>() : key.dump()] =
        SingleToJson(entry, *value, options);
  }
  ordered_json object = ordered_json::object();
  for (auto& [key, entry] : sorted) object[key] = std::move(entry);
  return object;
}

ordered_json BlobToJson(const v1::Blob& blob, const JsonOptions& options) {
  ordered_json object = {{"bytes", blob.bytes()}};
  if (options.chunks) {
    object["chunks"] = ordered_json::array();
    for (const v1::Chunk& chunk : blob.chunks())
      object["chunks"].push_back(HexEncode(chunk.sha256()));
    return object;
  }
  object["chunks"] = blob.chunks_size();
  object["zero_bytes"] = ZeroBytes(blob);
  return object;
}

}  // namespace

ordered_json MessageToJson(const Message& message, const JsonOptions& options) {
  if (message.GetDescriptor() == v1::Blob::descriptor())
    return BlobToJson(dynamic_cast<const v1::Blob&>(message), options);
  if (message.GetDescriptor() == v1::Dim3::descriptor()) {
    const auto& dim = dynamic_cast<const v1::Dim3&>(message);
    return ordered_json::array({dim.x(), dim.y(), dim.z()});
  }
  const Reflection& get = *message.GetReflection();
  ordered_json object = ordered_json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const std::string name(field.name());
    if (field.is_map()) {
      object[name] = MapToJson(message, field, options);
    } else if (field.is_repeated()) {
      object[name] = ordered_json::array();
      for (int j = 0; j < get.FieldSize(message, &field); ++j)
        object[name].push_back(ElementToJson(message, field, j, options));
    } else if (!field.has_presence() || get.HasField(message, &field)) {
      object[name] = SingleToJson(message, field, options);
    }
  }
  return object;
}

ordered_json UnitToJson(const std::string& id, const v1::Unit& unit,
                        const JsonOptions& options) {
  ordered_json object = {{"id", id}};
  object.update(MessageToJson(unit, options));
  return object;
}

ordered_json ListingsToJson(const std::vector<UnitListing>& listings) {
  ordered_json array = ordered_json::array();
  for (const UnitListing& listing : listings) {
    ordered_json object = {{"id", listing.id}};
    if (!listing.status.ok()) {
      object["error"] = {
          {"code", absl::StatusCodeToString(listing.status.code())},
          {"message", std::string(listing.status.message())}};
      array.push_back(std::move(object));
      continue;
    }
    const v1::Unit& unit = listing.manifest;
    object["kernel"] = KernelName(unit.kernel());
    object["launch"] = MessageToJson(unit.launch());
    object["memory_bytes"] = MemoryBytes(unit);
    object["ranges"] = unit.memory_size();
    object["architecture"] = unit.architecture();
    object["device"] = unit.provenance().device();
    object["duration_ms"] = unit.provenance().duration_ms();
    object["recorded_unix_seconds"] = unit.provenance().recorded_unix_seconds();
    array.push_back(std::move(object));
  }
  return array;
}

}  // namespace reprise
