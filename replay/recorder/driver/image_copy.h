// Puts live memory through the window to the parent (protocol.h), which takes
// it out with threads of its own. Requires that nothing changes the memory
// meanwhile. Not thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_IMAGE_COPY_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_IMAGE_COPY_H_

#include <cuda.h>
#include <stdint.h>

#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/protocol.h"
#include "replay/recorder/preload/support.h"

namespace reprise::driver {

// Maps the window that the parent made; it stays for later recordings. False:
// it is no window of so many slots, or there is no address space.
bool MapWindow(int fd, uint32_t slots);

class ImageCopy {
 public:
  ImageCopy() = default;
  ~ImageCopy();
  ImageCopy(const ImageCopy&) = delete;
  ImageCopy& operator=(const ImageCopy&) = delete;

  // Takes a stream of the current context and makes the window known to the
  // driver. The ranges are in the order of the image and must outlive this.
  // After an error nothing else may be called.
  CUresult Open(const standin::Array<driver_wire::LiveRange>& ranges,
                uint64_t image_bytes);

  // One pass: returns when the parent has taken everything. Where the parent
  // goes away, says so (ParentLock::Lost) and returns an error.
  CUresult CopyOut(ParentLock& parent);

  // Leaves its resources behind: freeing them could wait for work that does not
  // end.
  void Leak();
  // Keeps a stream of the current context busy for some tens of microseconds,
  // so that what is enqueued next runs without gaps.
  void Delay(CUstream stream);

 private:
  CUresult Issue(uint64_t chunk);
  CUresult Publish(uint64_t chunk);
  CUresult CopyChunks(ParentLock& parent);
  CUresult CopyRange(const driver_wire::LiveRange& range, uint64_t offset,
                     uint64_t bytes, char* to);
  bool AwaitTaken(ParentLock& parent, uint64_t chunk);
  uint64_t ChunkBytes(uint64_t chunk) const;

  const standin::Array<driver_wire::LiveRange>* ranges_ = nullptr;
  uint64_t image_bytes_ = 0;
  uint64_t chunks_ = 0;
  CUevent events_[driver_wire::kMaxSlots] = {};
  CUstream stream_ = nullptr;
  // Where the next chunk begins.
  size_t next_range_ = 0;
  uint64_t next_range_offset_ = 0;  // of next_range_ in the image
};

// The context is gone, and with it what it knew of the window. Requires that
// nothing is being recorded.
void ForgetWindow(CUcontext context);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_IMAGE_COPY_H_
