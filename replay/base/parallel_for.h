// Splits work over bytes among the host's threads. Thread-safe.
#ifndef REPRISE_REPLAY_BASE_PARALLEL_FOR_H_
#define REPRISE_REPLAY_BASE_PARALLEL_FOR_H_

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace reprise {

// Calls body(begin, end) for disjoint pieces that cover [0, bytes), on several
// threads when that pays. Pieces begin at multiples of 4 KiB.
template <typename Body>
void ParallelFor(uint64_t bytes, const Body& body) {
  constexpr uint64_t kWorthAThread = 8 << 20;
  const uint64_t threads =
      std::clamp<uint64_t>(bytes / kWorthAThread, 1,
                           std::max(1u, std::thread::hardware_concurrency()));
  const uint64_t piece = (bytes / threads + 4095) / 4096 * 4096;
  if (threads == 1 || piece == 0) {
    if (bytes > 0) body(uint64_t{0}, bytes);
    return;
  }
  std::vector<std::thread> workers;
  for (uint64_t begin = piece; begin < bytes; begin += piece) {
    workers.emplace_back([&body, begin, piece, bytes] {
      body(begin, std::min(begin + piece, bytes));
    });
  }
  body(uint64_t{0}, std::min(piece, bytes));
  for (std::thread& worker : workers) worker.join();
}

}  // namespace reprise

#endif  // REPRISE_REPLAY_BASE_PARALLEL_FOR_H_
