#include "bayesopt/parameter_mapper.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bayesopt/pipeline_space.h"

namespace reprise::bayesopt {
namespace {

using v1::CodegenOptions;

struct SwitchField {
  std::string_view name;
  void (CodegenOptions::*set)(bool);
  void (CodegenOptions::*clear)();
  bool (CodegenOptions::*has)() const;
  bool (CodegenOptions::*get)() const;
};

struct NumberField {
  std::string_view name;
  uint32_t minimum;
  uint32_t maximum;
  void (CodegenOptions::*set)(uint32_t);
  void (CodegenOptions::*clear)();
  bool (CodegenOptions::*has)() const;
  uint32_t (CodegenOptions::*get)() const;
};

#define FIELD(field)                                            \
  &CodegenOptions::set_##field, &CodegenOptions::clear_##field, \
      &CodegenOptions::has_##field, &CodegenOptions::field

constexpr std::array kSwitches = {
    SwitchField{"codegen.fp_contract", FIELD(fp_contract)},
    SwitchField{"codegen.flush_denormals", FIELD(flush_denormals)},
    SwitchField{"codegen.approximate_division", FIELD(approximate_division)},
    SwitchField{"codegen.approximate_sqrt", FIELD(approximate_sqrt)},
    SwitchField{"codegen.reassociate", FIELD(reassociate)},
    SwitchField{"codegen.no_signed_zeros", FIELD(no_signed_zeros)},
    SwitchField{"codegen.finite_math_only", FIELD(finite_math_only)},
};

constexpr uint32_t kAny = std::numeric_limits<uint32_t>::max();
constexpr std::array kNumbers = {
    NumberField{"codegen.max_registers", 1, 255, FIELD(max_registers)},
    NumberField{"codegen.unroll_threshold", 0, kAny, FIELD(unroll_threshold)},
    NumberField{"codegen.max_threads_per_block", 1, 1024,
                FIELD(max_threads_per_block)},
    NumberField{"codegen.min_blocks_per_multiprocessor", 1, 32,
                FIELD(min_blocks_per_multiprocessor)},
    NumberField{"codegen.inline_threshold", 0, kAny, FIELD(inline_threshold)},
    NumberField{"codegen.prefer_vector_bits", 64, 512,
                FIELD(prefer_vector_bits)},
    NumberField{"ptxas.level", 0, 3, FIELD(ptxas_level)},
};
#undef FIELD

constexpr std::array<std::string_view, 3> kBlock = {
    "launch.block.x", "launch.block.y", "launch.block.z"};
constexpr std::array<uint32_t, 3> kBlockMaximum = {1024, 1024, 64};

absl::Status Unexpected(const std::string& name, const Value& value,
                        std::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("parameter ", name, ": got \"", ValueToString(value),
                   "\", expected ", std::string(expected)));
}

bool IsText(const Value& value, std::string_view text) {
  const auto* got = std::get_if<std::string>(&value);
  return got != nullptr && *got == text;
}

std::optional<uint32_t> Number(const Value& value, uint32_t minimum,
                               uint32_t maximum) {
  const auto* number = std::get_if<int64_t>(&value);
  if (number == nullptr || *number < int64_t{minimum} ||
      *number > int64_t{maximum}) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(*number);
}

// Whether `name` is a codegen or ptxas parameter, and then its status.
std::optional<absl::Status> SetCodegen(const std::string& name,
                                       const Value& value,
                                       CodegenOptions& codegen) {
  for (const SwitchField& field : kSwitches) {
    if (field.name != name) continue;
    const auto* flag = std::get_if<bool>(&value);
    if (IsText(value, "default")) {
      (codegen.*field.clear)();
    } else if (flag != nullptr || IsText(value, "on") || IsText(value, "off")) {
      (codegen.*field.set)(flag != nullptr ? *flag : IsText(value, "on"));
    } else {
      return Unexpected(name, value, "on, off or default");
    }
    return absl::OkStatus();
  }
  for (const NumberField& field : kNumbers) {
    if (field.name != name) continue;
    if (IsText(value, "default")) {
      (codegen.*field.clear)();
      return absl::OkStatus();
    }
    const auto number = Number(value, field.minimum, field.maximum);
    if (!number) {
      return Unexpected(name, value,
                        absl::StrCat("default or a number from ", field.minimum,
                                     " to ", field.maximum));
    }
    (codegen.*field.set)(*number);
    return absl::OkStatus();
  }
  return std::nullopt;
}

absl::Status SetText(const std::string& name, const Value& value,
                     v1::Variant& variant) {
  const auto* text = std::get_if<std::string>(&value);
  if (name == "frontend") {
    if (text == nullptr ||
        (*text != "clang" && *text != "nvrtc" && *text != "default")) {
      return Unexpected(name, value, "clang, nvrtc or default");
    }
    variant.set_frontend(*text == "nvrtc" ? *text : "");
    return absl::OkStatus();
  }
  if (text == nullptr || text->empty()) {
    return Unexpected(name, value, "the text of a pipeline");
  }
  variant.set_pipeline(*text == "default<O3>" ? "" : *text);
  return absl::OkStatus();
}

bool SameBlock(const v1::Dim3& a, const v1::Dim3& b) {
  return a.x() == b.x() && a.y() == b.y() && a.z() == b.z();
}

}  // namespace

