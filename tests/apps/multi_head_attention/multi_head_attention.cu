// Multi-head attention: softmax(Q K^T / sqrt(d)) V for every head. Q, K, V and
// the result are [batch][token][head][dimension]. One block per query, head and
// batch entry keeps the scores of its query in dynamic shared memory.
// --size: number of tokens.
#include "../common/app.h"

constexpr int kBlock = 128;

__device__ float BlockMax(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] =
          fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    }
    __syncthreads();
  }
  float result = scratch[0];
  __syncthreads();  // before scratch is used again
  return result;
}

__device__ float BlockSum(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
  }
  float result = scratch[0];
  __syncthreads();
  return result;
}

// Dynamic shared memory: one float per token, up to a multiple of four. The
// block size is a power of two.
__global__ void AttentionKernel(const float* q, const float* k, const float* v,
                                REPRISE_TOLERANCE(1e-5) float* output,
                                int tokens, int heads, int dimension,
                                float scale) {
  extern __shared__ float scores[];
  __shared__ float scratch[kBlock];
  int token_stride = heads * dimension;
  int base = blockIdx.z * tokens * token_stride + blockIdx.y * dimension;
  const float* query = q + base + blockIdx.x * token_stride;

  float largest = -INFINITY;
  for (int t = threadIdx.x; t < tokens; t += blockDim.x) {
    float score = 0.0f;
    for (int d = 0; d < dimension; ++d) {
      score += query[d] * k[base + t * token_stride + d];
    }
    scores[t] = score * scale;
    largest = fmaxf(largest, scores[t]);
  }
  largest = BlockMax(largest, scratch);

  float sum = 0.0f;
  for (int t = threadIdx.x; t < tokens; t += blockDim.x) {
    scores[t] = expf(scores[t] - largest);
    sum += scores[t];
  }
  sum = BlockSum(sum, scratch);  // its barriers also publish the scores

  for (int d = threadIdx.x; d < dimension; d += blockDim.x) {
    float value = 0.0f;
    for (int t = 0; t < tokens; ++t) {
      value += scores[t] * v[base + t * token_stride + d];
    }
    output[base + blockIdx.x * token_stride + d] = value / sum;
  }
}

// One head's output for one query; `base` is where the head's first token is.
std::vector<double> ExpectedRow(const std::vector<float>& q,
                                const std::vector<float>& k,
                                const std::vector<float>& v, size_t base,
                                size_t query, int tokens, size_t token_stride,
                                int dimension) {
  std::vector<double> weights(tokens);
  double sum = 0;
  for (int t = 0; t < tokens; ++t) {
    double score = 0;
    for (int d = 0; d < dimension; ++d) {
      score += static_cast<double>(q[base + query * token_stride + d]) *
               k[base + t * token_stride + d];
    }
    weights[t] = std::exp(score / std::sqrt(dimension));
    sum += weights[t];
  }
  std::vector<double> row(dimension, 0.0);
  for (int t = 0; t < tokens; ++t) {
    for (int d = 0; d < dimension; ++d) {
      row[d] += weights[t] / sum * v[base + t * token_stride + d];
    }
  }
  return row;
}

// The weights are right to about 1e-6 of themselves and their sum is one, so
// averages of values within +-1 are right to a few 1e-6.
constexpr apps::Tolerance kTolerance{1e-5, 0};

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "multi_head_attention", {1024, 50, 8192, "number of tokens"});
  const int tokens = static_cast<int>(options.size);
  const int batch = options.small ? 1 : 4;
  const int heads = options.small ? 2 : 8;
  const int dimension = options.small ? 20 : 64;
  const size_t token_stride = static_cast<size_t>(heads) * dimension;
  const size_t count = batch * tokens * token_stride;

  const std::vector<float> q = apps::RandomFloats(count, 15, -2.0f, 2.0f);
  const std::vector<float> k = apps::RandomFloats(count, 16, -2.0f, 2.0f);
  const std::vector<float> v = apps::RandomFloats(count, 17, -1.0f, 1.0f);
  apps::DeviceArray<float> device_q(q), device_k(k), device_v(v);
  apps::DeviceArray<float> device_output(count);

  const dim3 grid(tokens, heads, batch);
  const float scale = 1.0f / std::sqrt(static_cast<float>(dimension));
  // ptxas reads the last one to three scores four at a time and drops the rest;
  // within the allocation, memcheck has nothing to report.
  const size_t shared_bytes = (tokens + 3) / 4 * 4 * sizeof(float);
  apps::RunIterations(options, [&] {
    AttentionKernel<<<grid, kBlock, shared_bytes>>>(
        device_q.get(), device_k.get(), device_v.get(), device_output.get(),
        tokens, heads, dimension, scale);
  });

  const std::vector<float> output = device_output.ToHost();
  apps::Checker checker;
  const size_t rows = static_cast<size_t>(batch) * tokens * heads;
  const size_t stride = apps::CheckStride(options, rows, 128);
  for (size_t i = 0; i < rows; i += stride) {
    const size_t head = i % heads;
    const size_t query = i / heads % tokens;
    const size_t base =
        i / heads / tokens * tokens * token_stride + head * dimension;
    const std::vector<double> row =
        ExpectedRow(q, k, v, base, query, tokens, token_stride, dimension);
    for (int d = 0; d < dimension; ++d) {
      const size_t at = base + query * token_stride + d;
      checker.Expect("output", at, output[at], row[d], kTolerance);
    }
  }
  return checker.Finish();
}
