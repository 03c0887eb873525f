// LZ4 blocks, as nvcc compresses device code with --compress-mode=speed.
// Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_CC_LZ4_BLOCK_H_
#define REPRISE_REPLAY_RECORDER_CC_LZ4_BLOCK_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace reprise {

// What the block holds, which must be `plain_bytes`. Input is untrusted:
// INVALID_ARGUMENT where it is malformed or of another size. Memory is taken as
// the block proves to need it.
absl::StatusOr<std::string> DecompressLz4Block(std::string_view block,
                                               uint64_t plain_bytes);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_CC_LZ4_BLOCK_H_
