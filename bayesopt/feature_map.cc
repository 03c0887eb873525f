#include "bayesopt/feature_map.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "bayesopt/pipeline.h"

namespace reprise::bayesopt {
namespace {

// Places for a pipeline's passes and for its pairs of passes each.
constexpr size_t kPipelineBuckets = 24;
// Remembered; about 300 bytes each beside the text.
constexpr size_t kMostPipelines = 4096;
constexpr float kApart = 0.70710678F;  // 1/sqrt(2)

uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ull;
  }
  return Random(hash).Next();
}

// Feature hashing: a bucket and a sign, so that collisions cancel on average.
void Count(std::string_view gram, std::span<float> buckets) {
  const uint64_t hash = HashText(gram);
  buckets[hash % buckets.size()] += (hash >> 63) != 0 ? 0.5F : -0.5F;
}

const int64_t* Number(const Value& value) {
  return std::get_if<int64_t>(&value);
}

bool PositiveNumbers(const Parameter& parameter) {
  if (parameter.kind == ParameterKind::kInteger) return parameter.minimum > 0;
  return std::all_of(parameter.levels.begin(), parameter.levels.end(),
                     [](const Level& level) {
                       const int64_t* number = Number(level.value);
                       return number != nullptr && *number > 0;
                     });
}

// What the hardware does changes by factors, not by differences: positive
// numbers count by their logarithms even where the parameter's own positions
// are the numbers.
float PositionOf(const Parameter& parameter, const Value& value) {
  if (PositiveNumbers(parameter)) {
    return static_cast<float>(std::log2(static_cast<double>(*Number(value))));
  }
  if (parameter.kind == ParameterKind::kInteger) {
    const auto number = static_cast<double>(*Number(value));
    if (!parameter.log_scale) return static_cast<float>(number);
    return static_cast<float>(
        std::log2(1 + number - static_cast<double>(parameter.minimum)));
  }
  return static_cast<float>(
      parameter.levels[parameter.IndexOf(value).value()].position);
}

// How often two divides the number, in units in which a factor of four is 1.
float AlignmentOf(const Value& value) {
  const int64_t* number = Number(value);
  if (number == nullptr || *number == 0) return 0;
  return static_cast<float>(std::countr_zero(static_cast<uint64_t>(*number))) /
         2;
}

// A quarter or more of the first values are no powers of two: alignment says
// something that the position does not.
bool HasAlignments(const Parameter& parameter) {
  const uint64_t count = std::min<uint64_t>(parameter.Cardinality(), 256);
  uint64_t others = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const Value value = parameter.At(i);
    const int64_t* number = Number(value);
    if (number == nullptr || *number <= 0) continue;
    others += std::has_single_bit(static_cast<uint64_t>(*number)) ? 0 : 1;
  }
  return count >= 4 && others * 4 >= count;
}

// Which item of every pair comes first; opposite orders are at distance 1.
void EncodePermutation(const std::vector<size_t>& order,
                       std::span<float> pairs) {
  std::vector<size_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  const float apart = 1 / std::sqrt(static_cast<float>(pairs.size()));
  size_t pair = 0;
  for (size_t i = 0; i < place.size(); ++i) {
    for (size_t j = i + 1; j < place.size(); ++j) {
      pairs[pair++] = place[i] < place[j] ? apart : 0;
    }
  }
}

}  // namespace

FeatureMap::FeatureMap(const Space& space, StatisticsSource statistics)
    : space_(space), statistics_(std::move(statistics)) {
  for (size_t i = 0; i < space.parameters().size(); ++i) Add(space, i);
  if (statistics_.size > 0) {
    group_of_.insert(group_of_.end(), statistics_.size, groups_++);
  }
}

