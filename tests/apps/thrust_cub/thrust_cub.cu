// Thrust and CUB: sorting keys and pairs, reduction, inclusive scan, and a
// transformation with the program's own functor. The kernels' names carry the
// library's version and the architectures of the build. Results are exact.
// --size: number of keys.
#include <thrust/device_vector.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <numeric>

#include "../common/app.h"

struct Mix {
  unsigned int seed;
  __host__ __device__ unsigned int operator()(unsigned int key) const {
    return (key ^ seed) * 2654435761u >> 1;
  }
};

struct Add {
  __host__ __device__ unsigned long long operator()(
      unsigned long long a, unsigned long long b) const {
    return a + b;
  }
};

// Calls a CUB algorithm twice, as it wants it: for the size of its scratch
// memory, and with it.
template <typename Algorithm>
void RunCub(Algorithm algorithm) {
  size_t bytes = 0;
  CUDA_CHECK(algorithm(nullptr, bytes));
  thrust::device_vector<unsigned char> scratch(bytes);
  CUDA_CHECK(algorithm(thrust::raw_pointer_cast(scratch.data()), bytes));
  CUDA_CHECK(cudaDeviceSynchronize());
}

int Run(const apps::Options& options) {
  const int count = static_cast<int>(options.size);
  std::vector<unsigned int> keys(count);
  for (int i = 0; i < count; ++i) keys[i] = apps::HashBits(1, i);

  thrust::device_vector<unsigned int> device_keys(keys.begin(), keys.end());
  thrust::device_vector<unsigned int> sorted(count);
  thrust::device_vector<int> order(count);
  thrust::device_vector<unsigned long long> sum(1);
  thrust::device_vector<unsigned int> running(count);
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const Mix mix = {static_cast<unsigned int>(iteration)};
    thrust::transform(device_keys.begin(), device_keys.end(),
                      device_keys.begin(), mix);
    sorted = device_keys;
    thrust::sequence(order.begin(), order.end());
    thrust::stable_sort_by_key(sorted.begin(), sorted.end(), order.begin());
    RunCub([&](void* scratch, size_t& bytes) {
      return cub::DeviceReduce::Reduce(scratch, bytes, device_keys.begin(),
                                       sum.begin(), count, Add(), 0ull);
    });
    RunCub([&](void* scratch, size_t& bytes) {
      return cub::DeviceScan::InclusiveSum(scratch, bytes, device_keys.begin(),
                                           running.begin(), count);
    });
  }
  thrust::device_vector<unsigned int> plain = device_keys;
  thrust::sort(plain.begin(), plain.end());

  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const Mix mix = {static_cast<unsigned int>(iteration)};
    for (unsigned int& key : keys) key = mix(key);
  }
  std::vector<int> expected_order(count);
  std::iota(expected_order.begin(), expected_order.end(), 0);
  std::stable_sort(expected_order.begin(), expected_order.end(),
                   [&](int a, int b) { return keys[a] < keys[b]; });
  std::vector<unsigned int> got_sorted(count), got_plain(count),
      got_running(count);
  std::vector<int> got_order(count);
  thrust::copy(sorted.begin(), sorted.end(), got_sorted.begin());
  thrust::copy(plain.begin(), plain.end(), got_plain.begin());
  thrust::copy(running.begin(), running.end(), got_running.begin());
  thrust::copy(order.begin(), order.end(), got_order.begin());

  apps::Checker checker;
  unsigned int expected_running = 0;
  unsigned long long expected_sum = 0;
  for (int i = 0; i < count; ++i) {
    const unsigned int expected = keys[expected_order[i]];
    expected_sum += keys[i];
    expected_running += keys[i];
    checker.Expect("sorted", i, got_sorted[i], expected, apps::kExact);
    checker.Expect("plain", i, got_plain[i], expected, apps::kExact);
    checker.Expect("order", i, got_order[i], expected_order[i], apps::kExact);
    checker.Expect("running sum", i, got_running[i], expected_running,
                   apps::kExact);
  }
  checker.Expect("sum", 0, static_cast<double>(sum[0]),
                 static_cast<double>(expected_sum), apps::kExact);
  return checker.Finish();
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "thrust_cub", {1 << 22, 10007, 1 << 28, "number of keys"});
  try {
    return Run(options);
  } catch (const std::exception& error) {  // how Thrust reports CUDA errors
    std::printf("thrust_cub: FAIL %s\n", error.what());
    return 1;
  }
}
