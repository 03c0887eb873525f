#include "replay/recorder/cc/elf_file.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

// Section headers; empty for a file without sections.
absl::StatusOr<std::vector<Elf64_Shdr>> Headers(std::string_view file,
                                                const Elf64_Ehdr& header) {
  std::vector<Elf64_Shdr> sections;
  if (header.e_shoff == 0) return sections;
  if (header.e_shentsize != sizeof(Elf64_Shdr))
    return absl::InvalidArgumentError("section headers of an unknown size");
  Elf64_Shdr first{};
  if (!LoadValue(file, header.e_shoff, &first)) {
    return absl::InvalidArgumentError("section headers lie outside the file");
  }
  // More than 65,279 sections: the count is in the first header.
  const uint64_t count = header.e_shnum != 0 ? header.e_shnum : first.sh_size;
  std::string_view table;
  if (count > file.size() / sizeof(Elf64_Shdr) ||
      !SliceBytes(file, header.e_shoff, count * sizeof(Elf64_Shdr), &table)) {
    return absl::InvalidArgumentError("section headers lie outside the file");
  }
  sections.resize(count);
  if (count != 0) std::memcpy(sections.data(), table.data(), table.size());
  return sections;
}

}  // namespace

bool SliceBytes(std::string_view bytes, uint64_t offset, uint64_t size,
                std::string_view* part) {
  if (offset > bytes.size() || size > bytes.size() - offset) return false;
  *part = bytes.substr(offset, size);
  return true;
}

absl::StatusOr<std::vector<ElfSection>> ElfSections(std::string_view file) {
  Elf64_Ehdr header{};
  if (!LoadValue(file, 0, &header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return absl::InvalidArgumentError("not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB)
    return absl::InvalidArgumentError("not a 64-bit little-endian ELF file");
  ASSIGN_OR_RETURN(const std::vector<Elf64_Shdr> headers,
                   Headers(file, header));
  const uint64_t names_index =
      header.e_shstrndx == SHN_XINDEX && !headers.empty() ? headers[0].sh_link
                                                          : header.e_shstrndx;
  std::vector<ElfSection> sections;
  std::string_view names;
  if (names_index >= headers.size() ||
      !SliceBytes(file, headers[names_index].sh_offset,
                  headers[names_index].sh_size, &names))
    return sections;  // stripped of its sections
  for (const Elf64_Shdr& section : headers) {
    ElfSection& next = sections.emplace_back();
    next.header = section;
    if (section.sh_name < names.size()) {
      next.name = names.substr(section.sh_name);
      next.name = next.name.substr(0, next.name.find('\0'));
    }
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
    if (!SliceBytes(file, section.sh_offset, section.sh_size, &next.bytes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "section ", std::string(next.name), " lies outside the file"));
    }
  }
  return sections;
}

}  // namespace reprise