ParameterMapper::ParameterMapper(const v1::LaunchConfig& recorded)
    : recorded_(recorded) {}

absl::StatusOr<v1::Variant> ParameterMapper::ToVariant(
    const Assignment& assignment, const v1::Variant& base) const {
  v1::Variant variant = base;
  v1::Dim3 block = variant.launch().has_block() ? variant.launch().block()
                                                : recorded_.block();
  for (const auto& [name, value] : assignment) {
    if (name == "frontend" || name == "pipeline") {
      if (absl::Status s = SetText(name, value, variant); !s.ok()) return s;
      continue;
    }
    if (auto status = SetCodegen(name, value, *variant.mutable_codegen())) {
      if (!status->ok()) return *status;
      continue;
    }
    if (name == "launch.dynamic_shared_bytes") {
      const auto bytes = Number(value, 0, 1u << 20);
      if (!bytes) return Unexpected(name, value, "bytes from 0 to 1048576");
      variant.mutable_launch()->set_dynamic_shared_bytes(*bytes);
      continue;
    }
    bool known = false;
    for (size_t i = 0; i < kBlock.size(); ++i) {
      if (name != kBlock[i]) continue;
      known = true;
      const auto threads = Number(value, 1, kBlockMaximum[i]);
      if (!threads) {
        return Unexpected(name, value,
                          absl::StrCat("threads from 1 to ", kBlockMaximum[i]));
      }
      (i == 0   ? block.set_x(*threads)
       : i == 1 ? block.set_y(*threads)
                : block.set_z(*threads));
    }
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("got unknown parameter ", name,
                       ", expected frontend, pipeline, codegen.*, ptxas.level, "
                       "launch.block.{x,y,z} or launch.dynamic_shared_bytes"));
    }
  }
  *variant.mutable_launch()->mutable_block() = block;
  if (SameBlock(block, recorded_.block())) {
    variant.mutable_launch()->clear_block();
  }
  if (variant.launch().dynamic_shared_bytes() ==
      recorded_.dynamic_shared_bytes()) {
    variant.mutable_launch()->clear_dynamic_shared_bytes();
  }
  if (variant.launch().ByteSizeLong() == 0) variant.clear_launch();
  if (variant.codegen().ByteSizeLong() == 0) variant.clear_codegen();
  return variant;
}

Assignment ParameterMapper::ToAssignment(const v1::Variant& variant) const {
  Assignment out;
  if (!variant.frontend().empty()) out["frontend"] = variant.frontend();
  if (!variant.pipeline().empty()) out["pipeline"] = variant.pipeline();
  for (const SwitchField& field : kSwitches) {
    if (!(variant.codegen().*field.has)()) continue;
    out[std::string(field.name)] =
        std::string((variant.codegen().*field.get)() ? "on" : "off");
  }
  for (const NumberField& field : kNumbers) {
    if (!(variant.codegen().*field.has)()) continue;
    out[std::string(field.name)] =
        static_cast<int64_t>((variant.codegen().*field.get)());
  }
  if (variant.launch().has_block()) {
    const v1::Dim3& block = variant.launch().block();
    out[std::string(kBlock[0])] = static_cast<int64_t>(block.x());
    out[std::string(kBlock[1])] = static_cast<int64_t>(block.y());
    out[std::string(kBlock[2])] = static_cast<int64_t>(block.z());
  }
  if (variant.launch().has_dynamic_shared_bytes()) {
    out["launch.dynamic_shared_bytes"] =
        static_cast<int64_t>(variant.launch().dynamic_shared_bytes());
  }
  return out;
}

std::string ParameterMapper::Describe(const v1::Variant& variant) const {
  std::string text;
  for (const auto& [name, value] : ToAssignment(variant)) {
    if (name.rfind("launch.block.", 0) == 0) {
      if (name != kBlock[0]) continue;
      const v1::Dim3& block = variant.launch().block();
      absl::StrAppend(&text, text.empty() ? "" : " ",
                      "launch.block=", block.x(), "x", block.y(), "x",
                      block.z());
      continue;
    }
    if (name == "pipeline") continue;
    absl::StrAppend(&text, text.empty() ? "" : " ", name, "=",
                    ValueToString(value));
  }
  if (!variant.pipeline().empty()) {
    absl::StrAppend(&text, text.empty() ? "" : " ",
                    "pipeline=", DescribePipeline(variant.pipeline()));
  }
  return text.empty() ? "as built" : text;
}

}  // namespace reprise::bayesopt
