#include "services/common/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace reprise {
namespace {

size_t TerminalWidth() {
  winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10)
    return size.ws_col;
  return 80;
}

}  // namespace

Terminal::Terminal() {
  const char* term = std::getenv("TERM");
  interactive_ = isatty(STDERR_FILENO) != 0 &&
                 !(term != nullptr && std::string(term) == "dumb");
  const char* no_color = std::getenv("NO_COLOR");
  color_ = interactive_ && (no_color == nullptr || *no_color == '\0');
}

Terminal::~Terminal() { ClearLive(); }

void Terminal::ClearLive() {
  if (!live_) return;
  std::fputs("\r\033[K", stderr);
  live_ = false;
}

void Terminal::Line(const std::string& text) {
  ClearLive();
  std::fprintf(stderr, "%s\n", text.c_str());
}

void Terminal::Live(const std::string& text) {
  const absl::Time now = absl::Now();
  if (now - last_ <
          (interactive_ ? absl::Milliseconds(100) : absl::Seconds(10)) ||
      text == last_text_)
    return;
  last_ = now;
  last_text_ = text;
  if (!interactive_) {
    std::fprintf(stderr, "%s\n", text.c_str());
    return;
  }
  std::string shown = text.substr(0, TerminalWidth() - 1);
  std::fprintf(stderr, "\r\033[K%s", shown.c_str());
  std::fflush(stderr);
  live_ = true;
}

std::string Terminal::Bold(const std::string& text) const {
  return color_ ? absl::StrCat("\033[1m", text, "\033[0m") : text;
}

std::string Terminal::Green(const std::string& text) const {
  return color_ ? absl::StrCat("\033[32m", text, "\033[0m") : text;
}

}  // namespace reprise
