// Logging: spdlog's default logger, always on standard error (standard output belongs to results).
#pragma once

#include <spdlog/spdlog.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace millrace {

/// Sets up the process-wide logger. Call once, from main.
void start_logging(bool verbose);

/// Names this process, one of several: "rank 3 (host b)". Warnings and errors begin with the name;
/// other lines are shown only from the `chief`.
void log_as(const std::string& name, bool chief);

/// Also appends the log to `file` from now on, the first time with all lines before; an empty path
/// stops that. Throws Error.
void log_to_file(const std::filesystem::path& file);

/// Logs to that file only, if there is one: the command itself shows the error that ends it.
void log_error_in_file(const std::string& text);

/// Writes to standard error; a closed terminal or pipe is no error.
void print_to_stderr(std::string_view text);

}  // namespace millrace
