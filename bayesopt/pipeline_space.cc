#include "bayesopt/pipeline_space.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::bayesopt {
namespace {

// Passes that stay where they are: others rest on them.
bool Protected(const PassNode& node) {
  return node.name == "default" || node.name == "require" ||
         node.name == "invalidate" || node.name == "nvvm-reflect" ||
         node.name == "always-inline";
}

// The level of an adaptor's list; nullopt where the adaptor does not belong
// into a list of level `outer`.
std::optional<PassLevel> InnerLevel(const PassNode& adaptor, PassLevel outer) {
  if (adaptor.name == "cgscc" && outer == PassLevel::kModule) {
    return PassLevel::kCgscc;
  }
  if (adaptor.name == "devirt" && outer == PassLevel::kCgscc) return outer;
  if (adaptor.name == "function" &&
      (outer == PassLevel::kModule || outer == PassLevel::kCgscc)) {
    return PassLevel::kFunction;
  }
  if (outer == PassLevel::kFunction) {
    if (adaptor.name == "loop") return PassLevel::kLoop;
    if (adaptor.name == "loop-mssa") return PassLevel::kLoopMssa;
  }
  return std::nullopt;
}

struct List {
  std::vector<PassNode>* nodes;
  PassLevel level;
};

void CollectLists(std::vector<PassNode>& nodes, PassLevel level,
                  std::vector<List>& out) {
  out.push_back({&nodes, level});
  for (PassNode& node : nodes) {
    if (!node.adaptor) continue;
    if (auto inner = InnerLevel(node, level)) {
      CollectLists(node.children, *inner, out);
    }
  }
}

std::vector<List> Lists(Pipeline& pipeline) {
  std::vector<List> out;
  CollectLists(pipeline.elements, PassLevel::kModule, out);
  return out;
}

struct Place {
  std::vector<PassNode>* nodes;
  size_t index;
  PassLevel level;
};

// Leaves that an edit may touch.
std::vector<Place> EditableLeaves(Pipeline& pipeline) {
  std::vector<Place> out;
  for (const List& list : Lists(pipeline)) {
    for (size_t i = 0; i < list.nodes->size(); ++i) {
      const PassNode& node = (*list.nodes)[i];
      if (!node.adaptor && !Protected(node)) {
        out.push_back({list.nodes, i, list.level});
      }
    }
  }
  return out;
}

void RemoveEmptyAdaptors(std::vector<PassNode>& nodes) {
  for (PassNode& node : nodes) RemoveEmptyAdaptors(node.children);
  std::erase_if(nodes, [](const PassNode& node) {
    return node.adaptor && node.children.empty();
  });
}

// Adaptors that a list of level `outer` needs around a pass of level `inner`,
// outermost first; empty optional: it cannot stand there.
std::optional<std::vector<std::string>> Wrapping(PassLevel outer,
                                                 PassLevel inner) {
  if (outer == inner) return std::vector<std::string>();
  const std::string name(PassLevelName(inner));
  switch (inner) {
    case PassLevel::kModule:
      return std::nullopt;
    case PassLevel::kCgscc:
      if (outer != PassLevel::kModule) return std::nullopt;
      return std::vector<std::string>{name};
    case PassLevel::kFunction:
      if (outer != PassLevel::kModule && outer != PassLevel::kCgscc) {
        return std::nullopt;
      }
      return std::vector<std::string>{name};
    case PassLevel::kLoop:
    case PassLevel::kLoopMssa:
      if (outer == PassLevel::kFunction) return std::vector<std::string>{name};
      if (outer == PassLevel::kLoop || outer == PassLevel::kLoopMssa) {
        return std::nullopt;
      }
      return std::vector<std::string>{"function", name};
  }
  return std::nullopt;
}

PassNode Wrap(PassNode node, const std::vector<std::string>& adaptors) {
  for (auto name = adaptors.rbegin(); name != adaptors.rend(); ++name) {
    PassNode outer;
    outer.name = *name;
    outer.adaptor = true;
    outer.children.push_back(std::move(node));
    node = std::move(outer);
  }
  return node;
}

// Puts `node` somewhere: three times in four into a list of its own level, else
// into an outer one with adaptors around it.
bool InsertNode(Pipeline& pipeline, PassNode node, PassLevel level,
                Random& random) {
  const bool direct = random.Chance(0.75);
  std::vector<std::pair<List, size_t>> places;
  for (int attempt = 0; attempt < 2 && places.empty(); ++attempt) {
    for (const List& list : Lists(pipeline)) {
      const auto wrapping = Wrapping(list.level, level);
      if (!wrapping) continue;
      if (attempt == 0 && direct != wrapping->empty()) continue;
      for (size_t i = 0; i <= list.nodes->size(); ++i) {
        places.emplace_back(list, i);
      }
    }
  }
  if (places.empty()) return false;
  const auto& [list, index] = places[random.Below(places.size())];
  node = Wrap(std::move(node), *Wrapping(list.level, level));
  list.nodes->insert(list.nodes->begin() + static_cast<long>(index),
                     std::move(node));
  return true;
}

PassNode Leaf(const AllowedPass& pass, Random& random) {
  PassNode node;
  node.name = pass.name;
  if (!pass.parameters.empty()) {
    const size_t choice =
        random.Chance(0.5) ? 0 : random.Below(pass.parameters.size());
    node.parameters = pass.parameters[choice];
  }
  return node;
}

std::string LeafKey(PassLevel level, const PassNode& node) {
  return absl::StrCat(std::string(PassLevelName(level)), ":", node.name, "<",
                      node.parameters, ">");
}

}  // namespace

