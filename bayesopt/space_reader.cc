#include "bayesopt/space_reader.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bayesopt/expression.h"

namespace reprise::bayesopt {
namespace {

constexpr size_t kMaximumBytes = 1 << 20;
constexpr size_t kMaximumParameters = 1000;
constexpr size_t kMaximumValues = 10000;

// What is wrong, thrown within this file only, beside yaml-cpp's own.
struct Problem {
  int line = 0;  // from 1
  std::string what;
};

[[noreturn]] void Fail(const YAML::Node& at, std::string what) {
  throw Problem{std::max(at.Mark().line + 1, 1), std::move(what)};
}

std::string KindOf(const YAML::Node& node) {
  if (node.IsScalar()) return absl::StrCat("'", node.Scalar(), "'");
  if (node.IsSequence()) return "a list";
  return node.IsMap() ? "a map" : "nothing";
}

// The entries of a map; all keys are among `known` where that is not empty.
std::vector<std::pair<YAML::Node, YAML::Node>> Entries(
    const YAML::Node& map, const std::string& what,
    const std::vector<std::string>& known) {
  if (!map.IsMap()) {
    Fail(map, absl::StrCat(what, ": got ", KindOf(map), ", expected a map"));
  }
  std::vector<std::pair<YAML::Node, YAML::Node>> entries;
  std::set<std::string> seen;
  for (const auto& entry : map) {
    if (!entry.first.IsScalar()) {
      Fail(entry.first, absl::StrCat(what, ": got ", KindOf(entry.first),
                                     " as a key, expected a word"));
    }
    const std::string& key = entry.first.Scalar();
    if (!seen.insert(key).second) {
      Fail(entry.first, absl::StrCat(what, ": got '", key, "' twice"));
    }
    bool is_known = known.empty();
    for (const std::string& each : known) is_known = is_known || each == key;
    if (!is_known) {
      Fail(entry.first, absl::StrCat(what, ": got '", key, "', expected ",
                                     absl::StrJoin(known, ", ")));
    }
    entries.emplace_back(entry.first, entry.second);
  }
  return entries;
}

std::optional<int64_t> Whole(const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error != std::errc()) return std::nullopt;
  return value;
}

std::optional<double> Decimal(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error != std::errc() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

Value ScalarOf(const YAML::Node& node, const std::string& what) {
  if (!node.IsScalar()) {
    Fail(node,
         absl::StrCat(what, ": got ", KindOf(node), ", expected one value"));
  }
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // in quotes
  if (text == "true" || text == "false") return text == "true";
  if (const auto whole = Whole(text)) return *whole;
  if (const auto decimal = Decimal(text)) return *decimal;
  return text;
}

int64_t WholeOf(const YAML::Node& node, const std::string& what) {
  const Value value = ScalarOf(node, what);
  if (const auto* whole = std::get_if<int64_t>(&value)) return *whole;
  Fail(node,
       absl::StrCat(what, ": got ", KindOf(node), ", expected a whole number"));
}

double NumberOf(const YAML::Node& node, const std::string& what) {
  const Value value = ScalarOf(node, what);
  if (const auto* whole = std::get_if<int64_t>(&value)) {
    return static_cast<double>(*whole);
  }
  if (const auto* decimal = std::get_if<double>(&value)) return *decimal;
  Fail(node, absl::StrCat(what, ": got ", KindOf(node), ", expected a number"));
}

std::vector<YAML::Node> ListOf(const YAML::Node& node,
                               const std::string& what) {
  if (!node.IsSequence() || node.size() == 0 || node.size() > kMaximumValues) {
    Fail(node,
         absl::StrCat(what, ": got ", KindOf(node),
                      ", expected a list of 1 to ", kMaximumValues, " values"));
  }
  std::vector<YAML::Node> items;
  for (const YAML::Node& item : node) items.push_back(item);
  return items;
}

std::vector<Value> ValuesOf(const YAML::Node& node, const std::string& what) {
  std::vector<Value> values;
  for (const YAML::Node& item : ListOf(node, what)) {
    values.push_back(ScalarOf(item, what));
  }
  return values;
}

// One parameter from its name and map.
class ParameterReader {
 public:
  ParameterReader(const YAML::Node& name, const YAML::Node& node)
      : name_(name.Scalar()), what_(absl::StrCat("parameter ", name_)) {
    for (auto& [key, value] :
         Entries(node, what_,
                 {"ordinal", "integer", "categorical", "boolean", "permutation",
                  "pipeline", "scale", "initial", "when"})) {
      fields_[key.Scalar()] = value;
    }
    FindKind(name);
  }

  Parameter Read() {
    const YAML::Node& values = fields_.at(kind_);
    Parameter parameter;
    if (kind_ == "ordinal") {
      parameter = Ordinal(values);
    } else if (kind_ == "integer") {
      parameter = Integer(values);
    } else if (kind_ == "categorical") {
      const std::vector<Value> levels = ValuesOf(values, what_);
      parameter = Parameter::Categorical(name_, levels, levels.front());
    } else if (kind_ == "boolean") {
      const Value initial = ScalarOf(values, what_);
      if (!std::holds_alternative<bool>(initial)) {
        Fail(values, absl::StrCat(what_, ": got ", KindOf(values),
                                  ", expected true or false"));
      }
      parameter = Parameter::Boolean(name_, std::get<bool>(initial));
    } else if (kind_ == "permutation") {
      parameter = Parameter::Permutation(name_, ValuesOf(values, what_));
    } else {
      parameter = Pipeline(values);
    }
    if (const YAML::Node* initial = Find("initial")) {
      parameter.initial = ScalarOf(*initial, what_);
    }
    if (const YAML::Node* when = Find("when")) ReadWhen(*when, &parameter);
    return parameter;
  }

 private:
  const YAML::Node* Find(const std::string& key) const {
    const auto found = fields_.find(key);
    return found == fields_.end() ? nullptr : &found->second;
  }

  void FindKind(const YAML::Node& name) {
    for (const char* kind : {"ordinal", "integer", "categorical", "boolean",
                             "permutation", "pipeline"}) {
      if (Find(kind) == nullptr) continue;
      if (!kind_.empty()) {
        Fail(name, absl::StrCat(what_, ": got both ", kind_, " and ", kind,
                                ", expected one of them"));
      }
      kind_ = kind;
    }
    if (kind_.empty()) {
      Fail(name, absl::StrCat(what_,
                              ": got no kind, expected one of ordinal, "
                              "integer, categorical, boolean, permutation, "
                              "pipeline"));
    }
    const YAML::Node* scale = Find("scale");
    if (scale != nullptr && kind_ != "ordinal" && kind_ != "integer") {
      Fail(*scale, absl::StrCat(what_, ": got a scale for a ", kind_,
                                ", expected it for ordinal or integer only"));
    }
    const YAML::Node* initial = Find("initial");
    if (initial != nullptr && (kind_ == "boolean" || kind_ == "permutation")) {
      Fail(*initial,
           absl::StrCat(what_, ": got 'initial', which for a ", kind_,
                        kind_ == "boolean" ? " is its value: {boolean: true}"
                                           : " is the order of its items"));
    }
  }

  bool LogScale() const {
    const YAML::Node* scale = Find("scale");
    if (scale == nullptr) return false;
    const Value word = ScalarOf(*scale, what_);
    if (word == Value(std::string("log"))) return true;
    if (word == Value(std::string("linear"))) return false;
    Fail(*scale, absl::StrCat(what_, ": got the scale ", KindOf(*scale),
                              ", expected linear or log"));
  }

  double Position(const YAML::Node& at) const {
    const double number = NumberOf(at, what_);
    if (!LogScale()) return number;
    if (number >= 0) return std::log2(std::max(number, 0.5));
    Fail(at, absl::StrCat(what_, ": got ", KindOf(at),
                          " on a log scale, expected no negative number"));
  }

  Parameter Ordinal(const YAML::Node& node) const {
    std::vector<Level> levels;
    for (const YAML::Node& item : ListOf(node, what_)) {
      if (!item.IsMap()) {
        levels.push_back({ScalarOf(item, what_), Position(item)});
        continue;
      }
      std::map<std::string, YAML::Node> level;
      for (auto& [key, value] : Entries(item, what_, {"value", "at"})) {
        level[key.Scalar()] = value;
      }
      if (level.size() != 2) {
        Fail(item, absl::StrCat(what_,
                                ": expected a level {value: ..., at: "
                                "...}"));
      }
      levels.push_back(
          {ScalarOf(level.at("value"), what_), Position(level.at("at"))});
    }
    const Value initial = levels.front().value;
    return Parameter::OrdinalLevels(name_, std::move(levels), initial);
  }

  Parameter Integer(const YAML::Node& node) const {
    std::map<std::string, int64_t> range = {{"step", 1}};
    for (auto& [key, value] : Entries(node, what_, {"from", "to", "step"})) {
      range[key.Scalar()] = WholeOf(value, what_);
    }
    if (range.size() != 3) {
      Fail(node, absl::StrCat(what_,
                              ": expected integer: {from: ..., to: "
                              "...}, and step where it is not 1"));
    }
    return Parameter::Integer(name_, range["from"], range["to"], range["from"],
                              range["step"], LogScale());
  }

  Parameter Pipeline(const YAML::Node& node) const {
    PipelineSpace::Options options;
    for (auto& [key, value] : Entries(node, what_, {"target", "max_edits"})) {
      if (key.Scalar() == "max_edits") {
        const int64_t edits = WholeOf(value, what_);
        if (edits < 0 || edits > 64) {
          Fail(value, absl::StrCat(what_, ": got max_edits ", edits,
                                   ", expected 0 to 64"));
        }
        options.max_edits = static_cast<int>(edits);
      } else if (value.IsScalar() && value.Scalar() == "nvptx") {
        options.target = PipelineTarget::kNvptx;
      } else if (!value.IsScalar() || value.Scalar() != "host") {
        Fail(value, absl::StrCat(what_, ": got the target ", KindOf(value),
                                 ", expected host or nvptx"));
      }
    }
    return Parameter::Pipeline(name_, std::make_shared<PipelineSpace>(options));
  }

  void ReadWhen(const YAML::Node& node, Parameter* parameter) const {
    for (auto& [key, value] :
         Entries(node, absl::StrCat(what_, ", when"), {})) {
      parameter->conditions.push_back(
          {key.Scalar(), value.IsSequence()
                             ? ValuesOf(value, what_)
                             : std::vector<Value>{ScalarOf(value, what_)}});
    }
  }

  const std::string name_;
  const std::string what_;
  std::string kind_;
  std::map<std::string, YAML::Node> fields_;
};

// A condition names a parameter further up and values that this one has.
void CheckConditions(const YAML::Node& at, const Parameter& parameter,
                     const std::vector<Parameter>& before) {
  for (const Condition& condition : parameter.conditions) {
    const Parameter* parent = nullptr;
    for (const Parameter& each : before) {
      if (each.name == condition.parameter) parent = &each;
    }
    if (parent == nullptr) {
      Fail(at, absl::StrCat("parameter ", parameter.name,
                            ": got a condition on '", condition.parameter,
                            "', expected a parameter further up"));
    }
    for (const Value& value : condition.values) {
      if (parent->Contains(value)) continue;
      Fail(at,
           absl::StrCat("parameter ", parameter.name, ": got a condition on ",
                        condition.parameter, " = '", ValueToString(value),
                        "', expected one of its values"));
    }
  }
}

std::vector<Parameter> ReadParameters(const YAML::Node& node) {
  std::vector<Parameter> parameters;
  for (auto& [name, fields] : Entries(node, "parameters", {})) {
    if (parameters.size() == kMaximumParameters) {
      Fail(name, absl::StrCat("expected at most ", kMaximumParameters,
                              " parameters"));
    }
    const auto as_name = Expression::Parse(name.Scalar());
    if (!as_name.ok() ||
        as_name->names() != std::vector<std::string>{name.Scalar()}) {
      Fail(name, absl::StrCat("got the parameter '", name.Scalar(),
                              "', expected a name of letters, digits, '_' and "
                              "'.' that begins with a letter"));
    }
    Parameter parameter = ParameterReader(name, fields).Read();
    if (absl::Status status = parameter.Check(); !status.ok()) {
      Fail(name, std::string(status.message()));
    }
    CheckConditions(name, parameter, parameters);
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

Constraint ReadConstraint(const YAML::Node& node,
                          const std::vector<Parameter>& parameters) {
  std::map<std::string, std::string> fields;
  if (node.IsScalar()) {
    fields["holds"] = node.Scalar();
  } else {
    for (auto& [key, value] :
         Entries(node, "constraint", {"holds", "because"})) {
      if (!value.IsScalar()) {
        Fail(value, absl::StrCat("constraint: got ", KindOf(value),
                                 ", expected text"));
      }
      fields[key.Scalar()] = value.Scalar();
    }
  }
  if (fields.count("holds") == 0) {
    Fail(node, "constraint: got none, expected {holds: an expression}");
  }
  auto constraint =
      ConstraintFromText(fields["holds"], parameters, fields["because"]);
  if (!constraint.ok()) Fail(node, std::string(constraint.status().message()));
  return *std::move(constraint);
}

bool HoldsFor(const Constraint& constraint, const Assignment& assignment) {
  std::vector<Value> values;
  for (const std::string& name : constraint.parameters) {
    const auto found = assignment.find(name);
    if (found == assignment.end()) return true;  // inactive
    values.push_back(found->second);
  }
  return constraint.holds(values);
}

std::shared_ptr<const Space> Build(const YAML::Node& root) {
  std::map<std::string, YAML::Node> parts;
  for (auto& [key, value] :
       Entries(root, "space", {"parameters", "constraints"})) {
    parts[key.Scalar()] = value;
  }
  if (parts.count("parameters") == 0) {
    Fail(root, "space: got no 'parameters'");
  }
  const std::vector<Parameter> parameters = ReadParameters(parts["parameters"]);
  auto space = Space::Create(parameters);
  if (!space.ok()) Fail(root, std::string(space.status().message()));
  const Assignment initial = (*space)->ToAssignment((*space)->Default());
  std::vector<Constraint> constraints;
  if (parts.count("constraints") > 0) {
    for (const YAML::Node& node : ListOf(parts["constraints"], "constraints")) {
      constraints.push_back(ReadConstraint(node, parameters));
      if (!HoldsFor(constraints.back(), initial)) {
        Fail(node, absl::StrCat("the initial values break '",
                                constraints.back().description,
                                "'; change one of them"));
      }
    }
  }
  space = Space::Create(parameters, std::move(constraints));
  if (!space.ok()) Fail(root, std::string(space.status().message()));
  return *std::move(space);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Space>> ReadSpace(
    const std::string& text, const std::string& source) {
  const auto error = [&](int line, const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ":", line, ": ", what));
  };
  if (text.size() > kMaximumBytes) {
    return error(1, absl::StrCat("got ", text.size(),
                                 " bytes, expected at "
                                 "most ",
                                 kMaximumBytes));
  }
  try {
    return Build(YAML::Load(text));
  } catch (const Problem& problem) {
    return error(problem.line, problem.what);
  } catch (const YAML::Exception& problem) {
    return error(std::max(problem.mark.line + 1, 1), problem.msg);
  }
}

}  // namespace reprise::bayesopt
