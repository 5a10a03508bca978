#include "millrace/cli/list_text.h"

#include <string>

#include "millrace/cli/command.h"
#include "millrace/cli/terminal_text.h"

namespace millrace::cli {

void print_list_line(std::string_view line) {
  static const std::string column(41, ' ');  // of what an option does
  const bool is_option = line.starts_with("    ");
  if (is_option)
    print_lines(line, column);
  else
    print_lines(line);
}

void suggest_after_list() {
  suggest_next("trainer config CONFIG shows what a configuration sets of these, and from where");
}

}  // namespace millrace::cli
