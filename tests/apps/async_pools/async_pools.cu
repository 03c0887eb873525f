// Stream-ordered allocation: many small buffers from the device's default pool
// and from a pool of the program's own, filled on one stream, verified and
// freed on another that an event orders after it, so that memory is reused
// across streams all the time. Two live buffers that overlap would spoil each
// other's contents. Results are exact. --size: number of buffers.
#include "../common/app.h"

constexpr int kBlock = 128;
constexpr int kStreams = 3;
constexpr int kLive = 24;  // buffers alive at a time
constexpr int kMaxValues = 3000;

__host__ __device__ inline unsigned int ValueAt(unsigned int tag, int i) {
  return (tag * 2654435761u) ^ (static_cast<unsigned int>(i) * 40503u);
}

__global__ void FillBufferKernel(unsigned int* buffer, int count,
                                 unsigned int tag) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) buffer[i] = ValueAt(tag, i);
}

// totals[0] counts the values that are not what FillBufferKernel wrote,
// totals[1] sums them all.
__global__ void VerifyBufferKernel(const unsigned int* buffer, int count,
                                   unsigned int tag,
                                   unsigned long long* totals) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (buffer[i] != ValueAt(tag, i)) atomicAdd(&totals[0], 1ull);
  atomicAdd(&totals[1], static_cast<unsigned long long>(buffer[i]));
}

struct Buffer {
  unsigned int* data = nullptr;
  int count = 0;
  unsigned int tag = 0;
  int stream = 0;  // that filled it
  cudaEvent_t filled = nullptr;
};

// Allocates the buffer on its stream, every third time from `pool`, and fills
// it.
void Fill(Buffer& buffer, unsigned int tag, cudaMemPool_t pool,
          const cudaStream_t* streams) {
  buffer.tag = tag;
  buffer.count = 1 + static_cast<int>(apps::HashBits(1, tag) % kMaxValues);
  buffer.stream = static_cast<int>(tag % kStreams);
  cudaStream_t stream = streams[buffer.stream];
  const size_t bytes = buffer.count * sizeof(unsigned int);
  if (apps::HashBits(2, tag) % 3 == 0) {
    CUDA_CHECK(cudaMallocFromPoolAsync(&buffer.data, bytes, pool, stream));
  } else {
    CUDA_CHECK(cudaMallocAsync(&buffer.data, bytes, stream));
  }
  FillBufferKernel<<<apps::BlocksFor(buffer.count, kBlock), kBlock, 0,
                     stream>>>(buffer.data, buffer.count, tag);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaEventRecord(buffer.filled, stream));
}

// Verifies and frees the buffer on the stream after its own.
void VerifyAndFree(Buffer& buffer, unsigned long long* totals,
                   const cudaStream_t* streams) {
  cudaStream_t stream = streams[(buffer.stream + 1) % kStreams];
  CUDA_CHECK(cudaStreamWaitEvent(stream, buffer.filled, 0));
  VerifyBufferKernel<<<apps::BlocksFor(buffer.count, kBlock), kBlock, 0,
                       stream>>>(buffer.data, buffer.count, buffer.tag, totals);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaFreeAsync(buffer.data, stream));
  buffer.data = nullptr;
}

cudaMemPool_t CreatePool() {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  CUDA_CHECK(cudaGetDevice(&properties.location.id));
  cudaMemPool_t pool = nullptr;
  CUDA_CHECK(cudaMemPoolCreate(&pool, &properties));
  uint64_t threshold = UINT64_MAX;  // keep what is freed
  CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold,
                                     &threshold));
  return pool;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "async_pools", {3000, 200, 1 << 20, "number of buffers"});
  cudaStream_t streams[kStreams];
  for (cudaStream_t& stream : streams) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  cudaMemPool_t pool = CreatePool();
  std::vector<Buffer> buffers(kLive);
  for (Buffer& buffer : buffers) {
    CUDA_CHECK(
        cudaEventCreateWithFlags(&buffer.filled, cudaEventDisableTiming));
  }
  unsigned long long got[2] = {};
  {
    apps::DeviceArray<unsigned long long> totals(2);
    totals.Clear();
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      for (int b = 0; b < options.size; ++b) {
        Buffer& buffer = buffers[b % kLive];
        if (buffer.data != nullptr) {
          VerifyAndFree(buffer, totals.get(), streams);
        }
        Fill(buffer, static_cast<unsigned int>(b), pool, streams);
      }
      for (Buffer& buffer : buffers) {
        if (buffer.data == nullptr) continue;
        VerifyAndFree(buffer, totals.get(), streams);
      }
      CUDA_CHECK(cudaDeviceSynchronize());
    }
    std::copy_n(totals.ToHost().begin(), 2, got);
  }

  unsigned long long sum = 0;
  for (unsigned int tag = 0; tag < options.size; ++tag) {
    const int count = 1 + static_cast<int>(apps::HashBits(1, tag) % kMaxValues);
    for (int i = 0; i < count; ++i) sum += ValueAt(tag, i);
  }
  apps::Checker checker;
  checker.Expect("spoilt values", 0, static_cast<double>(got[0]), 0,
                 apps::kExact);
  checker.Expect("sum", 0, static_cast<double>(got[1]),
                 static_cast<double>(sum * options.iterations), apps::kExact);
  for (Buffer& buffer : buffers) CUDA_CHECK(cudaEventDestroy(buffer.filled));
  for (cudaStream_t stream : streams) CUDA_CHECK(cudaStreamDestroy(stream));
  CUDA_CHECK(cudaMemPoolDestroy(pool));
  return checker.Finish();
}
