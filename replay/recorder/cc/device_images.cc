#include "replay/recorder/cc/device_images.h"

#include <elf.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/file_util.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/recorder/cc/archive.h"
#include "replay/recorder/cc/elf_file.h"

namespace reprise {
namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint32_t kOffloadMagic = 0xad10ff10;  // bytes 10 ff 10 ad
// Flags of an entry.
constexpr uint64_t kLz4 = 0x2000;
constexpr uint64_t kZstd = 0x8000;
constexpr uint64_t kAccelerated = 0x100000;  // the "a" of sm_90a
constexpr uint64_t kFamily = 0x200000;       // the "f" of sm_100f

// As they lie in the file, little-endian.
struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t payload_bytes;
};
static_assert(sizeof(FatbinHeader) == 16);

struct EntryHeader {
  uint16_t kind;  // 1: PTX, 2: machine code
  uint16_t version;
  uint32_t header_bytes;
  uint64_t payload_bytes;
  uint32_t compressed_bytes;
  uint32_t reserved;
  uint16_t minor;
  uint16_t major;
  uint32_t architecture;
  uint64_t reserved2;
  uint64_t flags;
};
static_assert(sizeof(EntryHeader) == 48);
// Behind the header of a compressed entry, a reserved word between them.
constexpr uint64_t kPlainBytesOffset = 56;
constexpr uint16_t kPtxKind = 1;
constexpr uint16_t kMachineCodeKind = 2;

struct OffloadHeader {
  uint32_t magic;
  uint32_t version;
  uint64_t total_bytes;
};

absl::Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError(std::string(what));
}

// Bytes of the image at the start of `bytes`, by its kind's own header.
absl::StatusOr<uint64_t> ImageBytes(ImageKind kind, std::string_view bytes) {
  if (kind == ImageKind::kOffloadBinary) {
    OffloadHeader header{};
    if (!LoadValue(bytes, 0, &header) || header.magic != kOffloadMagic)
      return Malformed("an .llvm.offloading section holds no offload binary");
    if (header.total_bytes < sizeof(header) ||
        header.total_bytes > bytes.size())
      return Malformed("an offload binary is cut off");
    return header.total_bytes;
  }
  ASSIGN_OR_RETURN(const std::string_view fatbin, FatbinAt(bytes));
  return fatbin.size();
}

absl::Status AppendImages(ImageKind kind, std::string_view section,
                          std::vector<DeviceImage>* images) {
  uint64_t offset = 0;
  while (offset < section.size()) {
    if (section[offset] == '\0') {  // padding between images
      ++offset;
      continue;
    }
    ASSIGN_OR_RETURN(const uint64_t bytes,
                     ImageBytes(kind, section.substr(offset)));
    images->push_back({kind, section.substr(offset, bytes)});
    offset += bytes;
  }
  return absl::OkStatus();
}

bool KindOfSection(std::string_view name, ImageKind* kind) {
  if (name == ".nv_fatbin")
    *kind = ImageKind::kFatbin;
  else if (name == "__nv_relfatbin")
    *kind = ImageKind::kRelocatableFatbin;
  else if (name == ".llvm.offloading")
    *kind = ImageKind::kOffloadBinary;
  else
    return false;
  return true;
}

