// Ceilings of a device that does not exist, in round numbers.
#ifndef REPRISE_TESTS_REPLAY_ENGINE_CEILINGS_H_
#define REPRISE_TESTS_REPLAY_ENGINE_CEILINGS_H_

#include "reprise/v1/types.pb.h"

namespace reprise {

// Memory at 1000 GB/s, an L2 cache of 1 MB at 4000 GB/s, 10 and 5 Tflop/s.
inline v1::DeviceCeilings Ceilings() {
  v1::DeviceCeilings ceilings;
  ceilings.set_dram_read_gb_s(1000);
  ceilings.set_dram_write_gb_s(800);
  ceilings.set_l2_write_gb_s(4000);
  ceilings.set_l2_bytes(1000000);
  ceilings.set_f32_gflops(10000);
  ceilings.set_f64_gflops(5000);
  return ceilings;
}

}  // namespace reprise

#endif  // REPRISE_TESTS_REPLAY_ENGINE_CEILINGS_H_
