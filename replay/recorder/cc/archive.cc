#include "replay/recorder/cc/archive.h"

#include <ar.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

constexpr std::string_view kMagic = "!<arch>\n";
constexpr std::string_view kThinMagic = "!<thin>\n";

std::string_view Trimmed(std::string_view field) {
  const size_t end = field.find_last_not_of(' ');
  return end == std::string_view::npos ? std::string_view()
                                       : field.substr(0, end + 1);
}

bool ParseNumber(std::string_view text, uint64_t* number) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// GNU's long names lie in the member "//", ended by "/\n".
std::string LongName(std::string_view table, std::string_view reference) {
  uint64_t offset = 0;
  if (!ParseNumber(reference.substr(1), &offset) || offset >= table.size())
    return "";
  std::string_view name = table.substr(offset);
  name = name.substr(0, name.find('\n'));
  if (!name.empty() && name.back() == '/') name.remove_suffix(1);
  return std::string(name);
}

std::string MemberPath(const std::string& archive, std::string_view name,
                       std::string_view long_names) {
  std::string file(name);
  if (name.size() > 1 && name[0] == '/')
    file = LongName(long_names, name);
  else if (!file.empty() && file.back() == '/')
    file.pop_back();
  if (file.empty()) return "";
  const std::filesystem::path path(file);
  return path.is_absolute()
             ? file
             : (std::filesystem::path(archive).parent_path() / path).string();
}

}  // namespace

bool IsArchive(std::string_view file) {
  const std::string_view magic = file.substr(0, kMagic.size());
  return magic == kMagic || magic == kThinMagic;
}

absl::StatusOr<std::vector<std::string_view>> ArchiveMembers(
    std::string_view file, const std::string& path,
    std::deque<std::string>* storage) {
  const bool thin = file.substr(0, kThinMagic.size()) == kThinMagic;
  std::vector<std::string_view> members;
  std::string_view long_names;
  uint64_t offset = kMagic.size();
  while (file.size() - offset >= sizeof(ar_hdr)) {
    ar_hdr header;
    std::memcpy(&header, file.data() + offset, sizeof(header));
    offset += sizeof(header);
    uint64_t bytes = 0;
    if (std::memcmp(header.ar_fmag, ARFMAG, 2) != 0 ||
        !ParseNumber(Trimmed({header.ar_size, sizeof(header.ar_size)}), &bytes))
      return absl::InvalidArgumentError("a malformed member of an archive");
    const std::string_view name =
        Trimmed({header.ar_name, sizeof(header.ar_name)});
    const bool table = name == "/" || name == "//" || name == "/SYM64/";
    if (thin && !table) {
      const absl::StatusOr<std::string> member =
          ReadFile(MemberPath(path, name, long_names));
      if (member.ok()) members.push_back(storage->emplace_back(*member));
      continue;
    }
    if (bytes > file.size() - offset)
      return absl::InvalidArgumentError("a member of an archive is cut off");
    const std::string_view content = file.substr(offset, bytes);
    if (name == "//") long_names = content;
    if (!table) members.push_back(content);
    offset += bytes + bytes % 2;
    if (offset > file.size()) break;
  }
  return members;
}

}  // namespace reprise
