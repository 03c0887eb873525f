// Device memory of one application process as the recorder sees it: the memfd
// that the application and the executor map, the recorder's own mapping of it,
// and what is allocated in it. Not thread-safe.
//
// Addresses and sizes come from the application and are not trusted.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_ARENA_MEMORY_H_
#define REPRISE_REPLAY_RECORDER_SESSION_ARENA_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

// Something in device memory with a life of its own.
struct LiveRange {
  uint64_t address = 0;
  uint64_t bytes = 0;
  v1::MemoryOrigin origin = v1::MEMORY_ORIGIN_UNSPECIFIED;
  std::string symbol;  // of a global
};

class ArenaMemory {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  struct Options {
    uint64_t base = 0;
    uint64_t bytes = 0;
    uint64_t globals_bytes = 0;  // at the start, for AddGlobal
  };
  static absl::StatusOr<std::unique_ptr<ArenaMemory>> Create(Options options);
  ~ArenaMemory();
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;

  int fd() const { return fd_; }
  const Options& options() const { return options_; }
  // Where the recorder reads and writes the bytes at a device address.
  char* At(uint64_t address) const {
    return mapping_ + (address - options_.base);
  }

  // INVALID_ARGUMENT: outside the arena's part for allocations, or taken.
  absl::Status Add(uint64_t address, uint64_t bytes, v1::MemoryOrigin origin);
  // NOT_FOUND: no allocation begins there.
  absl::Status Remove(uint64_t address);

  // A zeroed place for a device variable. RESOURCE_EXHAUSTED: the globals' part
  // is full.
  absl::StatusOr<uint64_t> AddGlobal(const v1::ModuleGlobal& global);
  void RemoveGlobal(uint64_t address);

  // Makes this a copy of what is live in `other`, an arena of the same options.
  void CopyFrom(const ArenaMemory& other);

  // cudaDeviceReset: everything is gone.
  void Clear();

  // By address; ranges do not overlap.
  const std::map<uint64_t, LiveRange>& live() const { return live_; }
  // The live range that holds the byte, or null.
  const LiveRange* Find(uint64_t address) const;
  // Changes whenever live() does.
  uint64_t generation() const { return generation_; }

  // Whole pages of everything live.
  std::vector<v1::MemoryMapping> Mappings() const;

 private:
  ArenaMemory(Options options, int fd, char* mapping);

  Options options_;
  int fd_;
  char* mapping_;
  std::map<uint64_t, LiveRange> live_;
  uint64_t next_global_;
  uint64_t generation_ = 0;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_ARENA_MEMORY_H_
