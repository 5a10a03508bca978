// Logging with spdlog's default logger, always to standard error (standard output is for results).
#pragma once

#include <spdlog/common.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace millrace {

/// Logs the formatted line. Not a template, so that spdlog and its formatting are compiled once.
void log_formatted(spdlog::level::level_enum level, fmt::string_view format,
                   fmt::format_args arguments);

/// Log a line: log_info("read {} images", count). Threads may log at the same time. Debug lines are
/// shown with --verbose, info lines without --quiet, warnings and errors always.
template <typename... Arguments>
void log_debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  log_formatted(spdlog::level::debug, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void log_info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  log_formatted(spdlog::level::info, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void log_warning(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  log_formatted(spdlog::level::warn, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void log_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  log_formatted(spdlog::level::err, format, fmt::make_format_args(arguments...));
}

/// Level of the log on standard error: warnings and errors, also information, or everything. The
/// file of log_to_file contains information at every level.
enum class LogLevel { quiet, usual, verbose };

/// Sets up the logger of the process. Call once, from main. Uses colours on a terminal unless the
/// environment has NO_COLOR (https://no-color.org).
void start_logging(LogLevel level = LogLevel::usual);

/// Returns whether logging was started with LogLevel::quiet.
bool log_is_quiet();

/// Returns a spdlog formatter in which %P is the message without control characters.
std::unique_ptr<spdlog::formatter> log_formatter(const std::string& pattern);

/// Logs the result of a command. At LogLevel::quiet it is still shown, without time and level.
void log_result(std::string_view text);

/// Names this process in a multi-process run, such as "rank 3 (host b)". The name is put before
/// warnings and errors; other messages are shown only if `chief` is true.
void set_process_name(const std::string& name, bool chief);

/// Also appends the log to `file` from now on. The first call also writes all earlier lines. An
/// empty path ends logging to a file. Throws Error.
void log_to_file(const std::filesystem::path& file);

/// Logs only to the file of log_to_file, if any. Used for the error that ends a command, which the
/// command itself shows, and for long tables.
void log_error_in_file(const std::string& text);
void log_info_in_file(const std::string& text);

/// Writes to standard error. A closed terminal or pipe is not an error.
void print_to_stderr(std::string_view text);

}  // namespace millrace
