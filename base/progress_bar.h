// A progress bar on the terminal.
#pragma once

#include <string>

namespace millrace {

/// Returns "[=====>    ] " for `share` (0 .. 1) with `width` characters inside the brackets.
std::string progress_bar(double share, int width);

/// Returns whether standard error is a terminal that can replace a line (not with TERM=dumb).
bool stderr_is_terminal();

/// Returns whether to show progress: standard error is such a terminal and the log is not quiet.
bool shows_progress();

/// Returns the number of characters that fit into a terminal line; 79 if there is no terminal.
int terminal_columns();

/// Replaces the current terminal line; longer text is truncated. Call `end_terminal_line` before
/// any other output.
void show_terminal_line(std::string text);
void end_terminal_line();

}  // namespace millrace
