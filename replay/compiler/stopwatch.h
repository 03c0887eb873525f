// Milliseconds since it was made. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_STOPWATCH_H_
#define REPRISE_REPLAY_COMPILER_STOPWATCH_H_

#include <chrono>

namespace reprise {

class Stopwatch {
 public:
  double ElapsedMs() const {
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now() - start_)
        .count();
  }

 private:
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_STOPWATCH_H_
