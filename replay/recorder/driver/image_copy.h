// Copies live memory into a recording's image: from the device through pinned
// staging buffers, from there by several threads. Requires that nothing changes
// the memory meanwhile. Not thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_IMAGE_COPY_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_IMAGE_COPY_H_

#include <cuda.h>
#include <stdint.h>

#include "replay/recorder/driver/protocol.h"
#include "replay/recorder/preload/support.h"

namespace reprise::driver {

class ImageCopy {
 public:
  ImageCopy() = default;
  ~ImageCopy();
  ImageCopy(const ImageCopy&) = delete;
  ImageCopy& operator=(const ImageCopy&) = delete;

  // Takes a stream of the current context, and staging memory, which stays for
  // the next recording. The ranges are in the order of the image and must
  // outlive this. After an error nothing else may be called.
  CUresult Open(const standin::Array<driver_wire::LiveRange>& ranges,
                uint64_t image_bytes);

  // Fills `image`, which is zeros.
  CUresult CopyAll(char* image);
  // Leaves its resources behind: freeing them could wait for work that does not
  // end.
  void Leak();
  // Keeps a stream of the current context busy for some tens of microseconds,
  // so that what is enqueued next runs without gaps.
  void Delay(CUstream stream);
  // Fills the blocks of `changed` that differ from `image` and sets their bits
  // (see EpilogueNotice).
  CUresult CopyChanged(const char* image, char* changed, unsigned char* bits);

 private:
  static constexpr int kBuffers = 4;
  static constexpr uint64_t kBufferBytes = 32 << 20;
  static constexpr uint64_t kMinBufferBytes = 4 << 20;
  static constexpr int kMaxWorkers = 16;

  struct Worker;
  struct Pass;

  CUresult Run(Pass* pass);
  CUresult Issue(uint64_t chunk);
  CUresult CopyRange(const driver_wire::LiveRange& range, uint64_t offset,
                     uint64_t bytes, char* to);
  uint64_t ChunkBytes(uint64_t chunk) const;
  void Process(Pass* pass, uint64_t chunk, uint64_t slice, uint64_t slices);
  static void Fill(char* to, const char* from, uint64_t bytes);
  static void FillChanged(Pass* pass, uint64_t base, const char* from,
                          uint64_t bytes);
  static void* RunWorker(void* worker);

  const standin::Array<driver_wire::LiveRange>* ranges_ = nullptr;
  uint64_t image_bytes_ = 0;
  uint64_t chunks_ = 0;
  char* buffers_[kBuffers] = {};  // of the staging memory
  CUevent events_[kBuffers] = {};
  CUstream stream_ = nullptr;
  // Where the next chunk begins.
  size_t next_range_ = 0;
  uint64_t next_range_offset_ = 0;  // of next_range_ in the image
};

// The context is gone, and staging memory with it where it came from there.
// Requires that nothing is being recorded.
void ForgetStaging(CUcontext context);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_IMAGE_COPY_H_
