#include "replay/compiler/ptx_text.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "replay/compiler/kernel_symbols.h"

namespace reprise {
namespace {

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

std::string_view NameAt(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && IsNameCharacter(text[end])) ++end;
  return text.substr(at, end - at);
}

// The kernel that a line begins to define; empty: none.
std::string_view KernelOf(std::string_view line) {
  if (line.empty() || line[0] != '.') return "";
  constexpr std::string_view kEntry = ".entry ";
  const size_t at = line.find(kEntry);
  return at == std::string_view::npos ? "" : NameAt(line, at + kEntry.size());
}

struct Entry {
  std::string name;
  size_t begin = 0;
  size_t body = 0;  // of the opening brace
  size_t end = 0;
};

// Inline assembly has braces of its own; comments have none that count.
size_t AfterBraces(std::string_view ptx, size_t at) {
  int depth = 0;
  for (; at < ptx.size(); ++at) {
    if (ptx[at] == '/' && ptx.substr(at, 2) == "//")
      at = std::min(ptx.find('\n', at), ptx.size());
    if (at < ptx.size() && ptx[at] == '{') ++depth;
    if (at < ptx.size() && ptx[at] == '}' && --depth == 0) return at + 1;
  }
  return ptx.size();
}

std::vector<Entry> Entries(std::string_view ptx) {
  std::vector<Entry> entries;
  for (size_t at = 0; at < ptx.size();) {
    const size_t newline = std::min(ptx.find('\n', at), ptx.size());
    const std::string_view name = KernelOf(ptx.substr(at, newline - at));
    if (name.empty()) {
      at = newline + 1;
      continue;
    }
    Entry entry{std::string(name), at, ptx.find("\n{", at), 0};
    if (entry.body == std::string_view::npos) break;
    entry.body += 1;
    entry.end = AfterBraces(ptx, entry.body);
    at = entry.end;
    entries.push_back(std::move(entry));
  }
  return entries;
}

// 8 of ".u64", ".b64", ".f64"; 0: no such type.
uint32_t TypeBytes(std::string_view type) {
  uint32_t bits = 0;
  if (type.size() < 3 || type[0] != '.') return 0;
  if (type == ".pred") return 1;
  size_t digits = 1;
  while (digits < type.size() && (type[digits] < '0' || type[digits] > '9'))
    ++digits;
  std::string_view number = type.substr(digits);
  number = number.substr(0, number.find('x'));
  return absl::SimpleAtoi(absl::string_view(number.data(), number.size()),
                          &bits)
             ? bits / 8
             : 0;
}

// A declared piece of memory: ".align 8 .b8 name[24]".
struct Declared {
  std::string name;
  uint64_t bytes = 0;
  uint32_t alignment = 0;
};

std::optional<Declared> ReadDeclaration(std::string_view text) {
  Declared declared;
  uint64_t element = 0;
  std::vector<std::string> words =
      absl::StrSplit(absl::string_view(text.data(), text.size()),
                     absl::ByAnyChar(" \t,;"), absl::SkipEmpty());
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "=") break;
    if (words[i] == ".align" && i + 1 < words.size()) {
      uint32_t alignment = 0;
      // That of ".ptr .align" is of what a parameter points to.
      if (absl::SimpleAtoi(words[++i], &alignment) && element == 0)
        declared.alignment = alignment;
    } else if (words[i][0] == '.') {
      if (element == 0) element = TypeBytes(words[i]);
    } else {
      declared.name = words[i];
      break;
    }
  }
  if (declared.name.empty() || element == 0) return std::nullopt;
  declared.bytes = element;
  const size_t bracket = declared.name.find('[');
  if (bracket != std::string::npos) {
    uint64_t count = 0;
    if (!absl::SimpleAtoi(
            declared.name.substr(bracket + 1,
                                 declared.name.find(']') - bracket - 1),
            &count))
      return std::nullopt;
    declared.bytes = element * count;
    declared.name.resize(bracket);
  }
  if (declared.alignment == 0)
    declared.alignment = static_cast<uint32_t>(element);
  return declared;
}

// The product of ".maxntid 256, 1, 1"; 0: there is none.
uint32_t LaunchBound(std::string_view header) {
  constexpr std::string_view kDirective = ".maxntid ";
  const size_t at = header.find(kDirective);
  if (at == std::string_view::npos) return 0;
  const std::string_view line = header.substr(
      at + kDirective.size(), header.find('\n', at) - at - kDirective.size());
  uint32_t threads = 1;
  for (absl::string_view part :
       absl::StrSplit(absl::string_view(line.data(), line.size()), ',')) {
    uint32_t dimension = 0;
    if (!absl::SimpleAtoi(part, &dimension)) return 0;
    threads *= dimension;
  }
  return threads;
}

bool IsMadeByCompiler(const std::string& name) {
  return name.find('$') != std::string::npos ||
         absl::StartsWith(name, "__unnamed_") ||
         absl::StartsWith(name, "__func__") ||
         absl::StartsWith(name, "__PRETTY_FUNCTION__");
}

}  // namespace

std::vector<std::string> PtxKernelNames(const std::string& ptx) {
  std::vector<std::string> names;
  for (Entry& entry : Entries(ptx)) names.push_back(std::move(entry.name));
  return names;
}

