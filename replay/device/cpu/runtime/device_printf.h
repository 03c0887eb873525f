// printf of device code: CUDA's vprintf(format, packed arguments), formatted as
// the host's printf would.
//
// PrintfBuffer belongs to one host thread; Merge is called when none runs.
#ifndef REPRISE_REPLAY_DEVICE_CPU_RUNTIME_DEVICE_PRINTF_H_
#define REPRISE_REPLAY_DEVICE_CPU_RUNTIME_DEVICE_PRINTF_H_

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::cpu {

// Arguments lie behind each other at their natural alignment: 4 bytes for int
// and its kin, 8 for long, double and pointers. `count` gets how many were
// used, which is what CUDA's printf returns.
std::string FormatDevicePrintf(const char* format, const char* arguments,
                               int32_t* count);

class PrintfBuffer {
 public:
  void Append(uint64_t block, std::string text);
  void Clear();

  // Texts of all buffers in the order of blocks, at most `limit` bytes.
  static std::string Merge(const std::vector<PrintfBuffer*>& buffers,
                           size_t limit);

 private:
  struct Entry {
    uint64_t block;
    std::string text;
  };
  std::vector<Entry> entries_;
  size_t bytes_ = 0;
};

// What CUDA keeps of one launch's output by default.
inline constexpr size_t kPrintfLimitBytes = 1 << 20;

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RUNTIME_DEVICE_PRINTF_H_
