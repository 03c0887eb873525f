// A pipeline over four streams: asynchronous copies from and to pinned memory,
// one kernel per chunk that continues where the previous chunk, in another
// stream, ended, and events that order them. Results are exact.
// --size: number of elements.
#include "../common/app.h"

constexpr int kStreams = 4;
constexpr int kChunks = 12;
constexpr int kBlock = 256;

// output[i] = input[i] + the output just before the chunk.
__global__ void ContinueKernel(const int* input, int* output, int first,
                               int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int carry = first == 0 ? 0 : output[first - 1];
  output[first + i] = input[first + i] + carry;
}

// Sums the elements of each chunk, one block per chunk, thread by thread.
__global__ void SumChunksKernel(const int* values, const int* firsts,
                                long long* sums) {
  __shared__ long long partial[kBlock];
  long long sum = 0;
  int chunk = blockIdx.x;
  for (int i = firsts[chunk] + static_cast<int>(threadIdx.x);
       i < firsts[chunk + 1]; i += blockDim.x) {
    sum += values[i];
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int t = 1; t < kBlock; ++t) sum += partial[t];
    sums[chunk] = sum;
  }
}

// The events and streams of the pipeline.
struct Pipeline {
  cudaStream_t streams[kStreams];
  cudaEvent_t begin;
  cudaEvent_t chunk_done[kChunks];  // its kernel, not its copy back
  cudaEvent_t stream_done[kStreams];
};

Pipeline CreatePipeline() {
  Pipeline pipeline;
  for (int s = 0; s < kStreams; ++s) {
    CUDA_CHECK(cudaStreamCreateWithFlags(
        &pipeline.streams[s],
        s % 2 == 0 ? cudaStreamNonBlocking : cudaStreamDefault));
    CUDA_CHECK(cudaEventCreateWithFlags(&pipeline.stream_done[s],
                                        cudaEventDisableTiming));
  }
  CUDA_CHECK(cudaEventCreate(&pipeline.begin));
  for (cudaEvent_t& event : pipeline.chunk_done) {
    CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  return pipeline;
}

void DestroyPipeline(const Pipeline& pipeline) {
  for (int s = 0; s < kStreams; ++s) {
    CUDA_CHECK(cudaStreamDestroy(pipeline.streams[s]));
    CUDA_CHECK(cudaEventDestroy(pipeline.stream_done[s]));
  }
  CUDA_CHECK(cudaEventDestroy(pipeline.begin));
  for (cudaEvent_t event : pipeline.chunk_done) {
    CUDA_CHECK(cudaEventDestroy(event));
  }
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "streams",
      {int64_t{1} << 24, 12000, int64_t{1} << 28, "number of elements"});
  const int count = static_cast<int>(std::max<int64_t>(options.size, kChunks));
  std::vector<int> firsts(kChunks + 1);
  for (int c = 0; c <= kChunks; ++c) {
    firsts[c] = static_cast<int>(static_cast<int64_t>(count) * c / kChunks);
  }
  const size_t bytes = count * sizeof(int);
  int* pinned_input = nullptr;
  int* pinned_output = nullptr;
  CUDA_CHECK(cudaMallocHost(&pinned_input, bytes));
  CUDA_CHECK(cudaHostAlloc(&pinned_output, bytes, cudaHostAllocDefault));
  for (int i = 0; i < count; ++i) {
    pinned_input[i] = static_cast<int>(apps::HashBits(1, i) % 1000);
    pinned_output[i] = -1;
  }
  apps::DeviceArray<int> input(count);
  apps::DeviceArray<int> output(count);
  apps::DeviceArray<int> device_firsts(firsts);
  apps::DeviceArray<long long> sums(kChunks);
  const Pipeline pipeline = CreatePipeline();

  const auto run_pipeline = [&] {
    CUDA_CHECK(cudaEventRecord(pipeline.begin));
    for (cudaStream_t stream : pipeline.streams) {
      CUDA_CHECK(cudaStreamWaitEvent(stream, pipeline.begin, 0));
    }
    for (int c = 0; c < kChunks; ++c) {
      cudaStream_t stream = pipeline.streams[c % kStreams];
      const int first = firsts[c];
      const int chunk_count = firsts[c + 1] - first;
      const size_t chunk_bytes = chunk_count * sizeof(int);
      CUDA_CHECK(cudaMemcpyAsync(input.get() + first, pinned_input + first,
                                 chunk_bytes, cudaMemcpyHostToDevice, stream));
      if (c > 0) {
        CUDA_CHECK(cudaStreamWaitEvent(stream, pipeline.chunk_done[c - 1], 0));
      }
      ContinueKernel<<<apps::BlocksFor(chunk_count, kBlock), kBlock, 0,
                       stream>>>(input.get(), output.get(), first, chunk_count);
      CUDA_CHECK(cudaGetLastError());
      CUDA_CHECK(cudaEventRecord(pipeline.chunk_done[c], stream));
      CUDA_CHECK(cudaMemcpyAsync(pinned_output + first, output.get() + first,
                                 chunk_bytes, cudaMemcpyDeviceToHost, stream));
    }
    for (int s = 0; s < kStreams; ++s) {
      CUDA_CHECK(cudaEventRecord(pipeline.stream_done[s], pipeline.streams[s]));
      CUDA_CHECK(cudaStreamWaitEvent(nullptr, pipeline.stream_done[s], 0));
    }
    SumChunksKernel<<<kChunks, kBlock>>>(output.get(), device_firsts.get(),
                                         sums.get());
  };
  // The pinned input may change only once the copies from it are over.
  apps::RunIterations(options, run_pipeline, [&] {
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < count; i += 1000) ++pinned_input[i];
    CUDA_CHECK(cudaMemsetAsync(output.get(), 0xff, output.bytes()));
  });

  apps::Checker checker;
  const std::vector<long long> got_sums = sums.ToHost();
  int carry = 0;
  for (int c = 0; c < kChunks; ++c) {
    long long sum = 0;
    for (int i = firsts[c]; i < firsts[c + 1]; ++i) {
      const int expected = pinned_input[i] + carry;
      sum += expected;
      checker.Expect("output", i, pinned_output[i], expected, apps::kExact);
    }
    carry += pinned_input[firsts[c + 1] - 1];
    checker.Expect("sum", c, static_cast<double>(got_sums[c]),
                   static_cast<double>(sum), apps::kExact);
  }
  DestroyPipeline(pipeline);
  CUDA_CHECK(cudaFreeHost(pinned_input));
  CUDA_CHECK(cudaFreeHost(pinned_output));
  return checker.Finish();
}
