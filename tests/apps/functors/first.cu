// The first stage: its functor travels through constant memory.
#include "launch.h"
#include "stages.h"

namespace {

struct Step {
  unsigned int* values;
  Table table;
  __device__ void operator()(int i) const {
    values[i] += table.entries[i % Table::kEntries];
  }
};

__global__ void FinishKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] ^= values[i] >> 5;
}

}  // namespace

void RunFirst(unsigned int* values, int count, const Table& table) {
  launch::ByConstant(count, Step{values, table});
  FinishKernel<<<apps::BlocksFor(count, launch::kBlock), launch::kBlock>>>(
      values, count);
}
