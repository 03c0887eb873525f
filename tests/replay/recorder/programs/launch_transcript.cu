// Launches kernels, rightly and wrongly, and prints what the CUDA runtime
// answers. The first argument chooses the scenario: launches, symbols, printf,
// fault, trap or assert. The last three leave the context broken, which is what
// they look at.
#include <cassert>
#include <cstdint>

#include "transcript.h"

__global__ void Fill(int* out, int value, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = value + i;
}

__global__ void __launch_bounds__(128) Bounded(int* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = blockDim.x;
}

struct Parameters {
  char tag;
  double scale;
  short count;
};

__global__ void ManyParameters(char a, double b, Parameters c, int* out,
                               short d) {
  out[0] = a;
  out[1] = static_cast<int>(b * c.scale);
  out[2] = c.tag + c.count;
  out[3] = d;
}

__global__ void Dynamic(int* out, int count) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x] + count;
}

__global__ void StaticShared(int* out) {
  __shared__ int shared[1024];
  shared[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = shared[threadIdx.x ^ 1];
}

__global__ void Nothing() {}

__global__ void WriteTo(int* out) { *out = 1; }

__global__ void Trap() { __trap(); }

__global__ void Assert(int value) { assert(value == 0); }

__global__ void Print(int line) {
  if (threadIdx.x == 0) printf("device line %d\n", line);
}

__device__ int table[4] = {1, 2, 3, 4};
__constant__ float factor = 2.5f;
__device__ int* pointer_to_table = table;

__global__ void UseSymbols(float* out) {
  out[threadIdx.x] = pointer_to_table[threadIdx.x] * factor;
  if (threadIdx.x == 3) table[3] = 40;
}

namespace {

int* device = nullptr;
int host[1024];

void Fetch(int count) {
  SHOW(cudaMemcpy(host, device, count * sizeof(int), cudaMemcpyDeviceToHost));
}

void Configurations() {
  Section("configurations");
  Fill<<<4, 256>>>(device, 5, 1000);
  SHOW(cudaGetLastError());
  Fetch(1024);
  VALUE(host[999]);
  Fill<<<0, 256>>>(device, 5, 1000);
  SHOW(cudaPeekAtLastError());
  Fill<<<4, 0>>>(device, 5, 1000);
  SHOW(cudaPeekAtLastError());
  Fill<<<4, 1025>>>(device, 5, 1000);
  SHOW(cudaPeekAtLastError());
  Fill<<<dim3(1, 65536, 1), 32>>>(device, 5, 1000);
  SHOW(cudaPeekAtLastError());
  Fill<<<1, dim3(1, 1, 65)>>>(device, 5, 1000);
  SHOW(cudaPeekAtLastError());
  Fill<<<1, dim3(32, 32, 2)>>>(device, 5, 1000);
  SHOW(cudaPeekAtLastError());
  Fill<<<1, 32, 49 * 1024>>>(device, 5, 1000);
  SHOW(cudaPeekAtLastError());
  Fill<<<1, 32, size_t{1} << 33>>>(device, 5, 1000);
  SHOW(cudaPeekAtLastError());
  Bounded<<<2, 128>>>(device);
  SHOW(cudaPeekAtLastError());
  Bounded<<<2, 129>>>(device);
  SHOW(cudaPeekAtLastError());
  Nothing<<<1, 1>>>();
  SHOW(cudaPeekAtLastError());
  SHOW(cudaDeviceSynchronize());
}

void Forms() {
  Section("forms");
  int value = 7;
  int count = 10;
  void* arguments[] = {&device, &value, &count};
  SHOW(cudaLaunchKernel(Fill, dim3(1), dim3(32), arguments, 0, nullptr));
  Fetch(10);
  VALUE(host[9]);
  value = 8;
  SHOW(cudaLaunchCooperativeKernel(Fill, dim3(1), dim3(32), arguments, 0,
                                   nullptr));
  Fetch(10);
  VALUE(host[9]);
  SHOW(cudaLaunchCooperativeKernel(Fill, dim3(1 << 20), dim3(1024), arguments,
                                   0, nullptr));
  value = 9;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  SHOW(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(Fill),
                           arguments));
  Fetch(10);
  VALUE(host[9]);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  value = 10;
  SHOW(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(Fill),
                           arguments));
  Fetch(10);
  VALUE(host[9]);
  cudaKernel_t kernel = nullptr;
  SHOW(cudaGetKernel(&kernel, reinterpret_cast<const void*>(Fill)));
  value = 11;
  SHOW(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1),
                        dim3(32), arguments, 0, nullptr));
  Fetch(10);
  VALUE(host[9]);
  ManyParameters<<<1, 1>>>(1, 2.0, Parameters{3, 4.0, 5}, device, 6);
  SHOW(cudaPeekAtLastError());
  Fetch(4);
  VALUE(host[0]);
  VALUE(host[1]);
  VALUE(host[2]);
  VALUE(host[3]);
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  Fill<<<4, 256, 0, stream>>>(device, 12, 1000);
  SHOW(cudaStreamSynchronize(stream));
  Fetch(10);
  VALUE(host[9]);
  cudaStreamDestroy(stream);
}

