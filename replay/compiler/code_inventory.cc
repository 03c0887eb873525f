#include "replay/compiler/code_inventory.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "replay/compiler/ptx_text.h"

namespace reprise {
namespace {

// Roots of instructions ("cvt" of "cvt.rn.f16.f32") that compute, move data or
// synchronize, and leave nothing behind that outlives the launch.
constexpr std::array kHarmless = {
    "abs",      "activemask", "add",        "addc",  "and",
    "atom",     "bar",        "barrier",    "bfe",   "bfi",
    "bfind",    "bmsk",       "bra",        "brev",  "clusterlaunchcontrol",
    "clz",      "cnot",       "copysign",   "cos",   "cp",
    "cvt",      "cvta",       "div",        "dp2a",  "dp4a",
    "elect",    "ex2",        "exit",       "fence", "fma",
    "fns",      "getctarank", "isspacep",   "ld",    "ldmatrix",
    "ldu",      "lg2",        "lop3",       "mad",   "mad24",
    "madc",     "mapa",       "match",      "max",   "mbarrier",
    "membar",   "min",        "mma",        "mov",   "movmatrix",
    "mul",      "mul24",      "neg",        "not",   "or",
    "popc",     "prefetch",   "prefetchu",  "prmt",  "rcp",
    "red",      "redux",      "rem",        "rsqrt", "sad",
    "selp",     "set",        "setmaxnreg", "setp",  "shf",
    "shfl",     "shl",        "shr",        "sin",   "slct",
    "sqrt",     "st",         "stmatrix",   "sub",   "subc",
    "szext",    "tanh",       "tcgen05",    "testp", "vadd",
    "vabsdiff", "vabsdiff2",  "vabsdiff4",  "vadd2", "vadd4",
    "vavrg2",   "vavrg4",     "vmad",       "vmax",  "vmax2",
    "vmax4",    "vmin",       "vmin2",      "vmin4", "vote",
    "vset",     "vshl",       "vshr",       "vsub",  "vsub2",
    "vsub4",    "wgmma",      "wmma",       "xor"};

// Parts of an opcode that make the L2 cache keep or drop lines beyond a launch.
constexpr std::array kCacheControl = {"createpolicy", "applypriority",
                                      "discard", "L2::evict_last",
                                      "L2::cache_hint"};

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         c == '$';
}

std::string WithoutComments(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (absl::StartsWith({rest.data(), rest.size()}, "//")) {
      const size_t end = rest.find('\n');
      at = end == std::string_view::npos ? text.size() : at + end;
    } else if (absl::StartsWith({rest.data(), rest.size()}, "/*")) {
      const size_t end = rest.find("*/", 2);
      at = end == std::string_view::npos ? text.size() : at + end + 2;
      result += ' ';
    } else {
      result += text[at++];
    }
  }
  return result;
}

std::string Stripped(std::string_view text) {
  const absl::string_view stripped =
      absl::StripAsciiWhitespace({text.data(), text.size()});
  return {stripped.data(), stripped.size()};
}

// Without "@p " or "@!p " in front.
std::string WithoutPredicate(const std::string& statement) {
  if (statement.empty() || statement[0] != '@') return statement;
  size_t at = 1;
  while (at < statement.size() && !IsWordCharacter(statement[at]) &&
         statement[at] != '%')
    ++at;
  while (at < statement.size() &&
         (IsWordCharacter(statement[at]) || statement[at] == '%'))
    ++at;
  return Stripped(std::string_view(statement).substr(at));
}

// Statements without predicates and labels.
std::vector<std::string> PtxStatements(std::string_view text) {
  std::vector<std::string> statements;
  std::string current;
  const auto finish = [&] {
    std::string statement = WithoutPredicate(Stripped(current));
    current.clear();
    if (!statement.empty()) statements.push_back(std::move(statement));
  };
  const std::string plain = WithoutComments(text);
  const auto is_at = [&](size_t at, char c) {
    return at < plain.size() && plain[at] == c;
  };
  int depth = 0;  // of braces that group operands
  for (size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    const std::string before = c == '{' || c == ':' ? Stripped(current) : "";
    // A block, or the body behind a function's declaration.
    const bool opens =
        c == '{' && (before.empty() || (before[0] == '.' &&
                                        before.find('=') == std::string::npos));
    const bool closes = c == '}' && depth == 0;
    const bool label = c == ':' && depth == 0 && !is_at(i + 1, ':') &&
                       !(i > 0 && plain[i - 1] == ':') &&
                       before.find_first_of(" \t\n") == std::string::npos;
    if (c == '{' && !opens) ++depth;
    if (c == '}' && depth > 0) --depth;
    if (label) {
      current.clear();
    } else if (c == ';' || opens || closes) {
      finish();
    } else {
      current += c;
    }
  }
  finish();
  return statements;
}

