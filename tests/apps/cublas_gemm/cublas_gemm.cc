// A matrix product by cuBLAS: kernels whose source nobody has. The values are
// small whole numbers, so that results are exact. --size: order of the
// matrices.
#include <cublas_v2.h>

#include "../common/app.h"

#define CUBLAS_CHECK(call)                                                   \
  do {                                                                       \
    const cublasStatus_t status = (call);                                    \
    if (status != CUBLAS_STATUS_SUCCESS) {                                   \
      std::printf("%s: FAIL %s: cuBLAS status %d\n", apps::AppName(), #call, \
                  static_cast<int>(status));                                 \
      return 1;                                                              \
    }                                                                        \
  } while (false)

std::vector<float> SmallNumbers(uint32_t seed, int order) {
  std::vector<float> values(static_cast<size_t>(order) * order);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(apps::HashBits(seed, i) % 15) - 7;
  return values;
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "cublas_gemm", {1024, 130, 8192, "order of the matrices"});
  const int order = static_cast<int>(options.size);
  const std::vector<float> a = SmallNumbers(1, order);
  const std::vector<float> b = SmallNumbers(2, order);
  apps::DeviceArray<float> device_a(a), device_b(b), device_c(a.size());
  device_c.Clear();
  cublasHandle_t handle = nullptr;
  CUBLAS_CHECK(cublasCreate(&handle));
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const float alpha = 1, beta = 1;
    CUBLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, order, order,
                             order, &alpha, device_a.get(), order,
                             device_b.get(), order, &beta, device_c.get(),
                             order));
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  CUBLAS_CHECK(cublasDestroy(handle));

  apps::Checker checker;
  const std::vector<float> got = device_c.ToHost();
  const size_t stride = apps::CheckStride(options, got.size(), 10000);
  for (size_t i = 0; i < got.size(); i += stride) {
    const size_t row = i % order, column = i / order;
    double sum = 0;
    for (int k = 0; k < order; ++k)
      sum += a[k * order + row] * b[column * order + k];
    checker.Expect("c", i, got[i], options.iterations * sum, apps::kExact);
  }
  return checker.Finish();
}
