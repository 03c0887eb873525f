#include "replay/recorder/cc/cubin.h"

#include <zstd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "replay/base/status_macros.h"
#include "replay/recorder/cc/device_images.h"
#include "replay/recorder/cc/elf_file.h"
#include "replay/recorder/cc/lz4_block.h"

namespace reprise {
namespace {

constexpr uint64_t kMostPlainBytes = uint64_t{1} << 29;

absl::StatusOr<std::string> DecompressZstd(std::string_view frame,
                                           uint64_t plain_bytes) {
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != plain_bytes)
    return absl::InvalidArgumentError("a zstd frame of another size");
  std::string plain(plain_bytes, '\0');
  const size_t got =
      ZSTD_decompress(plain.data(), plain.size(), frame.data(), frame.size());
  if (ZSTD_isError(got)) {
    return absl::InvalidArgumentError(
        absl::StrCat("zstd: ", ZSTD_getErrorName(got)));
  }
  if (got != plain_bytes)
    return absl::InvalidArgumentError("a zstd frame of another size");
  return plain;
}

absl::StatusOr<std::string> Decompress(const FatbinEntry& entry) {
  if (entry.plain_bytes == 0 || entry.plain_bytes > kMostPlainBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("device code of ", entry.plain_bytes,
                     " bytes, expected 1 to ", kMostPlainBytes));
  }
  switch (entry.compression) {
    case FatbinCompression::kNone:
      return std::string(entry.bytes);
    case FatbinCompression::kLz4:
      return DecompressLz4Block(entry.bytes, entry.plain_bytes);
    case FatbinCompression::kZstd:
      return DecompressZstd(entry.bytes, entry.plain_bytes);
  }
  return absl::InternalError("an unknown compression");
}

// "sm_90a": 90.
int NumberOf(const std::string& architecture) {
  return absl::StartsWith(architecture, "sm_")
             ? std::atoi(architecture.c_str() + 3)
             : 0;
}

// How well code fits a device; 0: it does not run there.
int Fitness(const std::string& code, const std::string& device) {
  if (code == device) return 100;
  const int code_number = NumberOf(code);
  const int number = NumberOf(device);
  if (code_number == number) return 99;
  const bool exact_only = code.back() == 'a';
  if (exact_only || code_number / 10 != number / 10 || code_number > number)
    return 0;
  return 1 + code_number % 10;
}

}  // namespace

absl::StatusOr<std::string> CubinFor(std::string_view fatbin,
                                     const std::string& architecture) {
  if (NumberOf(architecture) <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got architecture \"", architecture, "\", expected one like sm_90"));
  }
  ASSIGN_OR_RETURN(const std::vector<FatbinEntry> entries,
                   FatbinEntries(fatbin));
  const FatbinEntry* best = nullptr;
  int fitness = 0;
  std::vector<std::string> names;
  for (const FatbinEntry& entry : entries) {
    names.push_back(entry.architecture + (entry.ptx ? " (PTX)" : ""));
    const int fits = entry.ptx ? 0 : Fitness(entry.architecture, architecture);
    if (fits <= fitness) continue;
    fitness = fits;
    best = &entry;
  }
  if (best == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the fatbin has no machine code for ", architecture,
                     "; it has: ", absl::StrJoin(names, ", ")));
  }
  return Decompress(*best);
}

namespace {

// A kernel's own constants (".nv.constant0.NAME") are none of the program's.
bool IsConstantSection(std::string_view name) {
  constexpr std::string_view kPrefix = ".nv.constant";
  return name.substr(0, kPrefix.size()) == kPrefix &&
         name.size() > kPrefix.size() &&
         name.find_first_not_of("0123456789", kPrefix.size()) ==
             std::string_view::npos;
}

bool IsGlobalSection(std::string_view name) {
  constexpr std::string_view kName = ".nv.global";
  return name == kName || name.substr(0, kName.size() + 1) == ".nv.global.";
}

void AppendVariables(const std::vector<ElfSection>& sections,
                     const ElfSection& table,
                     std::vector<CubinVariable>* variables) {
  if (table.header.sh_link >= sections.size()) return;
  const std::string_view names = sections[table.header.sh_link].bytes;
  Elf64_Sym symbol{};
  for (uint64_t at = 0; LoadValue(table.bytes, at, &symbol);
       at += sizeof(symbol)) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT ||
        symbol.st_shndx >= sections.size() || symbol.st_name >= names.size() ||
        symbol.st_size == 0)
      continue;
    const std::string_view section = sections[symbol.st_shndx].name;
    const bool constant = IsConstantSection(section);
    if (!constant && !IsGlobalSection(section)) continue;
    std::string_view name = names.substr(symbol.st_name);
    name = name.substr(0, name.find('\0'));
    if (!name.empty())
      variables->push_back({std::string(name), symbol.st_size, constant,
                            std::string(section), symbol.st_value});
  }
}

}  // namespace

absl::StatusOr<std::vector<CubinVariable>> CubinVariables(
    std::string_view cubin) {
  Elf64_Ehdr header{};
  if (LoadValue(cubin, 0, &header) && header.e_machine != EM_CUDA) {
    return absl::InvalidArgumentError(
        absl::StrCat("got an ELF file for machine ", header.e_machine,
                     ", expected CUDA machine code (", EM_CUDA, ")"));
  }
  ASSIGN_OR_RETURN(const std::vector<ElfSection> sections, ElfSections(cubin));
  std::vector<CubinVariable> variables;
  for (const ElfSection& section : sections) {
    if (section.header.sh_type == SHT_SYMTAB)
      AppendVariables(sections, section, &variables);
  }
  return variables;
}

}  // namespace reprise