std::string FirstWord(const std::string& statement) {
  size_t end = 0;
  while (end < statement.size() &&
         std::isspace(static_cast<unsigned char>(statement[end])) == 0)
    ++end;
  return statement.substr(0, end);
}

bool ControlsCache(const std::string& opcode) {
  return std::any_of(
      kCacheControl.begin(), kCacheControl.end(),
      [&](const char* part) { return absl::StrContains(opcode, part); });
}

// A special register that tells time, or which launch this is.
void AddSpecialRegister(const std::string& name, const std::string& place,
                        CodeInventory& inventory) {
  if (absl::StartsWith(name, "clock") ||
      absl::StartsWith(name, "globaltimer")) {
    inventory.Add("clock", absl::StrCat("reads a clock (%", name, ")"), place);
  } else if (name == "gridid" || absl::StartsWith(name, "envreg") ||
             (absl::StartsWith(name, "pm") && name.size() > 2 &&
              std::isdigit(static_cast<unsigned char>(name[2])) != 0)) {
    inventory.Add("register " + name,
                  absl::StrCat("reads %", name,
                               ", which tells launches or measurements apart"),
                  place);
  }
}

void AddSpecialRegisters(const std::string& statement, const std::string& place,
                         CodeInventory& inventory) {
  for (size_t at = statement.find('%'); at != std::string::npos;
       at = statement.find('%', at + 1)) {
    size_t end = at + 1;
    while (end < statement.size() && IsWordCharacter(statement[end])) ++end;
    AddSpecialRegister(statement.substr(at + 1, end - at - 1), place,
                       inventory);
  }
}

// What any PTX statement may not add, wherever it comes from.
void AddStatement(const std::string& statement, const std::string& place,
                  CodeInventory& inventory) {
  const std::string opcode = FirstWord(statement);
  if (ControlsCache(opcode)) {
    inventory.Add(
        absl::StrCat("cache ", opcode),
        absl::StrCat("controls what the L2 cache keeps (", opcode, ")"), place);
  }
  if (absl::StartsWith(opcode, "nanosleep"))
    inventory.Add("sleep", "sleeps (nanosleep)", place);
  if (absl::StartsWith(opcode, "griddepcontrol")) {
    inventory.Add(
        "griddepcontrol",
        absl::StrCat("lets other launches begin before it ends (", opcode, ")"),
        place);
  }
  AddSpecialRegisters(statement, place, inventory);
}

// The name that a call names: "call.uni (retval0), vprintf, (...)".
std::string CalledFunction(const std::string& statement) {
  size_t at = FirstWord(statement).size();
  int depth = 0;
  for (; at < statement.size(); ++at) {
    const char c = statement[at];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (depth != 0 || !(IsWordCharacter(c) || c == '%')) continue;
    size_t end = at;
    while (end < statement.size() &&
           (IsWordCharacter(statement[end]) || statement[end] == '%'))
      ++end;
    return statement.substr(at, end - at);
  }
  return "";
}

// Functions that a PTX text declares and does not define.
std::set<std::string> ExternalFunctions(const std::string& ptx) {
  std::set<std::string> names;
  for (size_t at = ptx.find(".extern .func"); at != std::string::npos;
       at = ptx.find(".extern .func", at + 1)) {
    const size_t end = ptx.find(';', at);
    const std::string declaration = ptx.substr(at, end - at);
    const std::string name = CalledFunction(
        "func " + declaration.substr(std::string(".extern .func").size()));
    if (!name.empty()) names.insert(name);
  }
  return names;
}

// Directives of includes with what they name, whatever they are written like.
std::vector<std::string> IncludeLines(std::string_view text) {
  std::string joined;
  for (size_t i = 0; i < text.size(); ++i) {
    // Lines that go on in the next one.
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
    } else if (text.substr(i, 2) == "%:") {
      joined += '#';
      ++i;
    } else {
      joined += text[i];
    }
  }
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(joined, '\n')) {
    const std::string plain =
        Stripped(WithoutComments({line.data(), line.size()}));
    if (plain.empty() || plain[0] != '#') continue;
    const std::string rest = Stripped(std::string_view(plain).substr(1));
    for (const char* directive : {"include", "embed", "import"}) {
      if (absl::StartsWith(rest, directive)) {
        lines.push_back(plain);
        break;
      }
    }
  }
  return lines;
}

// Tables of libdevice that it does not declare constant.
bool IsTableOfSine(const std::string& symbol) {
  return symbol == "__cudart_i2opi_f" || symbol == "__cudart_i2opi_d" ||
         symbol == "__cudart_sin_cos_coeffs";
}

}  // namespace

void CodeInventory::Add(const std::string& key, const std::string& what,
                        const std::string& place) {
  uses_.emplace(key, Use{what, place});
}

