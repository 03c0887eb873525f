// What of a translation unit the device compile of some kernels needs: the rest
// of the user's text is for the host and can go before NVRTC, which knows no
// host code and has no host headers, sees it.
//
// Found with Clang, also in sources that Clang refuses in the end. Pieces are
// kept as text, so that the same cuts can be made in an edited file without
// Clang. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_DEVICE_SLICE_H_
#define REPRISE_REPLAY_COMPILER_DEVICE_SLICE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/compiler/toolchain.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

struct DeviceSlice {
  // Pieces to cut out of each of the user's files, in order; by clean path.
  std::map<std::string, std::vector<std::string>> cuts;
  // Something of the C++ library's namespace is used on the device.
  bool uses_std = false;
  // Headers of the toolkit are still included.
  bool includes_toolkit = false;
};

struct SliceRoots {
  std::vector<std::string> kernels;  // symbols; empty: all
  bool variables = false;            // all device variables too
  bool functions = false;            // all device functions too
};

// NOT_FOUND: nothing of that is in the user's files. INVALID_ARGUMENT: Clang
// cannot make sense of the arguments. UNIMPLEMENTED: a kernel is made from a
// lambda of host code.
absl::StatusOr<DeviceSlice> SliceForDevice(
    const v1::CompileTranslationUnit& unit, const std::string& architecture,
    const SliceRoots& roots,
    const google::protobuf::RepeatedPtrField<v1::SourceOverlay>& overlays,
    const Toolchain& tools);

// The text without the pieces; lines keep their numbers, and directives within
// a piece stay. Empty: a piece is not in the text.
std::optional<std::string> CutPieces(const std::string& text,
                                     const std::vector<std::string>& pieces);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_DEVICE_SLICE_H_
