// One templated kernel instantiated with functors, composed functors and
// __device__ lambdas with captures, over three element types and two unroll
// factors; and a kernel that uses generic lambdas and `if constexpr` inside.
// --size: number of elements.
#include "../common/app.h"

constexpr int kBlock = 256;

template <typename T>
struct Scale {
  T factor;
  __device__ T operator()(T value) const { return value * factor; }
};

template <typename T>
struct Shift {
  T offset;
  __device__ T operator()(T value) const { return value + offset; }
};

template <typename Outer, typename Inner>
struct Composition {
  Outer outer;
  Inner inner;
  template <typename T>
  __device__ T operator()(T value) const {
    return outer(inner(value));
  }
};

template <typename Outer, typename Inner>
Composition<Outer, Inner> Compose(Outer outer, Inner inner) {
  return {outer, inner};
}

// output[i] = function(input[i]); every thread handles kItems elements.
template <typename T, int kItems, typename Function>
__global__ void TransformKernel(const T* input, T* output, int count,
                                Function function) {
  int first = blockIdx.x * blockDim.x * kItems + threadIdx.x;
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    int i = first + item * static_cast<int>(blockDim.x);
    if (i < count) output[i] = function(input[i]);
  }
}

enum class Fold { kSum, kLargest };

// Folds each run of kRun elements into one.
template <Fold kFold, typename T, int kRun>
__global__ void FoldRunsKernel(const T* input, T* output, int run_count) {
  int run = blockIdx.x * blockDim.x + threadIdx.x;
  if (run >= run_count) return;
  auto fold = [](auto a, auto b) {
    if constexpr (kFold == Fold::kSum) {
      return a + b;
    } else {
      return a < b ? b : a;
    }
  };
  const T* element = input + static_cast<size_t>(run) * kRun;
  T result = element[0];
  for (int k = 1; k < kRun; ++k) result = fold(result, element[k]);
  output[run] = result;
}

template <int kItems, typename T, typename Function>
void Transform(const apps::DeviceArray<T>& input,
               const apps::DeviceArray<T>& output, Function function) {
  const int count = static_cast<int>(input.size());
  TransformKernel<T, kItems>
      <<<apps::BlocksFor(count, kBlock * kItems), kBlock>>>(
          input.get(), output.get(), count, function);
}

template <typename T>
std::vector<T> ConvertedTo(const std::vector<float>& values) {
  return std::vector<T>(values.begin(), values.end());
}

template <typename T, typename Function>
void CheckAll(apps::Checker& checker, const char* what,
              const std::vector<T>& got, Function expected) {
  for (size_t i = 0; i < got.size(); ++i) {
    // Inputs are whole numbers: every result is exact.
    checker.Expect(what, i, got[i], expected(i), apps::kExact);
  }
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "templates_lambdas",
      {int64_t{1} << 24, 10007, int64_t{1} << 29, "number of elements"});
  constexpr int kRun = 16;
  const int run_count = static_cast<int>((options.size + kRun - 1) / kRun);
  const size_t count = static_cast<size_t>(run_count) * kRun;
  std::vector<float> source(count);
  for (size_t i = 0; i < count; ++i) {
    source[i] = static_cast<float>(apps::HashBits(1, i) % 2001) - 1000.0f;
  }

  apps::DeviceArray<float> floats(source);
  apps::DeviceArray<double> doubles(ConvertedTo<double>(source));
  apps::DeviceArray<int> ints(ConvertedTo<int>(source));
  apps::DeviceArray<float> composed(count);
  apps::DeviceArray<float> looked_up(count);
  apps::DeviceArray<double> polynomial(count);
  apps::DeviceArray<int> shifted(count);
  apps::DeviceArray<int> sums(run_count);
  apps::DeviceArray<double> largest(run_count);
  apps::DeviceArray<float> table(std::vector<float>{3.0f, 1.0f, 4.0f, 1.5f});

  // Captures a pointer and a scalar; the other one several scalars.
  const float* entries = table.get();
  const float bias = 0.5f;
  const double a = 2.0, b = -3.0, c = 0.25;
  const auto look_up = [=] __device__(float value) {
    return entries[static_cast<int>(value) & 3] + bias;
  };
  const auto evaluate = [=] __device__(double value) {
    return (a * value + b) * value + c;
  };
  apps::RunIterations(options, [&] {
    const int run_blocks = apps::BlocksFor(run_count, kBlock);
    Transform<1>(floats, composed,
                 Compose(Scale<float>{0.25f},
                         Compose(Shift<float>{7.0f}, Scale<float>{-2.0f})));
    Transform<2>(floats, looked_up, look_up);
    Transform<2>(doubles, polynomial, evaluate);
    Transform<4>(ints, shifted, Shift<int>{-12});
    FoldRunsKernel<Fold::kSum, int, kRun>
        <<<run_blocks, kBlock>>>(ints.get(), sums.get(), run_count);
    FoldRunsKernel<Fold::kLargest, double, kRun>
        <<<run_blocks, kBlock>>>(doubles.get(), largest.get(), run_count);
  });

  apps::Checker checker;
  CheckAll(checker, "composed", composed.ToHost(),
           [&](size_t i) { return (source[i] * -2.0 + 7.0) * 0.25; });
  const std::vector<float> host_table = table.ToHost();
  CheckAll(checker, "looked_up", looked_up.ToHost(), [&](size_t i) {
    return host_table[static_cast<int>(source[i]) & 3] + 0.5;
  });
  CheckAll(checker, "polynomial", polynomial.ToHost(), [&](size_t i) {
    return 2.0 * source[i] * source[i] - 3.0 * source[i] + 0.25;
  });
  CheckAll(checker, "shifted", shifted.ToHost(),
           [&](size_t i) { return source[i] - 12.0; });
  CheckAll(checker, "sums", sums.ToHost(), [&](size_t run) {
    double sum = 0;
    for (int k = 0; k < kRun; ++k) sum += source[run * kRun + k];
    return sum;
  });
  CheckAll(checker, "largest", largest.ToHost(), [&](size_t run) {
    return *std::max_element(source.begin() + run * kRun,
                             source.begin() + (run + 1) * kRun);
  });
  return checker.Finish();
}
