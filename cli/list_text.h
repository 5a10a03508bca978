// The lines of `trainer list`, which two programs print.
#pragma once

#include <string_view>

namespace millrace::cli {

/// Prints a line, on a terminal broken where it is too long: what an option does stays in its
/// column.
void print_list_line(std::string_view line);

/// Says what to do after the list.
void suggest_after_list();

}  // namespace millrace::cli
