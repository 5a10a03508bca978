// Text for people on standard output.
#pragma once

#include <string_view>

namespace millrace::cli {

/// Prints lines: on a terminal broken between words where they are longer than it is wide, what is
/// broken off behind `indent`; into a file or a pipe as they are, for a script reads them.
void print_lines(std::string_view text, std::string_view indent = "    ");

}  // namespace millrace::cli
