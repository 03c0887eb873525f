// The second stage: its functor travels through constant and global memory in
// turn. Names as in the first stage.
#include "launch.h"
#include "stages.h"

namespace {

struct Step {
  Table table;
  unsigned int* values;
  int parity;  // of the elements to change
  __device__ void operator()(int i) const {
    if (i % 2 != parity) return;
    const int last = Table::kEntries - 1;
    values[i] = values[i] * 3u + table.entries[last - i % Table::kEntries];
  }
};

}  // namespace

static __global__ void FinishKernel(unsigned int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] ^= values[i] << 3;
}

void RunSecond(unsigned int* values, int count, const Table& table) {
  launch::ByConstant(count, Step{table, values, 0});
  launch::ByGlobal(count, Step{table, values, 1});
  FinishKernel<<<apps::BlocksFor(count, launch::kBlock), launch::kBlock>>>(
      values, count);
}
