#include "replay/engine/launch_geometry.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

uint32_t BlocksFor(uint32_t grid, uint32_t block, uint32_t new_block) {
  const uint64_t threads = static_cast<uint64_t>(grid) * block;
  return static_cast<uint32_t>((threads + new_block - 1) / new_block);
}

std::string DescribeDim(const v1::Dim3& dim) {
  return absl::StrCat(dim.x(), "x", dim.y(), "x", dim.z());
}

bool SameDim(const v1::Dim3& a, const v1::Dim3& b) {
  return a.x() == b.x() && a.y() == b.y() && a.z() == b.z();
}

}  // namespace

v1::LaunchConfig VariantLaunch(const v1::LaunchConfig& recorded,
                               const v1::LaunchParameters& parameters) {
  v1::LaunchConfig launch = recorded;
  if (parameters.has_block()) {
    v1::Dim3 block = parameters.block();
    block.set_x(std::max(block.x(), 1u));
    block.set_y(std::max(block.y(), 1u));
    block.set_z(std::max(block.z(), 1u));
    launch.mutable_grid()->set_x(
        BlocksFor(recorded.grid().x(), recorded.block().x(), block.x()));
    launch.mutable_grid()->set_y(
        BlocksFor(recorded.grid().y(), recorded.block().y(), block.y()));
    launch.mutable_grid()->set_z(
        BlocksFor(recorded.grid().z(), recorded.block().z(), block.z()));
    *launch.mutable_block() = block;
  }
  if (parameters.has_dynamic_shared_bytes())
    launch.set_dynamic_shared_bytes(parameters.dynamic_shared_bytes());
  return launch;
}

absl::Status CheckLaunch(const v1::LaunchConfig& launch,
                         const DeviceFacts& device,
                         const v1::CompiledKernelInfo& kernel) {
  const uint64_t threads = static_cast<uint64_t>(launch.block().x()) *
                           launch.block().y() * launch.block().z();
  uint32_t limit = device.max_threads_per_block;
  if (kernel.max_threads_per_block() != 0)
    limit = std::min(limit, kernel.max_threads_per_block());
  if (threads == 0 || threads > limit) {
    return absl::InvalidArgumentError(
        absl::StrCat("got a block of ", threads, " threads, expected 1 to ",
                     limit, " (device or launch bound)"));
  }
  if (launch.block().z() > 64) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got block.z ", launch.block().z(), ", expected at most 64"));
  }
  const uint64_t shared = static_cast<uint64_t>(launch.dynamic_shared_bytes()) +
                          kernel.static_shared_bytes();
  if (device.max_shared_bytes_per_block != 0 &&
      shared > device.max_shared_bytes_per_block) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", shared, " shared bytes per block, expected at most ",
        device.max_shared_bytes_per_block));
  }
  return absl::OkStatus();
}

bool SameLaunch(const v1::LaunchConfig& a, const v1::LaunchConfig& b) {
  return SameDim(a.grid(), b.grid()) && SameDim(a.block(), b.block()) &&
         a.dynamic_shared_bytes() == b.dynamic_shared_bytes() &&
         SameDim(a.cluster(), b.cluster()) &&
         a.cooperative() == b.cooperative();
}

std::string DescribeLaunch(const v1::LaunchConfig& launch) {
  std::string text = absl::StrCat("grid ", DescribeDim(launch.grid()),
                                  ", block ", DescribeDim(launch.block()));
  if (launch.dynamic_shared_bytes() != 0)
    absl::StrAppend(&text, ", ", launch.dynamic_shared_bytes(),
                    " shared bytes");
  if (launch.cooperative()) absl::StrAppend(&text, ", cooperative");
  return text;
}

}  // namespace reprise
