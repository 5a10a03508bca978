// Logging: spdlog's default logger, always on standard error (standard output belongs to results).
#pragma once

#include <spdlog/spdlog.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace millrace {

/// Sets up the process-wide logger. Call once, from main.
void start_logging(bool verbose);

/// What is logged from now on is that of one of several processes, such as "rank 3 (host b)": its
/// warnings and errors begin with that name; of the others' lines only those of the `chief` are
/// shown.
void log_as(const std::string& name, bool chief);

/// Also writes the log to `file` (appending) from now on, the first time with all that was logged
/// before; an empty path stops that. Throws Error.
void log_to_file(const std::filesystem::path& file);

/// Says it in that file alone, if there is one: what ends a command is shown by the command itself.
void log_error_in_file(const std::string& text);

/// Writes to standard error, which nobody need read any more: a closed terminal or pipe is no
/// error.
void print_to_stderr(std::string_view text);

}  // namespace millrace