PipelineSpace::PipelineSpace(Options options) : options_(options) {
  bases_ = {"default<O3>", "default<O2>", "default<O1>",
            std::string(ExplicitO3(options_.target))};
  for (const std::string& base : bases_) {
    Pipeline pipeline = ParsePipeline(base).value();
    for (const List& list : Lists(pipeline)) {
      for (const PassNode& node : *list.nodes) {
        if (!node.adaptor) base_leaves_.insert(LeafKey(list.level, node));
      }
    }
    flat_bases_.push_back({base, FlattenPipeline(pipeline)});
  }
  const bool nvptx = options_.target == PipelineTarget::kNvptx;
  for (const AllowedPass& pass : AllowedPasses()) {
    if (nvptx ? pass.only_host : pass.only_nvptx) continue;
    passes_.push_back(&pass);
  }
}

const AllowedPass* PipelineSpace::FindPass(std::string_view name) const {
  for (const AllowedPass* pass : passes_) {
    if (pass->name == name) return pass;
  }
  return nullptr;
}

bool PipelineSpace::WithinEdits(const Pipeline& pipeline) const {
  const std::vector<std::string> leaves = FlattenPipeline(pipeline);
  // A move or a change of parameters counts as one removal and one insertion.
  const int limit = 2 * options_.max_edits;
  for (const Base& base : flat_bases_) {
    if (PipelineDistance(base.leaves, leaves, limit) <= limit) return true;
  }
  return false;
}

absl::StatusOr<std::string> PipelineSpace::Check(std::string_view text) const {
  auto pipeline = ParsePipeline(text);
  if (!pipeline.ok()) return pipeline.status();
  for (const List& list : Lists(*pipeline)) {
    for (const PassNode& node : *list.nodes) {
      if (node.adaptor) {
        if (InnerLevel(node, list.level)) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "pipeline: got adaptor ", node.name, " in a list of ",
            std::string(PassLevelName(list.level)),
            " passes, expected cgscc, devirt, function, loop or loop-mssa "
            "where they nest"));
      }
      if (base_leaves_.count(LeafKey(list.level, node)) > 0) continue;
      const AllowedPass* pass = FindPass(node.name);
      if (pass == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(
            "pipeline: got pass ", node.name, ", which is not allowed"));
      }
      if (pass->level != list.level) {
        return absl::InvalidArgumentError(absl::StrCat(
            "pipeline: got ", node.name, " in a list of ",
            std::string(PassLevelName(list.level)), " passes, expected one of ",
            std::string(PassLevelName(pass->level)), " passes"));
      }
      if (!node.parameters.empty() &&
          std::find(pass->parameters.begin(), pass->parameters.end(),
                    node.parameters) == pass->parameters.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("pipeline: got ", node.name, "<", node.parameters,
                         ">, which are not among its allowed parameters"));
      }
    }
  }
  if (!WithinEdits(*pipeline)) {
    return absl::InvalidArgumentError(
        absl::StrCat("pipeline: got more than ", options_.max_edits,
                     " edits away from every base pipeline"));
  }
  return PrintPipeline(*pipeline);
}

bool PipelineSpace::Contains(std::string_view text) const {
  auto canonical = Check(text);
  return canonical.ok() && *canonical == text;
}