void SharedMemory() {
  Section("shared memory");
  Dynamic<<<1, 64, 64 * sizeof(int)>>>(device, 100);
  Fetch(64);
  VALUE(host[0]);
  StaticShared<<<1, 1024>>>(device);
  Fetch(1024);
  VALUE(host[0]);
  cudaFuncAttributes attributes = {};
  SHOW(cudaFuncGetAttributes(&attributes, StaticShared));
  VALUE(attributes.sharedSizeBytes);
  VALUE(attributes.maxThreadsPerBlock);
  VALUE(attributes.maxDynamicSharedSizeBytes);
  SHOW(cudaFuncGetAttributes(&attributes, Bounded));
  VALUE(attributes.maxThreadsPerBlock);
  VALUE(attributes.sharedSizeBytes);
  SHOW(cudaFuncSetAttribute(
      Dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 * 1024));
  Dynamic<<<1, 64, 96 * 1024>>>(device, 200);
  SHOW(cudaPeekAtLastError());
  Fetch(64);
  VALUE(host[0]);
  SHOW(cudaFuncGetAttributes(&attributes, Dynamic));
  VALUE(attributes.maxDynamicSharedSizeBytes);
  SHOW(cudaFuncSetAttribute(
      Dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
  SHOW(cudaFuncSetAttribute(Dynamic, static_cast<cudaFuncAttribute>(99), 1));
  int blocks = 0;
  SHOW(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Nothing, 1024, 0));
  VALUE(blocks);
  SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Nothing, 32, 0));
  VALUE(blocks);
  SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Dynamic, 64,
                                                     96 * 1024));
  VALUE(blocks);
  SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Nothing, 0, 0));
  SHOW(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Nothing, 2000, 0));
  VALUE(blocks);
  size_t available = 0;
  SHOW(cudaOccupancyAvailableDynamicSMemPerBlock(&available, Nothing, 2, 256));
  VALUE(available);
  SHOW(cudaFuncSetCacheConfig(Dynamic, cudaFuncCachePreferL1));
  const char* name = nullptr;
  SHOW(cudaFuncGetName(&name, reinterpret_cast<const void*>(Nothing)));
  std::printf("%s\n", name);
  size_t offset = 0;
  size_t bytes = 0;
  SHOW(cudaFuncGetParamInfo(reinterpret_cast<const void*>(ManyParameters), 2,
                            &offset, &bytes));
  VALUE(offset);
  VALUE(bytes);
  SHOW(cudaFuncGetParamInfo(reinterpret_cast<const void*>(ManyParameters), 5,
                            &offset, &bytes));
}