std::vector<std::string> CodeInventory::BeyondOf(
    const CodeInventory& recorded) const {
  std::vector<std::string> sentences;
  for (const auto& [key, use] : uses_) {
    if (recorded.uses_.count(key) != 0) continue;
    sentences.push_back(absl::StrCat(use.place, use.place.empty() ? "" : ": ",
                                     "the variant ", use.what,
                                     ", the recorded code does not"));
  }
  if (recorded.uses_.count(kPrintfKey) != 0 && uses_.count(kPrintfKey) == 0) {
    sentences.push_back(
        "the variant prints nothing (device printf), the recorded code does");
  }
  if (constant_bytes_ > recorded.constant_bytes_ + kMostNewConstantBytes) {
    sentences.push_back(absl::StrCat(
        "the variant holds ", constant_bytes_, " bytes of constants, ",
        constant_bytes_ - recorded.constant_bytes_,
        " more than the recorded code, allowed are ", kMostNewConstantBytes,
        " more: results may not be kept in the code"));
  }
  return sentences;
}

void AddUndefinedFunction(const std::string& name, const std::string& place,
                          CodeInventory& inventory) {
  std::string what;
  if (name == "vprintf") what = "prints (device printf)";
  if (name == "malloc" || name == "free")
    what = absl::StrCat("uses the device heap (", name, ")");
  if (absl::StartsWith(name, "cuda") || absl::StartsWith(name, "__cudaCDP"))
    what = absl::StrCat("calls the device-side runtime (", name, ")");
  if (absl::StartsWith(name, "__reprise"))
    what = absl::StrCat("calls ", name, " of the executor");
  // Others do not link, or end the launch by a fault (__assertfail).
  if (what.empty()) return;
  inventory.Add("function " + name, what, place);
}

void AddWritableVariable(const std::string& name, const std::string& place,
                         CodeInventory& inventory) {
  inventory.Add("variable " + name,
                absl::StrCat("has a device variable ", name,
                             ", which would keep its value from launch to "
                             "launch (a table is __constant__)"),
                place);
}

void AddInlinePtx(std::string_view text, const std::string& place,
                  CodeInventory& inventory) {
  for (const std::string& statement : PtxStatements(text)) {
    AddStatement(statement, place, inventory);
    const std::string opcode = FirstWord(statement);
    const std::string root = opcode.substr(0, opcode.find('.', 1));
    const bool harmless =
        root == ".reg" ||
        std::find(kHarmless.begin(), kHarmless.end(), root) != kHarmless.end();
    if (harmless) continue;
    inventory.Add(absl::StrCat("asm ", root),
                  absl::StrCat("has inline PTX \"", root, "\""), place);
  }
}

void AddPtxText(const std::string& ptx, CodeInventory& inventory) {
  constexpr std::string_view kBegin = "// begin inline asm";
  constexpr std::string_view kEnd = "// end inline asm";
  for (size_t at = ptx.find(kBegin); at != std::string::npos;
       at = ptx.find(kBegin, at + 1)) {
    const size_t end = ptx.find(kEnd, at);
    AddInlinePtx(std::string_view(ptx).substr(at, end - at), "", inventory);
  }
  const std::set<std::string> external = ExternalFunctions(ptx);
  for (const std::string& statement : PtxStatements(ptx)) {
    AddStatement(statement, "", inventory);
    if (!absl::StartsWith(statement, "call")) continue;
    const std::string callee = CalledFunction(statement);
    if (external.count(callee) != 0)
      AddUndefinedFunction(callee, "", inventory);
  }
  for (const v1::ModuleGlobal& variable : PtxVariables(ptx)) {
    if (variable.constant() || IsTableOfSine(variable.symbol())) {
      inventory.AddConstantBytes(variable.bytes());
    } else {
      AddWritableVariable(variable.symbol(), "", inventory);
    }
  }
}

std::vector<std::string> SuspectIncludes(const std::string& path,
                                         std::string_view recorded,
                                         std::string_view edited) {
  const std::vector<std::string> known = IncludeLines(recorded);
  std::vector<std::string> suspects;
  for (const std::string& line : IncludeLines(edited)) {
    if (std::find(known.begin(), known.end(), line) != known.end()) continue;
    const size_t begin = line.find_first_of("\"<");
    const bool plain = begin != std::string::npos && begin + 1 < line.size() &&
                       line[begin + 1] != '/' &&
                       !absl::StrContains(line, "..") &&
                       !absl::StrContains(line, "embed");
    if (plain) continue;
    suspects.push_back(absl::StrCat(path,
                                    ": the variant reads a file that is "
                                    "none of the unit's (",
                                    line, ")"));
  }
  return suspects;
}

}  // namespace reprise
