// Tables of tiles for the support kernels, built on the host. Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_TILES_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_TILES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "replay/base/status_macros.h"
#include "replay/device/cuda/support_kernels.h"
#include "replay/unit/interval_set.h"

namespace reprise::cuda {

// Threads that share a tile, by size class.
inline constexpr uint32_t kTileLanes[] = {1, 32, kSupportBlock};
inline constexpr uint64_t kSmallTileBytes = 64;
inline constexpr uint64_t kMediumTileBytes = 8 << 10;
inline constexpr uint64_t kTileBytes = 64 << 10;

inline int TileClass(uint64_t bytes) {
  return bytes <= kSmallTileBytes ? 0 : bytes <= kMediumTileBytes ? 1 : 2;
}

// Tables that go to the device as one block of bytes.
class Tables {
 public:
  // Returns the offset of the rows.
  template <typename Row>
  uint64_t Add(const std::vector<Row>& rows) {
    bytes_.resize((bytes_.size() + 15) / 16 * 16);
    const uint64_t offset = bytes_.size();
    bytes_.append(reinterpret_cast<const char*>(rows.data()),
                  rows.size() * sizeof(Row));
    return offset;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Pieces of memory in the three size classes.
template <typename Tile>
struct TileSet {
  std::vector<Tile> classes[3];
  uint64_t bytes = 0;

  // Where the set lies in a Tables.
  struct Placed {
    uint64_t offsets[3] = {};
    uint64_t counts[3] = {};
  };
  Placed PlaceIn(Tables& tables) const {
    Placed placed;
    for (int i = 0; i < 3; ++i) {
      placed.offsets[i] = tables.Add(classes[i]);
      placed.counts[i] = classes[i].size();
    }
    return placed;
  }
};

using CopyTiles = TileSet<CopyTile>;
using FillTiles = TileSet<FillTile>;

void AddCopy(uint64_t to, uint64_t from, uint64_t bytes, CopyTiles* tiles);
void AddFill(uint64_t at, uint64_t bytes, FillTiles* tiles);
void AddCompare(uint64_t job, uint64_t begin, uint64_t end,
                uint64_t got_address, std::vector<CompareTile>* tiles);

// The set with gaps closed that cost no more to copy than to leave out, and
// more of them where there are very many intervals.
IntervalSet Coalesced(const IntervalSet& set);

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_TILES_H_
