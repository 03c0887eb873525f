// One program, many ways to behave; the first argument chooses. Prints little,
// so that tests can compare all of it.
#include <cuda_runtime.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

__global__ void Scale(float* x, float by, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] *= by;
}

__global__ void Overrun(float* x, int count) {
  for (int i = 0; i <= count; ++i) x[i] = 1.0f;
}

__global__ void Wild(float* x) { x[1ll << 30] = 1.0f; }

__global__ void Endless(volatile float* x) {
  while (x[0] != 0) x[1] = x[1] + 1;
}

__device__ __noinline__ float Deep(int depth, volatile float* x) {
  volatile float frame[64];
  frame[depth % 64] = x[0];
  return depth == 0 ? x[0] : Deep(depth - 1, x) + frame[depth % 64];
}

__global__ void Recurse(float* x, int depth) { x[0] = Deep(depth, x); }

// Tensor cores.
__global__ void InlinePtx(float* x) {
  double a = x[0];
  double b = x[1];
  asm volatile(
      "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, "
      "{%0, %1};"
      : "+d"(a), "+d"(b)
      : "d"(a), "d"(b));
  x[0] = static_cast<float>(a + b);
}

__device__ int counter = 10;

__global__ void Count() { ++counter; }

// Which element a thread takes depends on the order of blocks.
__device__ int next_slot = 0;
__global__ void TakeSlots(int* slots) {
  if (threadIdx.x == 0) slots[atomicAdd(&next_slot, 1)] = blockIdx.x + 1;
}

namespace {

constexpr int kCount = 1000;

float* NewArray(float value) {
  std::vector<float> host(kCount, value);
  float* device = nullptr;
  cudaMalloc(&device, kCount * sizeof(float));
  cudaMemcpy(device, host.data(), kCount * sizeof(float),
             cudaMemcpyHostToDevice);
  return device;
}

void Launch(float* device, float by) {
  Scale<<<4, 256>>>(device, by, kCount);
  cudaDeviceSynchronize();
}

float First(const float* device) {
  float value = 0;
  cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost);
  return value;
}

void Print(const char* what) {
  std::printf("%s %s\n", what, cudaGetErrorName(cudaGetLastError()));
  std::fflush(stdout);
}

void Instances() {
  // The same data three times, another scalar, other data, another shape.
  float* device = NewArray(1);
  for (int i = 0; i < 3; ++i) {
    Launch(device, 2);
    std::vector<float> ones(kCount, 1);
    cudaMemcpy(device, ones.data(), kCount * sizeof(float),
               cudaMemcpyHostToDevice);
  }
  Launch(device, 3);
  Launch(device, 3);
  Scale<<<8, 128>>>(device, 3, kCount);
  std::printf("%g\n", First(device));
}

void Reset() {
  int value = 0;
  Count<<<1, 1>>>();
  cudaMemcpyFromSymbol(&value, counter, sizeof(value));
  std::printf("%d\n", value);
  cudaDeviceReset();
  Count<<<1, 1>>>();
  cudaMemcpyFromSymbol(&value, counter, sizeof(value));
  std::printf("%d\n", value);
}

// Two kernels; one does all the work.
void Hot(float* device) {
  Scale<<<1, 32>>>(device, 1, 32);
  for (int i = 0; i < 20; ++i) Scale<<<64, 256>>>(device, 1, kCount);
  Count<<<1, 1>>>();
  cudaDeviceSynchronize();
  std::printf("done\n");
}

// Records, says so, and waits for a signal.
void Wait() {
  float* device = NewArray(1);
  Launch(device, 2);
  std::printf("waiting\n");
  std::fflush(stdout);
  for (;;) pause();
}

int Run(const char* mode) {
  float* device = std::strcmp(mode, "nothing") == 0 ? nullptr : NewArray(1);
  if (std::strcmp(mode, "once") == 0) {
    Launch(device, 2);
    std::printf("%g\n", First(device));
  } else if (std::strcmp(mode, "instances") == 0) {
    Instances();
  } else if (std::strcmp(mode, "hot") == 0) {
    Hot(device);
  } else if (std::strcmp(mode, "exit") == 0) {
    Launch(device, 2);
    return 7;
  } else if (std::strcmp(mode, "abort") == 0) {
    Launch(device, 2);
    raise(SIGABRT);
  } else if (std::strcmp(mode, "wait") == 0) {
    Wait();
  } else if (std::strcmp(mode, "endless") == 0) {
    Launch(device, 2);
    std::printf("waiting\n");
    std::fflush(stdout);
    Endless<<<1, 1>>>(device);
    cudaDeviceSynchronize();
    Print("endless");
  } else if (std::strcmp(mode, "terminate") == 0) {
    Launch(device, 2);
    raise(SIGTERM);
  } else if (std::strcmp(mode, "recursion") == 0) {
    Recurse<<<1, 1>>>(device, 1 << 24);
    cudaDeviceSynchronize();
    Print("recursion");
  } else if (std::strcmp(mode, "wild") == 0) {
    Launch(device, 2);
    Wild<<<1, 1>>>(device);
    Print("launch");
    cudaDeviceSynchronize();
    Print("synchronize");
  } else if (std::strcmp(mode, "overrun") == 0) {
    Overrun<<<1, 1>>>(device, kCount);
    cudaDeviceSynchronize();
    Print("overrun");
  } else if (std::strcmp(mode, "inline_ptx") == 0) {
    InlinePtx<<<1, 1>>>(device);
    Print("inline ptx");
    Launch(device, 2);
    std::printf("%g\n", First(device));
  } else if (std::strcmp(mode, "reset") == 0) {
    Reset();
  } else if (std::strcmp(mode, "slots") == 0) {
    int* slots = reinterpret_cast<int*>(NewArray(0));
    TakeSlots<<<64, 32>>>(slots);
    cudaDeviceSynchronize();
    Print("slots");
  } else if (std::strcmp(mode, "echo") == 0) {
    char line[100] = "";
    if (std::fgets(line, sizeof(line), stdin) != nullptr)
      std::printf("%s", line);
    Launch(device, 2);
  } else if (std::strcmp(mode, "children") == 0) {
    std::fflush(stdout);
    return std::system("./app once && ./app once");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return Run(argc > 1 ? argv[1] : "nothing"); }
