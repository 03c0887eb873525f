#include "replay/unit/digest.h"

#include <algorithm>
#include <vector>

#include "replay/base/check.h"
#include "replay/base/sha256.h"

namespace reprise {
namespace {

void HashDim3(const v1::Dim3& dim, FieldHasher* hasher) {
  hasher->U64(dim.x()).U64(dim.y()).U64(dim.z());
}

void HashLaunch(const v1::LaunchConfig& launch, FieldHasher* hasher) {
  HashDim3(launch.grid(), hasher);
  HashDim3(launch.block(), hasher);
  hasher->U64(launch.dynamic_shared_bytes());
  hasher->U64(launch.has_cluster());
  if (launch.has_cluster()) HashDim3(launch.cluster(), hasher);
  hasher->U64(launch.cooperative());
}

void HashBlob(const v1::Blob& blob, FieldHasher* hasher) {
  hasher->U64(blob.bytes()).U64(static_cast<uint64_t>(blob.chunks_size()));
  for (const v1::Chunk& chunk : blob.chunks())
    hasher->Bytes(chunk.sha256()).U64(chunk.bytes());
}

// Only fields that are present count, each as (number, value), so that an
// option added later leaves the digests of older variants as they are.
void HashCodegen(const v1::CodegenOptions& codegen, FieldHasher* hasher) {
  const google::protobuf::Descriptor& type = *codegen.GetDescriptor();
  const google::protobuf::Reflection& access = *codegen.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  for (int i = 0; i < type.field_count(); ++i) fields.push_back(type.field(i));
  std::sort(fields.begin(), fields.end(), [](const auto* a, const auto* b) {
    return a->number() < b->number();
  });
  for (const google::protobuf::FieldDescriptor* field : fields) {
    CHECK(!field->is_repeated() && field->has_presence());
    if (!access.HasField(codegen, field)) continue;
    hasher->U64(static_cast<uint64_t>(field->number()));
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_BOOL) {
      hasher->U64(access.GetBool(codegen, field));
    } else {
      CHECK(field->cpp_type() ==
            google::protobuf::FieldDescriptor::CPPTYPE_UINT32);
      hasher->U64(access.GetUInt32(codegen, field));
    }
  }
  hasher->U64(0);
}

}  // namespace

std::string VariantDigest(const v1::Variant& variant) {
  std::vector<const v1::SourceOverlay*> sources;
  for (const v1::SourceOverlay& source : variant.sources())
    sources.push_back(&source);
  std::stable_sort(
      sources.begin(), sources.end(),
      [](const auto* a, const auto* b) { return a->path() < b->path(); });

  FieldHasher hasher;
  hasher.Bytes("reprise variant 1").U64(sources.size());
  for (const v1::SourceOverlay* source : sources)
    hasher.Bytes(source->path()).Bytes(source->content());
  hasher.Bytes(variant.frontend().empty() ? "clang" : variant.frontend());
  hasher.Bytes(variant.pipeline().empty() ? "default<O3>" : variant.pipeline());
  HashCodegen(variant.codegen(), &hasher);
  hasher.U64(variant.launch().has_block());
  if (variant.launch().has_block()) HashDim3(variant.launch().block(), &hasher);
  hasher.U64(variant.launch().has_dynamic_shared_bytes());
  if (variant.launch().has_dynamic_shared_bytes())
    hasher.U64(variant.launch().dynamic_shared_bytes());
  return hasher.Finish();
}

std::string InstanceDigest(const v1::Unit& unit) {
  FieldHasher hasher;
  hasher.Bytes("reprise instance 1");
  hasher.Bytes(unit.kernel().symbol()).Bytes(unit.architecture());
  hasher.U64(static_cast<uint64_t>(unit.translation_units_size()));
  for (const v1::TranslationUnit& source : unit.translation_units())
    HashBlob(source.ir(), &hasher);
  HashBlob(unit.machine_code(), &hasher);
  HashLaunch(unit.launch(), &hasher);
  hasher.Bytes(unit.arguments());
  hasher.U64(static_cast<uint64_t>(unit.memory_size()));
  for (const v1::MemoryRange& range : unit.memory()) {
    hasher.U64(range.address()).U64(range.bytes());
    hasher.U64(static_cast<uint64_t>(range.origin())).Bytes(range.symbol());
    HashBlob(range.prologue(), &hasher);
  }
  return hasher.Finish();
}

}  // namespace reprise
