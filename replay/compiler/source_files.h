// The file system that Clang sees: a unit's source closure with a variant's
// overlays on top, or the disk.
//
// Not thread-safe: a file system has a working directory of its own. The
// closure's bytes are borrowed from the CompileTranslationUnit, which must
// outlive the file system.
#ifndef REPRISE_REPLAY_COMPILER_SOURCE_FILES_H_
#define REPRISE_REPLAY_COMPILER_SOURCE_FILES_H_

#include <string>

#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "replay/compiler/toolchain.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

using FileSystemPtr = llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>;

// With the unit's directory as working directory. Files of the closure hide
// those on disk; paths below the unit's --cuda-path that exist nowhere are
// looked up in this machine's toolkit. With `hermetic`, the disk is seen below
// the toolkit and Clang's headers only, so that what the driver finds out
// about the recording machine (its GCC) does not depend on this one; without a
// closure it has no effect.
FileSystemPtr MakeUnitFileSystem(const v1::CompileTranslationUnit& unit,
                                 const Toolchain& tools, bool hermetic);

// `base` with the overlays' files on top.
FileSystemPtr AddOverlays(
    FileSystemPtr base, const std::string& directory,
    const google::protobuf::RepeatedPtrField<v1::SourceOverlay>& overlays);

// `path` made absolute against the unit's directory, without . and .. parts.
std::string CleanPath(const std::string& path, const std::string& directory);

// Whether a file belongs to the toolchain or the system and not to the user.
// `path` is clean.
bool IsSystemFile(const std::string& path,
                  const v1::CompileTranslationUnit& unit,
                  const Toolchain& tools);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_SOURCE_FILES_H_
