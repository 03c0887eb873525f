// What `reprise cc` keeps of a build, and `reprise record` looks up: for every
// piece of device code, by digest, the translation unit it was compiled from.
//
//   <directory>/store/         contents of source files (a ChunkStore)
//   <directory>/units/<sha>    v1::TranslationUnit without IR, by its digest
//   <directory>/images/<digest>/<sha>
//                              an image came from this unit; the file holds
//                              "<architecture> <tag>"; the newest wins
//   <directory>/links/<digest> a registered fatbin that a device linker made:
//                              its inputs, one "image <digest>" or
//                              "unit <sha> <architecture> <tag>" a line
//
// Image digests are those of device_images.h. Every file appears whole or not
// at all; several processes may write at once. Thread-safe. Errors name the
// file; RESOURCE_EXHAUSTED: disk full.
#ifndef REPRISE_REPLAY_RECORDER_CC_BUILD_REGISTRY_H_
#define REPRISE_REPLAY_RECORDER_CC_BUILD_REGISTRY_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// A unit as one object's source.
struct UnitUse {
  std::string unit;          // id
  std::string architecture;  // to compile it for: "sm_90"
  // What the compiler put into names to make them unique in a program (see
  // FindUnitTag); may be empty.
  std::string tag;
};

// A translation unit that the registry keeps. Copies are cheap enough.
struct BuiltUnit {
  UnitUse use;
  v1::TranslationUnit unit;  // blobs lie in the registry's chunks()
};

// Device code that was linked: what one of its inputs came from.
struct LinkInput {
  std::string image;  // digest of an image, or empty:
  UnitUse use;
};

class BuildRegistry {
 public:
  // $REPRISE_HOME, else $XDG_CACHE_HOME/reprise, else ~/.cache/reprise; /build
  // in it.
  static std::string DefaultDirectory();

  // NOT_FOUND where there is none and `create` is false.
  static absl::StatusOr<std::unique_ptr<BuildRegistry>> Open(
      const std::string& directory, bool create);

  // Keeps the unit; returns its id. Its files must lie in chunks().
  absl::StatusOr<std::string> AddUnit(const v1::TranslationUnit& unit);
  absl::Status AddImage(const std::string& image_digest, const UnitUse& use);
  absl::Status AddLink(const std::string& image_digest,
                       const std::vector<LinkInput>& inputs);

  // The units whose code an image is: one, or for a linked image all of its
  // inputs' units, in order. Inputs that are not known are left out. Several
  // units of device code that is not relocatable: the image is one of them,
  // which one the kernel tells. Empty: nothing is known of the image.
  // DATA_LOSS: an entry is damaged.
  absl::StatusOr<std::vector<BuiltUnit>> FindUnits(
      const std::string& image_digest) const;

  ChunkStore& chunks() const { return *chunks_; }
  const std::string& directory() const { return directory_; }

 private:
  BuildRegistry(std::string directory, std::unique_ptr<ChunkStore> chunks);

  absl::StatusOr<BuiltUnit> ReadUnit(UnitUse use) const;
  // The newest unit of an image; NOT_FOUND where there is none.
  absl::StatusOr<BuiltUnit> NewestUnit(const std::string& image_digest) const;
  std::string Path(std::string_view kind, std::string_view name) const;

  std::string directory_;
  std::unique_ptr<ChunkStore> chunks_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_CC_BUILD_REGISTRY_H_