void FeatureMap::Add(const Space& space, size_t index) {
  const Parameter& parameter = space.parameters()[index];
  Block block;
  block.parameter = index;
  block.first = group_of_.size();
  block.masked = !parameter.conditions.empty();
  switch (parameter.kind) {
    case ParameterKind::kOrdinal:
    case ParameterKind::kInteger: {
      block.width = 1;
      block.ordered = true;
      block.low = PositionOf(parameter, parameter.At(0));
      const float high =
          PositionOf(parameter, parameter.At(parameter.Cardinality() - 1));
      block.range = std::max(high - block.low, 1e-6F);
      block.aligned = HasAlignments(parameter);
      if (block.aligned) ++block.width;
      break;
    }
    case ParameterKind::kCategorical:
    case ParameterKind::kBoolean:
      block.width = parameter.levels.size();
      break;
    case ParameterKind::kPermutation:
      block.width = parameter.levels.size() * (parameter.levels.size() - 1) / 2;
      break;
    case ParameterKind::kPipeline:
      block.width = 2 * kPipelineBuckets;
      break;
  }
  group_of_.insert(group_of_.end(), block.width, groups_);
  if (block.aligned) group_of_.back() = ++groups_;
  if (parameter.kind == ParameterKind::kPipeline) {
    std::fill(group_of_.end() - kPipelineBuckets, group_of_.end(), ++groups_);
  }
  if (block.masked) group_of_.push_back(groups_);
  ++groups_;
  blocks_.push_back(block);
}

const std::vector<float>& FeatureMap::CountsOf(const std::string& text) {
  const auto [entry, added] = counts_.try_emplace(text);
  if (!added) return entry->second;
  entry->second.assign(2 * kPipelineBuckets, 0);
  const auto pipeline = ParsePipeline(text);
  if (!pipeline.ok()) return entry->second;
  const std::span<float> counts(entry->second);
  const auto passes = counts.first(kPipelineBuckets);
  const auto pairs = counts.subspan(kPipelineBuckets);
  std::string before = "start";
  for (const std::string& leaf : FlattenPipeline(*pipeline)) {
    // The adaptors follow from the pass; its name and parameters tell.
    const std::string pass = leaf.substr(leaf.rfind('/') + 1);
    Count(pass, passes);
    Count(before + ">" + pass, pairs);
    before = pass;
  }
  Count(before + ">end", pairs);
  return entry->second;
}

void FeatureMap::EncodeActive(const Block& block, const Value& value,
                              std::span<float> point) {
  const Parameter& parameter = space_.parameters()[block.parameter];
  if (parameter.kind == ParameterKind::kPipeline) {
    if (counts_.size() >= kMostPipelines) counts_.clear();
    const std::vector<float>& at = CountsOf(std::get<std::string>(value));
    const std::vector<float>& origin =
        CountsOf(std::get<std::string>(parameter.initial));
    for (size_t i = 0; i < block.width; ++i) {
      point[block.first + i] = at[i] - origin[i];
    }
  } else if (parameter.kind == ParameterKind::kOrdinal ||
             parameter.kind == ParameterKind::kInteger) {
    point[block.first] =
        (PositionOf(parameter, value) - block.low) / block.range;
    if (block.aligned) point[block.first + 1] = AlignmentOf(value);
  } else if (parameter.kind == ParameterKind::kPermutation) {
    EncodePermutation(parameter.OrderOf(value).value(),
                      point.subspan(block.first, block.width));
  } else {
    point[block.first + parameter.IndexOf(value).value()] = kApart;
  }
}

void FeatureMap::Encode(const Configuration& configuration,
                        std::span<float> point) {
  std::fill(point.begin(), point.end(), 0.0F);
  for (const Block& block : blocks_) {
    const Value& value = configuration.values[block.parameter];
    if (!std::holds_alternative<std::monostate>(value)) {
      EncodeActive(block, value, point);
    } else {
      if (block.ordered) point[block.first] = 0.5F;
      point[block.first + block.width] = kApart;
    }
  }
  if (statistics_.size > 0) {
    statistics_.fill(configuration, point.last(statistics_.size));
  }
}

}  // namespace reprise::bayesopt
