// A program as MPI runs it: three ranks on as many devices as there are, one
// array each, the ends of the arrays passed on in a ring. Every rank checks its
// own array against a computation of all. Results are exact.
// --size: number of values of a rank.
#include "../common/ranks.h"

constexpr int kBlock = 256;
constexpr int kRanks = 3;

// values[i] = 3 values[i] + i + halo, modulo 2^32.
__global__ void StepRankKernel(unsigned int* values, int count,
                               unsigned int halo) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    values[i] = values[i] * 3u + static_cast<unsigned int>(i) + halo;
}

int RunRank(const apps::Options& options, const apps::Rank& rank) {
  const int count = static_cast<int>(options.size);
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  CUDA_CHECK(cudaSetDevice(rank.number % devices));
  std::vector<unsigned int> all[kRanks];
  for (int r = 0; r < kRanks; ++r) {
    all[r].resize(count);
    for (int i = 0; i < count; ++i) all[r][i] = apps::HashBits(r, i);
  }
  apps::DeviceArray<unsigned int> values(all[rank.number]);
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    unsigned int last = 0;
    CUDA_CHECK(cudaMemcpy(&last, values.get() + count - 1, sizeof(last),
                          cudaMemcpyDeviceToHost));
    rank.Send(last);
    const auto halo = rank.Receive<unsigned int>();
    StepRankKernel<<<apps::BlocksFor(count, kBlock), kBlock>>>(values.get(),
                                                               count, halo);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());

    unsigned int halos[kRanks];
    for (int r = 0; r < kRanks; ++r)
      halos[r] = all[(r + kRanks - 1) % kRanks][count - 1];
    for (int r = 0; r < kRanks; ++r) {
      for (int i = 0; i < count; ++i)
        all[r][i] = all[r][i] * 3u + static_cast<unsigned int>(i) + halos[r];
    }
  }
  const std::vector<unsigned int> got = values.ToHost();
  apps::Checker checker;
  for (int i = 0; i < count; ++i)
    checker.Expect("value", i, got[i], all[rank.number][i], apps::kExact);
  return checker.Right() ? 0 : checker.Finish();
}

int main(int argc, char** argv) {
  const apps::Options options = apps::ParseOptions(
      argc, argv, "ranks",
      {1 << 20, 10007, 1 << 26, "number of values of a rank"});
  const apps::Rank rank = apps::ThisRank();
  return rank.number < 0 ? apps::RunRanks(kRanks, argv)
                         : RunRank(options, rank);
}