void Symbols() {
  Section("symbols");
  float* out = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&out), 4 * sizeof(float));
  UseSymbols<<<1, 4>>>(out);
  float results[4] = {};
  SHOW(cudaMemcpy(results, out, sizeof(results), cudaMemcpyDeviceToHost));
  for (float result : results) std::printf("%g\n", result);
  int copy[4] = {};
  SHOW(cudaMemcpyFromSymbol(copy, table, sizeof(copy), 0,
                            cudaMemcpyDeviceToHost));
  VALUE(copy[3]);
  const int replacement[2] = {20, 30};
  SHOW(cudaMemcpyToSymbol(table, replacement, sizeof(replacement), sizeof(int),
                          cudaMemcpyHostToDevice));
  const float doubled = 5.0f;
  SHOW(cudaMemcpyToSymbolAsync(factor, &doubled, sizeof(doubled), 0,
                               cudaMemcpyHostToDevice, nullptr));
  UseSymbols<<<1, 4>>>(out);
  SHOW(cudaMemcpy(results, out, sizeof(results), cudaMemcpyDeviceToHost));
  for (float result : results) std::printf("%g\n", result);
  SHOW(cudaMemcpyFromSymbol(copy, table, sizeof(copy), sizeof(int),
                            cudaMemcpyDeviceToHost));
  void* address = nullptr;
  size_t bytes = 0;
  SHOW(cudaGetSymbolAddress(&address, table));
  SHOW(cudaGetSymbolSize(&bytes, table));
  VALUE(bytes);
  int* stored = nullptr;
  SHOW(cudaMemcpyFromSymbol(&stored, pointer_to_table, sizeof(stored), 0,
                            cudaMemcpyDeviceToHost));
  VALUE(stored == address);
  cudaPointerAttributes attributes = {};
  SHOW(cudaPointerGetAttributes(&attributes, address));
  VALUE(attributes.type);
  SHOW(cudaFree(address));
}

void Printing() {
  Section("printf");
  Print<<<1, 32>>>(1);
  std::printf("host line 1\n");
  Print<<<1, 32>>>(2);
  cudaDeviceSynchronize();
  std::printf("host line 2\n");
  Print<<<1, 32>>>(3);
  int value = 0;
  cudaMemcpy(device, &value, sizeof(value), cudaMemcpyHostToDevice);
  std::printf("host line 3\n");
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  Print<<<1, 32>>>(4);
  cudaEventRecord(event, nullptr);
  cudaEventSynchronize(event);
  std::printf("host line 4\n");
  Print<<<1, 32>>>(5);
  cudaStreamSynchronize(nullptr);
  std::printf("host line 5\n");
}

void Broken() {
  SHOW(cudaPeekAtLastError());
  SHOW(cudaDeviceSynchronize());
  SHOW(cudaPeekAtLastError());
  SHOW(cudaDeviceSynchronize());
  void* p = nullptr;
  SHOW(cudaMalloc(&p, 16));
  SHOW(cudaFree(device));
  Nothing<<<1, 1>>>();
  SHOW(cudaPeekAtLastError());
  SHOW(cudaMemcpy(host, device, 4, cudaMemcpyDeviceToHost));
  int value = 0;
  SHOW(cudaGetDevice(&value));
  SHOW(cudaSetDevice(0));
  SHOW(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
  cudaEvent_t event = nullptr;
  SHOW(cudaEventCreate(&event));
  cudaStream_t stream = nullptr;
  SHOW(cudaStreamCreate(&stream));
  SHOW(cudaDeviceReset());
  SHOW(cudaMalloc(&p, 16));
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const char* scenario = argc > 1 ? argv[1] : "launches";
  cudaMalloc(reinterpret_cast<void**>(&device), sizeof(host));
  if (std::strcmp(scenario, "launches") == 0) {
    Configurations();
    Forms();
    SharedMemory();
  } else if (std::strcmp(scenario, "symbols") == 0) {
    Symbols();
  } else if (std::strcmp(scenario, "printf") == 0) {
    Printing();
  } else if (std::strcmp(scenario, "fault") == 0) {
    WriteTo<<<1, 1>>>(reinterpret_cast<int*>(uintptr_t{0x10000}));
    Broken();
  } else if (std::strcmp(scenario, "trap") == 0) {
    Trap<<<1, 1>>>();
    Broken();
  } else if (std::strcmp(scenario, "assert") == 0) {
    Assert<<<1, 2>>>(1);
    Broken();
  } else {
    std::fprintf(stderr, "unknown scenario %s\n", scenario);
    return 2;
  }
  return 0;
}
