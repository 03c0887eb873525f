// CHECK: a broken invariant of our own ends the process with its place; it does
// not vanish under NDEBUG. Never for what the environment, a user or a variant
// can cause: that is an absl::Status.
#ifndef REPRISE_REPLAY_BASE_CHECK_H_
#define REPRISE_REPLAY_BASE_CHECK_H_

namespace reprise {

[[noreturn]] void CheckFailed(const char* file, int line,
                              const char* condition);

}  // namespace reprise

#define CHECK(condition)        \
  (static_cast<bool>(condition) \
       ? static_cast<void>(0)   \
       : ::reprise::CheckFailed(__FILE__, __LINE__, #condition))

#endif  // REPRISE_REPLAY_BASE_CHECK_H_
