// Operations among the lanes of a warp.
#include <algorithm>
#include <bit>

#include "replay/device/cpu/runtime/block_threads.h"
#include "replay/device/cpu/runtime/fault.h"

namespace reprise::cpu {
namespace {

// The lane that a shuffle reads, and whether it lies in the segment; PTX ISA,
// shfl.sync.
uint32_t SourceLane(ShuffleMode mode, uint32_t lane, uint32_t operand,
                    uint32_t clamp, bool* in_range) {
  const uint32_t b = operand & 0x1f;
  const uint32_t c = clamp & 0x1f;
  const uint32_t segment = (clamp >> 8) & 0x1f;
  const uint32_t max = (lane & segment) | (c & ~segment);
  const uint32_t min = lane & segment;
  uint32_t source = lane;
  switch (mode) {
    case ShuffleMode::kUp:
      source = lane - b;
      *in_range = static_cast<int32_t>(source) >= static_cast<int32_t>(max);
      break;
    case ShuffleMode::kDown:
      source = lane + b;
      *in_range = source <= max;
      break;
    case ShuffleMode::kButterfly:
      source = lane ^ b;
      *in_range = source <= max;
      break;
    case ShuffleMode::kIndex:
      source = min | (b & ~segment);
      *in_range = source <= max;
      break;
  }
  return *in_range ? source : lane;
}

uint32_t Combine(ReduxMode mode, uint32_t a, uint32_t b) {
  const auto signed_a = static_cast<int32_t>(a);
  const auto signed_b = static_cast<int32_t>(b);
  switch (mode) {
    case ReduxMode::kAdd:
      return a + b;
    case ReduxMode::kAnd:
      return a & b;
    case ReduxMode::kOr:
      return a | b;
    case ReduxMode::kXor:
      return a ^ b;
    case ReduxMode::kMinSigned:
      return std::min(signed_a, signed_b);
    case ReduxMode::kMaxSigned:
      return std::max(signed_a, signed_b);
    case ReduxMode::kMinUnsigned:
      return std::min(a, b);
    case ReduxMode::kMaxUnsigned:
      return std::max(a, b);
  }
  return 0;
}

}  // namespace

uint64_t BlockThreads::Warp(WarpOperation operation, uint32_t mask,
                            uint64_t value, uint32_t argument, uint32_t clamp,
                            const char* site) {
  const uint32_t warp_index = current_ / kWarpLanes;
  const uint32_t bit = 1u << (current_ % kWarpLanes);
  if ((mask & bit) == 0) {
    ReportFault("lane %u is not in the mask 0x%x of its warp operation at %s",
                current_ % kWarpLanes, mask, site);
  }
  Fiber& fiber = current();
  fiber.value = value;
  fiber.argument = argument;
  fiber.clamp = clamp;
  fiber.site = site;
  WarpState& warp = warps_[warp_index];
  size_t g = 0;
  while (g < warp.groups.size() && !(warp.groups[g].mask == mask &&
                                     warp.groups[g].operation == operation)) {
    ++g;
  }
  if (g == warp.groups.size()) warp.groups.push_back({operation, mask, 0});
  warp.groups[g].arrived |= bit;
  if (warp.groups[g].arrived == (mask & warp.live)) {
    CompleteWarp(warp, warp_index, g, bit);
    return fiber.result;
  }
  fiber.wait = Wait::kWarp;
  RunNext();
  return fiber.result;
}

void BlockThreads::CompleteWarp(WarpState& warp, uint32_t warp_index,
                                size_t index, uint32_t running) {
  const WarpGroup group = warp.groups[index];
  warp.groups[index] = warp.groups.back();
  warp.groups.pop_back();
  const uint64_t common = CommonResult(group, warp_index);
  for (uint32_t rest = group.arrived; rest != 0; rest &= rest - 1) {
    const uint32_t lane = std::countr_zero(rest);
    Lane(warp_index, lane).result = LaneResult(group, common, warp_index, lane);
  }
  for (uint32_t rest = group.arrived & ~running; rest != 0; rest &= rest - 1) {
    MakeRunnable(warp_index * kWarpLanes + std::countr_zero(rest));
  }
}

// What all lanes get alike, or what their results have in common.
uint64_t BlockThreads::CommonResult(const WarpGroup& group,
                                    uint32_t warp_index) {
  const uint32_t leader = std::countr_zero(group.arrived);
  const auto value = [&](uint32_t lane) {
    return Lane(warp_index, lane).value;
  };
  switch (group.operation.kind) {
    case WarpOperation::kVote: {
      uint32_t ballot = 0;
      for (uint32_t rest = group.arrived; rest != 0; rest &= rest - 1) {
        const uint32_t lane = std::countr_zero(rest);
        if (value(lane) != 0) ballot |= 1u << lane;
      }
      switch (static_cast<VoteMode>(group.operation.mode)) {
        case VoteMode::kAll:
          return ballot == group.arrived;
        case VoteMode::kAny:
          return ballot != 0;
        case VoteMode::kUniform:
          return ballot == group.arrived || ballot == 0;
        case VoteMode::kBallot:
          return ballot;
      }
      return 0;
    }
    case WarpOperation::kMatchAll: {
      for (uint32_t rest = group.arrived; rest != 0; rest &= rest - 1) {
        if (value(std::countr_zero(rest)) != value(leader)) return 0;
      }
      return PackWithPredicate(group.arrived, true);
    }
    case WarpOperation::kRedux: {
      auto result = static_cast<uint32_t>(value(leader));
      for (uint32_t rest = group.arrived & (group.arrived - 1); rest != 0;
           rest &= rest - 1) {
        result = Combine(static_cast<ReduxMode>(group.operation.mode), result,
                         static_cast<uint32_t>(value(std::countr_zero(rest))));
      }
      return result;
    }
    default:
      return leader;
  }
}

uint64_t BlockThreads::LaneResult(const WarpGroup& group, uint64_t common,
                                  uint32_t warp_index, uint32_t lane) {
  const Fiber& own = Lane(warp_index, lane);
  switch (group.operation.kind) {
    case WarpOperation::kElect:
      return PackWithPredicate(static_cast<uint32_t>(common), common == lane);
    case WarpOperation::kShuffle: {
      bool in_range = false;
      const uint32_t source =
          SourceLane(static_cast<ShuffleMode>(group.operation.mode), lane,
                     own.argument, own.clamp, &in_range);
      // What an absent lane would give is open; the own value is as good.
      const bool present = (group.arrived >> source) & 1;
      const uint64_t value =
          present ? Lane(warp_index, source).value : own.value;
      return PackWithPredicate(static_cast<uint32_t>(value), in_range);
    }
    case WarpOperation::kMatchAny: {
      uint32_t equal = 0;
      for (uint32_t rest = group.arrived; rest != 0; rest &= rest - 1) {
        const uint32_t other = std::countr_zero(rest);
        if (Lane(warp_index, other).value == own.value) equal |= 1u << other;
      }
      return equal;
    }
    default:
      return common;
  }
}

}  // namespace reprise::cpu
