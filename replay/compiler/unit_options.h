// What a translation unit's Clang arguments say beyond Clang's own front end:
// the arithmetic of the backend and of ptxas. Thread-safe; needs no LLVM.
#ifndef REPRISE_REPLAY_COMPILER_UNIT_OPTIONS_H_
#define REPRISE_REPLAY_COMPILER_UNIT_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/v1/node.pb.h"

namespace reprise {

struct UnitOptions {
  // -mllvm -nvptx-prec-divf32: 0 approximate, 1 full range, 2 IEEE. Unset:
  // Clang's default, IEEE.
  std::optional<int> division_precision;
  // -mllvm -nvptx-prec-sqrtf32. Unset: Clang's default, which is sqrt.approx
  // for sqrtf where nvcc takes sqrt.rn.
  std::optional<bool> precise_sqrt;
  // -ffp-contract: whether the backend fuses a*b+c. Clang's default for CUDA.
  bool fuse = true;
  // Registers per thread; 0: no cap.
  uint32_t max_registers = 0;
  // Other options for ptxas, as -Xcuda-ptxas gave them.
  std::vector<std::string> ptxas_options;
  bool relocatable_device_code = false;
  std::string cuda_path;  // --cuda-path; may be empty
};

UnitOptions ParseUnitOptions(const v1::CompileTranslationUnit& unit);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_UNIT_OPTIONS_H_
