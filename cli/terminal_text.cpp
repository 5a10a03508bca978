#include "millrace/cli/terminal_text.h"

#include <unistd.h>

#include "millrace/base/progress_bar.h"
#include "millrace/base/word_wrap.h"
#include "millrace/cli/command.h"

namespace millrace::cli {

void print_lines(std::string_view text, std::string_view indent) {
  if (::isatty(STDOUT_FILENO) == 0) return print_text(text);
  print_text(wrapped(text, static_cast<std::size_t>(terminal_columns()), indent));
}

}  // namespace millrace::cli
