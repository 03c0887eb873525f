// A unit's manifest as a file's bytes, and the rules a unit keeps.
// Thread-safe; nothing here touches files.
#ifndef REPRISE_REPLAY_UNIT_MANIFEST_H_
#define REPRISE_REPLAY_UNIT_MANIFEST_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// Of the protobuf body. A unit of 60 GiB takes about 5 MB.
inline constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;
// Messages within a manifest; bounds what parsing may allocate.
inline constexpr int kMaxManifestMessages = 2 << 20;

// The whole file. RESOURCE_EXHAUSTED over kMaxManifestBytes or
// kMaxManifestMessages, INVALID_ARGUMENT if a string is not UTF-8 (it could not
// be read back).
absl::StatusOr<std::string> EncodeManifest(const v1::Unit& unit);

// Checks frame, digest, bounds and CheckUnit; `path` is for messages. Errors as
// DecodeFrameHeader and CheckUnit, DATA_LOSS where the body does not parse.
absl::StatusOr<v1::Unit> DecodeManifest(std::string_view file,
                                        const std::string& path);

// INVALID_ARGUMENT, naming the field, unless the unit holds together: kernel
// and launch are set, memory ranges are sorted and disjoint, blobs are
// consistent and as long as their range, parameters lie in the argument buffer.
absl::Status CheckUnit(const v1::Unit& unit);

// Calls `visit` with each blob that is set and its name, for example
// "memory[2].prologue"; stops at the first error.
absl::Status ForEachBlob(
    const v1::Unit& unit,
    const std::function<absl::Status(const std::string& name,
                                     const v1::Blob& blob)>& visit);

// "<kernel's short name>", letters, digits and underscores: the last component
// of the name, without template arguments and parameters.
std::string ShortKernelName(const v1::Kernel& kernel);

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_MANIFEST_H_
