// Every atomic operation on 32-bit and 64-bit integers, float and double,
// compare-and-swap loops, block-wide atomics in shared memory, and a fence
// protocol by which the last block to finish sums up. Whatever the order of the
// threads, the results are exact.
// --size: number of values.
#include "../common/app.h"

constexpr int kBlock = 256;
constexpr unsigned int kWrap = 1000;
constexpr unsigned long long kModulus = 1000000007;
// One warp of so many takes part in the compare-and-swap loop that every
// participant must win once: its time grows with their number squared.
constexpr int kWarpsPerModuloWarp = 32;

struct Results {
  int add_i, sub_i, min_i, max_i;
  unsigned int and_u, or_u, xor_u, inc_u, dec_u, min_u, max_u;
  unsigned long long add_ull, and_ull, or_ull, xor_ull, min_ull, max_ull;
  long long min_ll, max_ll;
  float add_f;    // multiples of 1/4 below 2^22: exact in any order
  double add_d;   // likewise
  float largest;  // by a compare-and-swap loop
  unsigned long long sum_modulo;  // by a compare-and-swap loop
  unsigned int tickets;
  unsigned long long block_total;
};

// What thread i contributes, small and wide.
__host__ __device__ inline unsigned long long Wide(unsigned int value) {
  return (static_cast<unsigned long long>(value) << 21) ^ (value * 2654435761u);
}

__host__ __device__ inline bool AddsModulo(int i) {
  return i / 32 % kWarpsPerModuloWarp == 0;
}

__global__ void IntegerKernel(const unsigned int* input, Results* results,
                              int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned int value = input[i];
  int number = static_cast<int>(value % 2001) - 1000;
  atomicAdd(&results->add_i, number);
  atomicSub(&results->sub_i, number);
  atomicMin(&results->min_i, number);
  atomicMax(&results->max_i, number);
  atomicAnd(&results->and_u, value | 0xff00u);
  atomicOr(&results->or_u, value & 0x00ff00ffu);
  atomicXor(&results->xor_u, value);
  atomicInc(&results->inc_u, kWrap);
  atomicDec(&results->dec_u, kWrap);
  atomicMin(&results->min_u, value);
  atomicMax(&results->max_u, value);
  unsigned long long wide = Wide(value);
  atomicAdd(&results->add_ull, wide);
  atomicAnd(&results->and_ull, wide | 0xff00000000ull);
  atomicOr(&results->or_ull, wide & 0xff00ff00ff00ull);
  atomicXor(&results->xor_ull, wide);
  atomicMin(&results->min_ull, wide);
  atomicMax(&results->max_ull, wide);
  long long signed_wide = static_cast<long long>(wide) - (1LL << 52);
  atomicMin(&results->min_ll, signed_wide);
  atomicMax(&results->max_ll, signed_wide);
}

__global__ void FloatKernel(const unsigned int* input, Results* results,
                            int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float quarter = 0.25f * static_cast<float>(input[i] % 8);
  if (i % 64 == 0) atomicAdd(&results->add_f, quarter);
  atomicAdd(&results->add_d, static_cast<double>(quarter));

  float candidate = static_cast<float>(input[i] % 100003) - 50000.0f;
  int* largest = reinterpret_cast<int*>(&results->largest);
  int seen = *largest;
  while (__int_as_float(seen) < candidate) {
    int assumed = seen;
    seen = atomicCAS(largest, assumed, __float_as_int(candidate));
    if (seen == assumed) break;
  }

  if (!AddsModulo(i)) return;
  unsigned long long old = results->sum_modulo;
  unsigned long long assumed;
  do {
    assumed = old;
    old = atomicCAS(&results->sum_modulo, assumed,
                    (assumed + input[i]) % kModulus);
  } while (old != assumed);
}

