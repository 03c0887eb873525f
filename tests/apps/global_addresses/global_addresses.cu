// Device globals that hold addresses: of other globals (from a static
// initializer and from the host), of allocations, and linked descriptors that
// point at both. A kernel swaps two of the pointers between launches.
// --size: elements of the largest channel.
#include "../common/app.h"

constexpr int kPoolSize = 1 << 14;
constexpr int kBlock = 256;

struct Channel {
  float* data;
  const float* weights;
  Channel* next;
  int count;
};

__device__ float pool_a[kPoolSize];
__device__ float pool_b[kPoolSize];
__device__ float* front = pool_a;
__device__ float* back = pool_b;
__device__ float shared_weights[kPoolSize];
__device__ float small_channel[kPoolSize / 2];
__device__ Channel channels[4];
__constant__ Channel* first_channel;

// Smooths the front pool into the back pool.
__global__ void RelaxPoolKernel() {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= kPoolSize) return;
  float left = front[(i + kPoolSize - 1) % kPoolSize];
  float right = front[(i + 1) % kPoolSize];
  back[i] = 0.5f * (left + right);
}

__global__ void SwapPoolsKernel() {
  float* old_front = front;
  front = back;
  back = old_front;
}

// Adds the weighted front pool to every channel of the list.
__global__ void AccumulateChannelsKernel() {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (Channel* channel = first_channel; channel != nullptr;
       channel = channel->next) {
    if (i >= channel->count) continue;
    int slot = i % kPoolSize;
    channel->data[i] += channel->weights[slot] * front[slot];
  }
}

template <typename T>
T* AddressOf(T& symbol) {
  void* address = nullptr;
  CUDA_CHECK(cudaGetSymbolAddress(&address, symbol));
  return static_cast<T*>(address);
}

// Each iteration adds one product, each rounded once or twice: at most 2 ulp of
// the sum, whose terms are below 1.
constexpr apps::Tolerance kTolerance{1e-5, 1e-5};

int main(int argc, char** argv) {
  const apps::Options options =
      apps::ParseOptions(argc, argv, "global_addresses",
                         {int64_t{1} << 25, 40000, int64_t{1} << 28,
                          "elements of the largest channel"});
  const int count = static_cast<int>(options.size);
  const int other_count = (count + 1) / 2;
  const int small_count = std::min(kPoolSize / 2, count);

  std::vector<float> pool = apps::RandomFloats(kPoolSize, 1, -1.0f, 1.0f);
  const std::vector<float> weights_a =
      apps::RandomFloats(kPoolSize, 2, 0.0f, 1.0f);
  const std::vector<float> weights_b =
      apps::RandomFloats(kPoolSize, 3, 0.0f, 1.0f);
  apps::DeviceArray<float> large(std::vector<float>(count, 0.0f));
  apps::DeviceArray<float> other(std::vector<float>(other_count, 0.0f));
  apps::DeviceArray<float> weights(weights_b);
  CUDA_CHECK(cudaMemcpyToSymbol(pool_a, pool.data(), sizeof(pool_a)));
  CUDA_CHECK(cudaMemcpyToSymbol(shared_weights, weights_a.data(),
                                sizeof(shared_weights)));
  const std::vector<float> zeros(kPoolSize / 2, 0.0f);
  CUDA_CHECK(
      cudaMemcpyToSymbol(small_channel, zeros.data(), sizeof(small_channel)));

  // The list runs 2, 0, 3, 1. Channels 0 and 3 share their data, so that a
  // thread adds to the same element twice.
  Channel* list = &(*AddressOf(channels))[0];
  float* symbol_weights = &(*AddressOf(shared_weights))[0];
  float* symbol_data = &(*AddressOf(small_channel))[0];
  const Channel host_channels[4] = {
      {large.get(), symbol_weights, list + 3, count},
      {other.get(), weights.get(), nullptr, other_count},
      {symbol_data, weights.get(), list + 0, small_count},
      {large.get(), weights.get(), list + 1, count},
  };
  Channel* first = list + 2;
  CUDA_CHECK(cudaMemcpyToSymbol(channels, host_channels, sizeof(channels)));
  CUDA_CHECK(cudaMemcpyToSymbol(first_channel, &first, sizeof(first)));

  apps::RunIterations(options, [&] {
    RelaxPoolKernel<<<kPoolSize / kBlock, kBlock>>>();
    SwapPoolsKernel<<<1, 1>>>();
    AccumulateChannelsKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>();
  });

  std::vector<double> front_sum(kPoolSize, 0);
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    std::vector<float> next(kPoolSize);
    for (int i = 0; i < kPoolSize; ++i) {
      next[i] = 0.5f * (pool[(i + kPoolSize - 1) % kPoolSize] +
                        pool[(i + 1) % kPoolSize]);
      front_sum[i] += next[i];
    }
    pool = next;
  }
  apps::Checker checker;
  const auto check = [&](const char* what, const std::vector<float>& got,
                         const std::vector<float>& first_weights,
                         const std::vector<float>* second_weights) {
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t slot = i % kPoolSize;
      double weight = first_weights[slot];
      if (second_weights != nullptr) weight += (*second_weights)[slot];
      checker.Expect(what, i, got[i], weight * front_sum[slot], kTolerance);
    }
  };
  std::vector<float> small(small_count);
  CUDA_CHECK(cudaMemcpyFromSymbol(small.data(), small_channel,
                                  small.size() * sizeof(float)));
  check("large", large.ToHost(), weights_a, &weights_b);
  check("other", other.ToHost(), weights_b, nullptr);
  check("small_channel", small, weights_b, nullptr);

  // An even number of swaps brings the first pool back to the front.
  float* final_front = nullptr;
  CUDA_CHECK(cudaMemcpyFromSymbol(&final_front, front, sizeof(final_front)));
  float* expected_front = options.iterations % 2 == 0
                              ? &(*AddressOf(pool_a))[0]
                              : &(*AddressOf(pool_b))[0];
  checker.Expect("front is the expected pool", 0, final_front == expected_front,
                 1, apps::kExact);
  return checker.Finish();
}
