// The CUDA driver API alone, without the runtime: a context of its own, a
// module from an embedded file and one from PTX text, a variable of the module,
// and launches with both ways to give arguments. Results are exact.
// --size: number of values.
#include "../common/app.h"
#include "../common/driver.h"

// Made of kernels.image.cu by build.sh.
extern "C" const unsigned char kernels_image[];

namespace {

constexpr unsigned int kBlock = 256;
constexpr unsigned int kFactor = 2654435761u;

// values[i] += i
constexpr char kAddIndexPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry AddIndexKernel(.param .u64 values, .param .u32 count) {
  .reg .pred %beyond;
  .reg .b32 %block, %size, %thread, %index, %limit, %value;
  .reg .b64 %address, %offset;
  ld.param.u64 %address, [values];
  ld.param.u32 %limit, [count];
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %index, %block, %size, %thread;
  setp.ge.u32 %beyond, %index, %limit;
  @%beyond bra DONE;
  cvta.to.global.u64 %address, %address;
  mul.wide.u32 %offset, %index, 4;
  add.u64 %address, %address, %offset;
  ld.global.u32 %value, [%address];
  add.u32 %value, %value, %index;
  st.global.u32 [%address], %value;
DONE:
  ret;
}
)";

// As in kernels.image.cu.
struct Weights {
  double scale;
  int stride;
  float offset;
};

struct Kernels {
  CUmodule image;
  CUmodule text;
  CUfunction scale;
  CUfunction gather;
  CUfunction add_index;
};

Kernels LoadKernels() {
  Kernels kernels;
  CU_CHECK(cuModuleLoadData(&kernels.image, kernels_image));
  CU_CHECK(cuModuleLoadData(&kernels.text, kAddIndexPtx));
  CU_CHECK(cuModuleGetFunction(&kernels.scale, kernels.image, "ScaleKernel"));
  CU_CHECK(cuModuleGetFunction(&kernels.gather, kernels.image, "GatherKernel"));
  CU_CHECK(
      cuModuleGetFunction(&kernels.add_index, kernels.text, "AddIndexKernel"));
  return kernels;
}

// Launches with one pointer per argument.
void LaunchWithPointers(CUfunction kernel, int count, CUstream stream,
                        void** arguments) {
  CU_CHECK(cuLaunchKernel(kernel, apps::BlocksFor(count, kBlock), 1, 1, kBlock,
                          1, 1, 0, stream, arguments, nullptr));
}

// Launches GatherKernel with all arguments in one buffer, laid out as the
// kernel's parameters are.
void LaunchGather(CUfunction kernel, CUdeviceptr input, CUdeviceptr output,
                  int count, const Weights& weights, CUstream stream) {
  struct {
    char shift;
    CUdeviceptr input;
    CUdeviceptr output;
    int count;
    Weights weights;
  } arguments = {1, input, output, count, weights};
  size_t bytes = sizeof(arguments);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  CU_CHECK(cuLaunchKernel(kernel, apps::BlocksFor(count, kBlock), 1, 1, kBlock,
                          1, 1, 0, stream, nullptr, extra));
}

}  // namespace

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "driver_api", {1 << 20, 10007, 1 << 28, "number of values"});
  int count = static_cast<int>(options.size);
  CUdevice device;
  CUcontext context;
  CUstream stream;
  CU_CHECK(cuInit(0));
  CU_CHECK(cuDeviceGet(&device, 0));
  CU_CHECK(cuCtxCreate(&context, nullptr, 0, device));
  CU_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const Kernels kernels = LoadKernels();

  std::vector<unsigned int> values(count);
  for (int i = 0; i < count; ++i) values[i] = apps::HashBits(1, i);
  CUdeviceptr device_values, output;
  CU_CHECK(cuMemAlloc(&device_values, count * sizeof(unsigned int)));
  CU_CHECK(cuMemAlloc(&output, count * sizeof(double)));
  CU_CHECK(
      cuMemcpyHtoD(device_values, values.data(), count * sizeof(unsigned int)));
  CU_CHECK(cuMemsetD8(output, 0xff, count * sizeof(double)));
  CU_CHECK(cuCtxSynchronize());

  const Weights weights = {0.5, 3, 0.25f};
  unsigned int factor = kFactor;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    void* scale_arguments[] = {&device_values, &count, &factor};
    LaunchWithPointers(kernels.scale, count, stream, scale_arguments);
    void* add_arguments[] = {&device_values, &count};
    LaunchWithPointers(kernels.add_index, count, stream, add_arguments);
    LaunchGather(kernels.gather, device_values, output, count, weights, stream);
  }
  CU_CHECK(cuStreamSynchronize(stream));

  std::vector<double> got(count);
  CU_CHECK(cuMemcpyDtoH(got.data(), output, count * sizeof(double)));
  CUdeviceptr steps_address;
  size_t steps_bytes = 0;
  unsigned long long steps = 0;
  CU_CHECK(
      cuModuleGetGlobal(&steps_address, &steps_bytes, kernels.image, "steps"));
  CU_CHECK(cuMemcpyDtoH(&steps, steps_address, steps_bytes));

  for (int i = 0; i < count; ++i) {
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      values[i] = values[i] * kFactor + static_cast<unsigned int>(i);
    }
  }
  apps::Checker checker;
  for (int i = 0; i < count; ++i) {
    const size_t from = static_cast<size_t>(i) * weights.stride % count;
    checker.Expect("output", i, got[i], 0.5 * (values[from] >> 1) + 0.25,
                   apps::kExact);
  }
  checker.Expect("steps", 0, static_cast<double>(steps),
                 static_cast<double>(count) * options.iterations, apps::kExact);
  CU_CHECK(cuMemFree(device_values));
  CU_CHECK(cuMemFree(output));
  CU_CHECK(cuModuleUnload(kernels.image));
  CU_CHECK(cuModuleUnload(kernels.text));
  CU_CHECK(cuStreamDestroy(stream));
  CU_CHECK(cuCtxDestroy(context));
  return checker.Finish();
}
