#include "replay/compiler/code_hash.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

using Elf = llvm::object::ELFFile<llvm::object::ELF64LE>;

absl::Status ToStatus(llvm::Error error) {
  return absl::InternalError(
      absl::StrCat("the built code is no readable ELF file: ",
                   llvm::toString(std::move(error))));
}

struct Section {
  std::string name;
  const Elf::Elf_Shdr* header;
};

bool HoldsTexts(const Section& section) {
  return (section.header->sh_flags & llvm::ELF::SHF_STRINGS) != 0 ||
         section.name == kSourcePlaceSection;
}

bool HoldsCode(const Section& section) {
  const bool loaded = (section.header->sh_flags & llvm::ELF::SHF_ALLOC) != 0;
  const auto type = section.header->sh_type;
  return loaded && !HoldsTexts(section) && section.name != ".eh_frame" &&
         section.name.rfind(".note", 0) != 0 &&
         (type == llvm::ELF::SHT_PROGBITS || type == llvm::ELF::SHT_NOBITS);
}

absl::StatusOr<std::vector<Section>> ReadSections(const Elf& elf) {
  auto headers = elf.sections();
  if (!headers) return ToStatus(headers.takeError());
  std::vector<Section> sections;
  for (const Elf::Elf_Shdr& header : *headers) {
    auto name = elf.getSectionName(header);
    if (!name) return ToStatus(name.takeError());
    sections.push_back({name->str(), &header});
  }
  return sections;
}

// What a relocation refers to: a symbol, or a place in a section.
struct Target {
  std::string name;
  bool is_text = false;  // where in its section a text lies is no difference
};

Target FindTarget(const Elf& elf, const Elf::Elf_Shdr& table,
                  uint32_t symbol_index, const std::vector<Section>& sections) {
  auto symbols = elf.getSection(table.sh_link);
  if (!symbols) {
    llvm::consumeError(symbols.takeError());
    return {};
  }
  auto symbol = elf.getSymbol(*symbols, symbol_index);
  auto strings = elf.getStringTableForSymtab(**symbols);
  if (!symbol || !strings) {
    if (!symbol) llvm::consumeError(symbol.takeError());
    if (!strings) llvm::consumeError(strings.takeError());
    return {};
  }
  if ((*symbol)->getType() == llvm::ELF::STT_SECTION &&
      (*symbol)->st_shndx < sections.size()) {
    const Section& section = sections[(*symbol)->st_shndx];
    return {section.name, HoldsTexts(section)};
  }
  auto name = (*symbol)->getName(*strings);
  if (!name) {
    llvm::consumeError(name.takeError());
    return {};
  }
  return {name->str(), false};
}

absl::Status HashRelocations(const Elf& elf, const Section& section,
                             const std::vector<Section>& sections,
                             FieldHasher& hasher) {
  const auto hash = [&](uint64_t offset, uint32_t type, uint32_t symbol,
                        int64_t addend) {
    const Target target = FindTarget(elf, *section.header, symbol, sections);
    hasher.U64(offset).U64(type).Bytes(target.name);
    hasher.U64(target.is_text ? 0 : static_cast<uint64_t>(addend));
  };
  if (section.header->sh_type == llvm::ELF::SHT_RELA) {
    auto entries = elf.relas(*section.header);
    if (!entries) return ToStatus(entries.takeError());
    for (const auto& entry : *entries)
      hash(entry.r_offset, entry.getType(false), entry.getSymbol(false),
           entry.r_addend);
  } else {
    auto entries = elf.rels(*section.header);
    if (!entries) return ToStatus(entries.takeError());
    for (const auto& entry : *entries)
      hash(entry.r_offset, entry.getType(false), entry.getSymbol(false), 0);
  }
  return absl::OkStatus();
}

bool RelocatesCode(const Section& section,
                   const std::vector<Section>& sections) {
  const auto type = section.header->sh_type;
  return (type == llvm::ELF::SHT_RELA || type == llvm::ELF::SHT_REL) &&
         section.header->sh_info < sections.size() &&
         HoldsCode(sections[section.header->sh_info]);
}

absl::Status HashSection(const Elf& elf, const Section& section,
                         FieldHasher& hasher) {
  const Elf::Elf_Shdr& header = *section.header;
  // A cubin keeps a kernel's registers in the upper byte of sh_info and its
  // barriers in the flags.
  hasher.Bytes(section.name).U64(header.sh_size).U64(header.sh_flags);
  if (elf.getHeader().e_machine == llvm::ELF::EM_CUDA)
    hasher.U64(header.sh_info >> 24);
  if (header.sh_type == llvm::ELF::SHT_NOBITS) return absl::OkStatus();
  auto bytes = elf.getSectionContents(header);
  if (!bytes) return ToStatus(bytes.takeError());
  hasher.Bytes({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CodeDigest> DigestElf(const std::string& elf_bytes) {
  auto elf = Elf::create(elf_bytes);
  if (!elf) return ToStatus(elf.takeError());
  ASSIGN_OR_RETURN(std::vector<Section> sections, ReadSections(*elf));
  std::vector<Section> sorted = sections;
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const Section& a, const Section& b) { return a.name < b.name; });
  CodeDigest digest;
  FieldHasher hasher;
  for (const Section& section : sorted) {
    if (HoldsCode(section)) {
      RETURN_IF_ERROR(HashSection(*elf, section, hasher));
      if ((section.header->sh_flags & llvm::ELF::SHF_EXECINSTR) != 0)
        digest.code_bytes += section.header->sh_size;
    } else if (RelocatesCode(section, sections)) {
      RETURN_IF_ERROR(HashRelocations(*elf, section, sections, hasher));
    }
  }
  digest.sha256 = hasher.Finish();
  return digest;
}

CodeDigest DigestPtx(const std::string& ptx) {
  std::string code;
  for (absl::string_view line : absl::StrSplit(ptx, '\n')) {
    const size_t comment = line.find("//");
    if (comment != absl::string_view::npos) line = line.substr(0, comment);
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) absl::StrAppend(&code, line, "\n");
  }
  return {Sha256(code), code.size()};
}

CodeDigest DigestIr(const llvm::Module& module) {
  const std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  llvm::StripDebugInfo(*copy);
  copy->setModuleIdentifier("");
  copy->setSourceFileName("");
  for (const char* name : {"llvm.ident", "reprise.kernels"}) {
    if (llvm::NamedMDNode* node = copy->getNamedMetadata(name))
      node->eraseFromParent();
  }
  std::string bitcode;
  llvm::raw_string_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(*copy, stream);
  stream.flush();
  return {Sha256(bitcode), bitcode.size()};
}

}  // namespace reprise
