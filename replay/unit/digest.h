// Digests of variants and of unit instances: SHA-256 over fields in the order
// stated here; docs/unit-format.md has it to the byte. Thread-safe.
#ifndef REPRISE_REPLAY_UNIT_DIGEST_H_
#define REPRISE_REPLAY_UNIT_DIGEST_H_

#include <string>

#include "reprise/v1/types.pb.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// 32 bytes over: sources sorted by path (path, content), frontend, pipeline
// (defaults written out: "clang", "default<O3>"), codegen options by field
// number with presence, launch block with presence, dynamic shared bytes with
// presence.
std::string VariantDigest(const v1::Variant& variant);

// 32 bytes over: kernel symbol, architecture, IR blobs and machine code (chunk
// digests), launch, arguments, and for each range address, bytes, origin,
// symbol and the prologue's chunks.
std::string InstanceDigest(const v1::Unit& unit);

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_DIGEST_H_
