// Early return of absl::Status and absl::StatusOr. Thread-safe.
#ifndef REPRISE_REPLAY_BASE_STATUS_MACROS_H_
#define REPRISE_REPLAY_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when the expression is an error.
#define RETURN_IF_ERROR(expr)                                         \
  do {                                                                \
    if (absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

#define REPRISE_CONCAT_INNER_(a, b) a##b
#define REPRISE_CONCAT_(a, b) REPRISE_CONCAT_INNER_(a, b)

// ASSIGN_OR_RETURN(auto x, F()): the value, or return of the error.
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL_(REPRISE_CONCAT_(status_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL_(name, lhs, expr)    \
  auto name = (expr);                              \
  if (!name.ok()) return std::move(name).status(); \
  lhs = *std::move(name)

#endif  // REPRISE_REPLAY_BASE_STATUS_MACROS_H_
