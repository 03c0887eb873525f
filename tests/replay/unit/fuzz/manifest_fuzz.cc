// The manifest reader takes any bytes. The first byte of an input says whether
// the rest is a whole file, or a body to be put into a sound frame, so that the
// fuzzer gets past the digest.
#include <cstdint>
#include <string>
#include <string_view>

#include "replay/base/check.h"
#include "replay/base/sha256.h"
#include "replay/unit/frame.h"
#include "replay/unit/manifest.h"
#include "replay/unit/unit_store.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace reprise;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  std::string file(rest);
  if (data[0] % 2 == 1) {
    FrameHeader header;
    header.version = kUnitFormatVersion;
    header.raw_bytes = header.stored_bytes = rest.size();
    header.sha256 = Sha256(rest);
    file = EncodeFrameHeader(FrameKind::kManifest, header) + std::string(rest);
  }
  const absl::StatusOr<v1::Unit> unit = DecodeManifest(file, "input");
  if (!unit.ok()) {
    CHECK(!unit.status().message().empty());
    return 0;
  }
  // What is accepted is sound, and is written and read back alike.
  CHECK(CheckUnit(*unit).ok());
  CHECK(!ShortKernelName(unit->kernel()).empty());
  const absl::StatusOr<std::string> again = EncodeManifest(*unit);
  CHECK(again.ok());
  const absl::StatusOr<v1::Unit> twice = DecodeManifest(*again, "again");
  CHECK(twice.ok());
  CHECK(twice->SerializeAsString() == unit->SerializeAsString());
  return 0;
}
