// Layers of a network in half and bfloat16: a matrix product by pairs of
// halves, a normalization of rows by warps, and a gate by pairs of bfloats.
// The product's inputs are multiples of 1/8 up to 1, so that sums of eight are
// exact in half and the whole is exact.
// --size: number of rows.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../common/app.h"

namespace cg = cooperative_groups;

constexpr int kBlock = 128;
constexpr int kDepth = 64;  // columns of the left matrix, a multiple of 8
constexpr int kWidth = 96;  // columns of the right one and of all results
constexpr int kPairs = kWidth / 2;

// Every thread makes two neighbours of a row: eight products are summed in
// half, and these sums in float.
__global__ void HalfProductKernel(const __half* left, const __half2* right,
                                  __half2* product, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = i / kPairs;
  if (row >= rows) return;
  float2 sum = make_float2(0.0f, 0.0f);
  for (int k = 0; k < kDepth; k += 8) {
    __half2 part = __float2half2_rn(0.0f);
    for (int j = k; j < k + 8; ++j) {
      part = __hfma2(__half2half2(left[row * kDepth + j]),
                     right[j * kPairs + i % kPairs], part);
    }
    const float2 wide = __half22float2(part);
    sum.x += wide.x;
    sum.y += wide.y;
  }
  product[i] = __floats2half2_rn(sum.x, sum.y);
}

// One warp a row: (x - mean) / deviation, then at most `ceiling`.
__global__ void HalfNormKernel(const __half2* in,
                               REPRISE_TOLERANCE(4e-3) __half2* out, int rows,
                               float ceiling) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (row >= rows) return;
  float sum = 0.0f, squares = 0.0f;
  for (int i = warp.thread_rank(); i < kPairs; i += warp.size()) {
    const float2 x = __half22float2(in[row * kPairs + i]);
    sum += x.x + x.y;
    squares += x.x * x.x + x.y * x.y;
  }
  const float mean = cg::reduce(warp, sum, cg::plus<float>()) / kWidth;
  const float variance =
      cg::reduce(warp, squares, cg::plus<float>()) / kWidth - mean * mean;
  const __half2 center = __float2half2_rn(mean);
  const __half2 scale = h2rsqrt(__float2half2_rn(variance + 0.125f));
  const __half2 limit = __float2half2_rn(ceiling);
  for (int i = warp.thread_rank(); i < kPairs; i += warp.size()) {
    const __half2 x = __hsub2(in[row * kPairs + i], center);
    out[row * kPairs + i] = __hmin2(__hmul2(x, scale), limit);
  }
}

// x / (1 + exp(-x)) where x > -1, and half of x elsewhere.
__global__ void BfloatGateKernel(const __nv_bfloat162* in,
                                 REPRISE_TOLERANCE(2e-2) __nv_bfloat162* out,
                                 int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  const __nv_bfloat162 one = __float2bfloat162_rn(1.0f);
  const __nv_bfloat162 x = in[i];
  const __nv_bfloat162 gate = h2rcp(__hadd2(one, h2exp(__hneg2(x))));
  const __nv_bfloat162 large = __hgt2(x, __hneg2(one));  // 1 or 0
  const __nv_bfloat162 rest = __hsub2(one, large);
  out[i] = __hfma2(__hmul2(x, gate), large,
                   __hmul2(__hmul2(x, __float2bfloat162_rn(0.5f)), rest));
}

template <typename T>
std::vector<T> Eighths(size_t count, uint32_t seed) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = T((static_cast<int>(apps::HashBits(seed, i) % 17) - 8) / 8.0f);
  }
  return values;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "half_layers", {1 << 14, 67, 1 << 20, "number of rows"});
  const int rows = static_cast<int>(options.size);
  const size_t count = static_cast<size_t>(rows) * kWidth;
  const auto left = Eighths<__half>(static_cast<size_t>(rows) * kDepth, 21);
  const auto right = Eighths<__half>(kDepth * kWidth, 22);
  std::vector<__nv_bfloat16> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = __float2bfloat16(apps::RandomFloat(23, i, -6.0f, 6.0f));
  apps::DeviceArray<__half> device_left(left), device_right(right);
  apps::DeviceArray<__half> product(count), normal(count);
  apps::DeviceArray<__nv_bfloat16> ungated(values), gated(count);
  auto pairs = [](__half* p) { return reinterpret_cast<__half2*>(p); };

  apps::RunIterations(options, [&] {
    const int blocks = apps::BlocksFor(count / 2, kBlock);
    HalfProductKernel<<<blocks, kBlock>>>(
        device_left.get(), pairs(device_right.get()), pairs(product.get()),
        rows);
    HalfNormKernel<<<apps::BlocksFor(rows, kBlock / 32), kBlock>>>(
        pairs(product.get()), pairs(normal.get()), rows, 1.5f);
    BfloatGateKernel<<<blocks, kBlock>>>(
        reinterpret_cast<__nv_bfloat162*>(ungated.get()),
        reinterpret_cast<__nv_bfloat162*>(gated.get()),
        static_cast<int>(count / 2));
  });

  apps::Checker checker;
  const std::vector<__half> got = product.ToHost(), norms = normal.ToHost();
  const std::vector<__nv_bfloat16> gates = gated.ToHost();
  const size_t stride = apps::CheckStride(options, rows, 500);
  for (size_t row = 0; row < static_cast<size_t>(rows); row += stride) {
    std::vector<double> expected(kWidth);
    double mean = 0, squares = 0;
    for (int c = 0; c < kWidth; ++c) {
      double sum = 0;
      for (int k = 0; k < kDepth; ++k)
        sum += static_cast<double>(__half2float(left[row * kDepth + k])) *
               __half2float(right[k * kWidth + c]);
      expected[c] = __half2float(__float2half(static_cast<float>(sum)));
      mean += expected[c] / kWidth;
      squares += expected[c] * expected[c] / kWidth;
    }
    const double scale = 1 / std::sqrt(squares - mean * mean + 0.125);
    for (int c = 0; c < kWidth; ++c) {
      const size_t i = row * kWidth + c;
      checker.Expect("product", i, __half2float(got[i]), expected[c],
                     apps::kExact);
      checker.Expect("norm", i, __half2float(norms[i]),
                     std::min((expected[c] - mean) * scale, 1.5),
                     {4e-3, 3e-3});
      const double x = __bfloat162float(values[i]);
      checker.Expect("gate", i, __bfloat162float(gates[i]),
                     x > -1 ? x / (1 + std::exp(-x)) : x / 2, {1e-3, 2e-2});
    }
  }
  return checker.Finish();
}
