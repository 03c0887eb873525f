#include "replay/recorder/driver/image.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "replay/recorder/driver/protocol.h"

namespace reprise::driver {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatbinMagic = 0xba55ed50;

struct Wrapper {
  uint32_t magic;
  uint32_t version;
  const void* image;
};

struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t payload_bytes;
};

uint32_t MagicOf(const void* data) {
  uint32_t magic = 0;
  memcpy(&magic, data, sizeof(magic));
  return magic;
}

uint64_t Larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

// A cubin ends with its section table, its program headers or its last section,
// whichever comes last.
uint64_t ElfBytes(const void* data) {
  Elf64_Ehdr header;
  memcpy(&header, data, sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
  if (header.e_shnum != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) return 0;
  uint64_t bytes = Larger(
      sizeof(header),
      Larger(header.e_shoff + uint64_t{header.e_shnum} * sizeof(Elf64_Shdr),
             header.e_phoff +
                 uint64_t{header.e_phnum} * uint64_t{header.e_phentsize}));
  if (bytes > driver_wire::kMaxImageBytes) return 0;
  for (uint32_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    memcpy(
        &section,
        static_cast<const char*>(data) + header.e_shoff + i * sizeof(section),
        sizeof(section));
    if (section.sh_type == SHT_NOBITS) continue;
    if (section.sh_offset > driver_wire::kMaxImageBytes ||
        section.sh_size > driver_wire::kMaxImageBytes)
      return 0;
    bytes = Larger(bytes, section.sh_offset + section.sh_size);
  }
  return bytes;
}

uint64_t FatbinBytes(const void* data) {
  FatbinHeader header;
  memcpy(&header, data, sizeof(header));
  if (header.header_bytes < sizeof(header) ||
      header.payload_bytes > driver_wire::kMaxImageBytes)
    return 0;
  return header.header_bytes + header.payload_bytes;
}

// PTX begins with text; anything else is not ours to measure.
uint64_t TextBytes(const void* data) {
  const char* text = static_cast<const char*>(data);
  for (int i = 0; i < 4; ++i) {
    const char c = text[i];
    const bool printable = (c >= ' ' && c <= '~') || (c >= '\t' && c <= '\r');
    if (!printable) return 0;
  }
  return strlen(text);
}

struct Lookup {
  Image image;
  bool found;
};

int IsIn(dl_phdr_info* info, size_t, void* data) {
  Lookup* lookup = static_cast<Lookup*>(data);
  const uint64_t begin = reinterpret_cast<uint64_t>(lookup->image.data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
    const uint64_t start = info->dlpi_addr + part.p_vaddr;
    if (begin >= start && begin + lookup->image.bytes <= start + part.p_filesz)
      lookup->found = true;
  }
  return lookup->found ? 1 : 0;
}

}  // namespace

Image FindImage(const void* code) {
  if (code == nullptr) return {};
  Image image{code, 0};
  if (MagicOf(code) == kWrapperMagic) {
    Wrapper wrapper;
    memcpy(&wrapper, code, sizeof(wrapper));
    image.data = wrapper.image;
    if (image.data == nullptr) return {};
  }
  if (MagicOf(image.data) == kFatbinMagic)
    image.bytes = FatbinBytes(image.data);
  else if (memcmp(image.data, ELFMAG, SELFMAG) == 0)
    image.bytes = ElfBytes(image.data);
  else
    image.bytes = TextBytes(image.data);
  if (image.bytes > driver_wire::kMaxImageBytes) image.bytes = 0;
  return image;
}

bool LiesInLoadedFile(const Image& image) {
  Lookup lookup{image, false};
  dl_iterate_phdr(IsIn, &lookup);
  return lookup.found;
}

}  // namespace reprise::driver
