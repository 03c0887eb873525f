// Kernel parameters of every awkward layout: structs of 3 and 7 bytes,
// 16-byte-aligned and nested structs, arrays inside structs, a struct that
// carries pointers, and one kernel with 26 parameters. All arithmetic is exact.
// --size: number of results.
#include "../common/app.h"

constexpr int kBlock = 128;

struct Odd {
  signed char tag[3];
};
struct Seven {
  unsigned char bytes[7];
};
struct alignas(16) Quad {
  float x, y, z, w;
};
struct Inner {
  short low;
  double wide;
  bool flag;
};
struct Nested {
  Odd odd;
  Quad quad;
  Inner inner[2];
  Seven tail;
};
struct Table {
  int values[61];
};
struct View {
  const int* data;
  int stride;
  long long* result;
};
struct Empty {};

// Exact: every float and double here is a small multiple of 1/16.
__host__ __device__ inline long long Sixteenths(double value) {
  return static_cast<long long>(value * 16.0);
}

__host__ __device__ inline long long Combine(int i, Nested nested, Odd odd,
                                             const Table& table, Seven seven,
                                             int element) {
  // The parameter is the callee's own copy: changing it shows nowhere else.
  nested.quad.x += static_cast<float>(i % 16);
  nested.inner[i % 2].wide *= 2.0;
  long long sum = Sixteenths(nested.quad.x) + 3 * Sixteenths(nested.quad.y) +
                  5 * Sixteenths(nested.quad.z) + 7 * Sixteenths(nested.quad.w);
  for (const Inner& inner : nested.inner) {
    sum = sum * 3 + Sixteenths(inner.wide) + inner.low + (inner.flag ? 11 : 0);
  }
  sum = sum * 5 + odd.tag[i % 3] - nested.odd.tag[(i + 1) % 3];
  sum = sum * 7 + seven.bytes[i % 7] + nested.tail.bytes[(i + 3) % 7];
  return sum + static_cast<long long>(table.values[i % 61]) * element;
}

__global__ void NestedKernel(Odd odd, Nested nested, Seven seven, View view,
                             Empty, Table table, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  view.result[i] =
      Combine(i, nested, odd, table, seven, view.data[i * view.stride]);
}

__global__ void ManyParametersKernel(
    bool b0, char c0, short s0, int i0, long long l0, float f0, double d0,
    unsigned char c1, Odd odd, unsigned short s1, bool b1, double d1, char c2,
    unsigned int i1, Quad quad, char c3, unsigned long long l1, float f1,
    Seven seven, short s2, const int* data, bool b2, float2 pair, char c4,
    int count, long long* result) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  long long sum = (b0 ? 1 : 0) + (b1 ? 2 : 0) + (b2 ? 4 : 0);
  sum = sum * 3 + c0 + c1 * 2 + c2 * 3 + c3 * 4 + c4 * 5;
  sum = sum * 5 + s0 + s1 * 2 + s2 * 3;
  sum = sum * 7 + i0 + static_cast<long long>(i1) * 2 + l0 * 3 +
        static_cast<long long>(l1) * 5;
  sum = sum * 11 + Sixteenths(f0) + Sixteenths(d0) * 2 + Sixteenths(d1) * 3 +
        Sixteenths(f1) * 5;
  sum = sum * 13 + odd.tag[1] + seven.bytes[6] + Sixteenths(quad.w) +
        Sixteenths(pair.x) - Sixteenths(pair.y);
  result[i] = sum + data[i];
}

// What ManyParametersKernel adds to data[i] for the arguments main passes in
// iteration `iteration`, worked out by hand from the same numbers.
long long ManyParametersSum(int iteration) {
  long long sum = 1 + 0 + 4;
  sum = sum * 3 + (-5) + 200 * 2 + 7 * 3 + (-9) * 4 + 11 * 5;
  sum = sum * 5 + (-300) + 60000 * 2 + 123 * 3;
  sum = sum * 7 + iteration + 4000000000LL * 2 + (-(1LL << 40)) * 3 +
        (1LL << 41) * 5;
  sum = sum * 11 + 24 + (-36) * 2 + 52 * 3 + 4 * 5;
  return sum * 13 + (-2) + 250 + 72 + 8 - (-12);
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "struct_by_value",
      {int64_t{1} << 23, 5003, int64_t{1} << 28, "number of results"});
  const int count = static_cast<int>(options.size);
  constexpr int kStride = 2;
  std::vector<int> data =
      apps::RandomInts(static_cast<size_t>(count) * kStride, 1, 1000);
  apps::DeviceArray<int> device_data(data);
  apps::DeviceArray<long long> nested_result(count);
  apps::DeviceArray<long long> many_result(count);

  const Odd odd{{1, -2, 3}};
  const Seven seven{{10, 20, 30, 40, 50, 60, 250}};
  const Quad quad{1.5f, -2.25f, 3.75f, 4.5f};
  Nested nested{odd, quad, {{7, 0.5, true}, {-8, 1.25, false}}, seven};
  Table table;
  for (int i = 0; i < 61; ++i) table.values[i] = i * i - 100;

  int iteration = -1;
  apps::RunIterations(
      options,
      [&] {
        const int blocks = apps::BlocksFor(count, kBlock);
        NestedKernel<<<blocks, kBlock>>>(
            odd, nested, seven,
            View{device_data.get(), kStride, nested_result.get()}, Empty{},
            table, count);
        ManyParametersKernel<<<blocks, kBlock>>>(
            true, -5, -300, iteration, -(1LL << 40), 1.5f, -2.25, 200, odd,
            60000, false, 3.25, 7, 4000000000u, quad, -9, 1ULL << 41, 0.25f,
            seven, 123, device_data.get(), true, make_float2(0.5f, -0.75f), 11,
            count, many_result.get());
      },
      [&] {
        ++iteration;
        nested.quad.y = static_cast<float>(iteration);
        table.values[iteration % 61] += 1;
      });

  apps::Checker checker;
  const std::vector<long long> got_nested = nested_result.ToHost();
  const std::vector<long long> got_many = many_result.ToHost();
  for (int i = 0; i < count; ++i) {
    checker.Expect("nested", i, got_nested[i],
                   Combine(i, nested, odd, table, seven,
                           data[static_cast<size_t>(i) * kStride]),
                   apps::kExact);
    checker.Expect("many", i, got_many[i],
                   ManyParametersSum(iteration) + data[i], apps::kExact);
  }
  return checker.Finish();
}