bool PipelineSpace::Edit(Pipeline& pipeline, Random& random) const {
  const double kind = random.Unit();
  if (kind < 0.4) {
    const AllowedPass& pass = *passes_[random.Below(passes_.size())];
    return InsertNode(pipeline, Leaf(pass, random), pass.level, random);
  }
  std::vector<Place> leaves = EditableLeaves(pipeline);
  if (leaves.empty()) return false;
  const Place place = leaves[random.Below(leaves.size())];
  PassNode& node = (*place.nodes)[place.index];
  if (kind < 0.6) {  // drop
    place.nodes->erase(place.nodes->begin() + static_cast<long>(place.index));
    RemoveEmptyAdaptors(pipeline.elements);
    return !pipeline.elements.empty();
  }
  if (kind < 0.8) {  // move
    PassNode moved = node;
    const PassLevel level = place.level;
    place.nodes->erase(place.nodes->begin() + static_cast<long>(place.index));
    RemoveEmptyAdaptors(pipeline.elements);
    return InsertNode(pipeline, std::move(moved), level, random);
  }
  const AllowedPass* pass = FindPass(node.name);
  if (pass == nullptr || pass->parameters.size() < 2) return false;
  node.parameters = pass->parameters[random.Below(pass->parameters.size())];
  return true;
}

std::string PipelineSpace::Sample(Random& random) const {
  const double which = random.Unit();
  std::string text =
      bases_[which < 0.4 ? 0 : (which < 0.5 ? 1 : (which < 0.55 ? 2 : 3))];
  for (int edits = 0; edits < options_.max_edits; ++edits) {
    if (random.Chance(0.4)) break;
    text = Neighbor(text, random);
  }
  return text;
}

std::string PipelineSpace::Neighbor(std::string_view text,
                                    Random& random) const {
  auto parsed = ParsePipeline(text);
  if (parsed.ok() && !random.Chance(0.08)) {
    for (int attempt = 0; attempt < 64; ++attempt) {
      Pipeline edited = *parsed;
      if (!Edit(edited, random)) continue;
      const std::string result = PrintPipeline(edited);
      if (result != text && Contains(result)) return result;
    }
  }
  const size_t start = random.Below(bases_.size());
  const std::string& base = bases_[start];
  return base != text ? base : bases_[(start + 1) % bases_.size()];
}

std::string PipelineSpace::RandomSequence(int length, Random& random) const {
  Pipeline pipeline =
      ParsePipeline(options_.target == PipelineTarget::kNvptx
                        ? "nvvm-reflect,always-inline,cgscc(inline),"
                          "function(sroa,early-cse<memssa>)"
                        : "always-inline,cgscc(inline),"
                          "function(sroa,early-cse<memssa>)")
          .value();
  for (int i = 0; i < length; ++i) {
    const AllowedPass& pass = *passes_[random.Below(passes_.size())];
    PassNode leaf = Leaf(pass, random);
    // Into the innermost open list that takes it, or a new one at the end.
    std::vector<PassNode>* list = &pipeline.elements;
    PassLevel level = PassLevel::kModule;
    while (!list->empty() && list->back().adaptor && random.Chance(0.8)) {
      const auto inner = InnerLevel(list->back(), level);
      if (!inner || !Wrapping(*inner, pass.level)) break;
      level = *inner;
      list = &list->back().children;
    }
    list->push_back(Wrap(std::move(leaf), *Wrapping(level, pass.level)));
  }
  return PrintPipeline(pipeline);
}

namespace {

// "slsr" of "cgscc/devirt/function/slsr".
std::string PassNames(const std::vector<std::string>& leaves) {
  constexpr size_t kShown = 6;
  std::string names;
  for (size_t i = 0; i < std::min(leaves.size(), kShown); ++i) {
    absl::StrAppend(&names, i == 0 ? "" : ", ",
                    leaves[i].substr(leaves[i].rfind('/') + 1));
  }
  if (leaves.size() > kShown)
    absl::StrAppend(&names, " and ", leaves.size() - kShown, " more");
  return names;
}

}  // namespace

std::string DescribePipeline(std::string_view text) {
  constexpr size_t kShort = 80;
  const absl::StatusOr<Pipeline> pipeline = ParsePipeline(text);
  if (text.size() <= kShort || !pipeline.ok()) return std::string(text);
  const std::vector<std::string> leaves = FlattenPipeline(*pipeline);
  PipelineEdits fewest;
  for (const PipelineTarget target :
       {PipelineTarget::kHost, PipelineTarget::kNvptx}) {
    PipelineEdits edits = EditsBetween(
        FlattenPipeline(*ParsePipeline(ExplicitO3(target))), leaves);
    const auto count = [](const PipelineEdits& e) {
      return e.added.size() + e.removed.size();
    };
    if (target == PipelineTarget::kHost || count(edits) < count(fewest))
      fewest = std::move(edits);
  }
  std::string described = "O3";
  if (!fewest.added.empty())
    absl::StrAppend(&described, " with ", PassNames(fewest.added));
  if (!fewest.removed.empty()) {
    absl::StrAppend(&described, fewest.added.empty() ? "" : ",", " without ",
                    PassNames(fewest.removed));
  }
  return described;
}

}  // namespace reprise::bayesopt
