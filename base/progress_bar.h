// A bar that shows on a terminal how far some work is.
#pragma once

#include <string>

namespace millrace {

/// "[=====>    ] ": `share` (0 .. 1) of `width` characters.
std::string progress_bar(double share, int width);

/// Whether standard error is a terminal, where a line can be replaced (TERM=dumb: it cannot).
bool stderr_is_terminal();

/// Whether progress is to be shown there: it is one, and the log is not quiet.
bool shows_progress();

/// Characters that fit into a line of it; 79 if it is none.
int terminal_columns();

/// Replaces the line that the terminal shows now; longer text is cut. Call `end_terminal_line`
/// before the program says something else.
void show_terminal_line(std::string text);
void end_terminal_line();

}  // namespace millrace