std::string KeepPtxKernels(const std::string& ptx,
                           const std::vector<std::string>& kernels) {
  std::string kept;
  size_t from = 0;
  for (const Entry& entry : Entries(ptx)) {
    if (std::find(kernels.begin(), kernels.end(), entry.name) != kernels.end())
      continue;
    kept.append(ptx, from, entry.begin - from);
    from = entry.end;
  }
  return kept.append(ptx, from);
}

std::string RenamePtxSymbol(const std::string& ptx, const std::string& from,
                            const std::string& to) {
  std::string renamed;
  size_t done = 0;
  for (size_t at = ptx.find(from); at != std::string::npos;
       at = ptx.find(from, at + 1)) {
    const bool begins = at == 0 || !IsNameCharacter(ptx[at - 1]);
    if (!begins || NameAt(ptx, at).size() != from.size()) continue;
    renamed.append(ptx, done, at - done).append(to);
    done = at + from.size();
  }
  return renamed.append(ptx, done);
}

std::string SetPtxLimits(const std::string& ptx,
                         const v1::CodegenOptions& options,
                         uint32_t max_registers) {
  const bool threads = options.has_max_threads_per_block();
  const bool blocks = options.has_min_blocks_per_multiprocessor();
  const bool registers = max_registers != 0;
  if (!threads && !blocks && !registers) return ptx;
  std::string changed;
  size_t from = 0;
  for (const Entry& entry : Entries(ptx)) {
    const std::string_view header =
        std::string_view(ptx).substr(entry.begin, entry.body - entry.begin);
    changed.append(ptx, from, entry.begin - from);
    for (absl::string_view line : absl::StrSplit(
             absl::string_view(header.data(), header.size()), '\n')) {
      const bool replaced =
          (threads && absl::StartsWith(line, ".maxntid")) ||
          (threads && absl::StartsWith(line, ".reqntid")) ||
          (blocks && absl::StartsWith(line, ".minnctapersm")) ||
          (registers && absl::StartsWith(line, ".maxnreg"));
      if (!replaced && !line.empty()) absl::StrAppend(&changed, line, "\n");
    }
    if (threads && options.max_threads_per_block() != 0)
      absl::StrAppend(&changed, ".maxntid ", options.max_threads_per_block(),
                      "\n");
    if (blocks && options.min_blocks_per_multiprocessor() != 0)
      absl::StrAppend(&changed, ".minnctapersm ",
                      options.min_blocks_per_multiprocessor(), "\n");
    if (registers) absl::StrAppend(&changed, ".maxnreg ", max_registers, "\n");
    from = entry.body;
  }
  return changed.append(ptx, from);
}

absl::StatusOr<v1::CompiledKernelInfo> DescribePtxKernel(
    const std::string& ptx, const std::string& kernel) {
  for (const Entry& entry : Entries(ptx)) {
    if (entry.name != kernel) continue;
    v1::CompiledKernelInfo info;
    info.set_symbol(kernel);
    const std::string header =
        ptx.substr(entry.begin, entry.body - entry.begin);
    info.set_max_threads_per_block(LaunchBound(header));
    uint64_t offset = 0;
    for (absl::string_view line : absl::StrSplit(header, '\n')) {
      const size_t at = line.find(".param ");
      if (at == absl::string_view::npos) continue;
      const auto declared = ReadDeclaration(
          std::string_view(line.data() + at + 7, line.size() - at - 7));
      if (!declared) continue;
      offset = (offset + declared->alignment - 1) / declared->alignment *
               declared->alignment;
      info.add_parameter_offsets(static_cast<uint32_t>(offset));
      info.add_parameter_bytes(static_cast<uint32_t>(declared->bytes));
      offset += declared->bytes;
    }
    return info;
  }
  return absl::NotFoundError(absl::StrCat("no kernel ", kernel, " in the PTX"));
}

std::vector<v1::ModuleGlobal> PtxVariables(const std::string& ptx) {
  std::vector<v1::ModuleGlobal> variables;
  for (absl::string_view line : absl::StrSplit(ptx, '\n')) {
    if (line.empty() || line[0] != '.' || absl::StartsWith(line, ".extern"))
      continue;
    const bool constant = absl::StrContains(line, ".const ");
    if (!constant && !absl::StrContains(line, ".global ")) continue;
    const auto declared =
        ReadDeclaration(std::string_view(line.data(), line.size()));
    if (!declared || IsMadeByCompiler(declared->name)) continue;
    v1::ModuleGlobal& variable = variables.emplace_back();
    variable.set_symbol(declared->name);
    variable.set_bytes(declared->bytes);
    variable.set_alignment(declared->alignment);
    variable.set_constant(constant);
  }
  return variables;
}

int FindKernelSymbol(const std::vector<std::string>& symbols,
                     const std::string& wanted) {
  const int found = FindSymbol(symbols, wanted);
  if (found >= 0) return found;
  const std::string bare = QualifiedKernelName(wanted);
  int only = -1;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (QualifiedKernelName(symbols[i]) != bare) continue;
    if (only >= 0) return -1;
    only = static_cast<int>(i);
  }
  return only;
}

}  // namespace reprise
