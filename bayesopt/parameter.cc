#include "bayesopt/parameter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bayesopt/permutation.h"

namespace reprise::bayesopt {
namespace {

absl::Status CheckLevels(const Parameter& parameter) {
  std::set<Value> distinct;
  for (size_t i = 0; i < parameter.levels.size(); ++i) {
    const Level& level = parameter.levels[i];
    if (std::holds_alternative<std::monostate>(level.value) ||
        !distinct.insert(level.value).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("space: parameter ", parameter.name,
                       ": got the value \"", ValueToString(level.value),
                       "\" empty or twice, expected distinct values"));
    }
    if (parameter.kind == ParameterKind::kOrdinal && i > 0 &&
        level.position <= parameter.levels[i - 1].position) {
      return absl::InvalidArgumentError(
          absl::StrCat("space: parameter ", parameter.name,
                       ": expected increasing positions, got ", level.position,
                       " after ", parameter.levels[i - 1].position));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckItems(const Parameter& parameter) {
  if (parameter.levels.size() < 2 ||
      parameter.levels.size() > kMaximumPermutationItems) {
    return absl::InvalidArgumentError(absl::StrCat(
        "space: parameter ", parameter.name, ": got ", parameter.levels.size(),
        " items, expected 2 to ", kMaximumPermutationItems));
  }
  std::set<std::string> texts;
  for (const Level& item : parameter.levels) {
    const std::string text = ValueToString(item.value);
    if (!text.empty() && text.find(',') == std::string::npos &&
        texts.insert(text).second) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("space: parameter ", parameter.name, ": got the item \"",
                     text, "\", expected distinct texts without a comma"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ValueToString(const Value& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(int64_t i) const { return absl::StrCat(i); }
    std::string operator()(double d) const {
      std::array<char, 32> text;
      const auto end = std::to_chars(text.begin(), text.end(), d).ptr;
      return std::string(text.begin(), end);
    }
    std::string operator()(const std::string& s) const { return s; }
  };
  return std::visit(Visitor{}, value);
}

Parameter Parameter::Categorical(std::string name, std::vector<Value> values,
                                 Value initial) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.kind = ParameterKind::kCategorical;
  for (Value& value : values) parameter.levels.push_back({std::move(value), 0});
  parameter.initial = std::move(initial);
  return parameter;
}

Parameter Parameter::Ordinal(std::string name, std::vector<int64_t> values,
                             int64_t initial, bool log_scale) {
  std::vector<Level> levels;
  for (const int64_t value : values) {
    const double number = static_cast<double>(value);
    levels.push_back(
        {value, log_scale ? std::log2(std::max(number, 0.5)) : number});
  }
  return OrdinalLevels(std::move(name), std::move(levels), initial);
}

Parameter Parameter::OrdinalLevels(std::string name, std::vector<Level> levels,
                                   Value initial) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.kind = ParameterKind::kOrdinal;
  parameter.levels = std::move(levels);
  parameter.initial = std::move(initial);
  return parameter;
}

Parameter Parameter::Integer(std::string name, int64_t minimum, int64_t maximum,
                             int64_t initial, int64_t step, bool log_scale) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.kind = ParameterKind::kInteger;
  parameter.minimum = minimum;
  parameter.maximum = maximum;
  parameter.step = step;
  parameter.log_scale = log_scale;
  parameter.initial = initial;
  return parameter;
}

Parameter Parameter::Boolean(std::string name, bool initial) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.kind = ParameterKind::kBoolean;
  parameter.levels = {{false, 0}, {true, 1}};
  parameter.initial = initial;
  return parameter;
}

Parameter Parameter::Pipeline(std::string name,
                              std::shared_ptr<const PipelineSpace> pipelines) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.kind = ParameterKind::kPipeline;
  if (pipelines) parameter.initial = pipelines->initial();
  parameter.pipelines = std::move(pipelines);
  return parameter;
}

Parameter Parameter::Permutation(std::string name, std::vector<Value> items) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.kind = ParameterKind::kPermutation;
  std::vector<size_t> order;
  for (Value& item : items) {
    order.push_back(order.size());
    parameter.levels.push_back({std::move(item), 0});
  }
  parameter.initial = parameter.InOrder(order);
  return parameter;
}

