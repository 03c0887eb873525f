// Standard error as a person sees it: a live status line on a terminal, plain
// lines elsewhere; colour unless NO_COLOR is set. Not thread-safe.
#ifndef REPRISE_SERVICES_COMMON_TERMINAL_H_
#define REPRISE_SERVICES_COMMON_TERMINAL_H_

#include <string>

#include "absl/time/time.h"

namespace reprise {

class Terminal {
 public:
  Terminal();
  ~Terminal();  // ends a live line

  bool interactive() const { return interactive_; }

  // A line that stays.
  void Line(const std::string& text);
  // Replaces the live line, at most ten times a second. Elsewhere than on a
  // terminal: a plain line, at most every ten seconds and only when it changed.
  void Live(const std::string& text);

  std::string Bold(const std::string& text) const;
  std::string Green(const std::string& text) const;

 private:
  void ClearLive();
  bool interactive_;
  bool color_;
  bool live_ = false;
  absl::Time last_ = absl::InfinitePast();
  std::string last_text_;
};

}  // namespace reprise

#endif  // REPRISE_SERVICES_COMMON_TERMINAL_H_
