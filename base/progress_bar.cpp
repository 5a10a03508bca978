#include "millrace/base/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "millrace/base/log.h"
#include "millrace/base/word_wrap.h"

namespace millrace {

std::string progress_bar(double share, int width) {
  const auto full = static_cast<int>(std::clamp(share, 0.0, 1.0) * width);
  auto text = std::string(static_cast<std::size_t>(full), '=');
  if (full < width) text += '>';
  text.resize(static_cast<std::size_t>(width), ' ');
  return "[" + text + "] ";
}

bool stderr_is_terminal() {
  const auto* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && !(kind && std::string_view(kind) == "dumb");
}

bool shows_progress() { return stderr_is_terminal() && !log_is_quiet(); }

int terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col - 1 : 79;
}

void show_terminal_line(std::string text) {
  text = printable(text);
  text.resize(std::min(text.size(), static_cast<std::size_t>(terminal_columns())));
  text.insert(0, "\r\x1b[K");
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void end_terminal_line() { print_to_stderr("\n"); }

}  // namespace millrace