Parameter Parameter::When(std::string parent, std::vector<Value> values) && {
  conditions.push_back({std::move(parent), std::move(values)});
  return std::move(*this);
}

uint64_t Parameter::Cardinality() const {
  if (kind == ParameterKind::kPipeline) return UINT64_MAX;
  if (kind == ParameterKind::kPermutation) return Factorial(levels.size());
  if (kind != ParameterKind::kInteger) return levels.size();
  return static_cast<uint64_t>(maximum - minimum) /
             static_cast<uint64_t>(step) +
         1;
}

Value Parameter::At(uint64_t index) const {
  if (kind == ParameterKind::kInteger) {
    return minimum + static_cast<int64_t>(index) * step;
  }
  if (kind == ParameterKind::kPermutation) {
    return InOrder(PermutationAt(levels.size(), index));
  }
  return levels[index].value;
}

std::optional<uint64_t> Parameter::IndexOf(const Value& value) const {
  if (kind == ParameterKind::kPipeline) return std::nullopt;
  if (kind == ParameterKind::kPermutation) {
    const auto order = OrderOf(value);
    if (!order) return std::nullopt;
    return PermutationRank(*order);
  }
  if (kind == ParameterKind::kInteger) {
    const auto* number = std::get_if<int64_t>(&value);
    if (number == nullptr || *number < minimum || *number > maximum ||
        (*number - minimum) % step != 0) {
      return std::nullopt;
    }
    return static_cast<uint64_t>((*number - minimum) / step);
  }
  for (size_t i = 0; i < levels.size(); ++i) {
    if (levels[i].value == value) return i;
  }
  return std::nullopt;
}

bool Parameter::Contains(const Value& value) const {
  if (kind != ParameterKind::kPipeline) return IndexOf(value).has_value();
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && pipelines->Contains(*text);
}

std::optional<std::vector<size_t>> Parameter::OrderOf(
    const Value& value) const {
  const auto* text = std::get_if<std::string>(&value);
  if (kind != ParameterKind::kPermutation || text == nullptr) {
    return std::nullopt;
  }
  std::vector<size_t> order;
  std::vector<bool> placed(levels.size());
  for (const absl::string_view piece : absl::StrSplit(*text, ',')) {
    const auto item =
        std::find_if(levels.begin(), levels.end(), [&](const Level& level) {
          return ValueToString(level.value) == piece;
        });
    if (item == levels.end()) return std::nullopt;
    const auto index = static_cast<size_t>(item - levels.begin());
    if (placed[index]) return std::nullopt;
    placed[index] = true;
    order.push_back(index);
  }
  if (order.size() != levels.size()) return std::nullopt;
  return order;
}

Value Parameter::InOrder(const std::vector<size_t>& order) const {
  return absl::StrJoin(order, ",", [this](std::string* out, size_t item) {
    absl::StrAppend(out, ValueToString(levels[item].value));
  });
}

absl::Status Parameter::Check() const {
  if (name.empty()) {
    return absl::InvalidArgumentError("space: got a parameter without a name");
  }
  if (kind == ParameterKind::kInteger &&
      (step <= 0 || maximum < minimum ||
       maximum / 2 - minimum / 2 > INT64_MAX / 4)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "space: parameter ", name, ": got range ", minimum, " to ", maximum,
        " by ", step, ", expected minimum <= maximum and a positive step"));
  }
  if (kind == ParameterKind::kPipeline && !pipelines) {
    return absl::InvalidArgumentError(
        absl::StrCat("space: parameter ", name, ": got no pipeline space"));
  }
  if (absl::Status status = CheckLevels(*this); !status.ok()) return status;
  if (kind == ParameterKind::kPermutation) {
    if (absl::Status status = CheckItems(*this); !status.ok()) return status;
  }
  if (!Contains(initial)) {
    return absl::InvalidArgumentError(
        absl::StrCat("space: parameter ", name, ": got initial value \"",
                     ValueToString(initial), "\", expected one of its values"));
  }
  return absl::OkStatus();
}

}  // namespace reprise::bayesopt
