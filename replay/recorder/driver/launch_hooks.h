// Hooks of the calls that launch kernels.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_LAUNCH_HOOKS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_LAUNCH_HOOKS_H_

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/hooks.h"
#include "replay/recorder/driver/launch.h"
#include "replay/recorder/driver/process.h"

namespace reprise::driver {

template <Hook kHook>
CUresult CUDAAPI LaunchKernel(CUfunction function, unsigned int grid_x,
                              unsigned int grid_y, unsigned int grid_z,
                              unsigned int block_x, unsigned int block_y,
                              unsigned int block_z, unsigned int shared_bytes,
                              CUstream stream, void** parameters,
                              void** extra) {
  if (!Active()) {
    return CallReal<kHook>(function, grid_x, grid_y, grid_z, block_x, block_y,
                           block_z, shared_bytes, stream, parameters, extra);
  }
  const auto form = [&](const LaunchTarget& to) {
    return CallReal<kHook>(to.function, to.grid[0], to.grid[1], to.grid[2],
                           to.block[0], to.block[1], to.block[2],
                           to.dynamic_shared_bytes, stream, parameters, extra);
  };
  const LaunchCall launch{function,
                          {grid_x, grid_y, grid_z},
                          {block_x, block_y, block_z},
                          {},
                          shared_bytes,
                          /*cooperative=*/false,
                          Explicit(stream, HookType<kHook>::kPerThread),
                          parameters,
                          extra};
  return Launch(launch, AsLaunchForm(form));
}

template <Hook kHook>
CUresult CUDAAPI LaunchCooperative(CUfunction function, unsigned int grid_x,
                                   unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z,
                                   unsigned int shared_bytes, CUstream stream,
                                   void** parameters) {
  if (!Active()) {
    return CallReal<kHook>(function, grid_x, grid_y, grid_z, block_x, block_y,
                           block_z, shared_bytes, stream, parameters);
  }
  const auto form = [&](const LaunchTarget& to) {
    return CallReal<kHook>(to.function, to.grid[0], to.grid[1], to.grid[2],
                           to.block[0], to.block[1], to.block[2],
                           to.dynamic_shared_bytes, stream, parameters);
  };
  const LaunchCall launch{function,
                          {grid_x, grid_y, grid_z},
                          {block_x, block_y, block_z},
                          {},
                          shared_bytes,
                          /*cooperative=*/true,
                          Explicit(stream, HookType<kHook>::kPerThread),
                          parameters,
                          nullptr};
  return Launch(launch, AsLaunchForm(form));
}

inline void TakeAttributes(const CUlaunchConfig& config, LaunchCall* launch) {
  for (unsigned int i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      launch->cluster[0] = attribute.value.clusterDim.x;
      launch->cluster[1] = attribute.value.clusterDim.y;
      launch->cluster[2] = attribute.value.clusterDim.z;
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      launch->cooperative = attribute.value.cooperative != 0;
    }
  }
}

template <Hook kHook>
CUresult CUDAAPI LaunchKernelEx(const CUlaunchConfig* config,
                                CUfunction function, void** parameters,
                                void** extra) {
  if (!Active() || config == nullptr)
    return CallReal<kHook>(config, function, parameters, extra);
  const auto form = [&](const LaunchTarget& to) {
    CUlaunchConfig changed = *config;
    changed.gridDimX = to.grid[0];
    changed.gridDimY = to.grid[1];
    changed.gridDimZ = to.grid[2];
    changed.blockDimX = to.block[0];
    changed.blockDimY = to.block[1];
    changed.blockDimZ = to.block[2];
    changed.sharedMemBytes = to.dynamic_shared_bytes;
    const CUlaunchConfig* used = &changed;
    return CallReal<kHook>(used, to.function, parameters, extra);
  };
  LaunchCall launch{function,
                    {config->gridDimX, config->gridDimY, config->gridDimZ},
                    {config->blockDimX, config->blockDimY, config->blockDimZ},
                    {},
                    config->sharedMemBytes,
                    /*cooperative=*/false,
                    Explicit(config->hStream, HookType<kHook>::kPerThread),
                    parameters,
                    extra};
  TakeAttributes(*config, &launch);
  return Launch(launch, AsLaunchForm(form));
}

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_LAUNCH_HOOKS_H_
