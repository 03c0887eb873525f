// Reprise's messages as JSON for people and scripts: field names as in the
// proto files, bytes in lower-case hex, 64-bit integers as numbers, enum values
// by their short names ("f32", "device"), dimensions as [x, y, z], a blob as
// its bytes and how many of them are zero chunks. Thread-safe.
//
// (protobuf's own JSON has base64 digests and counts as strings.)
#ifndef REPRISE_REPLAY_UNIT_UNIT_JSON_H_
#define REPRISE_REPLAY_UNIT_UNIT_JSON_H_

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "replay/unit/unit_store.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

struct JsonOptions {
  // List the digest of each chunk of a blob ("" for zeros) instead of counting
  // chunks: a 10 GiB range has 10,240 of them.
  bool chunks = false;
};

// Fields without presence always appear, others where they are set. Invalid
// UTF-8 is replaced when the value is dumped with error_handler_t::replace.
nlohmann::ordered_json MessageToJson(const google::protobuf::Message& message,
                                     const JsonOptions& options = {});

// {"id": ..., fields of the manifest}.
nlohmann::ordered_json UnitToJson(const std::string& id, const v1::Unit& unit,
                                  const JsonOptions& options = {});

// One object per unit: id, kernel, launch, memory_bytes, ranges, architecture,
// device, duration_ms, recorded_unix_seconds; or id and error.
nlohmann::ordered_json ListingsToJson(const std::vector<UnitListing>& listings);

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_UNIT_JSON_H_
