#include "replay/unit/manifest.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/unit/blob.h"
#include "replay/unit/frame.h"
#include "replay/unit/unit_store.h"

namespace reprise {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kMaxDepth = 16;

// Counts the messages that parsing would create, without creating them: two
// bytes of body can ask for hundreds of bytes of memory. False when the bytes
// are malformed or there are more than `budget`.
bool CountMessages(const Descriptor& type, int depth, CodedInputStream* in,
                   int* budget) {
  if (depth > kMaxDepth || --*budget < 0) return false;
  for (;;) {
    const uint32_t tag = in->ReadTag();
    if (tag == 0) return in->ConsumedEntireMessage();
    const FieldDescriptor* field =
        type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    const bool is_message = field != nullptr &&
                            field->type() == FieldDescriptor::TYPE_MESSAGE &&
                            WireFormatLite::GetTagWireType(tag) ==
                                WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (!is_message) {
      // Every string of a repeated field takes memory of its own.
      if (field != nullptr && field->is_repeated() && --*budget < 0)
        return false;
      if (!WireFormatLite::SkipField(in, tag)) return false;
      continue;
    }
    uint32_t size = 0;
    if (!in->ReadVarint32(&size) ||
        size > static_cast<uint32_t>(std::numeric_limits<int>::max())) {
      return false;
    }
    const CodedInputStream::Limit limit = in->PushLimit(static_cast<int>(size));
    if (!CountMessages(*field->message_type(), depth + 1, in, budget))
      return false;
    in->PopLimit(limit);
  }
}

absl::Status Bad(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed unit: ", what));
}

absl::Status CheckDim3(const v1::Dim3& dim, const char* name) {
  if (dim.x() > 0 && dim.y() > 0 && dim.z() > 0) return absl::OkStatus();
  return Bad(absl::StrCat(name, " is ", dim.x(), "x", dim.y(), "x", dim.z(),
                          ", expected at least 1 in each dimension"));
}

absl::Status CheckKernel(const v1::Unit& unit) {
  if (unit.kernel().symbol().empty()) return Bad("kernel.symbol is empty");
  for (int i = 0; i < unit.kernel().parameters_size(); ++i) {
    const v1::KernelParameter& parameter = unit.kernel().parameters(i);
    const uint64_t end = uint64_t{parameter.offset()} + parameter.bytes();
    if (end > unit.arguments().size()) {
      return Bad(absl::StrCat("kernel.parameters[", i, "] ends at byte ", end,
                              " of ", unit.arguments().size(),
                              " bytes of arguments"));
    }
  }
  RETURN_IF_ERROR(CheckDim3(unit.launch().grid(), "launch.grid"));
  RETURN_IF_ERROR(CheckDim3(unit.launch().block(), "launch.block"));
  if (unit.launch().has_cluster())
    RETURN_IF_ERROR(CheckDim3(unit.launch().cluster(), "launch.cluster"));
  return absl::OkStatus();
}

absl::Status CheckMemory(const v1::Unit& unit) {
  uint64_t end = 0;
  for (int i = 0; i < unit.memory_size(); ++i) {
    const v1::MemoryRange& range = unit.memory(i);
    const std::string name = absl::StrCat("memory[", i, "]");
    if (range.bytes() == 0) return Bad(absl::StrCat(name, " is empty"));
    if (range.bytes() > std::numeric_limits<uint64_t>::max() - range.address())
      return Bad(absl::StrCat(name, " wraps around the address space"));
    if (i > 0 && range.address() < end) {
      return Bad(absl::StrCat(name, " begins at 0x", absl::Hex(range.address()),
                              ", before the end 0x", absl::Hex(end),
                              " of the range before it; expected ranges "
                              "sorted by address and disjoint"));
    }
    end = range.address() + range.bytes();
    if (range.prologue().bytes() != range.bytes()) {
      return Bad(absl::StrCat(name, ".prologue has ", range.prologue().bytes(),
                              " bytes, expected ", range.bytes()));
    }
    if (range.has_epilogue() && range.epilogue().bytes() != range.bytes()) {
      return Bad(absl::StrCat(name, ".epilogue has ", range.epilogue().bytes(),
                              " bytes, expected ", range.bytes()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ForEachBlob(
    const v1::Unit& unit,
    const std::function<absl::Status(const std::string& name,
                                     const v1::Blob& blob)>& visit) {
  for (int i = 0; i < unit.memory_size(); ++i) {
    const v1::MemoryRange& range = unit.memory(i);
    const std::string name = absl::StrCat("memory[", i, "].");
    if (range.has_prologue())
      RETURN_IF_ERROR(visit(name + "prologue", range.prologue()));
    if (range.has_epilogue())
      RETURN_IF_ERROR(visit(name + "epilogue", range.epilogue()));
    if (range.has_read_set())
      RETURN_IF_ERROR(visit(name + "read_set", range.read_set()));
    if (range.has_write_set())
      RETURN_IF_ERROR(visit(name + "write_set", range.write_set()));
    if (range.has_read_before_write_set()) {
      RETURN_IF_ERROR(
          visit(name + "read_before_write_set", range.read_before_write_set()));
    }
  }
  for (int i = 0; i < unit.translation_units_size(); ++i) {
    const v1::TranslationUnit& source = unit.translation_units(i);
    const std::string name = absl::StrCat("translation_units[", i, "].");
    for (int j = 0; j < source.files_size(); ++j) {
      if (source.files(j).has_content()) {
        RETURN_IF_ERROR(visit(absl::StrCat(name, "files[", j, "].content"),
                              source.files(j).content()));
      }
    }
    if (source.has_ir()) RETURN_IF_ERROR(visit(name + "ir", source.ir()));
  }
  if (unit.has_machine_code())
    RETURN_IF_ERROR(visit("machine_code", unit.machine_code()));
  return absl::OkStatus();
}

absl::Status CheckUnit(const v1::Unit& unit) {
  RETURN_IF_ERROR(CheckKernel(unit));
  RETURN_IF_ERROR(CheckMemory(unit));
  for (const std::string* digest :
       {&unit.instance_sha256(), &unit.fatbin_sha256()}) {
    if (!digest->empty() && digest->size() != 32) {
      return Bad(absl::StrCat("a digest has ", digest->size(),
                              " bytes, expected 32 or none"));
    }
  }
  return ForEachBlob(unit, [](const std::string& name, const v1::Blob& blob) {
    const absl::Status status = CheckBlob(blob);
    return status.ok()
               ? status
               : Bad(absl::StrCat(name, ": ", std::string(status.message())));
  });
}

absl::StatusOr<std::string> EncodeManifest(const v1::Unit& unit) {
  if (unit.ByteSizeLong() > kMaxManifestBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the unit's manifest would take ", unit.ByteSizeLong(),
                     " bytes, expected at most ", kMaxManifestBytes,
                     ": record fewer memory ranges or source files"));
  }
  const std::string body = unit.SerializeAsString();
  FrameHeader header;
  header.version = kUnitFormatVersion;
  header.raw_bytes = header.stored_bytes = body.size();
  header.sha256 = Sha256(body);
  std::string file = EncodeFrameHeader(FrameKind::kManifest, header) + body;
  const absl::Status readable =
      DecodeManifest(file, "the manifest to be written").status();
  if (absl::IsDataLoss(readable)) {
    return absl::InvalidArgumentError(
        "a string of the unit (a path, an argument or a name) is not valid "
        "UTF-8, expected UTF-8");
  }
  if (!readable.ok()) return readable;
  return file;
}

absl::StatusOr<v1::Unit> DecodeManifest(std::string_view file,
                                        const std::string& path) {
  ASSIGN_OR_RETURN(
      const FrameHeader header,
      DecodeFrameHeader(FrameKind::kManifest, file, file.size(), path));
  const std::string_view body = file.substr(kFrameHeaderBytes);
  if (header.flags != kFrameRaw || header.raw_bytes > kMaxManifestBytes) {
    return absl::DataLossError(
        absl::StrCat(path, " is damaged: got flags ", header.flags, " and ",
                     header.raw_bytes, " bytes, expected 0 and at most ",
                     kMaxManifestBytes));
  }
  if (Sha256(body) != header.sha256) {
    return absl::DataLossError(absl::StrCat(
        path, " is damaged: SHA-256 of its body is ", HexEncode(Sha256(body)),
        ", expected ", HexEncode(header.sha256),
        "; remove the unit and record it again"));
  }
  CodedInputStream in(reinterpret_cast<const uint8_t*>(body.data()),
                      static_cast<int>(body.size()));
  int budget = kMaxManifestMessages;
  const bool bounded = CountMessages(*v1::Unit::descriptor(), 0, &in, &budget);
  if (budget < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has more than ", kMaxManifestMessages,
                     " messages, which no recorder writes"));
  }
  v1::Unit unit;
  if (!bounded ||
      !unit.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return absl::DataLossError(absl::StrCat(
        path,
        " is damaged: its body is no unit message, though its SHA-256 "
        "is right; remove the unit and record it again"));
  }
  if (unit.format_version() > kUnitFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has format version ", unit.format_version(),
                     ", expected at most ", kUnitFormatVersion,
                     ": a newer Reprise wrote it; update this one"));
  }
  const absl::Status status = CheckUnit(unit);
  if (!status.ok()) {
    return absl::Status(
        status.code(), absl::StrCat(path, ": ", std::string(status.message())));
  }
  return unit;
}

}  // namespace reprise