// Every thread exchanges values with its own slots.
__global__ void ExchangeKernel(unsigned int* slots, unsigned long long* wide,
                               float* floats, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned int old = atomicExch(&slots[i], 7u);
  unsigned long long old_wide = atomicExch(&wide[i], 1ull * old + 1);
  float old_float = atomicExch(&floats[i], static_cast<float>(old_wide));
  unsigned int sum = old + static_cast<unsigned int>(old_float);
  atomicExch(&slots[i], sum & 0xfffu);
}

// Sums the input: blocks leave partial sums, and the block that takes the last
// ticket adds them up.
__global__ void LastBlockKernel(const unsigned int* input,
                                unsigned long long* partial, Results* results,
                                int count) {
  __shared__ unsigned long long block_sum;
  __shared__ bool is_last;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) block_sum = 0;
  __syncthreads();
  if (i < count) {
    atomicAdd_block(&block_sum, static_cast<unsigned long long>(input[i]));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = block_sum;
    __threadfence();
    is_last = atomicInc(&results->tickets, gridDim.x - 1) == gridDim.x - 1;
    block_sum = 0;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  const volatile unsigned long long* all = partial;
  for (unsigned int b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
    atomicAdd_block(&block_sum, all[b]);
  }
  __threadfence_block();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd_system(&results->block_total, block_sum);
    __threadfence_system();
  }
}

// What every field starts from.
Results Start() {
  Results start = {};
  start.and_u = 0xffffffffu;
  start.min_u = 0xffffffffu;
  start.and_ull = start.min_ull = ~0ull;
  start.min_ll = INT64_MAX;
  start.max_ll = INT64_MIN;
  start.largest = -1e9f;
  return start;
}

// One thread after the other.
Results Expected(const std::vector<unsigned int>& input) {
  Results r = Start();
  for (size_t i = 0; i < input.size(); ++i) {
    const unsigned int value = input[i];
    const int number = static_cast<int>(value % 2001) - 1000;
    r.add_i += number;
    r.sub_i -= number;
    r.min_i = std::min(r.min_i, number);
    r.max_i = std::max(r.max_i, number);
    r.and_u &= value | 0xff00u;
    r.or_u |= value & 0x00ff00ffu;
    r.xor_u ^= value;
    r.min_u = std::min(r.min_u, value);
    r.max_u = std::max(r.max_u, value);
    const unsigned long long wide = Wide(value);
    r.add_ull += wide;
    r.and_ull &= wide | 0xff00000000ull;
    r.or_ull |= wide & 0xff00ff00ff00ull;
    r.xor_ull ^= wide;
    r.min_ull = std::min(r.min_ull, wide);
    r.max_ull = std::max(r.max_ull, wide);
    const long long signed_wide = static_cast<long long>(wide) - (1LL << 52);
    r.min_ll = std::min(r.min_ll, signed_wide);
    r.max_ll = std::max(r.max_ll, signed_wide);
    const float quarter = 0.25f * static_cast<float>(value % 8);
    if (i % 64 == 0) r.add_f += quarter;
    r.add_d += quarter;
    r.largest =
        std::max(r.largest, static_cast<float>(value % 100003) - 50000.0f);
    if (AddsModulo(static_cast<int>(i)))
      r.sum_modulo = (r.sum_modulo + value) % kModulus;
    r.block_total += value;
  }
  // atomicInc counts 0 to kWrap and starts again; atomicDec the other way.
  const unsigned int steps = input.size() % (kWrap + 1);
  r.inc_u = steps;
  r.dec_u = steps == 0 ? 0 : kWrap + 1 - steps;
  return r;
}

