#include "replay/device/cpu/executor/launch_check.h"

#include "absl/strings/str_cat.h"

namespace reprise::cpu {
namespace {

constexpr uint32_t kMaxBlock[3] = {1024, 1024, 64};
constexpr uint32_t kMaxGrid[3] = {0x7fffffff, 65535, 65535};

std::string Triple(const uint32_t (&d)[3]) {
  return absl::StrCat("(", d[0], ",", d[1], ",", d[2], ")");
}

std::string CheckDimensions(const KernelFacts& facts, const uint32_t (&grid)[3],
                            const uint32_t (&block)[3]) {
  for (int d = 0; d < 3; ++d) {
    if (block[d] == 0 || block[d] > kMaxBlock[d]) {
      return absl::StrCat("got block ", Triple(block), ", allowed is 1 to ",
                          Triple(kMaxBlock));
    }
    if (grid[d] == 0 || grid[d] > kMaxGrid[d]) {
      return absl::StrCat("got grid ", Triple(grid), ", allowed is 1 to ",
                          Triple(kMaxGrid));
    }
    if (facts.block[d] != 0 && facts.block[d] != block[d]) {
      return absl::StrCat("got block ", Triple(block),
                          ", the code was built for ", Triple(facts.block));
    }
    if (facts.grid[d] != 0 && facts.grid[d] != grid[d]) {
      return absl::StrCat("got grid ", Triple(grid),
                          ", the code was built for ", Triple(facts.grid));
    }
    if (uint64_t{grid[d]} * block[d] >= kMaxThreadsPerDimension) {
      return absl::StrCat("got ", uint64_t{grid[d]} * block[d],
                          " threads in one dimension, the cpu device allows "
                          "fewer than ",
                          kMaxThreadsPerDimension);
    }
  }
  const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
  const uint32_t limit = facts.max_threads_per_block != 0
                             ? facts.max_threads_per_block
                             : kMaxThreadsPerBlock;
  if (threads > limit) {
    return absl::StrCat("got ", threads,
                        " threads per block, the kernel allows ", limit);
  }
  return "";
}

}  // namespace

std::string CheckLaunch(const KernelFacts& facts,
                        const v1::LaunchRequest& request) {
  const v1::LaunchConfig& launch = request.launch();
  if (facts.version != kKernelFactsVersion) {
    return absl::StrCat("got code of version ", facts.version, ", expected ",
                        kKernelFactsVersion, "; build it again");
  }
  const uint32_t grid[3] = {launch.grid().x(), launch.grid().y(),
                            launch.grid().z()};
  const uint32_t block[3] = {launch.block().x(), launch.block().y(),
                             launch.block().z()};
  if (std::string problem = CheckDimensions(facts, grid, block);
      !problem.empty()) {
    return problem;
  }
  const uint64_t shared =
      uint64_t{facts.static_shared_bytes} + launch.dynamic_shared_bytes();
  if (shared > kMaxSharedBytesPerBlock) {
    return absl::StrCat("got ", shared, " bytes of shared memory per block (",
                        facts.static_shared_bytes, " static), allowed are ",
                        kMaxSharedBytesPerBlock);
  }
  if (launch.has_cluster() && uint64_t{launch.cluster().x()} *
                                      launch.cluster().y() *
                                      launch.cluster().z() >
                                  1) {
    return "the cpu device runs no clusters of more than one block";
  }
  const uint64_t threads =
      uint64_t{grid[0]} * grid[1] * grid[2] * block[0] * block[1] * block[2];
  if (launch.cooperative() && facts.uses_fibers != 0 &&
      threads > kMaxResidentThreads) {
    return absl::StrCat("got a cooperative launch of ", threads,
                        " threads, the cpu device keeps at most ",
                        kMaxResidentThreads, " at once");
  }
  if (request.arguments().size() < facts.argument_bytes) {
    return absl::StrCat("got ", request.arguments().size(),
                        " bytes of arguments, the kernel takes ",
                        facts.argument_bytes);
  }
  if (request.instrumented() != (facts.instrumented != 0)) {
    return facts.instrumented != 0
               ? "instrumented code needs an instrumented launch"
               : "an instrumented launch needs instrumented code";
  }
  return "";
}

}  // namespace reprise::cpu
