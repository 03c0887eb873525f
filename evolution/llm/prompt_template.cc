#include "evolution/llm/prompt_template.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "evolution/llm/prompts/built_in.h"
#include "evolution/regions.h"
#include "replay/base/check.h"
#include "replay/base/file_util.h"

namespace reprise::evolution {
namespace {

struct Known {
  const char* name;
  std::vector<std::string> required;
  std::vector<std::string> optional;
};

const std::vector<Known>& KnownTemplates() {
  static const auto* const known = new std::vector<Known>{
      {"system", {"hardware"}, {}},
      {"task", {"kernel", "host_code"}, {"launch", "notes"}},
      {"exemplar", {"diff"}, {"speedup", "description"}},
      {"parent", {"regions"}, {"speedup", "measured"}},
      {"other", {"diff"}, {"speedup", "description"}},
      {"feedback", {"feedback"}, {}},
      {"mutate", {}, {}},
      {"crossover", {}, {}},
      {"answer_edits", {}, {}},
      {"answer_regions", {}, {}},
      {"repair", {"errors"}, {}},
  };
  return *known;
}

bool IsPlaceName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) || c == '_';
  });
}

}  // namespace

absl::StatusOr<PromptTemplate> PromptTemplate::Parse(
    const std::string& name, std::string_view text,
    const std::vector<std::string>& required,
    const std::vector<std::string>& optional) {
  std::vector<std::string> allowed = required;
  allowed.insert(allowed.end(), optional.begin(), optional.end());
  const auto wrong = [&](size_t offset, const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ":", LineOf(text, offset), ": ", what));
  };
  PromptTemplate parsed;
  std::set<std::string> seen;
  Part part;
  size_t at = 0;
  while (at < text.size()) {
    const size_t open = text.find("{{", at);
    part.text += text.substr(at, open - at);
    if (open == std::string_view::npos) break;
    if (part.text.ends_with('\\') && open > at) {
      part.text.back() = '{';
      part.text += '{';
      at = open + 2;
      continue;
    }
    const size_t close = text.find("}}", open);
    const size_t newline = text.find('\n', open);
    if (close == std::string_view::npos || newline < close)
      return wrong(open, "got {{ without }} in its line; \\{{ stands for {{");
    const std::string place(text.substr(open + 2, close - open - 2));
    if (!IsPlaceName(place) ||
        std::find(allowed.begin(), allowed.end(), place) == allowed.end()) {
      return wrong(
          open, absl::StrCat("got {{", place, "}}, expected ",
                             allowed.empty()
                                 ? "no place to fill in"
                                 : absl::StrCat("one of ",
                                                absl::StrJoin(allowed, ", "))));
    }
    seen.insert(place);
    part.place = place;
    parsed.parts_.push_back(std::move(part));
    part = {};
    at = close + 2;
  }
  parsed.parts_.push_back(std::move(part));
  for (const std::string& place : required) {
    if (seen.count(place) == 0)
      return wrong(text.size(), absl::StrCat("got no {{", place, "}}"));
  }
  return parsed;
}

std::string PromptTemplate::Fill(const PromptValues& values) const {
  std::string out;
  for (const Part& part : parts_) {
    out += part.text;
    const auto value = values.find(part.place);
    if (value != values.end()) out += value->second;
  }
  return out;
}

std::vector<std::string> PromptTemplates::Names() {
  std::vector<std::string> names;
  for (const Known& known : KnownTemplates()) names.emplace_back(known.name);
  return names;
}

std::string PromptTemplates::BuiltIn(const std::string& name) {
  const char* text = BuiltInPrompt(name);
  CHECK(text != nullptr);
  return text;
}

namespace {

absl::StatusOr<std::string> ReadAll(const std::filesystem::path& path) {
  auto text = ReadFile(path);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(
      absl::StrCat(path.string(), ":1: got a file that cannot be read"));
}

absl::Status CheckNames(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator files(directory, error);
  if (error) {
    return absl::NotFoundError(absl::StrCat("prompts: got no directory ",
                                            directory, " (", error.message(),
                                            "), expected one with *.md files"));
  }
  const std::vector<std::string> names = PromptTemplates::Names();
  for (const auto& file : files) {
    const std::string stem = file.path().stem().string();
    if (file.path().extension() != ".md" ||
        std::find(names.begin(), names.end(), stem) != names.end())
      continue;
    return absl::InvalidArgumentError(
        absl::StrCat(file.path().string(),
                     ":1: got no template's name, "
                     "expected one of ",
                     absl::StrJoin(names, ".md, "), ".md"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PromptTemplates> PromptTemplates::Load(
    const std::string& directory) {
  if (!directory.empty()) {
    absl::Status status = CheckNames(directory);
    if (!status.ok()) return status;
  }
  PromptTemplates loaded;
  for (const Known& known : KnownTemplates()) {
    std::string name = absl::StrCat(known.name, ".md");
    std::string text = BuiltIn(known.name);
    const std::filesystem::path own = std::filesystem::path(directory) / name;
    if (!directory.empty() && std::filesystem::exists(own)) {
      auto read = ReadAll(own);
      if (!read.ok()) return read.status();
      text = *std::move(read);
      name = own.string();
    }
    auto parsed =
        PromptTemplate::Parse(name, text, known.required, known.optional);
    if (!parsed.ok()) return parsed.status();
    loaded.templates_[known.name] = *std::move(parsed);
  }
  return loaded;
}

const PromptTemplate& PromptTemplates::Get(const std::string& name) const {
  const auto found = templates_.find(name);
  CHECK(found != templates_.end());
  return found->second;
}

}  // namespace reprise::evolution