void CheckResults(const Results& got, const Results& want,
                  apps::Checker& checker) {
  // Compared bit by bit: 64-bit integers do not fit a double.
  const auto expect = [&](const char* what, auto got_value, auto want_value) {
    checker.Expect(what, 0, got_value == want_value, 1, apps::kExact);
  };
#define REPRISE_EXPECT_FIELD(name) expect(#name, got.name, want.name)
  REPRISE_EXPECT_FIELD(add_i);
  REPRISE_EXPECT_FIELD(sub_i);
  REPRISE_EXPECT_FIELD(min_i);
  REPRISE_EXPECT_FIELD(max_i);
  REPRISE_EXPECT_FIELD(and_u);
  REPRISE_EXPECT_FIELD(or_u);
  REPRISE_EXPECT_FIELD(xor_u);
  REPRISE_EXPECT_FIELD(inc_u);
  REPRISE_EXPECT_FIELD(dec_u);
  REPRISE_EXPECT_FIELD(min_u);
  REPRISE_EXPECT_FIELD(max_u);
  REPRISE_EXPECT_FIELD(add_ull);
  REPRISE_EXPECT_FIELD(and_ull);
  REPRISE_EXPECT_FIELD(or_ull);
  REPRISE_EXPECT_FIELD(xor_ull);
  REPRISE_EXPECT_FIELD(min_ull);
  REPRISE_EXPECT_FIELD(max_ull);
  REPRISE_EXPECT_FIELD(min_ll);
  REPRISE_EXPECT_FIELD(max_ll);
  REPRISE_EXPECT_FIELD(add_f);
  REPRISE_EXPECT_FIELD(add_d);
  REPRISE_EXPECT_FIELD(largest);
  REPRISE_EXPECT_FIELD(sum_modulo);
  REPRISE_EXPECT_FIELD(tickets);
  REPRISE_EXPECT_FIELD(block_total);
#undef REPRISE_EXPECT_FIELD
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "atomics_all", {1 << 18, 3001, 1 << 24, "number of values"});
  const int count = static_cast<int>(options.size);
  const int blocks = apps::BlocksFor(count, kBlock);
  std::vector<unsigned int> input(count), slots(count);
  std::vector<unsigned long long> wide(count);
  std::vector<float> floats(count);
  for (int i = 0; i < count; ++i) {
    input[i] = apps::HashBits(1, i);
    slots[i] = input[i] % 1000;
    wide[i] = i % 500;
    floats[i] = static_cast<float>(i % 200);
  }
  apps::DeviceArray<unsigned int> device_input(input);
  apps::DeviceArray<unsigned int> device_slots(slots);
  apps::DeviceArray<unsigned long long> device_wide(wide);
  apps::DeviceArray<float> device_floats(floats);
  apps::DeviceArray<unsigned long long> partial(blocks);
  const apps::DeviceArray<Results> start(std::vector<Results>{Start()});
  apps::DeviceArray<Results> results(1);

  apps::RunIterations(
      options,
      [&] {
        IntegerKernel<<<blocks, kBlock>>>(device_input.get(), results.get(),
                                          count);
        FloatKernel<<<blocks, kBlock>>>(device_input.get(), results.get(),
                                        count);
        ExchangeKernel<<<blocks, kBlock>>>(
            device_slots.get(), device_wide.get(), device_floats.get(), count);
        LastBlockKernel<<<blocks, kBlock>>>(device_input.get(), partial.get(),
                                            results.get(), count);
      },
      [&] { results.CopyFrom(start); });

  apps::Checker checker;
  CheckResults(results.ToHost()[0], Expected(input), checker);
  const std::vector<unsigned int> got_slots = device_slots.ToHost();
  const std::vector<unsigned long long> got_wide = device_wide.ToHost();
  const std::vector<float> got_floats = device_floats.ToHost();
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < options.iterations; ++k) {
      const unsigned int old = slots[i];
      slots[i] = (old + static_cast<unsigned int>(floats[i])) & 0xfffu;
      floats[i] = static_cast<float>(wide[i]);
      wide[i] = old + 1;
    }
    checker.Expect("slot", i, got_slots[i], slots[i], apps::kExact);
    checker.Expect("wide slot", i, static_cast<double>(got_wide[i]),
                   static_cast<double>(wide[i]), apps::kExact);
    checker.Expect("float slot", i, got_floats[i], floats[i], apps::kExact);
  }
  return checker.Finish();
}
