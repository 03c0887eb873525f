// Makes ELF files with chosen sections, and fatbins, for tests. Not
// thread-safe.
#ifndef REPRISE_TESTS_REPLAY_RECORDER_CC_ELF_BUILDER_H_
#define REPRISE_TESTS_REPLAY_RECORDER_CC_ELF_BUILDER_H_

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace reprise::testing {

template <typename T>
void AppendValue(std::string* bytes, const T& value) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

using Section = std::pair<std::string, std::string>;  // name, content

// A little-endian 64-bit ELF file with these sections and a name table.
inline std::string MakeElf(const std::vector<Section>& sections) {
  std::string names(1, '\0');
  std::string body;
  std::vector<Elf64_Shdr> headers(1);
  const auto add = [&](const std::string& name, const std::string& content) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<uint32_t>(names.size());
    header.sh_type = SHT_PROGBITS;
    header.sh_offset = sizeof(Elf64_Ehdr) + body.size();
    header.sh_size = content.size();
    headers.push_back(header);
    names += name + '\0';
    body += content;
  };
  for (const Section& section : sections) add(section.first, section.second);
  names += std::string(".shstrtab") + '\0';
  Elf64_Shdr table{};
  table.sh_name = static_cast<uint32_t>(names.size() - 10);
  table.sh_type = SHT_STRTAB;
  table.sh_offset = sizeof(Elf64_Ehdr) + body.size();
  table.sh_size = names.size();
  headers.push_back(table);
  body += names;

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shoff = sizeof(header) + body.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(headers.size());
  header.e_shstrndx = static_cast<uint16_t>(headers.size() - 1);
  std::string file;
  AppendValue(&file, header);
  file += body;
  for (const Elf64_Shdr& section : headers) AppendValue(&file, section);
  return file;
}

// One entry of a fatbin. `flags` 0x100000 makes it an "a" architecture.
inline std::string MakeFatbinEntry(uint16_t kind, uint32_t architecture,
                                   uint64_t flags, const std::string& body) {
  std::string entry;
  AppendValue(&entry, kind);
  AppendValue(&entry, uint16_t{0x101});
  AppendValue(&entry, uint32_t{64});
  AppendValue(&entry, uint64_t{body.size()});
  AppendValue(&entry, uint64_t{0});  // compressed bytes, reserved
  AppendValue(&entry, uint32_t{0});  // minor, major
  AppendValue(&entry, architecture);
  AppendValue(&entry, uint64_t{0});
  AppendValue(&entry, flags);
  entry.resize(64, '\0');
  return entry + body;
}

inline std::string MakeFatbin(const std::string& payload) {
  std::string fatbin;
  AppendValue(&fatbin, uint32_t{0xba55ed50});
  AppendValue(&fatbin, uint16_t{1});
  AppendValue(&fatbin, uint16_t{16});
  AppendValue(&fatbin, uint64_t{payload.size()});
  return fatbin + payload;
}

inline std::string MakeOffloadBinary(const std::string& payload) {
  std::string binary = "\x10\xff\x10\xad";
  AppendValue(&binary, uint32_t{2});
  AppendValue(&binary, uint64_t{16 + payload.size()});
  return binary + payload;
}

}  // namespace reprise::testing

#endif  // REPRISE_TESTS_REPLAY_RECORDER_CC_ELF_BUILDER_H_
