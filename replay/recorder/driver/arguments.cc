#include "replay/recorder/driver/arguments.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/textures.h"

namespace reprise::driver {
namespace {

constexpr uint32_t kWordBytes = sizeof(uint64_t);
// Of what programs on Linux have mapped.
constexpr uint64_t kLowestAddress = 1 << 16;
constexpr uint64_t kHighestAddress = uint64_t{1} << 47;

template <typename Visitor>
void ForEachWord(const Kernel& kernel, const unsigned char* arguments,
                 Visitor visit) {
  for (uint32_t i = 0; i < kernel.parameter_count; ++i) {
    const driver_wire::Parameter& parameter = kernel.parameters[i];
    const uint32_t end = parameter.offset + parameter.bytes;
    uint32_t at = (parameter.offset + kWordBytes - 1) / kWordBytes * kWordBytes;
    for (; at + kWordBytes <= end; at += kWordBytes) {
      uint64_t word = 0;
      memcpy(&word, arguments + at, kWordBytes);
      visit(word);
    }
  }
}

// By HMM or ATS.
bool ReachesAllHostMemory(int device) {
  int reaches = 0;
  return CUDA_CALL(cuDeviceGetAttribute, &reaches,
                   CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
                   device) == CUDA_SUCCESS &&
         reaches != 0;
}

bool IsMapped(uint64_t address) {
  char byte = 0;
  iovec here{&byte, 1};
  iovec there{reinterpret_cast<void*>(address), 1};
  return syscall(SYS_process_vm_readv, getpid(), &here, 1ul, &there, 1ul,
                 0ul) == 1;
}

bool IsPlainHostMemory(uint64_t address) {
  if (address < kLowestAddress || address >= kHighestAddress ||
      IsTracked(address))
    return false;
  unsigned int type = 0;
  const CUresult known = CUDA_CALL(
      cuPointerGetAttribute, static_cast<void*>(&type),
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, static_cast<CUdeviceptr>(address));
  if (known == CUDA_SUCCESS && type != CU_MEMORYTYPE_HOST) return false;
  return IsMapped(address);
}

}  // namespace

ArgumentHints HintsOf(const Kernel& kernel, const unsigned char* arguments,
                      int device) {
  ArgumentHints hints;
  const bool reaches = ReachesAllHostMemory(device);
  ForEachWord(kernel, arguments, [&](uint64_t word) {
    hints.texture = hints.texture || IsTexture(word);
    if (reaches && hints.host_pointer == 0 && IsPlainHostMemory(word))
      hints.host_pointer = word;
  });
  return hints;
}

}  // namespace reprise::driver