// Calls visit(name, bytes) for every section that has bytes in the file.
template <typename Visit>
absl::Status ForEachSection(std::string_view file, const Visit& visit) {
  ASSIGN_OR_RETURN(const std::vector<ElfSection> sections, ElfSections(file));
  for (const ElfSection& section : sections) {
    if (section.header.sh_type != SHT_NOBITS)
      RETURN_IF_ERROR(visit(section.name, section.bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DeviceImage>> FromElf(std::string_view file) {
  std::vector<DeviceImage> images;
  RETURN_IF_ERROR(
      ForEachSection(file, [&](std::string_view name, std::string_view bytes) {
        ImageKind kind;
        return KindOfSection(name, &kind) ? AppendImages(kind, bytes, &images)
                                          : absl::OkStatus();
      }));
  return images;
}

// The hash behind a marker: hexadecimal digits without leading zeros; empty
// where there is none.
std::string HashBehind(std::string_view text, std::string_view marker) {
  constexpr size_t kMostDigits = 16;
  constexpr size_t kFewestDigits = 8;
  for (size_t at = text.find(marker); at != std::string_view::npos;
       at = text.find(marker, at + 1)) {
    const std::string_view rest = text.substr(at + marker.size());
    const size_t digits =
        std::min(rest.find_first_not_of("0123456789abcdef"), rest.size());
    if (digits >= kFewestDigits && digits <= kMostDigits)
      return std::string(rest.substr(0, digits));
  }
  return "";
}

}  // namespace

std::string DeviceImage::Digest() const { return ImageDigest(bytes); }

std::string ImageDigest(std::string_view bytes) {
  return HexEncode(Sha256(bytes));
}

absl::StatusOr<std::vector<DeviceImage>> FindDeviceImages(
    std::string_view file, const std::string& path,
    std::deque<std::string>* storage) {
  if (!IsArchive(file)) return FromElf(file);
  std::vector<DeviceImage> images;
  ASSIGN_OR_RETURN(const std::vector<std::string_view> members,
                   ArchiveMembers(file, path, storage));
  for (const std::string_view member : members) {
    if (member.substr(0, SELFMAG) != std::string_view(ELFMAG, SELFMAG))
      continue;  // an index, or another kind of object
    ASSIGN_OR_RETURN(const std::vector<DeviceImage> found, FromElf(member));
    images.insert(images.end(), found.begin(), found.end());
  }
  return images;
}

std::string FindUnitTag(std::string_view object) {
  std::string tag;
  (void)ForEachSection(
      object, [&](std::string_view name, std::string_view bytes) {
        if (name == "__nv_module_id") {
          tag = std::string(bytes.substr(0, bytes.find('\0')));
          tag.erase(0, tag.find_first_not_of('_'));
        } else if (name.find("offloading") != std::string_view::npos &&
                   tag.empty()) {
          tag = HashBehind(bytes, "__intern__");
          if (tag.empty()) tag = HashBehind(bytes, "__static__");
        }
        return absl::OkStatus();
      });
  // It becomes a word of a text file.
  return tag.find_first_of(" \n") == std::string::npos ? tag : "";
}

absl::StatusOr<std::string_view> FatbinAt(std::string_view bytes) {
  FatbinHeader header{};
  if (!LoadValue(bytes, 0, &header)) return Malformed("a fatbin is cut off");
  if (header.magic != kFatbinMagic) {
    return absl::InvalidArgumentError(
        absl::StrFormat("not a fatbin: got magic 0x%08x, expected 0x%08x",
                        header.magic, kFatbinMagic));
  }
  std::string_view fatbin;
  if (header.header_bytes < sizeof(header) ||
      header.payload_bytes > bytes.size() ||
      !SliceBytes(bytes, 0, header.header_bytes + header.payload_bytes,
                  &fatbin))
    return Malformed("a fatbin is cut off");
  return fatbin;
}

namespace {

// `bytes` begin with the entry's header, `body` is what follows it.
absl::StatusOr<FatbinEntry> Describe(const EntryHeader& header,
                                     std::string_view bytes,
                                     std::string_view body) {
  FatbinEntry entry;
  entry.ptx = header.kind == kPtxKind;
  const bool family = (header.flags & kFamily) != 0;
  const bool accelerated = (header.flags & kAccelerated) != 0;
  entry.architecture = absl::StrCat("sm_", header.architecture,
                                    accelerated ? "a"
                                    : family    ? "f"
                                                : "");
  entry.bytes = body;
  entry.plain_bytes = body.size();
  if ((header.flags & (kLz4 | kZstd)) == 0) return entry;
  entry.compression = (header.flags & kZstd) != 0 ? FatbinCompression::kZstd
                                                  : FatbinCompression::kLz4;
  if (header.header_bytes < kPlainBytesOffset + sizeof(entry.plain_bytes) ||
      !LoadValue(bytes, kPlainBytesOffset, &entry.plain_bytes) ||
      !SliceBytes(body, 0, header.compressed_bytes, &entry.bytes))
    return Malformed("a compressed entry of a fatbin is cut off");
  return entry;
}

}  // namespace

absl::StatusOr<std::vector<FatbinEntry>> FatbinEntries(
    std::string_view fatbin) {
  ASSIGN_OR_RETURN(const std::string_view whole, FatbinAt(fatbin));
  FatbinHeader header{};
  LoadValue(whole, 0, &header);
  std::vector<FatbinEntry> entries;
  uint64_t offset = header.header_bytes;
  while (whole.size() - offset >= sizeof(EntryHeader)) {
    EntryHeader entry{};
    LoadValue(whole, offset, &entry);
    std::string_view body;
    if (entry.header_bytes < sizeof(entry) ||
        !SliceBytes(whole, offset + entry.header_bytes, entry.payload_bytes,
                    &body))
      return Malformed("an entry of a fatbin is cut off");
    if (entry.kind == kPtxKind || entry.kind == kMachineCodeKind) {
      ASSIGN_OR_RETURN(FatbinEntry next,
                       Describe(entry, whole.substr(offset), body));
      entries.push_back(std::move(next));
    }
    offset += entry.header_bytes + entry.payload_bytes;
  }
  return entries;
}

}  // namespace reprise
